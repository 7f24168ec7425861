//! A transcript, and the settings beside it.
//!
//! Read in the executable of Droid 0.225.2, 2026-11, and not seen written: the
//! first line is a `session_start` (`id`, `title`, `cwd`, `lastCwd`,
//! `callingSessionId` of a sub-agent, …), without a date; then a `message` a
//! line, with `timestamp` and a `message` of `role` and `content`, and
//! `compaction_state`s. `ID.settings.json` beside it has the model.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::file::Links;
use whosup_sidecar::parse_json;

use super::{AGENT, tokens};
use crate::adapter::phase::Phase;
use crate::adapter::{Context, Description};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::dialect::{
    Dialect, HEAD_BOUNDS, Record, Step, date_at, find_first, text_at, texts_in, values_at,
};
use crate::sources::agents::kit::reading::read_if_there;
use crate::sources::agents::kit::title::{is_cut_from, one_line};
use crate::sources::transcript::{MissingEnd, TranscriptError, TranscriptFile};

/// How long the settings may be, in bytes.
pub(super) const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// The title of a session that has none yet.
const NO_TITLE: &str = "New Session";

/// How the records of Droid read. The model is in the settings.
pub(super) const DIALECT: Dialect = Dialect {
    has_models: false,
    phase_without_turn: Some(Phase::Idle),
    has_tokens: false,
    ..Dialect::of(record_of)
};

/// A question to the person is kept in memory only, so a session that waits
/// for permission looks like one that works.
fn record_of(record: &Value) -> Record<'_> {
    let at_ms = date_at(record, "/timestamp");
    let is_message = text_at(record, "/type") == Some("message");
    let dated = Record {
        at_ms,
        is_aside: !is_message,
        born_at_ms: at_ms.filter(|_| is_message),
        ..Record::default()
    };
    let content = record.pointer("/message/content");
    match text_at(record, "/message/role").filter(|_| is_message) {
        Some("user") => Record {
            typed: texts_in(content).collect(),
            step: Step::Shows(Some(Phase::Working)),
            ..dated
        },
        Some("assistant") => {
            let parts = values_at(record, "/message/content");
            let calls = parts.filter(|part| text_at(part, "/type") == Some("tool_use"));
            let calls = calls.map(|call| text_at(call, "/name").unwrap_or_default());
            let calls: Vec<&str> = calls.collect();
            let is_done = calls.is_empty();
            Record {
                reply: texts_in(content).collect(),
                calls,
                step: Step::Shows(Some(match is_done {
                    true => Phase::Idle,
                    false => Phase::Working,
                })),
                ..dated
            }
        }
        _ if is_message => Record {
            step: Step::Shows(None),
            ..dated
        },
        _ => dated,
    }
}

/// What both ends of a transcript show.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Its first line.
    pub(super) start: Start,
    /// Its messages.
    pub(super) found: Description,
    pub(super) missing_end: Option<MissingEnd>,
}

/// The first line of a transcript.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) id: Option<String>,
    /// The session that this is a sub-agent of.
    pub(super) parent: Option<String>,
    /// The directory that it works in now.
    pub(super) work_dir: Option<PathBuf>,
    pub(super) title: Option<String>,
    /// A person gave the title.
    pub(super) is_title_given: bool,
}

/// Reads both ends of a transcript.
pub(super) fn read(
    file: &TranscriptFile,
    bad_lines: &mut BadLines,
) -> Result<Outline, TranscriptError> {
    let found = DIALECT.read(file, bad_lines)?;
    Ok(Outline {
        start: find_first(file, HEAD_BOUNDS, start_in)?.unwrap_or_default(),
        missing_end: DIALECT.missing_end(file, found.last_activity_at_ms)?,
        found,
    })
}

fn start_in(record: &Value) -> Option<Start> {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    if text("type")? != "session_start" {
        return None;
    }
    let title = text("sessionTitle").or(text("title"));
    let is_given = record.get("isSessionTitleManuallySet");
    Some(Start {
        id: text("id").map(str::to_owned),
        parent: text("callingSessionId").map(str::to_owned),
        work_dir: text("lastCwd")
            .or(text("cwd"))
            .filter(|path| Path::new(path).is_absolute())
            .map(PathBuf::from),
        title: title.filter(|title| *title != NO_TITLE).and_then(one_line),
        is_title_given: is_given.and_then(Value::as_bool) == Some(true),
    })
}

impl Outline {
    /// Until when the session may have gone on, where the end of its messages is missing
    /// or can't be read. (What is changed in a whole one may be the title, in the first
    /// line.)
    pub(super) fn perhaps_until_ms(&self) -> Option<i64> {
        let is_unknown = self.found.last_activity_at_ms.is_none() || self.found.phase.is_none();
        let end = self.missing_end.filter(|end| end.is_torn || is_unknown);
        end.map(|end| end.until_ms)
    }

