//! The sessions that a process went through. Pure.
//!
//! Everything that is typed in a terminal is logged under the session that its process was
//! launched with, for as long as the process runs. So the log connects the sessions that one
//! process went through, and the launch connects the first of them with the process.

use std::ops::RangeInclusive;

use whosup_sidecar::SessionId;

use super::chat::Chat;
use super::prompts::{Command, Prompts, Typed};

/// How long after `/clear` was typed the new session is made, in milliseconds:
/// 0.4 s, or as long as hooks take.
const CLEAR_MS_MAX: i64 = 10_000;
/// A minute, in milliseconds.
const MINUTE_MS: i64 = 60_000;
/// How long after a prompt was typed it is recorded in the session.
const PROMPT_MS_MAX: i64 = 60_000;
/// How much before that it may look, in milliseconds.
const PROMPT_SLACK_MS: i64 = 1_000;

/// The log's facts about a process that was launched with a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path {
    /// When it was launched with it.
    pub(super) launched_at_ms: i64,
    /// The sessions that it went to, and when, oldest first.
    pub(super) visits: Vec<(SessionId, i64)>,
    /// When it moved to an unknown session.
    pub(super) lost_at_ms: Option<i64>,
    /// When it quit.
    pub(super) quit_at_ms: Option<i64>,
}

/// The sessions of one project, and the text that was typed there.
pub(super) struct Lineage<'a> {
    pub(super) chats: &'a [Chat],
    pub(super) prompts: &'a Prompts,
}

impl Lineage<'_> {
    /// Where the processes went that were launched with `first`: one for each launch.
    pub(super) fn paths_of(&self, first: &Chat) -> Vec<Path> {
        let path_of = |launched_at_ms: &i64| self.path_of(first, *launched_at_ms);
        self.launches_of(first).iter().map(path_of).collect()
    }

    /// The path of the process that was launched with `first` then.
    ///
    /// While another process that was launched with `first` may have been running, an entry
    /// may belong to either. Then a prompt in the session of this process shows that the
    /// process is still there, and a prompt elsewhere belongs to the other process. The
    /// effect of a command is unknown.
    fn path_of(&self, first: &Chat, launched_at_ms: i64) -> Path {
        let mut path = Path {
            launched_at_ms,
            ..Path::default()
        };
        let is_shared_at = |at_ms: i64| {
            let mut others = first.starts_ms.iter();
            others.any(|other| *other != launched_at_ms && *other <= at_ms)
        };
        let mut here = Some(&first.id);
        for typed in self.typed_under(first) {
            if typed.at_ms < launched_at_ms {
                continue;
            }
            let is_shared = is_shared_at(typed.at_ms);
            let next = match typed.command() {
                Some(Command::Quit) if is_shared => continue,
                Some(Command::Quit) => {
                    path.quit_at_ms = Some(typed.at_ms);
                    continue;
                }
                Some(Command::Clear) if !is_shared => self.cleared_to(typed),
                Some(Command::Browse | Command::Clear) => None,
                // A prompt that can't be found changes nothing.
                None => match self.session_with(typed) {
                    Some(chat) if !is_shared || here == Some(&chat.id) => Some(chat),
                    _ => continue,
                },
            };
            here = next.map(|chat| &chat.id);
            path.lost_at_ms = next.is_none().then_some(typed.at_ms);
            path.visits
                .extend(next.map(|chat| (chat.id.clone(), typed.at_ms)));
        }
        path
    }

    /// When something was last typed in a terminal whose process was launched with it.
    pub(super) fn typed_at_ms(&self, first: &Chat) -> Option<i64> {
        self.typed_under(first).map(|typed| typed.at_ms).max()
    }

    fn typed_under<'a>(&'a self, first: &Chat) -> impl Iterator<Item = &'a Typed> {
        let id = first.id.as_str().to_owned();
        let typed = self.prompts.typed.iter();
        typed.filter(move |typed| typed.first_session == id)
    }

    /// When processes may have been launched with the session: at each start of its files,
    /// except for the first start if `/clear` may have made the session.
    pub(super) fn launches_of<'a>(&self, chat: &'a Chat) -> &'a [i64] {
        // Text was typed under this session before it was taken up again, so a process was
        // launched with it as it was made.
        let is_typed_before = |next_ms: Option<&i64>| {
            let mut typed = self.typed_under(chat);
            typed.any(|typed| next_ms.is_none_or(|next| typed.at_ms < *next))
        };
        match chat.starts_ms.as_slice() {
            [_, later @ ..]
                if !is_typed_before(later.first()) && self.clears_before(chat).next().is_some() =>
            {
                later
            }
            all => all,
        }
    }

    /// The period in which a process was launched with the session, if its file has lost the
    /// date: in the minute of its name, and before the first typed text.
    pub(super) fn launched_within(&self, chat: &Chat) -> Option<RangeInclusive<i64>> {
        let first = self.typed_under(chat).map(|typed| typed.at_ms).min()?;
        let minute_ms = chat.minute_ms;
        let until = minute_ms.map_or(first, |minute| first.min(minute.saturating_add(MINUTE_MS)));
        let is_lost = chat.was_removed() && chat.starts_ms.is_empty();
        is_lost.then(|| minute_ms.unwrap_or(i64::MIN)..=until)
    }

    /// The times at which `/clear` was typed that may have made the session.
    fn clears_before<'a>(&'a self, chat: &Chat) -> impl Iterator<Item = &'a Typed> {
        let born = chat.born_at_ms();
        self.prompts.typed.iter().filter(move |typed| {
            typed.command() == Some(Command::Clear)
                && born.is_some_and(|born| (0..=CLEAR_MS_MAX).contains(&(born - typed.at_ms)))
        })
    }

    /// The typed text that became the prompt `text`, sent at `at_ms`.
    fn typed(&self, text: &str, at_ms: i64) -> Option<&Typed> {
        let text = text.trim();
        let fitting = self.prompts.typed.iter().filter(|typed| {
            let took_ms = at_ms - typed.at_ms;
            (-PROMPT_SLACK_MS..=PROMPT_MS_MAX).contains(&took_ms) && typed.text.trim() == text
        });
        fitting.min_by_key(|typed| (at_ms - typed.at_ms).abs())
    }

    /// The session in which the typed text became a prompt, if it can be only one.
    fn session_with(&self, typed: &Typed) -> Option<&Chat> {
        let has_it = |chat: &&Chat| {
            chat.prompts.iter().any(|(text, at_ms)| {
                text.trim() == typed.text.trim() && self.typed(text, *at_ms) == Some(typed)
            })
        };
        let mut having = self.chats.iter().filter(has_it);
        having.next().filter(|_| having.next().is_none())
    }

    /// The session that `/clear` made, if only one session matches, and no other `/clear`
    /// matches that session.
    fn cleared_to(&self, typed: &Typed) -> Option<&Chat> {
        let is_of_it = |chat: &&Chat| {
            let mut clears = self.clears_before(chat);
            clears.next() == Some(typed) && clears.next().is_none()
        };
        let mut made = self.chats.iter().filter(is_of_it);
        match (made.next(), made.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;
