//! One record of the registry, `sessions/PID.json`, from its bytes.

use std::path::PathBuf;

use whosup_process::{Pid, PidNamespace, StampKind, StartStamp};
use whosup_sidecar::{FieldError, JsonError, SessionId, SessionIdError, StrictObject};

use crate::adapter::phase::{FactSource, Phase, PhaseFact, WaitingFor};

/// The longest count of clock ticks that is believed, in digits: at a thousand
/// ticks a second that is three hundred years. Longer numbers count something
/// else.
const TICKS_DIGITS_MAX: usize = 13;

/// Facts in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) pid: Pid,
    pub(super) session: SessionId,
    pub(super) work_dir: Option<PathBuf>,
    pub(super) stamp: Option<StartStamp>,
    /// The PID namespace of `pid` and `procStart`, if the record has it.
    pub(super) pid_namespace: Option<PidNamespace>,
    pub(super) started_at_ms: Option<i64>,
    /// The newest of the record's dates: when the claim was last made. (What
    /// changes the session in place leaves the dates as they are.)
    pub(super) dated_at_ms: Option<i64>,
    pub(super) kind: Kind,
    pub(super) entrypoint: Option<String>,
    /// A session name that a person set, not a name made from the directory.
    pub(super) name: Option<String>,
    pub(super) published: Option<PhaseFact>,
    pub(super) version: Option<String>,
    pub(super) endpoint: Option<String>,
    /// A pre-started process that has been given no session yet.
    pub(super) is_spare: bool,
    /// Fields beside the claim that could not be understood.
    pub(super) odd_fields: Vec<FieldError>,
}

/// The kind of a process, by its own record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `interactive`; also of `-p`.
    Interactive,
    /// `bg`: the worker of a background session.
    Background,
    /// `daemon`: serves no session.
    Daemon,
    /// `daemon-worker`, and the kinds of later versions.
    Other,
}

/// Why a record makes no claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    /// It is no JSON object: cut off, perhaps, while it is written.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field that the claim needs is missing or wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The session's id can't be one.
    #[error("`sessionId`: {0}")]
    SessionId(#[from] SessionIdError),
}

impl RecordError {
    /// It may be whole a moment later.
    pub(super) const fn may_be_torn(&self) -> bool {
        match self {
            Self::Json(error) => !matches!(
                error,
                JsonError::ByteOrderMark | JsonError::TooDeep | JsonError::NotAnObject { .. }
            ),
            Self::Field(_) | Self::SessionId(_) => false,
        }
    }
}

/// Parses a record. PID and session must be valid. Other fields that cannot be parsed are
/// left out and reported.
///
/// # Errors
///
/// [`RecordError`] if it makes no claim.
pub(super) fn parse_record(bytes: &[u8]) -> Result<Record, RecordError> {
    let object = StrictObject::parse(bytes)?;
    let mut odd_fields = Vec::new();
    let mut text = |key| kept(object.opt_string(key), &mut odd_fields).map(str::to_owned);
    let work_dir = text("cwd").filter(|cwd| !cwd.is_empty()).map(PathBuf::from);
    let stamp = text("procStart").as_deref().and_then(parse_stamp);
    let kind = match text("kind").as_deref() {
        None | Some("interactive") => Kind::Interactive,
        Some("bg") => Kind::Background,
        Some("daemon") => Kind::Daemon,
        Some(_) => Kind::Other,
    };
    let entrypoint = text("entrypoint");
    let pid_namespace = text("pidDomain").as_deref().and_then(parse_pid_domain);
    // `user` and `collision` (a fork of a named session) are a person's.
    let is_name_made = matches!(text("nameSource").as_deref(), Some("derived" | "auto"));
    let name = text("name").filter(|name| !name.trim().is_empty() && !is_name_made);
    let status = text("status");
    let waiting_for = text("waitingFor");
    let version = text("version");
    let endpoint = text("messagingSocketPath").filter(|path| !path.is_empty());
    let is_spare = kept(object.opt_bool("spare"), &mut odd_fields) == Some(true);
    let mut date = |key| kept(object.opt_integer(key), &mut odd_fields);
    let started_at_ms = date("startedAt");
    let status_at_ms = date("statusUpdatedAt");
    let updated_at_ms = date("updatedAt");
    let dated_at_ms = started_at_ms.max(status_at_ms).max(updated_at_ms);
    let pid = object.pid("pid")?;
    // Only the process itself publishes in its record.
    let publisher = stamp.clone().map(|stamp| (pid, stamp));
    Ok(Record {
        pid,
        session: SessionId::parse(object.string("sessionId")?)?,
        work_dir,
        stamp,
        pid_namespace,
        started_at_ms,
        dated_at_ms,
        kind,
        entrypoint,
        // The name of a background session is its prompt.
        name: name.filter(|_| kind != Kind::Background),
        published: status.map(|status| {
            // A heartbeat dates a status only where nothing else does.
            let at_ms = status_at_ms.or(updated_at_ms);
            PhaseFact {
                process: publisher,
                ..publish(&status, waiting_for.as_deref(), at_ms)
            }
        }),
        version,
        endpoint,
        is_spare,
        odd_fields,
    })
}

