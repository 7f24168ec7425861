//! Which process may be in which session of one project.
//!
//! Nothing names a process. But each begins with one session, made (or, when it
//! takes one up, made a mark of) soon after its start; and whatever is typed in
//! its terminal is logged by that first session for as long as it runs. So what
//! was typed connects the sessions that one process went through, and the first
//! of them connects it with the process. What is certain that way is told to
//! pairing; what is not, is left unpaired. Pure.
//!
//! Looking at directory and dates alone would go wrong here: `gemini -p` and
//! killed processes leave sessions that are younger than a running process, and
//! a running process that nobody has said anything to has its session removed by
//! the next start. Against that helps its terminal: what was typed or drawn
//! last there before a session was made, or typed in, was not this session's.
//!
//! What may still mislead (all pairs of this agent are marked as inferred): a
//! second process that was started within seconds of the first in the same
//! directory, and killed before anybody said anything to either.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;

use super::chat::{Chat, MINUTE_MS};
use super::prompts::{Command, Prompts, Typed};

/// How much older than its process a session may look, in milliseconds: both
/// are dated by one clock, so only for rounding.
const BIRTH_SLACK_MS: i64 = 250;
/// How long after its start a process has made its session as a rule, in
/// milliseconds. Seen: 6 to 14 s on a loaded machine.
const LAUNCH_MS_USUAL: i64 = 15_000;
/// How long that may take.
const LAUNCH_MS_MAX: i64 = 60_000;
/// How long after `/clear` was typed the new session is made, in milliseconds:
/// 0.4 s, or as long as hooks take.
const CLEAR_MS_MAX: i64 = 10_000;
/// How long after a prompt was typed it is recorded in the session.
const PROMPT_MS_MAX: i64 = 60_000;
/// How much before that it may look, in milliseconds.
const PROMPT_SLACK_MS: i64 = 1_000;

/// A process that looks for its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) pid: Pid,
    pub(super) began_at_ms: i64,
    /// The session that its arguments name.
    pub(super) named: Option<String>,
    /// It takes up a session that its arguments do not name.
    pub(super) resumes: bool,
    /// It answers one prompt, and logs nothing.
    pub(super) is_one_shot: bool,
    /// Its first prompt stands in its arguments.
    pub(super) has_first_prompt: bool,
    /// Nobody has typed in its terminal later than this.
    pub(super) typed_until_ms: Option<i64>,
    /// Nothing that was noted later than this was shown there.
    pub(super) shown_until_ms: Option<i64>,
}

impl Server {
    /// It draws its screen once it has made its session, and not before it is
    /// done if it has but one prompt to answer.
    fn was_drawn_since(&self, at_ms: i64) -> bool {
        self.is_one_shot || self.shown_until_ms.is_none_or(|until| until >= at_ms)
    }
}

/// What is known of a session's processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Those that may be in it, or have been and went on from it.
    pub(super) owners: BTreeSet<Pid>,
    /// Processes that may be in it or not, as the kernel notes the use of terminals or
    /// does not.
    pub(super) doubtful: BTreeSet<Pid>,
    /// A process began with it.
    pub(super) is_first: bool,
}

impl Fate {
    /// Puts together what is known if the kernel notes no use of a terminal, and what if
    /// it does.
    pub(super) fn doubt(&mut self, other: &Self) {
        self.doubtful
            .extend(self.owners.symmetric_difference(&other.owners));
        self.owners.extend(&other.owners);
    }
}

