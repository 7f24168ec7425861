//! The format of a session record.

use std::path::PathBuf;

use serde::Serialize;
use whosup_sidecar::{AgentId, FieldError, JsonError, SessionId, StrictObject};

use super::heard::{EndCause, Heard, PaneHint, parse_heard};
use super::owner::{RecordedOwner, WrittenOwner, parse_owner};
use super::owners::{Owners, WrittenKnown, parse_owners};

use crate::adapter::phase::{Phase, WaitingFor};

/// The version of the format. It rises only on a breaking change.
pub const RECORD_SCHEMA: i64 = 1;

/// The maximum size of a record, in bytes.
pub const RECORD_BYTES_MAX: u64 = 64 * 1024;

/// What our hooks reported of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The agent.
    pub agent: AgentId,
    /// The agent's own id of the session.
    pub session: SessionId,
    /// The agent's home.
    pub home: PathBuf,
    /// The process that runs it, or ran it last; `None` if none was ever found.
    pub owner: Option<RecordedOwner>,
    /// Every owner that hooks reported.
    pub owners: Owners,
    /// What it was doing at the last event.
    pub phase: Phase,
    /// What it waited for then.
    pub waiting_for: Option<WaitingFor>,
    /// The time of the last event, in milliseconds since 1970.
    pub last_event_at_ms: i64,
    /// When it began.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// Where it worked at the last start of a turn.
    pub work_dir: Option<PathBuf>,
    /// Its branch then.
    pub git_branch: Option<String>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// The session that it is a sub-agent of.
    pub parent: Option<SessionId>,
    /// Further reports of hooks.
    pub heard: Heard,
}

/// Why a text is no session record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is no JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field is missing or wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Its version is not supported.
    #[error("`schema_version` is {found}, this program reads {RECORD_SCHEMA}")]
    Schema {
        /// The version.
        found: i64,
    },
    /// A name or number in it is malformed.
    #[error("`{key}` is no {expected}: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Parses a session record.
///
/// # Errors
///
/// [`RecordError`] naming the field that is wrong.
pub fn parse_record(bytes: &[u8]) -> Result<SessionRecord, RecordError> {
    record_of(&StrictObject::parse(bytes)?)
}

/// Reads a record from its object.
pub(super) fn record_of(object: &StrictObject<'_>) -> Result<SessionRecord, RecordError> {
    let schema = object.integer("schema_version")?;
    if schema != RECORD_SCHEMA {
        return Err(RecordError::Schema { found: schema });
    }
    let agent = AgentId::parse(object.string("agent")?)
        .map_err(|error| wrong("agent", "agent name", error))?;
    let session = session_id("session_id", object.string("session_id")?)?;
    let parent = object
        .opt_string("parent_session_id")?
        .map(|text| session_id("parent_session_id", text))
        .transpose()?;
    let phase = phase_in(object.string("phase")?)?;
    let waiting_for = waiting_for_in(object)?;
    let owner = object.opt_object("owner")?.map(parse_owner).transpose()?;
    let last_event_at_ms = time(object, "last_event_at")?
        .ok_or_else(|| wrong("last_event_at", "time", "it is missing"))?;
    let started_at_ms = time(object, "started_at")?;
    let ended_at_ms = time(object, "ended_at")?;
    let owners = match (parse_owners(object)?, &owner) {
        (Some(owners), _) => owners,
        (None, Some(owner)) => {
            let end = ended_at_ms.or(Some(last_event_at_ms));
            let let_go = end.filter(|_| phase == Phase::Ended);
            let first_ms = started_at_ms.unwrap_or(last_event_at_ms);
            Owners::of_one(owner.clone(), (first_ms, last_event_at_ms), let_go)
        }
        (None, None) => Owners::default(),
    };
    Ok(SessionRecord {
        agent,
        session,
        parent,
        phase,
        waiting_for,
        home: PathBuf::from(object.string("home")?),
        owner,
        owners,
        last_event_at_ms,
        started_at_ms,
        ended_at_ms,
        work_dir: object.opt_string("work_dir")?.map(PathBuf::from),
        git_branch: object.opt_string("git_branch")?.map(str::to_owned),
        transcript: object.opt_string("transcript")?.map(PathBuf::from),
        heard: parse_heard(object)?,
    })
}

fn session_id(key: &'static str, text: &str) -> Result<SessionId, RecordError> {
    SessionId::parse(text).map_err(|error| wrong(key, "session id", error))
}

pub(super) fn phase_in(text: &str) -> Result<Phase, RecordError> {
    Phase::from_name(text).ok_or_else(|| wrong("phase", "phase", format!("`{text}`")))
}

