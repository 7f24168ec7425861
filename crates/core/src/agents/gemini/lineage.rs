//! Where the process went that was launched with a session. Pure.
//!
//! Whatever is typed in a terminal is logged under the session that its process was
//! launched with, for as long as it runs. So the log connects the sessions that one
//! process went through; the launch connects the first of them with the process.

use whosup_sidecar::SessionId;

use super::chat::Chat;
use super::prompts::{Command, Prompts, Typed};

/// How long after `/clear` was typed the new session is made, in milliseconds:
/// 0.4 s, or as long as hooks take.
const CLEAR_MS_MAX: i64 = 10_000;
/// How long after a prompt was typed it is recorded in the session.
const PROMPT_MS_MAX: i64 = 60_000;
/// How much before that it may look, in milliseconds.
const PROMPT_SLACK_MS: i64 = 1_000;

/// What the log shows about the process that was launched with a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path {
    /// The sessions that it went to, and when, oldest first.
    pub(super) visits: Vec<(SessionId, i64)>,
    /// When it went on to a session that is not known.
    pub(super) lost_at_ms: Option<i64>,
    /// When it quit.
    pub(super) quit_at_ms: Option<i64>,
    /// When something was last typed in its terminal.
    pub(super) typed_at_ms: Option<i64>,
}

/// The sessions of one project, and what was typed there.
pub(super) struct Lineage<'a> {
    pub(super) chats: &'a [Chat],
    pub(super) prompts: &'a Prompts,
}

impl Lineage<'_> {
    /// Where the process went that was launched with `first`.
    pub(super) fn path_of(&self, first: &SessionId) -> Path {
        let mut path = Path::default();
        let typed = self.prompts.typed.iter();
        for typed in typed.filter(|typed| typed.first_session == first.as_str()) {
            path.typed_at_ms = Some(typed.at_ms);
            let next = match typed.command() {
                Some(Command::Quit) => {
                    path.quit_at_ms = Some(typed.at_ms);
                    continue;
                }
                Some(Command::Browse) => None,
                Some(Command::Clear) => self.cleared_to(typed),
                // A prompt that can't be found changes nothing.
                None => match self.session_with(typed) {
                    Some(chat) => Some(chat),
                    None => continue,
                },
            };
            match next {
                Some(chat) => {
                    path.lost_at_ms = None;
                    path.visits.push((chat.id.clone(), typed.at_ms));
                }
                None => path.lost_at_ms = Some(typed.at_ms),
            }
        }
        path
    }

    /// When processes may have been launched with the session: at its starts, but for the
    /// first one if `/clear` may have made the session.
    pub(super) fn launches_of<'a>(&self, chat: &'a Chat) -> &'a [i64] {
        let id = chat.id.as_str();
        let is_typed_under = |typed: &Typed| typed.first_session == id;
        match chat.starts_ms.as_slice() {
            // The process that something was typed in under this session was launched so.
            [only] if self.prompts.typed.iter().any(is_typed_under) => std::slice::from_ref(only),
            [_, later @ ..] if self.clears_before(chat).next().is_some() => later,
            all => all,
        }
    }

    /// The times at which `/clear` was typed that may have made the session.
    fn clears_before<'a>(&'a self, chat: &Chat) -> impl Iterator<Item = &'a Typed> {
        let born = chat.born_at_ms();
        self.prompts.typed.iter().filter(move |typed| {
            typed.command() == Some(Command::Clear)
                && born.is_some_and(|born| (0..=CLEAR_MS_MAX).contains(&(born - typed.at_ms)))
        })
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

    /// The session that `/clear` made, if only one can have been made by it, and that one
    /// by no other `/clear`.
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