/// Tells for each chat which of the processes may be in it.
pub(super) fn fates(
    servers: &[Server],
    chats: &[Chat],
    prompts: &Prompts,
) -> BTreeMap<String, Fate> {
    let lineage = Lineage { chats, prompts };
    let mut fates: BTreeMap<String, Fate> = chats
        .iter()
        .map(|chat| {
            let is_first = lineage.origin(chat) == Origin::Itself;
            let fate = Fate {
                is_first,
                ..Fate::default()
            };
            (chat.id.as_str().to_owned(), fate)
        })
        .collect();
    let mut firsts: Vec<Vec<String>> = servers
        .iter()
        .map(|server| lineage.firsts_of(server))
        .collect();
    lineage.settle_youngest(servers, &mut firsts);
    for (server, firsts) in servers.iter().zip(firsts) {
        for first in firsts {
            for id in lineage.sessions_of(server, &first) {
                if let Some(fate) = fates.get_mut(&id) {
                    fate.owners.insert(server.pid);
                }
            }
        }
    }
    fates
}

/// Where a session came from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// A process began with it.
    Itself,
    /// It was made by `/clear` in a process that began with this one.
    Of(String),
    /// It was made by `/clear` in one of several processes.
    Unknown,
}

struct Lineage<'a> {
    chats: &'a [Chat],
    prompts: &'a Prompts,
}

