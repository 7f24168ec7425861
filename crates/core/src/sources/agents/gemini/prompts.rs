//! `logs.json`: what people typed in the terminals of one project.
//!
//! One array for all processes, each entry `{sessionId, messageId, type,
//! message, timestamp}`. The id is that of the session that the typing process *began* with,
//! and stays the same when the process moves to another session: so it shows which sessions
//! one process went through. Commands like `/clear` are recorded too. `gemini -p` writes
//! nothing here.
//! Seen in Gemini CLI 0.61.0, 2026-11.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;
use whosup_sidecar::file::{Links, OpenFile, ReadFileError};

use crate::sources::agents::kit::dialect::date_at;
use crate::sources::agents::kit::document::parse_document;

/// How much of the end is read: thousands of prompts.
const BYTES_MAX: u64 = 2 << 20;

/// A prompt or command that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed {
    /// The session that the process began with.
    pub(super) first_session: String,
    pub(super) text: String,
    pub(super) at_ms: i64,
}

/// The typed texts, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    pub(super) typed: Vec<Typed>,
    /// Earlier texts were not read.
    pub(super) is_cut: bool,
}

/// The effect of a typed command on the session of its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// It begins a new one.
    Clear,
    /// The process may move to any other session.
    Browse,
    /// It ends.
    Quit,
}

impl Typed {
    pub(super) fn command(&self) -> Option<Command> {
        let mut words = self.text.split_whitespace();
        match words.next()? {
            "/clear" | "/new" => Some(Command::Clear),
            "/quit" | "/exit" => Some(Command::Quit),
            // `/chat save TAG` and the like keep the session.
            "/resume" | "/chat" => {
                let keeps = ["save", "list", "delete", "share", "debug"];
                let is_kept = words.next().is_some_and(|next| keeps.contains(&next));
                (!is_kept).then_some(Command::Browse)
            }
            _ => None,
        }
    }
}

impl Prompts {
    /// Reads the file at `path`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Why not, in a few words.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, String> {
        let (bytes, is_cut) = match read_end(path) {
            Ok(read) => read,
            Err(ReadFileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.reason()),
        };
        Self::parse(&String::from_utf8_lossy(&bytes), is_cut).map(Some)
    }

    fn parse(text: &str, is_cut: bool) -> Result<Self, String> {
        let mut text = Cow::Borrowed(text);
        if is_cut {
            // The first entry that begins in the bytes that were read.
            let (_, rest) = text.split_once("\n  {").unwrap_or_default();
            text = format!("[{{{rest}").into();
        }
        // Gemini CLI empties the file and writes it anew: a reader in between knows nothing
        // of the typed texts.
        if text.trim().is_empty() {
            return Ok(Self {
                typed: Vec::new(),
                is_cut: true,
            });
        }
        let entries: Vec<Value> = parse_document(text.as_bytes())?;
        let mut typed: Vec<Typed> = entries.iter().filter_map(typed_in).collect();
        typed.sort_by_key(|typed| typed.at_ms);
        Ok(Self { typed, is_cut })
    }

    /// Returns whether the file records everything that was typed since then.
    pub(super) fn reaches_back_to(&self, at_ms: i64) -> bool {
        !self.is_cut || self.typed.first().is_some_and(|first| first.at_ms < at_ms)
    }
}

/// The end of the file, and whether there is more before it.
fn read_end(path: &Path) -> Result<(Vec<u8>, bool), ReadFileError> {
    let (file, facts) = OpenFile::open_and_look(path, Links::Follow)?;
    let from = facts.len.saturating_sub(BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(facts.len - from).unwrap_or_default()];
    let count = file.read_at(&mut bytes, from)?;
    bytes.truncate(count);
    Ok((bytes, from > 0))
}

fn typed_in(entry: &Value) -> Option<Typed> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    Some(Typed {
        first_session: text("sessionId")?.to_owned(),
        text: text("message")?.to_owned(),
        at_ms: date_at(entry, "/timestamp")?,
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    fn entry(session: &str, text: &str, at: &str) -> String {
        format!(
            "  {{\n    \"sessionId\": \"{session}\",\n    \"messageId\": 0,\n    \"type\": \"user\",\n    \"message\": \"{text}\",\n    \"timestamp\": \"2026-11-27T21:{at}Z\"\n  }}"
        )
    }

    #[test]
    fn what_was_typed_is_read_in_order() {
        let text = format!(
            "[\n{},\n{}\n]",
            entry("b", "two", "00:02.000"),
            entry("a", "one", "00:01.000")
        );
        let prompts = Prompts::parse(&text, false).unwrap();
        let texts: Vec<&str> = prompts
            .typed
            .iter()
            .map(|typed| typed.text.as_str())
            .collect();
        assert_eq!(texts, ["one", "two"]);
        assert_eq!(prompts.typed[0].first_session, "a");
        assert_eq!(prompts.typed[0].at_ms, 1_795_813_201_000);
        assert!(prompts.reaches_back_to(0));
        let nothing = Prompts::parse("", false);
        assert!(!nothing.is_ok_and(|nothing| nothing.reaches_back_to(i64::MAX)));
        assert!(Prompts::parse("{}", false).is_err());
        assert!(Prompts::parse("[{\"sessionId\":", false).is_err());
        assert_eq!(Prompts::parse("[7, {}]", false), Ok(Prompts::default()));
    }

    #[test]
    fn of_a_long_file_the_end_is_read() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("logs.json");
        assert_eq!(Prompts::read(&path), Ok(None));
        let noise = entry("a", &"x".repeat(1_000), "00:01.000") + ",\n";
        let text = format!(
            "[\n{}{}\n]",
            noise.repeat(3_000),
            entry("b", "last", "00:02.000")
        );
        std::fs::write(&path, text)?;
        let prompts = Prompts::read(&path).unwrap().unwrap();
        assert!(prompts.is_cut && prompts.typed.len() > 1_000);
        assert_eq!(prompts.typed.last().unwrap().text, "last");
        assert!(prompts.reaches_back_to(1_795_813_201_500));
        assert!(!prompts.reaches_back_to(1_795_813_200_500));
        Ok(())
    }

    #[test]
    fn commands_are_no_prompts() {
        let command = |text: &str| {
            let typed = Typed {
                first_session: String::new(),
                text: text.to_owned(),
                at_ms: 0,
            };
            typed.command()
        };
        assert_eq!(command(" /clear "), Some(Command::Clear));
        assert_eq!(command("/new"), Some(Command::Clear));
        assert_eq!(command("/resume"), Some(Command::Browse));
        assert_eq!(command("/chat"), Some(Command::Browse));
        assert_eq!(command("/chat resume mine"), Some(Command::Browse));
        assert_eq!(command("/chat save mine"), None);
        assert_eq!(command("/quit"), Some(Command::Quit));
        assert_eq!(command("please /clear"), None);
        assert_eq!(command(""), None);
    }
}
