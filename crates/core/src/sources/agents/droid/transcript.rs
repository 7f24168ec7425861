//! A transcript, and the settings beside it.
//!
//! Read in the executable of Droid 0.225.2, 2026-11, and not seen written: the
//! first line is a `session_start` (`id`, `title`, `cwd`, `lastCwd`,
//! `callingSessionId` of a sub-agent, …), without a date; then a `message` a
//! line, with `timestamp` and a `message` of `role` and `content`, and
//! `compaction_state`s. `ID.settings.json` beside it has the model.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use whosup_sidecar::file::{Links, ReadFileError, read_regular};

use crate::adapter::phase::Phase;
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{
    HeadBounds, MissingEnd, TailBounds, TranscriptError, TranscriptFile,
};

/// How much of the beginning is read for what a session is.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 32,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// How long the text of a message is at most, in characters.
const TEXT_CHARS_MAX: usize = 20_000;
/// How long the settings may be, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// The title of a session that has none yet.
const NO_TITLE: &str = "New Session";

/// What the beginning of a transcript tells.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// The id in its first line.
    pub(super) id: Option<String>,
    /// The session that this is a sub-agent of.
    pub(super) parent: Option<String>,
    /// The directory that it works in now.
    pub(super) work_dir: Option<PathBuf>,
    pub(super) title: Option<String>,
    /// A person gave the title.
    pub(super) is_title_given: bool,
    /// The first prompt, or a command.
    pub(super) words: FirstWords,
    /// The date of its first message.
    pub(super) first_at_ms: Option<i64>,
}

/// What the end of a transcript tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The date of its last message.
    pub(super) last_at_ms: Option<i64>,
    /// What is missing there.
    pub(super) missing_end: Option<MissingEnd>,
    pub(super) phase: Option<Phase>,
}

/// Reads the beginning of a transcript.
pub(super) fn read_head(
    file: &TranscriptFile,
    bad: &mut BadLines,
) -> Result<Head, TranscriptError> {
    let mut head = Head::default();
    for line in file.head(HEAD_BOUNDS)?.lines {
        for record in bad.values(&line) {
            head.add(&record);
        }
        if head.words.has_prompt() {
            break;
        }
    }
    Ok(head)
}

impl Tail {
    /// Until when the session may have gone on, where the end of its messages is missing.
    /// (What is changed in a whole one may be its title, in the first line.)
    pub(super) fn perhaps_until_ms(&self) -> Option<i64> {
        let is_lost = |end: &MissingEnd| end.is_torn || self.last_at_ms.is_none();
        let end = self.missing_end.filter(is_lost);
        end.map(|end| end.until_ms)
    }
}

impl Head {
    fn add(&mut self, record: &Value) {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        match text("type") {
            Some("session_start") if self.id.is_none() => {
                let title = text("sessionTitle").or(text("title"));
                self.id = text("id").map(str::to_owned);
                self.parent = text("callingSessionId").map(str::to_owned);
                self.work_dir = text("lastCwd")
                    .or(text("cwd"))
                    .filter(|path| Path::new(path).is_absolute())
                    .map(PathBuf::from);
                self.title = title.filter(|title| *title != NO_TITLE).and_then(one_line);
                self.is_title_given = record
                    .get("isSessionTitleManuallySet")
                    .and_then(Value::as_bool)
                    .unwrap_or(false);
            }
            Some("message") => {
                self.first_at_ms = self.first_at_ms.or_else(|| at_ms(record));
                if role(record) == Some("user") {
                    self.words.add(texts(record), &Wrapping::NONE);
                }
            }
            _ => {}
        }
    }
}

/// Reads the end of a transcript.
pub(super) fn read_tail(
    file: &TranscriptFile,
    bad: &mut BadLines,
) -> Result<Tail, TranscriptError> {
    let mut tail = read_last(file, bad)?;
    tail.missing_end = file.missing_end(tail.last_at_ms, at_ms)?;
    Ok(tail)
}

fn read_last(file: &TranscriptFile, bad: &mut BadLines) -> Result<Tail, TranscriptError> {
    for line in file.backwards(LAST_BOUNDS)? {
        let line = line?;
        if line.is_too_long() {
            // The last message, maybe: what it is can't be told.
            break;
        }
        let records = bad.values(&line);
        let last = records
            .iter()
            .rev()
            .find(|record| record.get("type").and_then(Value::as_str) == Some("message"));
        if let Some(last) = last {
            return Ok(Tail {
                last_at_ms: at_ms(last),
                phase: phase(last),
                ..Tail::default()
            });
        }
    }
    Ok(Tail::default())
}

