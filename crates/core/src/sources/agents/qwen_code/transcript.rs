//! The transcript: `chats/SESSION.jsonl`, one record a line.
//!
//! Records of a conversation are `user`, `assistant` and `tool_result`; the
//! `system` ones beside them are bookkeeping. Some of these (`custom_title`,
//! `session_source`) are written again and again, also when a session is left,
//! and tell nothing of when something happened.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::adapter::phase::Phase;
use crate::adapter::{Description, Message, MessageRole};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{
    HeadBounds, Stopped, TailBounds, TranscriptError, TranscriptFile,
};

/// How much of the beginning is read for where and when a session began.
const BIRTH_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 8,
};
/// How much of the beginning is read for the first prompt.
const PROMPT_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 64,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back a title or a branch is looked for that may not be there:
/// qwen-code itself repeats the title every 32 KiB so that it is within 64.
const TITLE_BYTES: u64 = 64 * 1024;
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};

/// What qwen-code itself tells the model.
const WRAPPING: Wrapping = Wrapping {
    elements: &["session_context"],
    notices: &[],
};

/// When and where a session was, by its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Birth {
    pub(super) born_at_ms: Option<i64>,
    pub(super) work_dir: Option<PathBuf>,
}

/// Reads where and when a session began.
pub(super) fn read_birth(file: &TranscriptFile) -> Result<Birth, TranscriptError> {
    let head = file.head(BIRTH_BOUNDS)?;
    let records: Vec<Value> = head
        .lines
        .iter()
        .flat_map(|line| line.json().values)
        .collect();
    Ok(Birth {
        born_at_ms: records.iter().find_map(at_ms),
        work_dir: records.iter().find_map(work_dir),
    })
}

/// Tells whether anything may have been said in a transcript: a stub, as is left
/// in another folder, is whole and has no words.
pub(super) fn may_have_words(path: &Path) -> bool {
    let read = TranscriptFile::open(path).and_then(|file| file.head(PROMPT_BOUNDS));
    read.is_ok_and(|head| {
        let mut records = head.lines.iter().flat_map(|line| line.json().values);
        head.stopped != Stopped::NothingLeft || records.any(|record| is_conversation(&record))
    })
}

