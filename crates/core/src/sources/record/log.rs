//! The event log of a session: one line of JSON for each event, in the order in
//! which hooks reported them.
//!
//! The log is authoritative, and the record beside it is its fold. Each line is written at
//! once, with a line feed before it too, so that a torn line (a full disk) affects no other.

use std::path::PathBuf;

use serde::Serialize;
use whosup_sidecar::StrictObject;

use super::format::{RecordError, SessionRecord, record_of, time, wrong};
use super::heard::{EndCause, PaneHint, count, parse_pane};
use super::owner::{RecordedOwner, WrittenOwner, parse_owner};
use super::owners::{Ancestor, WrittenAncestor, parse_chain, written_chain};
use crate::adapter::hook_event::EventKind;
use crate::views::wire::timestamp;

/// The maximum length of a line, in bytes.
pub const LINE_BYTES_MAX: usize = 128 * 1024;

/// One event, as it is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Identifies the event: a line that was written twice counts once.
    pub id: String,
    /// When it was reported, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub kind: EventKind,
    /// The agent's home.
    pub home: PathBuf,
    /// The process that runs the session; `None` if none was found.
    pub owner: Option<RecordedOwner>,
    /// The processes from the hook up to the owner, nearest first.
    pub chain: Vec<Ancestor>,
    /// The owner has taken up another session since it took up this session: the event is late.
    pub has_left: bool,
    /// Where the session works.
    pub work_dir: Option<PathBuf>,
    /// The branch there.
    pub git_branch: Option<String>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// The start of the prompt.
    pub prompt: Option<String>,
    /// Why it ended, in the agent's own word.
    pub reason: Option<String>,
    /// The pane that the environment names.
    pub pane: Option<PaneHint>,
    /// The processor time that the owner had used, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// It was reported by a command that runs at the end of another session.
    pub is_aftermath: bool,
    /// How and when the session ended, if it did.
    pub end: Option<LoggedEnd>,
}

/// How and when a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedEnd {
    /// The cause of the end.
    pub cause: EndCause,
    /// The last evidence of life, in milliseconds since 1970.
    pub ended_at_ms: i64,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    /// An event.
    Event(Box<LoggedEvent>),
    /// A process has claimed the duty to pass on that this event ended the session.
    PassedOn(String),
    /// The fold of everything before this line, and the IDs of the last events before it: a log is
    /// shortened to such a line.
    Record(Box<SessionRecord>, Vec<String>),
}

#[derive(Debug, Serialize)]
struct WrittenEvent<'a> {
    id: &'a str,
    at: Option<String>,
    event: &'static str,
    home: String,
    owner: Option<WrittenOwner<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<WrittenAncestor>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    left: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    work_dir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pane: Option<&'a PaneHint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    aftermath: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<std::borrow::Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

impl LoggedEvent {
    /// The event as a line, with a line feed at both ends.
    #[must_use]
    pub fn to_line(&self) -> String {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let written = WrittenEvent {
            id: &self.id,
            at: timestamp(self.at_ms),
            event: self.kind.name(),
            home: text(&self.home),
            owner: self.owner.as_ref().map(WrittenOwner::new),
            chain: written_chain(&self.chain),
            left: self.has_left,
            work_dir: self.work_dir.as_ref().map(text),
            git_branch: self.git_branch.as_deref(),
            transcript: self.transcript.as_ref().map(text),
            prompt: self.prompt.as_deref(),
            reason: self.reason.as_deref(),
            pane: self.pane.as_ref(),
            cpu_ms: self.cpu_ms,
            aftermath: self.is_aftermath,
            cause: self.end.map(|end| end.cause.name()),
            ended_at: self.end.and_then(|end| timestamp(end.ended_at_ms)),
        };
        // Only text, numbers and nulls: this can't fail, and a failure would leave a blank line, which
        // readers skip.
        let json = serde_json::to_string(&written).unwrap_or_default();
        format!("\n{json}\n")
    }
}

/// A record as the first line of a shortened log, with the IDs of the last events in it.
#[must_use]
pub fn record_line(record: &SessionRecord, last_ids: &[String]) -> String {
    let json = serde_json::json!({ "record": record.to_json(), "ids": last_ids });
    format!("\n{json}\n")
}

/// The line of a process that claims the duty to pass on the end by the event `end`.
#[must_use]
pub fn passed_on_line(end: &str) -> String {
    format!("\n{}\n", serde_json::json!({ "passed_on": end }))
}

/// Parses one line of a log.
///
/// # Errors
///
/// [`RecordError`] naming what is wrong with it.
pub fn parse_line(line: &[u8]) -> Result<LogLine, RecordError> {
    let object = StrictObject::parse(line)?;
    if let Some(record) = object.opt_object("record")? {
        let ids = object.opt_strings("ids")?.unwrap_or_default();
        let ids = ids.into_iter().map(str::to_owned).collect();
        return Ok(LogLine::Record(Box::new(record_of(&record)?), ids));
    }
    if let Some(end) = object.opt_string("passed_on")? {
        return Ok(LogLine::PassedOn(end.to_owned()));
    }
    let kind = object.string("event")?;
    let kind = EventKind::from_name(kind)
        .ok_or_else(|| wrong("event", "kind of event", format!("`{kind}`")))?;
    let cause = object.opt_string("cause")?.map(EndCause::from_name);
    let ended_at_ms = time(&object, "ended_at")?;
    let path = |key| -> Result<Option<PathBuf>, RecordError> {
        Ok(object.opt_string(key)?.map(PathBuf::from))
    };
    let text = |key| -> Result<Option<String>, RecordError> {
        Ok(object.opt_string(key)?.map(str::to_owned))
    };
    let event = LoggedEvent {
        id: object.string("id")?.to_owned(),
        at_ms: time(&object, "at")?.ok_or_else(|| wrong("at", "time", "it is missing"))?,
        kind,
        home: PathBuf::from(object.string("home")?),
        owner: object.opt_object("owner")?.map(parse_owner).transpose()?,
        chain: parse_chain(&object)?,
        has_left: object.opt_bool("left")?.unwrap_or(false),
        work_dir: path("work_dir")?,
        git_branch: text("git_branch")?,
        transcript: path("transcript")?,
        prompt: text("prompt")?,
        reason: text("reason")?,
        pane: parse_pane(&object)?,
        cpu_ms: count(&object, "cpu_ms")?,
        is_aftermath: object.opt_bool("aftermath")?.unwrap_or(false),
        end: cause
            .zip(ended_at_ms)
            .map(|(cause, ended_at_ms)| LoggedEnd { cause, ended_at_ms }),
    };
    Ok(LogLine::Event(Box::new(event)))
}