    /// What the transcript shows of its session.
    pub(super) fn into_description(self) -> Description {
        let prompt = self.found.title.as_deref();
        let is_prompt = |title: &String| prompt.is_some_and(|prompt| is_cut_from(title, prompt));
        let title = self.start.title.or_else(|| prompt.map(str::to_owned));
        Description {
            is_title_a_prompt: !self.start.is_title_given && title.as_ref().is_some_and(is_prompt),
            title,
            work_dir: self.start.work_dir,
            ..self.found
        }
    }
}

/// What the settings beside a transcript tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    /// The branch of the work tree that Droid made for it.
    pub(super) git_branch: Option<String>,
    /// How full the context is.
    pub(super) context: Option<Context>,
}

/// The settings beside a transcript.
pub(super) fn settings_path(transcript: &Path) -> PathBuf {
    transcript.with_extension("settings.json")
}

/// Reads the settings beside a transcript; there may be none.
pub(super) fn read_settings(path: &Path) -> Result<Settings, Problem> {
    let failed = |why| Problem::at(&AGENT, path, why);
    let Some(file) = read_if_there(path, SETTINGS_BYTES_MAX, Links::Follow).map_err(failed)? else {
        return Ok(Settings::default());
    };
    let settings: serde_json::Result<Value> = parse_json(&file.bytes);
    let settings = settings.map_err(|error| failed(error.to_string()))?;
    Ok(Settings {
        model: text_at(&settings, "/model").map(str::to_owned),
        git_branch: text_at(&settings, "/worktree/branch").map(str::to_owned),
        context: tokens::context(&settings),
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::fs;

    use super::*;
    use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

    const START: &str = r#"{"type":"session_start","id":"s-1","title":"Fix it","owner":"dev","version":2,"cwd":"/w/app","lastCwd":"/w/lib","parent":"s-0"}"#;

    fn message(role: &str, at: &str, content: &str) -> String {
        format!(
            r#"{{"type":"message","id":"m","timestamp":"2026-11-27T21:{at}Z","message":{{"role":"{role}","content":{content}}}}}"#
        )
    }

    fn outline(lines: &[String]) -> Outline {
        let (_directory, file) = file_of(lines);
        read(&file, &mut BadLines::default()).unwrap()
    }

    #[test]
    fn the_beginning_tells_what_a_session_is() {
        let reminder = r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"}]"#;
        let prompt = r#"[{"type":"text","text":"fix\nthe build"},{"type":"image"}]"#;
        let read = outline(&[
            START.to_owned(),
            message("user", "00:01.500", reminder),
            message("user", "00:02.000", prompt),
        ]);
        assert_eq!(read.start.id.as_deref(), Some("s-1"));
        // A fork is no sub-agent.
        assert_eq!(read.start.parent, None);
        assert_eq!(read.start.work_dir, Some(PathBuf::from("/w/lib")));
        assert_eq!(read.start.title.as_deref(), Some("Fix it"));
        assert_eq!(read.found.title.as_deref(), Some("fix the build"));
        assert_eq!(read.found.started_at_ms, Some(1_795_813_201_500));
    }

    #[test]
    fn the_last_message_tells_the_phase() {
        let check = |lines: &[String], right: Option<Phase>| {
            assert_eq!(outline(lines).found.phase, right, "{lines:?}");
        };
        let start = || START.to_owned();
        let user = || message("user", "00:01", r#""fix it""#);
        let calls = r#"[{"type":"text","text":"x"},{"type":"tool_use","name":"Execute"}]"#;
        let answers = r#"[{"type":"text","text":"done"}]"#;
        // It waits for its first prompt.
        check(&[start()], Some(Phase::Idle));
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
    }

    #[test]
    fn a_last_message_that_cannot_be_read_may_be_of_any_later_time() {
        let answers = message("assistant", "00:02", r#"[{"type":"text","text":"done"}]"#);
        let huge = message("user", "00:03", &format!("\"{}\"", "x".repeat(17 << 20)));
        let mut read = outline(&[answers, huge]);
        assert_eq!(read.found.phase, None);
        read.missing_end = Some(MissingEnd {
            until_ms: 7,
            is_torn: false,
        });
        assert_eq!(read.perhaps_until_ms(), Some(7));
    }

    #[test]
    fn texts_and_tools_are_messages() {
        let calls = r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},{"type":"tool_use","name":"Execute"}]"#;
        let result = r#"[{"type":"tool_result","content":"ok"}]"#;
        let said = messages_in(
            &DIALECT,
            &[
                START.to_owned(),
                message("user", "00:01", r#""fix it""#),
                message("assistant", "00:02", calls),
                message("user", "00:03", result),
            ],
        );
        assert_eq!(said, ["fix it", "so", "Execute"]);
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