pub(super) fn waiting_for_in(object: &StrictObject<'_>) -> Result<Option<WaitingFor>, RecordError> {
    let Some(text) = object.opt_string("waiting_for")? else {
        return Ok(None);
    };
    let unknown = || wrong("waiting_for", "thing to wait for", format!("`{text}`"));
    WaitingFor::from_name(text).ok_or_else(unknown).map(Some)
}

pub(super) fn time(
    object: &StrictObject<'_>,
    key: &'static str,
) -> Result<Option<i64>, RecordError> {
    object
        .opt_string(key)?
        .map(|text| {
            text.parse::<jiff::Timestamp>()
                .map(jiff::Timestamp::as_millisecond)
                .map_err(|error| wrong(key, "time", error))
        })
        .transpose()
}

pub(super) fn wrong(
    key: &'static str,
    expected: &'static str,
    reason: impl ToString,
) -> RecordError {
    RecordError::Value {
        key,
        expected,
        reason: reason.to_string(),
    }
}

/// The form in which a record is written.
#[derive(Debug, Serialize)]
struct Written<'a> {
    schema_version: i64,
    agent: &'a str,
    session_id: &'a str,
    parent_session_id: Option<&'a str>,
    home: String,
    owner: Option<WrittenOwner<'a>>,
    owners: Vec<WrittenKnown<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    owners_cut: bool,
    phase: &'static str,
    waiting_for: Option<&'static str>,
    started_at: Option<String>,
    last_event_at: Option<String>,
    ended_at: Option<String>,
    work_dir: Option<String>,
    git_branch: Option<&'a str>,
    transcript: Option<String>,
    turns: u64,
    last_prompt: Option<&'a str>,
    phase_since: Option<String>,
    phase_at: Option<String>,
    in_background: bool,
    phase_at_end: Option<&'static str>,
    end_cause: Option<std::borrow::Cow<'static, str>>,
    end_reason: Option<&'a str>,
    end_event: Option<&'a str>,
    end_passed_on: bool,
    aftermath: bool,
    pane: Option<&'a PaneHint>,
    cpu_at_least_ms: Option<u64>,
    owner_cpu_ms: Option<u64>,
    last_event: Option<&'a str>,
    log_bytes: Option<u64>,
}

impl SessionRecord {
    /// The record as JSON. This crate never writes it to disk.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use crate::views::wire::timestamp;
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let written = Written {
            schema_version: RECORD_SCHEMA,
            agent: self.agent.as_str(),
            session_id: self.session.as_str(),
            parent_session_id: self.parent.as_ref().map(SessionId::as_str),
            home: text(&self.home),
            owner: self.owner.as_ref().map(WrittenOwner::new),
            owners: self.owners.written(),
            owners_cut: self.owners.is_cut(),
            phase: self.phase.name(),
            waiting_for: self.waiting_for.map(WaitingFor::name),
            started_at: self.started_at_ms.and_then(timestamp),
            last_event_at: timestamp(self.last_event_at_ms),
            ended_at: self.ended_at_ms.and_then(timestamp),
            work_dir: self.work_dir.as_ref().map(text),
            git_branch: self.git_branch.as_deref(),
            transcript: self.transcript.as_ref().map(text),
            turns: self.heard.turns,
            last_prompt: self.heard.last_prompt.as_deref(),
            phase_since: self.heard.phase_since_ms.and_then(timestamp),
            phase_at: self.heard.phase_at_ms.and_then(timestamp),
            in_background: self.heard.is_in_background,
            phase_at_end: self.heard.phase_at_end.map(Phase::name),
            end_cause: self.heard.end_cause.map(EndCause::name),
            end_reason: self.heard.end_reason.as_deref(),
            end_event: self.heard.end_event.as_deref(),
            end_passed_on: self.heard.is_end_passed_on,
            aftermath: self.heard.is_aftermath,
            pane: self.heard.pane.as_ref(),
            cpu_at_least_ms: self.heard.cpu.at_least_ms,
            owner_cpu_ms: self.heard.cpu.last_ms,
            last_event: self.heard.last_event.as_deref(),
            log_bytes: self.heard.log_bytes,
        };
        // Only text, numbers and nulls: this can't fail, and a failure would show as null, which is no
        // valid record.
        serde_json::to_value(written).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use whosup_process::{BootId, Pid, PidNamespace, StartStamp};

    use super::*;
    use crate::sources::record::HeardCpu;

