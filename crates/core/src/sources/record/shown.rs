//! The phase that the events of one owner show.

use serde::Serialize;
use whosup_sidecar::StrictObject;

use super::format::{RecordError, SessionRecord, phase_in, time, waiting_for_in};
use crate::adapter::phase::{Phase, WaitingFor};
use crate::views::wire::timestamp;

/// What an owner of a session was doing at its last event. Several processes may serve one
/// session, and each has its own turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The phase.
    pub phase: Phase,
    /// What it waits for, while it waits.
    pub waiting_for: Option<WaitingFor>,
    /// When the phase began, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// The date of the last event that shows it.
    pub at_ms: Option<i64>,
    /// Its turn has ended, and its background work continues.
    pub is_in_background: bool,
}

impl Shown {
    /// What the record shows, after an event of this owner.
    #[must_use]
    pub const fn in_record(record: &SessionRecord) -> Self {
        Self {
            phase: record.phase,
            waiting_for: record.waiting_for,
            since_ms: record.heard.phase_since_ms,
            at_ms: record.heard.phase_at_ms,
            is_in_background: record.heard.is_in_background,
        }
    }

    /// Lets the record show this.
    pub(super) const fn show_in(self, record: &mut SessionRecord) {
        record.phase = self.phase;
        record.waiting_for = self.waiting_for;
        record.heard.phase_since_ms = self.since_ms;
        record.heard.phase_at_ms = self.at_ms;
        record.heard.is_in_background = self.is_in_background;
    }
}

/// The form in which it is written, among the fields of an owner.
#[derive(Debug, Serialize)]
pub(super) struct WrittenShown {
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<&'static str>,
    phase_since: Option<String>,
    phase_at: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_background: bool,
}

impl From<Shown> for WrittenShown {
    fn from(shown: Shown) -> Self {
        Self {
            phase: shown.phase.name(),
            waiting_for: shown.waiting_for.map(WaitingFor::name),
            phase_since: shown.since_ms.and_then(timestamp),
            phase_at: shown.at_ms.and_then(timestamp),
            in_background: shown.is_in_background,
        }
    }
}

/// Reads it; `None` in records of owners that showed none.
pub(super) fn parse_shown(object: &StrictObject<'_>) -> Result<Option<Shown>, RecordError> {
    let Some(phase) = object.opt_string("phase")? else {
        return Ok(None);
    };
    Ok(Some(Shown {
        phase: phase_in(phase)?,
        waiting_for: waiting_for_in(object)?,
        since_ms: time(object, "phase_since")?,
        at_ms: time(object, "phase_at")?,
        is_in_background: object.opt_bool("in_background")?.unwrap_or(false),
    }))
}