/// Reads the date inside the last record of the conversation.
pub(super) fn read_last_record_at(file: &TranscriptFile) -> Result<Option<i64>, TranscriptError> {
    for line in file.backwards(LAST_BOUNDS)? {
        let records = line?.json().values;
        let conversation = records
            .iter()
            .rev()
            .filter(|record| is_conversation(record));
        if let Some(at) = conversation.filter_map(at_ms).next() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// What a transcript told, and why some of its lines told nothing.
pub(super) struct Told<T> {
    pub(super) what: T,
    pub(super) bad_lines: BadLines,
}

/// Reads the first and the last prompt, as far as they are near the ends.
pub(super) fn read_prompts(file: &TranscriptFile) -> Result<Vec<String>, TranscriptError> {
    let head = file.head(BIRTH_BOUNDS)?;
    let records = head.lines.iter().flat_map(|line| line.json().values);
    let mut prompts: Vec<String> = records
        .filter(is_prompt)
        .find_map(|record| prompt_text(&record))
        .into_iter()
        .collect();
    for line in file.backwards(LAST_BOUNDS)? {
        let records = line?.json().values;
        if let Some(record) = records.iter().rev().find(|record| is_prompt(record)) {
            prompts.extend(prompt_text(record));
            break;
        }
    }
    Ok(prompts)
}

/// Reads what the head and the tail of a transcript tell about its session.
pub(super) fn describe(file: &TranscriptFile) -> Result<Told<Description>, TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut described = Description {
        transcript: Some(file.path().to_owned()),
        ..Description::default()
    };
    let last = read_last(file, &mut bad_lines)?;
    let head = file.head(PROMPT_BOUNDS)?;
    let records: Vec<Value> = head
        .lines
        .iter()
        .flat_map(|line| bad_lines.values(line))
        .collect();
    described.started_at_ms = records.iter().find_map(at_ms);
    let mut words = FirstWords::default();
    for record in &records {
        if let Some(text) = prompt_text(record).filter(|_| is_prompt(record)) {
            words.add([text.as_str()], &Wrapping::NONE);
        } else if let Some(command) = text_at(record, "/systemPayload/rawCommand") {
            words.add([command.as_str()], &Wrapping::NONE);
        }
    }
    let prompt = words.title();
    let first_model = || {
        let mut replies = records.iter().rev();
        replies.find_map(|record| text_at(record, "/model"))
    };
    described.is_title_a_prompt = last.title.is_none() && prompt.is_some();
    described.title = last.title.or(prompt);
    described.model = last.model.or_else(first_model);
    described.last_activity_at_ms = last.at_ms;
    described.phase = last.phase.flatten();
    described.phase_at_ms = last.phase_at_ms;
    if let Some(place) = last.place {
        described.work_dir = place.work_dir;
        described.agent_version = place.version;
        described.git_branch = place.branch;
    }
    Ok(Told {
        what: described,
        bad_lines,
    })
}

/// What the last records say.
#[derive(Default)]
struct Last {
    at_ms: Option<i64>,
    place: Option<Place>,
    model: Option<String>,
    title: Option<String>,
    /// Decided, and perhaps to be nothing certain.
    phase: Option<Option<Phase>>,
    /// The date of the record that decided.
    phase_at_ms: Option<i64>,
    /// After the records that were read, nothing came but calls that were refused.
    has_refusal: bool,
}

struct Place {
    work_dir: Option<PathBuf>,
    version: Option<String>,
    branch: Option<String>,
}

impl Last {
    fn add(&mut self, record: &Value) {
        let is_metadata = matches!(subtype(record), Some("custom_title" | "session_source"));
        if !is_metadata {
            self.at_ms = self.at_ms.or_else(|| at_ms(record));
        }
        if self.place.is_none() && work_dir(record).is_some() {
            self.place = Some(Place {
                work_dir: work_dir(record),
                version: text_at(record, "/version"),
                branch: text_at(record, "/gitBranch"),
            });
        }
        if kind(record) == Some("assistant") && self.model.is_none() {
            self.model = text_at(record, "/model");
        }
        if subtype(record) == Some("custom_title") && self.title.is_none() {
            let title = text_at(record, "/systemPayload/customTitle");
            self.title = title.and_then(|title| one_line(&title));
        }
        if is_conversation(record) && self.phase.is_none() {
            self.phase_at_ms = self.phase_at_ms.or_else(|| at_ms(record));
            if is_refused(record) {
                self.has_refusal = true;
                return;
            }
            self.phase = Some(match (self.has_refusal, kind(record)) {
                (false, _) => phase_after(record),
                // Every call of the last reply was refused.
                (true, Some("assistant")) => Some(Phase::Idle),
                (true, _) => None,
            });
        }
    }

    /// Everything is known that is worth reading further back than a title.
    const fn is_enough(&self) -> bool {
        self.at_ms.is_some() && self.model.is_some() && self.phase.is_some() && self.place.is_some()
    }
}

fn read_last(file: &TranscriptFile, bad_lines: &mut BadLines) -> Result<Last, TranscriptError> {
    let mut last = Last::default();
    let end = file.facts().len;
    for line in file.backwards(LAST_BOUNDS)? {
        let line = line?;
        // It may be the last record of the conversation, and can't be read.
        if line.is_too_long() && last.phase.is_none() {
            last.phase = Some(None);
        }
        for record in bad_lines.values(&line).iter().rev() {
            last.add(record);
        }
        if last.is_enough() && end.saturating_sub(line.offset) >= TITLE_BYTES {
            break;
        }
    }
    Ok(last)
}

/// A person refused a call: that ends the turn, unless another call of the same reply was
/// carried out.
fn is_refused(record: &Value) -> bool {
    let status = record.pointer("/toolCallResult/status");
    kind(record) == Some("tool_result") && status.and_then(Value::as_str) == Some("cancelled")
}

/// What is certain after `record`, the last one of the conversation.
///
/// A reply without a call ends the turn. A call without its result is being
/// carried out or waits for leave; a prompt or a result without a reply is
/// being answered or was interrupted by Escape, of which nothing is written.
/// Seen in qwen-code 0.24.4, 2026-11.
fn phase_after(record: &Value) -> Option<Phase> {
    let is_reply = kind(record) == Some("assistant");
    let has_call = parts(record).any(|part| part.get("functionCall").is_some());
    (is_reply && !has_call).then_some(Phase::Idle)
}

/// Reads the last messages, oldest first.
pub(super) fn messages(
    file: &TranscriptFile,
    messages_max: usize,
) -> Result<Told<Vec<Message>>, TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut newest_first = Vec::new();
    for line in file.backwards(MESSAGES_BOUNDS)? {
        if newest_first.len() >= messages_max {
            break;
        }
        for record in bad_lines.values(&line?).iter().rev() {
            newest_first.extend(messages_of(record).into_iter().rev());
        }
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok(Told {
        what: newest_first,
        bad_lines,
    })
}

fn messages_of(record: &Value) -> Vec<Message> {
    let role = match kind(record) {
        Some("user") if is_prompt(record) => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => return Vec::new(),
    };
    let at_ms = at_ms(record);
    let text = match role {
        MessageRole::User => prompt_text(record),
        MessageRole::Assistant | MessageRole::Tool => joined_text(record),
    };
    let said = text.map(|text| Message { role, at_ms, text });
    let calls = parts(record)
        .filter_map(|part| text_at(part, "/functionCall/name"))
        .map(|text| Message {
            role: MessageRole::Tool,
            at_ms,
            text,
        });
    said.into_iter().chain(calls).collect()
}

fn kind(record: &Value) -> Option<&str> {
    record.get("type")?.as_str()
}

fn subtype(record: &Value) -> Option<&str> {
    record.get("subtype")?.as_str()
}

fn text_at(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// The date of a record, in milliseconds since 1970.
pub(super) fn at_ms(record: &Value) -> Option<i64> {
    let at: Timestamp = record.get("timestamp")?.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

fn work_dir(record: &Value) -> Option<PathBuf> {
    let text = text_at(record, "/cwd")?;
    Path::new(&text).is_absolute().then(|| PathBuf::from(text))
}

/// Part of the session's own conversation, not of a sub-agent's.
fn is_conversation(record: &Value) -> bool {
    let is_aside = record.get("isSidechain").and_then(Value::as_bool) == Some(true);
    !is_aside && matches!(kind(record), Some("user" | "assistant" | "tool_result"))
}

/// Typed by a person, not put in by a timer or by the agent itself.
fn is_prompt(record: &Value) -> bool {
    let provenance = record.get("provenance").and_then(Value::as_str);
    is_conversation(record)
        && kind(record) == Some("user")
        && matches!(subtype(record), None | Some("mid_turn_user_message"))
        && matches!(provenance, None | Some("real_user"))
}

fn parts(record: &Value) -> impl Iterator<Item = &Value> {
    let parts = record.pointer("/message/parts").and_then(Value::as_array);
    parts.into_iter().flatten()
}

fn texts(record: &Value) -> impl Iterator<Item = &str> {
    let is_thought = |part: &&Value| part.get("thought").and_then(Value::as_bool) == Some(true);
    parts(record)
        .filter(move |part| !is_thought(part))
        .filter_map(|part| part.get("text")?.as_str())
}

fn joined_text(record: &Value) -> Option<String> {
    let text = texts(record).collect::<Vec<_>>().join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// What a person typed: as it was shown, where that differs from what was sent.
fn prompt_text(record: &Value) -> Option<String> {
    match text_at(record, "/systemPayload/displayText") {
        Some(shown) => Some(shown),
        None => WRAPPING.typed_in(texts(record)),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const USER: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:04.482Z","type":"user","provenance":"real_user","cwd":"/w/app","version":"0.24.4","message":{"role":"user","parts":[{"text":"hello\n  one"}]}}"#;
    const REPLY: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:06.000Z","type":"assistant","cwd":"/w/app","version":"0.24.4","gitBranch":"main","model":"mock-model","message":{"role":"model","parts":[{"text":"hi"}]}}"#;
    const CALL: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:07.000Z","type":"assistant","cwd":"/w/app","version":"0.24.4","model":"mock-model","message":{"role":"model","parts":[{"functionCall":{"id":"c","name":"run_shell_command","args":{}}}]}}"#;
    const RESULT: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:08.000Z","type":"tool_result","cwd":"/w/app","version":"0.24.4","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"run_shell_command"}}]}}"#;
    const MOVED: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:54:00.000Z","type":"system","subtype":"slash_command","cwd":"/w/other","version":"0.24.5"}"#;
    const TITLE: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T23:00:00.000Z","type":"system","subtype":"custom_title","cwd":"/w/app","version":"0.24.4","systemPayload":{"customTitle":"my title","titleSource":"manual"}}"#;

    fn file_of(lines: &[&str]) -> (tempfile::TempDir, TranscriptFile) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s.jsonl");
        std::fs::write(&path, lines.concat()).expect("a file");
        let file = TranscriptFile::open(&path).expect("a transcript");
        (directory, file)
    }

    fn description(lines: &[&str]) -> Description {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (_directory, file) = file_of(&lines);
        describe(&file).expect("a description").what
    }

    #[test]
    fn head_and_tail_describe_a_session() {
        let described = description(&[USER, REPLY]);
        assert_eq!(described.title.as_deref(), Some("hello one"));
        assert!(described.is_title_a_prompt);
        assert_eq!(described.model.as_deref(), Some("mock-model"));
        assert_eq!(described.git_branch.as_deref(), Some("main"));
        assert_eq!(described.agent_version.as_deref(), Some("0.24.4"));
        assert_eq!(described.started_at_ms, Some(1_795_812_784_482));
        assert_eq!(described.last_activity_at_ms, Some(1_795_812_786_000));
        assert_eq!(described.phase, Some(Phase::Idle));
    }

    #[test]
    fn the_first_prompt_is_what_a_person_typed() {
        let context = USER.replace("hello\\n  one", "<ide_opened_file>a.rs</ide_opened_file>");
        let stopped = USER.replace("hello\\n  one", "Operation stopped by hook");
        let title = |lines: &[&str]| description(lines).title;
        assert_eq!(title(&[&context, &stopped]), None);
        assert_eq!(title(&[&context, USER]).as_deref(), Some("hello one"));
        let command = MOVED.replace(
            r#""version""#,
            r#""systemPayload":{"rawCommand":"/review it"},"version""#,
        );
        assert_eq!(title(&[&command, &context]).as_deref(), Some("/review it"));
        assert_eq!(title(&[&command, USER]).as_deref(), Some("hello one"));
    }

    #[test]
    fn the_model_is_in_the_beginning_where_the_end_is_all_bookkeeping() {
        let long = MOVED.replace(
            r#""version""#,
            &format!(r#""x":"{}","version""#, "x".repeat(4000)),
        );
        let mut lines = vec![USER, REPLY];
        lines.extend(std::iter::repeat_n(long.as_str(), 600));
        assert_eq!(description(&lines).model.as_deref(), Some("mock-model"));
    }

    #[test]
    fn a_given_title_wins_and_its_repetition_is_no_activity() {
        let described = description(&[USER, REPLY, TITLE]);
        assert_eq!(described.title.as_deref(), Some("my title"));
        assert!(!described.is_title_a_prompt);
        assert_eq!(described.last_activity_at_ms, Some(1_795_812_786_000));
    }

    #[test]
    fn the_last_record_says_where_the_session_is_now() {
        let described = description(&[USER, REPLY, MOVED]);
        assert_eq!(described.work_dir.as_deref(), Some(Path::new("/w/other")));
        assert_eq!(described.agent_version.as_deref(), Some("0.24.5"));
        assert_eq!(described.phase, Some(Phase::Idle));
    }

    #[test]
    fn what_may_be_two_things_is_no_phase() {
        assert_eq!(description(&[USER]).phase, None);
        assert_eq!(description(&[USER, CALL]).phase, None);
        assert_eq!(description(&[USER, CALL, RESULT]).phase, None);
        assert_eq!(
            description(&[USER, CALL, RESULT, REPLY]).phase,
            Some(Phase::Idle)
        );
    }

    #[test]
    fn a_turn_ends_with_the_refusal_of_all_its_calls() {
        let refused = RESULT.replace(
            r#""message""#,
            r#""toolCallResult":{"callId":"c","status":"cancelled"},"message""#,
        );
        let phase = |lines: &[&str]| description(lines).phase;
        assert_eq!(phase(&[USER, CALL, &refused]), Some(Phase::Idle));
        assert_eq!(phase(&[USER, CALL, RESULT, &refused]), None);
        assert_eq!(phase(&[USER, CALL, &refused, RESULT]), None);
        assert_eq!(phase(&[USER, CALL, &refused, USER]), None);
    }

    #[test]
    fn a_line_too_long_to_read_makes_the_phase_uncertain() {
        let image = "x".repeat(2 * crate::sources::transcript::LINE_BYTES_MAX);
        let long = USER.replace("one", &image);
        assert_eq!(description(&[USER, REPLY, &long]).phase, None);
    }

    #[test]
    fn torn_and_fused_lines_leave_the_good_ones() {
        let fused = format!("{USER}{REPLY}\n");
        let (_directory, file) = file_of(&[&fused, "{\"c\":\n", "\0\0\0\n", "{\"type\":\"ass"]);
        let told = describe(&file).expect("a description");
        assert_eq!(told.what.title.as_deref(), Some("hello one"));
        assert_eq!(told.what.phase, Some(Phase::Idle));
        let message = told.bad_lines.message().expect("a message");
        assert!(message.contains("can't be read"), "{message}");
        let (_directory, torn) = file_of(&[&fused, "{\"type\":\"ass"]);
        assert_eq!(
            describe(&torn).expect("a description").bad_lines.message(),
            None
        );
    }

    #[test]
    fn dates_are_those_of_the_conversation() {
        let lines: Vec<String> = [USER, REPLY, TITLE]
            .map(|line| format!("{line}\n"))
            .to_vec();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (_directory, file) = file_of(&lines);
        let birth = read_birth(&file).expect("a birth");
        assert_eq!(birth.born_at_ms, Some(1_795_812_784_482));
        assert_eq!(birth.work_dir.as_deref(), Some(Path::new("/w/app")));
        assert_eq!(
            read_prompts(&file).expect("prompts"),
            ["hello\n  one", "hello\n  one"]
        );
        assert_eq!(
            read_last_record_at(&file).expect("a date"),
            Some(1_795_812_786_000)
        );
    }

    #[test]
    fn the_last_messages_come_oldest_first() {
        let lines: Vec<String> = [USER, CALL, RESULT, REPLY]
            .map(|line| format!("{line}\n"))
            .to_vec();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (_directory, file) = file_of(&lines);
        let told = messages(&file, 2).expect("messages").what;
        let texts: Vec<&str> = told.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, ["run_shell_command", "hi"]);
        let told = messages(&file, 10).expect("messages").what;
        assert_eq!(
            told.first().map(|message| message.role),
            Some(MessageRole::User)
        );
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn an_empty_transcript_describes_nothing() {
        let described = description(&[]);
        assert_eq!(described.title, None);
        assert_eq!(described.phase, None);
    }
}
