//! The JSON of `check`, `pid`, `sweep`, `hooks status` and `doctor`.

use serde::Serialize;
use whosup_core::machine::Machine;
use whosup_core::sessions::session::{Session, Snapshot};
use whosup_core::views::wire::{self, WireHost, WireProblem, WireSession};

/// The first fields of each document.
#[derive(Debug, Serialize)]
pub(crate) struct Head {
    /// As in the wire format.
    pub(crate) schema_version: u32,
    /// When the scan was taken.
    pub(crate) taken_at: Option<String>,
    /// The PID scope of this machine.
    pub(crate) host: WireHost,
}

impl Head {
    /// The head of a document about this machine.
    pub(crate) fn of(machine: &Machine) -> Self {
        let nothing = Snapshot {
            taken_at_ms: machine.now_ms(),
            scope: machine.table().scope().clone(),
            sessions: Vec::new(),
            unattributed: Vec::new(),
            problems: Vec::new(),
            looked_at: Vec::new(),
            processes: Vec::new(),
        };
        let nothing = wire::snapshot(machine, &nothing);
        Self {
            schema_version: nothing.schema_version,
            taken_at: nothing.taken_at,
            host: nothing.host,
        }
    }
}

/// The answer about one session.
#[derive(Debug, Serialize)]
pub(crate) struct CheckDocument {
    #[serde(flatten)]
    head: Head,
    agent: String,
    session_id: String,
    home: Option<String>,
    liveness: &'static str,
    reason: &'static str,
    confidence: Option<&'static str>,
    sentence: String,
}

impl CheckDocument {
    /// The answer about a session, with a sentence.
    pub(crate) fn of(machine: &Machine, session: &Session, sentence: String) -> Self {
        let shown: WireSession = wire::session(machine, session);
        Self {
            head: Head::of(machine),
            agent: shown.agent,
            session_id: shown.session_id,
            home: shown.home,
            liveness: shown.liveness,
            reason: shown.reason,
            confidence: shown.confidence,
            sentence,
        }
    }
}

/// The process of one session.
#[derive(Debug, Serialize)]
pub(crate) struct PidDocument {
    /// The answer about the session.
    #[serde(flatten)]
    pub(crate) session: CheckDocument,
    /// The process, if it is known and live.
    pub(crate) pid: Option<i32>,
    /// When it began, raw.
    pub(crate) start_stamp: Option<String>,
    /// Why there is no process though the session is live.
    pub(crate) missing: Option<&'static str>,
    /// Further live processes of the session.
    pub(crate) other_live: Vec<i32>,
}

/// What a sweep did, or would do.
#[derive(Debug, Serialize)]
pub(crate) struct SweepDocument {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// Nothing was written.
    #[serde(rename = "dry_run")]
    pub(crate) is_dry_run: bool,
    /// The sessions that were ended.
    pub(crate) ended: Vec<SweptDocument>,
    /// The sessions that were left, though their recorded process is gone.
    pub(crate) kept: Vec<KeptDocument>,
    /// How many records of long-ended sessions were removed.
    pub(crate) removed: usize,
    /// What could not be read or written.
    pub(crate) problems: Vec<WireProblem>,
}

/// A session that a sweep ended.
#[derive(Debug, Serialize)]
pub(crate) struct SweptDocument {
    pub(crate) agent: String,
    pub(crate) session_id: String,
    pub(crate) cause: String,
    pub(crate) pid: Option<i32>,
    pub(crate) ended_at: Option<String>,
}

/// A session that a sweep left.
#[derive(Debug, Serialize)]
pub(crate) struct KeptDocument {
    pub(crate) agent: String,
    pub(crate) session_id: String,
    pub(crate) because: String,
}

/// Which hooks are installed.
#[derive(Debug, Serialize)]
pub(crate) struct HooksDocument {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// One entry for each home of an agent that supports hooks.
    pub(crate) hooks: Vec<HooksOfHome>,
    /// What could not be read.
    pub(crate) problems: Vec<WireProblem>,
}

/// The hooks in one home.
#[derive(Debug, Serialize)]
pub(crate) struct HooksOfHome {
    pub(crate) agent: String,
    pub(crate) home: String,
    pub(crate) settings: String,
    /// `installed`, `partial`, `elsewhere` or `absent`.
    pub(crate) state: &'static str,
    /// The events that are not reported.
    pub(crate) missing: Vec<String>,
    /// The programs that the hooks run.
    pub(crate) programs: Vec<String>,
    /// `all`, `some` or `none`; null for an agent without such trust.
    pub(crate) trusted: Option<&'static str>,
    /// When the last event arrived.
    pub(crate) last_event_at: Option<String>,
    /// False if a record could not be read, which may have an event.
    #[serde(rename = "last_event_known")]
    pub(crate) is_last_event_known: bool,
}

/// What is wrong.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorDocument {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// The version of whosup.
    pub(crate) version: &'static str,
    /// The operating system.
    pub(crate) system: &'static str,
    /// Nothing was written.
    #[serde(rename = "dry_run")]
    pub(crate) is_dry_run: bool,
    /// How many sessions the sweep ended.
    pub(crate) ended: usize,
    /// The checks.
    pub(crate) checks: Vec<CheckedDocument>,
}

/// One check.
#[derive(Debug, Serialize)]
pub(crate) struct CheckedDocument {
    pub(crate) check: &'static str,
    #[serde(rename = "ok")]
    pub(crate) is_ok: bool,
    pub(crate) findings: Vec<FindingDocument>,
}

/// A problem.
#[derive(Debug, Serialize)]
pub(crate) struct FindingDocument {
    pub(crate) what: String,
    pub(crate) fix: String,
    /// `doctor --fix` fixes it.
    #[serde(rename = "fixable")]
    pub(crate) is_fixable: bool,
    /// `doctor --fix` has fixed it.
    #[serde(rename = "fixed")]
    pub(crate) is_fixed: bool,
    /// Why it could not.
    pub(crate) error: Option<String>,
}
