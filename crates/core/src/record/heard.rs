//! What hooks told of a session beyond its phase and owner.

use serde::Serialize;
use whosup_sidecar::StrictObject;

use super::format::{RecordError, time, wrong};

/// How much of a prompt is kept, in characters.
pub const PROMPT_CHARS_MAX: usize = 200;

/// What hooks told of a session beyond its phase and owner. All of it may be
/// missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// How many turns have begun.
    pub turns: u64,
    /// The beginning of the last prompt.
    pub last_prompt: Option<String>,
    /// Since when it is in its phase, in milliseconds since 1970.
    pub phase_since_ms: Option<i64>,
    /// How the end came to be known.
    pub end_cause: Option<EndCause>,
    /// Why it ended, in the agent's own word.
    pub end_reason: Option<String>,
    /// The pane that the owner's environment named. A hint: environments are
    /// inherited.
    pub pane: Option<PaneHint>,
    /// How many bytes of its event log the record folds.
    pub log_bytes: Option<u64>,
}

/// A pane, by the variables of whoever lives in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PaneHint {
    /// The server: `TMUX`.
    pub tmux: String,
    /// The pane: `TMUX_PANE`.
    pub pane: String,
}

/// How the end of a session came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndCause {
    /// The agent said so.
    ExitHook,
    /// Its process was gone.
    ProcessGone,
    /// Another process had its process's PID.
    PidReused,
    /// The host had booted since.
    Rebooted,
    /// A person said so.
    ByHand,
    /// It isn't known.
    Unknown,
}

impl EndCause {
    /// Every cause.
    pub const ALL: [Self; 6] = [
        Self::ExitHook,
        Self::ProcessGone,
        Self::PidReused,
        Self::Rebooted,
        Self::ByHand,
        Self::Unknown,
    ];

    /// The name used in files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExitHook => "exit-hook",
            Self::ProcessGone => "process-gone",
            Self::PidReused => "pid-reused",
            Self::Rebooted => "rebooted",
            Self::ByHand => "by-hand",
            Self::Unknown => "unknown",
        }
    }

    /// Finds a cause by its name; one that isn't known is [`EndCause::Unknown`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|cause| cause.name() == name);
        found.unwrap_or(Self::Unknown)
    }
}

pub(super) fn parse_heard(object: &StrictObject<'_>) -> Result<Heard, RecordError> {
    let count = |key: &'static str| {
        let number = object.opt_integer(key)?;
        let number = number.map(|number| {
            u64::try_from(number).map_err(|error| wrong(key, "number of things", error))
        });
        number.transpose()
    };
    Ok(Heard {
        turns: count("turns")?.unwrap_or(0),
        last_prompt: object.opt_string("last_prompt")?.map(str::to_owned),
        phase_since_ms: time(object, "phase_since")?,
        end_cause: object.opt_string("end_cause")?.map(EndCause::from_name),
        end_reason: object.opt_string("end_reason")?.map(str::to_owned),
        pane: parse_pane(object)?,
        log_bytes: count("log_bytes")?,
    })
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
