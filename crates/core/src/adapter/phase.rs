//! What a session is doing: about the conversation, never about the process.

mod fact;

pub use self::fact::{BACKGROUND, Doing, FactSource, PhaseFact, doing, is_ahead, outlived};
use crate::adapter::hook_event::{EventKind, StartSource};
use crate::adapter::names::names;

/// What hooks, the agent or its transcript last reported of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// It has begun, without any report yet.
    Starting,
    /// It has ended its turn.
    Idle,
    /// It is in a turn.
    Working,
    /// It is in a turn and has stopped until a person answers.
    Waiting,
    /// It has ended.
    Ended,
}

names!(Phase {
    Starting => "starting",
    Idle => "idle",
    Working => "working",
    Waiting => "waiting",
    Ended => "ended",
});

/// What a waiting session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitingFor {
    /// Permission.
    Permission,
    /// The answer to a question.
    Question,
    /// A login.
    Auth,
    /// The next prompt, which it asked for.
    Prompt,
}

names!(WaitingFor {
    Permission => "permission",
    Question => "question",
    Auth => "auth",
    Prompt => "prompt",
});

/// Computes the phase after an event.
///
/// Pure and total: every pair has an answer, since hooks arrive late, twice and
/// out of order. Only what starts work ([`EventKind::starts_work`]) leaves
/// [`Phase::Ended`]; the caller knows when it was reported, and whether that was too
/// late. An event that only shows a running agent changes nothing. `docs/phase.md` draws
/// this.
#[must_use]
pub const fn next_phase(phase: Phase, event: EventKind) -> Phase {
    match (phase, event) {
        (_, EventKind::SessionEnded) => Phase::Ended,
        (_, EventKind::TurnStarted) => Phase::Working,
        (Phase::Ended, EventKind::SessionStarted(StartSource::Resume)) => Phase::Idle,
        // A compaction starts no session: an ended session stays ended.
        (Phase::Ended, EventKind::SessionStarted(StartSource::Compact)) => Phase::Ended,
        (Phase::Ended, EventKind::SessionStarted(_)) => Phase::Starting,
        // There was a turn before.
        (Phase::Starting, EventKind::SessionStarted(StartSource::Resume)) => Phase::Idle,
        // A second or late start moves nothing back.
        (same, EventKind::SessionStarted(_)) => same,
        // The end of something that was begun before the session's end comes late.
        (
            Phase::Ended,
            EventKind::ToolEnded | EventKind::TurnEnded | EventKind::TurnEndedInBackground,
        ) => Phase::Ended,
        (_, EventKind::ToolStarted) => Phase::Working,
        // A tool that ends after its turn does not begin another turn.
        (Phase::Idle, EventKind::ToolEnded) => Phase::Idle,
        (_, EventKind::ToolEnded) => Phase::Working,
        (_, EventKind::InputRequested(_)) => Phase::Waiting,
        (_, EventKind::TurnEnded) => Phase::Idle,
        (_, EventKind::TurnEndedInBackground) => Phase::Working,
        (
            same,
            EventKind::Compacted
            | EventKind::SubAgentStarted
            | EventKind::SubAgentEnded
            | EventKind::Heartbeat,
        ) => same,
    }
}