impl Lineage<'_> {
    fn origin(&self, chat: &Chat) -> Origin {
        let id = chat.id.as_str();
        if self
            .prompts
            .typed
            .iter()
            .any(|typed| typed.first_session == id)
        {
            return Origin::Itself;
        }
        let typed = chat
            .prompts
            .iter()
            .rev()
            .find_map(|(text, at_ms)| self.typed(text, *at_ms));
        if let Some(typed) = typed {
            return Origin::Of(typed.first_session.clone());
        }
        let Some(born) = chat.born_at_ms() else {
            return Origin::Itself;
        };
        let clears = self.prompts.typed.iter().filter(|typed| {
            typed.command() == Some(Command::Clear)
                && (0..=CLEAR_MS_MAX).contains(&(born - typed.at_ms))
        });
        let by: BTreeSet<&str> = clears.map(|typed| typed.first_session.as_str()).collect();
        let mut by = by.into_iter();
        match (by.next(), by.next()) {
            (None, _) => Origin::Itself,
            (Some(first), None) => Origin::Of(first.to_owned()),
            (Some(_), Some(_)) => Origin::Unknown,
        }
    }

    /// What was typed that became the prompt `text`, sent at `at_ms`.
    fn typed(&self, text: &str, at_ms: i64) -> Option<&Typed> {
        let text = text.trim();
        let fitting = self.prompts.typed.iter().filter(|typed| {
            let took_ms = at_ms - typed.at_ms;
            (-PROMPT_SLACK_MS..=PROMPT_MS_MAX).contains(&took_ms) && typed.text.trim() == text
        });
        fitting.min_by_key(|typed| (at_ms - typed.at_ms).abs())
    }

    /// The session in which what was typed became a prompt.
    fn session_with(&self, typed: &Typed) -> Option<&Chat> {
        let has_it = |chat: &&Chat| {
            chat.prompts.iter().any(|(text, at_ms)| {
                text.trim() == typed.text.trim() && self.typed(text, *at_ms) == Some(typed)
            })
        };
        self.chats.iter().find(has_it)
    }

    /// The sessions that a process may have begun with.
    fn firsts_of(&self, server: &Server) -> Vec<String> {
        if let Some(named) = &server.named {
            return vec![named.clone()];
        }
        let made_within = |launch_ms: i64| -> Vec<&Chat> {
            self.chats
                .iter()
                .filter(|chat| self.origin(chat) == Origin::Itself)
                .filter(|chat| may_begin_with(server, chat, launch_ms))
                .filter(|chat| !self.is_typed_in_elsewhere(server, chat.id.as_str()))
                .filter(|chat| !self.has_quit(server, chat.id.as_str()))
                .collect()
        };
        let mut firsts = made_within(LAUNCH_MS_USUAL);
        if firsts.is_empty() && server.resumes {
            firsts = self.resumed_by(server);
        }
        if firsts.is_empty() && !server.is_one_shot {
            firsts = self.removed_of(server);
        }
        if firsts.is_empty() {
            firsts = made_within(LAUNCH_MS_MAX);
        }
        if firsts.len() > 1 {
            self.drop_unlike(server, &mut firsts);
        }
        firsts
            .into_iter()
            .map(|chat| chat.id.as_str().to_owned())
            .collect()
    }

    /// The session of the process that began last can't have been removed by a
    /// later start. So of several it is one that has its header, if another
    /// process can have the others; and if that leaves but one, it is no earlier
    /// process's.
    fn settle_youngest(&self, servers: &[Server], firsts: &mut [Vec<String>]) {
        let Some(youngest) = servers.iter().max_by_key(|server| server.began_at_ms) else {
            return;
        };
        let latest = youngest.began_at_ms + LAUNCH_MS_MAX;
        let is_later = |chat: &Chat| chat.starts_ms.iter().any(|at_ms| *at_ms > latest);
        let mut chats = self.chats.iter();
        if chats.any(|chat| is_later(chat) && self.origin(chat) == Origin::Itself) {
            // Somebody has begun after it, and ended.
            return;
        }
        let may_have_been_removed = |first: &String| {
            let mut chats = self.chats.iter();
            chats.any(|chat| chat.id.as_str() == first && chat.was_removed())
        };
        let of_others: BTreeSet<String> = servers
            .iter()
            .zip(firsts.iter())
            .filter(|(server, _)| server.pid != youngest.pid)
            .flat_map(|(_, firsts)| firsts.iter().cloned())
            .collect();
        let mut its_own = None;
        for (server, firsts) in servers.iter().zip(firsts.iter_mut()) {
            if server.pid == youngest.pid && server.named.is_none() && !server.resumes {
                firsts.retain(|first| !(may_have_been_removed(first) && of_others.contains(first)));
                if let [only] = firsts.as_slice() {
                    its_own = Some(only.clone());
                }
            }
        }
        let Some(its_own) = its_own else { return };
        for (server, firsts) in servers.iter().zip(firsts) {
            if server.pid != youngest.pid && server.named.is_none() {
                firsts.retain(|first| *first != its_own);
            }
        }
    }

    /// Older sessions that somebody has typed in since a process began that
    /// took up some session, and whose files no longer say when.
    fn resumed_by(&self, server: &Server) -> Vec<&Chat> {
        let is_typed_in = |chat: &&Chat| {
            let born = chat.born_at_ms();
            let is_older = born.map_or(chat.path.is_none(), |born| born < server.began_at_ms);
            let mut since = self.since(server, chat.id.as_str());
            is_older && since.next().is_some() && !self.has_quit(server, chat.id.as_str())
        };
        self.chats.iter().filter(is_typed_in).collect()
    }

    /// Sessions whose files are gone and in which nobody had typed before the
    /// process began.
    fn removed_of(&self, server: &Server) -> Vec<&Chat> {
        let may_be_its = |chat: &&Chat| {
            let id = chat.id.as_str();
            let mut typed = self
                .prompts
                .typed
                .iter()
                .filter(|typed| typed.first_session == id);
            let is_since = typed
                .next()
                .is_some_and(|first| first.at_ms >= server.began_at_ms);
            chat.path.is_none()
                && is_since
                && !self.has_quit(server, id)
                && !self.is_typed_in_elsewhere(server, id)
        };
        self.chats.iter().filter(may_be_its).collect()
    }

    /// Of several, those that can't be its own go: prompts that nobody typed are
    /// of `gemini -p`, and what is typed is not.
    fn drop_unlike(&self, server: &Server, firsts: &mut Vec<&Chat>) {
        let is_logged = |chat: &&Chat| {
            let mut typed = self.prompts.typed.iter();
            typed.any(|typed| typed.first_session == chat.id.as_str())
        };
        let is_like = |chat: &&Chat| {
            if server.is_one_shot {
                !is_logged(chat)
            } else {
                server.has_first_prompt || chat.prompts.is_empty() || is_logged(chat)
            }
        };
        if firsts.iter().any(is_like) {
            firsts.retain(is_like);
        }
    }

    /// What was typed in a process that began with `first`.
    fn since<'s>(&'s self, server: &'s Server, first: &'s str) -> impl Iterator<Item = &'s Typed> {
        self.prompts
            .typed
            .iter()
            .filter(move |typed| typed.first_session == first && typed.at_ms >= server.began_at_ms)
    }

    /// Somebody typed in a process that began with `first` when nobody had typed
    /// in the terminal of this one for long.
    fn is_typed_in_elsewhere(&self, server: &Server, first: &str) -> bool {
        let mut since = self.since(server, first);
        since.any(|typed| {
            server
                .typed_until_ms
                .is_some_and(|until| typed.at_ms > until)
        })
    }

    fn has_quit(&self, server: &Server, first: &str) -> bool {
        let mut since = self.since(server, first);
        since.any(|typed| typed.command() == Some(Command::Quit))
    }

    /// The session that a process is in which began with `first`, and those that
    /// it has left for it. None if it may have gone anywhere since.
    fn sessions_of(&self, server: &Server, first: &str) -> Vec<String> {
        let mut visited = vec![first.to_owned()];
        let mut is_known = true;
        for typed in self.since(server, first) {
            let next = match typed.command() {
                Some(Command::Quit) => continue,
                Some(Command::Browse) => {
                    is_known = false;
                    continue;
                }
                Some(Command::Clear) => self.cleared_to(typed),
                // A prompt that can't be found changes nothing.
                None => match self.session_with(typed) {
                    Some(chat) => Some(chat),
                    None => continue,
                },
            };
            is_known = next.is_some();
            if let Some(next) = next {
                let next = next.id.as_str().to_owned();
                visited.retain(|id| *id != next);
                visited.push(next);
            }
        }
        if !is_known {
            return Vec::new();
        }
        self.that_were_left(visited)
    }

    /// The session that `/clear` has made.
    fn cleared_to(&self, typed: &Typed) -> Option<&Chat> {
        let is_made = |chat: &&Chat| {
            let born = chat.born_at_ms();
            born.is_some_and(|born| (0..=CLEAR_MS_MAX).contains(&(born - typed.at_ms)))
                && self.origin(chat) == Origin::Of(typed.first_session.clone())
        };
        self.chats
            .iter()
            .filter(is_made)
            .min_by_key(|chat| chat.born_at_ms())
    }

    /// The last one, and those before it that are older and silent since: that
    /// the youngest is current, pairing finds out by itself.
    fn that_were_left(&self, mut visited: Vec<String>) -> Vec<String> {
        let chat = |id: &str| self.chats.iter().find(|chat| chat.id.as_str() == id);
        let Some(current) = visited.pop() else {
            return Vec::new();
        };
        let born = chat(&current).and_then(Chat::born_at_ms);
        visited.retain(|id| {
            let before = chat(id);
            let is_older = before
                .and_then(Chat::born_at_ms)
                .zip(born)
                .is_some_and(|(a, b)| a < b);
            let is_silent = before
                .and_then(|chat| chat.last_at_ms)
                .zip(born)
                .is_some_and(|(last, born)| last <= born + BIRTH_SLACK_MS);
            is_older && is_silent
        });
        visited.push(current);
        visited
    }
}

/// One of its files was begun soon after the process; of a file without a
/// header only the minute is known.
fn may_begin_with(server: &Server, chat: &Chat, launch_ms: i64) -> bool {
    let from = server.began_at_ms - BIRTH_SLACK_MS;
    let to = server.began_at_ms + launch_ms;
    let is_started = chat
        .starts_ms
        .iter()
        .any(|at_ms| (from..=to).contains(at_ms) && server.was_drawn_since(*at_ms));
    let is_in_minute = chat.minute_ms.is_some_and(|minute| {
        minute <= to && from < minute + MINUTE_MS && server.was_drawn_since(minute)
    });
    is_started || is_in_minute
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;