    fn record() -> SessionRecord {
        let mut record = SessionRecord {
            owners: Owners::default(),
            agent: AgentId::parse("claude-code").unwrap(),
            session: SessionId::parse("s1").unwrap(),
            home: PathBuf::from("/home/dev/.claude"),
            owner: Some(RecordedOwner {
                pid: Pid::new(4711).unwrap(),
                stamp: Some(StartStamp::LinuxTicks(8123)),
                host: Some("devbox".to_owned()),
                boot: BootId::parse("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a"),
                pid_namespace: Some(PidNamespace::INITIAL),
                executable: Some(PathBuf::from("/opt/claude")),
                is_shared: false,
                is_unrecognized: false,
            }),
            phase: Phase::Waiting,
            waiting_for: Some(WaitingFor::Permission),
            last_event_at_ms: 1_795_812_846_391,
            started_at_ms: Some(1_795_812_774_007),
            ended_at_ms: None,
            work_dir: Some(PathBuf::from("/home/dev/app")),
            git_branch: Some("main".to_owned()),
            transcript: None,
            parent: None,
            heard: Heard {
                turns: 3,
                last_prompt: Some("Fix the test".to_owned()),
                phase_at_ms: Some(1_795_812_856_000),
                is_in_background: true,
                phase_at_end: None,
                phase_since_ms: Some(1_795_812_846_391),
                end_cause: None,
                end_reason: None,
                end_event: None,
                is_end_passed_on: false,
                is_aftermath: false,
                pane: Some(PaneHint {
                    tmux: "/run/tmux/default,900,0".to_owned(),
                    pane: "%1".to_owned(),
                }),
                cpu: HeardCpu {
                    at_least_ms: Some(7_010),
                    last_ms: Some(9_000),
                },
                last_event: Some("4711-8122".to_owned()),
                log_bytes: Some(1_234),
            },
        };
        let times = (1_795_812_774_007, 1_795_812_846_391);
        record.owners = Owners::of_one(record.owner.clone().unwrap(), times, None);
        record
    }

    #[test]
    fn a_record_of_before_more_was_heard_is_read() {
        let mut record = record();
        let mut json = record.to_json();
        let fields = json.as_object_mut().unwrap();
        for key in [
            "owners",
            "turns",
            "last_prompt",
            "phase_since",
            "phase_at",
            "in_background",
            "phase_at_end",
            "end_cause",
            "end_reason",
            "end_event",
            "end_passed_on",
            "aftermath",
            "pane",
            "cpu_at_least_ms",
            "owner_cpu_ms",
            "last_event",
            "log_bytes",
        ] {
            fields.remove(key).unwrap();
        }
        record.heard = Heard::default();
        assert_eq!(parse_record(json.to_string().as_bytes()), Ok(record));
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let mut record = record();
        let text = record.to_json().to_string();
        assert_eq!(parse_record(text.as_bytes()), Ok(record.clone()));
        record.owner = None;
        record.waiting_for = None;
        record.phase = Phase::Ended;
        record.ended_at_ms = Some(1_795_812_900_000);
        record.heard.end_reason = Some("other".to_owned());
        record.heard.end_event = Some("4711-8123".to_owned());
        record.heard.is_end_passed_on = true;
        record.heard.phase_at_end = Some(Phase::Working);
        record.heard.is_aftermath = true;
        let numbered = [EndCause::Signal(9), EndCause::ExitCode(143)];
        for cause in EndCause::ALL.into_iter().chain(numbered) {
            record.heard.end_cause = Some(cause);
            let text = record.to_json().to_string();
            assert_eq!(parse_record(text.as_bytes()), Ok(record.clone()));
        }
        for unknown in ["signal", "signal 256", "exit code -1", "rain"] {
            assert_eq!(EndCause::from_name(unknown), EndCause::Unknown);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (key, value, named) in [
            (
                "schema_version",
                serde_json::json!(2),
                "`schema_version` is 2, this program reads 1",
            ),
            ("session_id", serde_json::json!("../x"), "session_id"),
            ("phase", serde_json::json!("busy"), "`busy`"),
            ("agent", serde_json::json!("Claude Code"), "agent"),
            (
                "last_event_at",
                serde_json::json!("yesterday"),
                "last_event_at",
            ),
            ("last_event_at", serde_json::Value::Null, "last_event_at"),
            ("waiting_for", serde_json::json!("rain"), "`rain`"),
        ] {
            let mut json = record().to_json();
            json[key] = value;
            let error = parse_record(json.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
        for (key, value) in [
            ("pid", serde_json::json!(0)),
            ("pid", serde_json::json!(true)),
            ("pid", serde_json::json!("4711")),
            ("start_stamp", serde_json::json!("soon")),
            ("start_stamp_kind", serde_json::json!("moons")),
            ("boot_id", serde_json::json!("x")),
            ("pid_namespace", serde_json::json!(-1)),
        ] {
            let mut json = record().to_json();
            json["owner"][key] = value;
            let error = parse_record(json.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