/// A question to the person is kept in memory only, so a session that waits
/// for permission looks like one that works.
fn phase(last: &Value) -> Option<Phase> {
    let calls_tool = || parts(last).any(|(kind, _)| kind == "tool_use");
    match role(last)? {
        "user" => Some(Phase::Working),
        "assistant" if calls_tool() => Some(Phase::Working),
        "assistant" => Some(Phase::Idle),
        _ => None,
    }
}

/// Reads the last messages, oldest first.
pub(super) fn messages(
    file: &TranscriptFile,
    messages_max: usize,
) -> Result<(Vec<Message>, Option<String>), TranscriptError> {
    let mut bad = BadLines::default();
    let mut newest_first = Vec::new();
    for line in file.backwards(MESSAGES_BOUNDS)? {
        if newest_first.len() >= messages_max {
            break;
        }
        for record in bad.values(&line?).iter().rev() {
            let mut told = messages_of(record);
            told.reverse();
            newest_first.extend(told);
        }
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok((newest_first, bad.message()))
}

fn messages_of(record: &Value) -> Vec<Message> {
    let message = |role, text: &str| Message {
        role,
        at_ms: at_ms(record),
        text: text.chars().take(TEXT_CHARS_MAX).collect(),
    };
    let told = match role(record) {
        Some("user") => texts(record)
            .map(|text| message(MessageRole::User, text))
            .collect(),
        Some("assistant") => parts(record)
            .filter_map(|(kind, part)| {
                let text = |key: &str| part.get(key).and_then(Value::as_str);
                match kind {
                    "text" => Some(message(MessageRole::Assistant, text("text")?)),
                    "tool_use" => Some(message(MessageRole::Tool, text("name")?)),
                    _ => None,
                }
            })
            .collect(),
        _ => Vec::new(),
    };
    let is_something = |message: &Message| !message.text.trim().is_empty();
    told.into_iter().filter(is_something).collect()
}

fn role(record: &Value) -> Option<&str> {
    if record.get("type")?.as_str()? != "message" {
        return None;
    }
    record.pointer("/message/role")?.as_str()
}

/// The parts of a message that are objects, with their types.
fn parts(record: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let parts = record.pointer("/message/content").and_then(Value::as_array);
    let typed = |part| Some((Value::get(part, "type")?.as_str()?, part));
    parts.into_iter().flatten().filter_map(typed)
}

/// The texts of a message: a string, or the parts that are texts. What the
/// agent itself puts between is no text of anybody's.
fn texts(record: &Value) -> impl Iterator<Item = &str> {
    let whole = record.pointer("/message/content").and_then(Value::as_str);
    let of_parts = parts(record)
        .filter(|(kind, _)| *kind == "text")
        .filter_map(|(_, part)| part.get("text")?.as_str());
    let texts = whole.into_iter().chain(of_parts);
    texts.filter_map(|text| Wrapping::NONE.typed(text))
}

fn at_ms(record: &Value) -> Option<i64> {
    let at: Timestamp = record.get("timestamp")?.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

/// What the settings beside a transcript tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    /// The branch of the work tree that Droid made for it.
    pub(super) git_branch: Option<String>,
}

/// The settings beside a transcript.
pub(super) fn settings_path(transcript: &Path) -> PathBuf {
    transcript.with_extension("settings.json")
}

/// Reads the settings beside a transcript; there may be none.
pub(super) fn read_settings(path: &Path) -> Result<Settings, String> {
    let file = match read_regular(path, SETTINGS_BYTES_MAX, Links::Follow) {
        Ok(file) => file,
        Err(ReadFileError::NotFound { .. }) => return Ok(Settings::default()),
        Err(error) => return Err(error.reason()),
    };
    let settings: Value = serde_json::from_slice(&file.bytes).map_err(|error| error.to_string())?;
    let text = |pointer: &str| {
        let value = settings.pointer(pointer)?.as_str()?;
        Some(value.to_owned()).filter(|value| !value.is_empty())
    };
    Ok(Settings {
        model: text("/model"),
        git_branch: text("/worktree/branch"),
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::fs;

    use super::*;

    const START: &str = r#"{"type":"session_start","id":"s-1","title":"Fix it","owner":"dev","version":2,"cwd":"/w/app","lastCwd":"/w/lib","parent":"s-0"}"#;

    fn message(role: &str, at: &str, content: &str) -> String {
        format!(
            r#"{{"type":"message","id":"m","timestamp":"2026-11-27T21:{at}Z","message":{{"role":"{role}","content":{content}}}}}"#
        )
    }

    fn file(lines: &[String]) -> (tempfile::TempDir, TranscriptFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s-1.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        let file = TranscriptFile::open(&path).unwrap();
        (directory, file)
    }

    #[test]
    fn the_beginning_tells_what_a_session_is() {
        let reminder = r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"}]"#;
        let prompt = r#"[{"type":"text","text":"fix\nthe build"},{"type":"image"}]"#;
        let (_directory, file) = file(&[
            START.to_owned(),
            message("user", "00:01.500", reminder),
            message("user", "00:02.000", prompt),
        ]);
        let head = read_head(&file, &mut BadLines::default()).unwrap();
        assert_eq!(head.id.as_deref(), Some("s-1"));
        // A fork is no sub-agent.
        assert_eq!(head.parent, None);
        assert_eq!(head.work_dir, Some(PathBuf::from("/w/lib")));
        assert_eq!(head.title.as_deref(), Some("Fix it"));
        assert_eq!(head.words.title().as_deref(), Some("fix the build"));
        assert_eq!(head.first_at_ms, Some(1_795_813_201_500));
    }

    #[test]
    fn the_last_message_tells_the_phase() {
        let check = |lines: &[String], right: Option<Phase>| {
            let (_directory, file) = file(lines);
            let tail = read_tail(&file, &mut BadLines::default()).unwrap();
            assert_eq!(tail.phase, right, "{lines:?}");
        };
        let start = || START.to_owned();
        let user = || message("user", "00:01", r#""fix it""#);
        let calls = r#"[{"type":"text","text":"x"},{"type":"tool_use","name":"Execute"}]"#;
        let answers = r#"[{"type":"text","text":"done"}]"#;
        check(&[start()], None);
        check(&[start(), user()], Some(Phase::Working));
        check(
            &[user(), message("assistant", "00:02", calls)],
            Some(Phase::Working),
        );
        check(
            &[user(), message("assistant", "00:02", answers)],
            Some(Phase::Idle),
        );
        let compacted = r#"{"type":"compaction_state","id":"c"}"#.to_owned();
        check(
            &[message("assistant", "00:02", answers), compacted],
            Some(Phase::Idle),
        );
        let torn = r#"{"type":"mess"#.to_owned();
        check(
            &[message("assistant", "00:02", answers), torn],
            Some(Phase::Idle),
        );
        let huge = message("user", "00:03", &format!("\"{}\"", "x".repeat(3 << 20)));
        check(&[message("assistant", "00:02", answers), huge], None);
    }

    #[test]
    fn texts_and_tools_are_messages() {
        let calls = r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},{"type":"tool_use","name":"Execute"}]"#;
        let result = r#"[{"type":"tool_result","content":"ok"}]"#;
        let (_directory, file) = file(&[
            START.to_owned(),
            message("user", "00:01", r#""fix it""#),
            message("assistant", "00:02", calls),
            message("user", "00:03", result),
        ]);
        let (all, problem) = messages(&file, 10).unwrap();
        let texts: Vec<&str> = all.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, ["fix it", "so", "Execute"]);
        assert_eq!(problem, None);
        assert_eq!(messages(&file, 1).unwrap().0.len(), 1);
    }

    #[test]
    fn settings_are_read_and_need_not_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = settings_path(&directory.path().join("s-1.jsonl"));
        assert!(path.ends_with("s-1.settings.json"));
        assert_eq!(read_settings(&path), Ok(Settings::default()));
        fs::write(
            &path,
            r#"{"model":"m-1","worktree":{"branch":"b","path":"/w"}}"#,
        )
        .unwrap();
        let settings = read_settings(&path).unwrap();
        assert_eq!(settings.model.as_deref(), Some("m-1"));
        assert_eq!(settings.git_branch.as_deref(), Some("b"));
        fs::write(&path, "{").unwrap();
        assert!(read_settings(&path).is_err());
    }
}