fn kept<T>(value: Result<Option<T>, FieldError>, odd_fields: &mut Vec<FieldError>) -> Option<T> {
    value.unwrap_or_else(|error| {
        odd_fields.push(error);
        None
    })
}

/// Reads `procStart`: clock ticks on Linux; on macOS what
/// `TZ=UTC LC_ALL=C ps -o lstart=` prints, `Fri Nov 27 20:52:50 2026`.
/// Anything else is no stamp.
fn parse_stamp(text: &str) -> Option<StartStamp> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let kind = match is_number {
        true if text.len() <= TICKS_DIGITS_MAX => StampKind::LinuxTicks,
        false if is_date(text) => StampKind::DarwinDate,
        _ => return None,
    };
    StartStamp::parse(kind, text).ok()
}

/// Reads the PID namespace out of `pidDomain`, `linux:MACHINE-ID:pid:[INODE]` (since 2.1.332
/// or a little before). The machine id is not used: it is neither a host name nor a boot,
/// and containers of one image may share it. A value of another form names no namespace.
fn parse_pid_domain(text: &str) -> Option<PidNamespace> {
    let (_, inode) = text.strip_prefix("linux:")?.rsplit_once(":pid:[")?;
    let inode = inode.strip_suffix(']')?.parse().ok()?;
    (inode > 0).then_some(PidNamespace(inode))
}

/// Letters for a day and a month, a time with two colons, and a year of four digits.
fn is_date(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = |word: &&str| word.split(':').count() == 3 && word.split(':').all(is_number);
    let is_year = |word: &&str| word.len() == 4 && is_number(word);
    words.len() == 5
        && words.iter().filter(|word| is_word(word)).count() == 2
        && words.iter().any(is_time)
        && words.iter().any(is_year)
}

/// The phase in the record. The values of `status` are those of 2.1.197 and 2.1.332:
///
/// | `status` | Phase |
/// |---|---|
/// | `idle` | idle |
/// | `busy` | working; in 2.1.332 also after the turn, while a sub-agent works in the background |
/// | `shell` | idle: it waits for a prompt while a command runs on in the background |
/// | `waiting` | waiting, for what `waitingFor` says |
fn publish(status: &str, waiting_for: Option<&str>, at_ms: Option<i64>) -> PhaseFact {
    let phase = match status {
        "idle" | "shell" => Some(Phase::Idle),
        "busy" => Some(Phase::Working),
        "waiting" => Some(Phase::Waiting),
        _ => None,
    };
    let waiting_for = waiting_for.filter(|_| status == "waiting");
    let word = waiting_for.map_or_else(|| status.to_owned(), |what| format!("{status}: {what}"));
    PhaseFact::new(FactSource::Registry, phase)
        .waiting_for(waiting_for.and_then(parse_waiting_for))
        .in_word(&word)
        .dated(at_ms)
}

/// Reads `waitingFor`. A dialog that the person opened (`dialog open`) is
/// nothing that the agent asks for. (2.1.332 itself sorts a `goal proposal` with the
/// permissions.)
fn parse_waiting_for(text: &str) -> Option<WaitingFor> {
    match text {
        "permission prompt" | "sandbox request" | "worker request" | "goal proposal" => {
            Some(WaitingFor::Permission)
        }
        "input needed" => Some(WaitingFor::Question),
        _ => None,
    }
}

impl Record {
    /// Nothing is published yet, or this version never does; `-p` and the SDKs
    /// never did in 2.1.197.
    pub(super) fn is_silent_terminal(&self) -> bool {
        self.published.is_none()
            && self.kind == Kind::Interactive
            && matches!(self.entrypoint.as_deref(), None | Some("cli"))
    }

    /// It runs without a person at a terminal; `None` if the record does not show it.
    pub(super) fn is_headless(&self) -> Option<bool> {
        is_headless_entrypoint(self.entrypoint.as_deref()?)
    }

    /// The record in a few words.
    pub(super) fn says(&self) -> String {
        let stamp = self.stamp.as_ref();
        let start = stamp.map_or("no start".to_owned(), |stamp| format!("start {stamp}"));
        format!("pid {}, {start}", self.pid)
    }
}

/// Reads an `entrypoint`: `cli`, `sdk-cli` (`-p`), `sdk-ts`, `sdk-py`, or an
/// application that shows the session in its own way.
pub(super) fn is_headless_entrypoint(entrypoint: &str) -> Option<bool> {
    match entrypoint {
        "cli" => Some(false),
        _ if entrypoint.starts_with("sdk-") => Some(true),
        _ => None,
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
