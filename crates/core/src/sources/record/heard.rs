//! What hooks reported of a session besides phase and owner.

use std::borrow::Cow;

use serde::Serialize;
use whosup_sidecar::StrictObject;

use super::format::{RecordError, time, wrong};
use crate::adapter::phase::Phase;

/// How much of a prompt is kept, in characters.
pub const PROMPT_CHARS_MAX: usize = 200;

/// What hooks reported of a session besides phase and owner. Any part may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// How many turns have begun.
    pub turns: u64,
    /// The start of the last prompt.
    pub last_prompt: Option<String>,
    /// The start of the current phase, in milliseconds since 1970.
    pub phase_since_ms: Option<i64>,
    /// The date of the last event that shows the phase.
    pub phase_at_ms: Option<i64>,
    /// Its turn has ended, and its background work continues.
    pub is_in_background: bool,
    /// The phase when it ended.
    pub phase_at_end: Option<Phase>,
    /// The cause of the end.
    pub end_cause: Option<EndCause>,
    /// Why it ended, in the agent's own word.
    pub end_reason: Option<String>,
    /// The event that ended it.
    pub end_event: Option<String>,
    /// A process has claimed the duty to pass the end on.
    pub is_end_passed_on: bool,
    /// A command that runs at the end of another session began it. The end of this session is not
    /// passed on, or that would never stop.
    pub is_aftermath: bool,
    /// The pane that the owner's environment named. Only a hint: environments are inherited.
    pub pane: Option<PaneHint>,
    /// The processor time that was certainly used for it.
    pub cpu: HeardCpu,
    /// The last event that the record folds.
    pub last_event: Option<String>,
    /// How many bytes of its event log the record folds.
    pub log_bytes: Option<u64>,
}

/// Processor time by the reports of events: a lower bound of what a session used.
///
/// A process may serve several sessions, one after the other. So its use before the first
/// event in this session is not counted, unless the session began with it. Its use after the
/// last event is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeardCpu {
    /// The lower bound, in milliseconds; `None` if it was never reported.
    pub at_least_ms: Option<u64>,
    /// The processor time of the process at its last event, in milliseconds.
    pub last_ms: Option<u64>,
}

/// A pane, by the environment variables of a process in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PaneHint {
    /// The server: `TMUX`.
    pub tmux: String,
    /// The pane: `TMUX_PANE`.
    pub pane: String,
}

/// How the end of a session became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndCause {
    /// The agent reported it.
    ExitHook,
    /// The agent reported it, when its terminal was closed.
    TerminalClosed,
    /// The agent recorded it in its files, and the process was gone.
    ExitRecord,
    /// Its process was gone.
    ProcessGone,
    /// Another process had its process's PID.
    PidReused,
    /// The host had booted since.
    Rebooted,
    /// This signal ended the process, as its parent reported.
    Signal(u8),
    /// The process exited with this status, as its parent reported.
    ExitCode(u8),
    /// A person declared it.
    ByHand,
    /// Its process had gone on to another session, and is gone.
    Superseded,
    /// Its processes are gone, and nothing shows that they had not left it before.
    Left,
    /// Unknown.
    Unknown,
}

/// The prefix of a signal's number.
const SIGNAL: &str = "signal ";
/// The prefix of an exit status.
const EXIT_CODE: &str = "exit code ";

impl EndCause {
    /// Every cause that has no number.
    pub const ALL: [Self; 10] = [
        Self::ExitHook,
        Self::TerminalClosed,
        Self::ExitRecord,
        Self::ProcessGone,
        Self::PidReused,
        Self::Rebooted,
        Self::ByHand,
        Self::Superseded,
        Self::Left,
        Self::Unknown,
    ];

    /// A hook of the agent's announced it.
    #[must_use]
    pub const fn is_announced(self) -> bool {
        matches!(self, Self::ExitHook | Self::TerminalClosed)
    }

    /// The process exited without an announced end: it was killed, or crashed, or its terminal was
    /// closed. A process that exits by itself has ended, whatever its status.
    #[must_use]
    pub const fn is_death(self) -> bool {
        match self {
            Self::ExitHook
            | Self::ExitRecord
            | Self::ByHand
            | Self::ExitCode(_)
            | Self::Superseded
            | Self::Left => false,
            Self::TerminalClosed
            | Self::ProcessGone
            | Self::PidReused
            | Self::Rebooted
            | Self::Signal(_)
            | Self::Unknown => true,
        }
    }

    /// The name used in files and output.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::ExitHook => "exit-hook",
            Self::TerminalClosed => "terminal-closed",
            Self::ExitRecord => "exit-record",
            Self::ProcessGone => "process-gone",
            Self::PidReused => "pid-reused",
            Self::Rebooted => "rebooted",
            Self::Signal(number) => return Cow::Owned(format!("{SIGNAL}{number}")),
            Self::ExitCode(status) => return Cow::Owned(format!("{EXIT_CODE}{status}")),
            Self::ByHand => "by-hand",
            Self::Superseded => "superseded",
            Self::Left => "left",
            Self::Unknown => "unknown",
        })
    }

    /// Finds a cause by its name; an unknown name is [`EndCause::Unknown`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let number = |before: &str| name.strip_prefix(before)?.parse().ok();
        let numbered = number(SIGNAL)
            .map(Self::Signal)
            .or_else(|| number(EXIT_CODE).map(Self::ExitCode));
        let found = Self::ALL.into_iter().find(|cause| cause.name() == name);
        found.or(numbered).unwrap_or(Self::Unknown)
    }
}

pub(super) fn parse_heard(object: &StrictObject<'_>) -> Result<Heard, RecordError> {
    let count = |key| count(object, key);
    Ok(Heard {
        turns: count("turns")?.unwrap_or(0),
        last_prompt: object.opt_string("last_prompt")?.map(str::to_owned),
        phase_since_ms: time(object, "phase_since")?,
        phase_at_ms: time(object, "phase_at")?,
        is_in_background: object.opt_bool("in_background")?.unwrap_or(false),
        phase_at_end: object
            .opt_string("phase_at_end")?
            .and_then(Phase::from_name),
        end_cause: object.opt_string("end_cause")?.map(EndCause::from_name),
        end_reason: object.opt_string("end_reason")?.map(str::to_owned),
        end_event: object.opt_string("end_event")?.map(str::to_owned),
        is_end_passed_on: object.opt_bool("end_passed_on")?.unwrap_or(false),
        is_aftermath: object.opt_bool("aftermath")?.unwrap_or(false),
        pane: parse_pane(object)?,
        cpu: HeardCpu {
            at_least_ms: count("cpu_at_least_ms")?,
            last_ms: count("owner_cpu_ms")?,
        },
        last_event: object.opt_string("last_event")?.map(str::to_owned),
        log_bytes: count("log_bytes")?,
    })
}

/// An optional number that is not below 0.
pub(super) fn count(
    object: &StrictObject<'_>,
    key: &'static str,
) -> Result<Option<u64>, RecordError> {
    let number = object.opt_integer(key)?.map(u64::try_from).transpose();
    number.map_err(|error| wrong(key, "number of things", error))
}

pub(super) fn parse_pane(object: &StrictObject<'_>) -> Result<Option<PaneHint>, RecordError> {
    let Some(pane) = object.opt_object("pane")? else {
        return Ok(None);
    };
    Ok(Some(PaneHint {
        tmux: pane.string("tmux")?.to_owned(),
        pane: pane.string("pane")?.to_owned(),
    }))
}
