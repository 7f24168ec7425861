//! The target of a wait, and whether it is reached or can't be reached any more.

use serde_json::{Map, Value};
use whosup_core::adapter::phase::Phase;

/// The target of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The conversation is in this phase.
    Phase(Phase),
    /// No process serves it.
    Exited,
}

/// The state of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The target is reached.
    Reached,
    /// The session exited before the target.
    Exited,
    /// The session is unknown, and no running process can change that.
    Unknown,
    /// The target may still be reached.
    NotYet,
}

/// Reasons of an unknown that a running process may change.
const MAY_CHANGE: [&str; 6] = [
    "may-be-served-by",
    "held-by-other",
    "ambiguous",
    "probe-failed",
    "parent-unknown",
    "unreadable",
];

const EXITED: &str = "exited";

impl Until {
    /// The names.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let phases = Phase::ALL.iter().map(|phase| phase.name());
        phases.chain([EXITED]).collect()
    }

    /// Finds a target by name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == EXITED {
            return Some(Self::Exited);
        }
        Phase::from_name(name).map(Self::Phase)
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phase(phase) => phase.name(),
            Self::Exited => EXITED,
        }
    }

    /// Judges a session in its wire form, with the processes without a session.
    pub(crate) fn judge(self, session: &Map<String, Value>, unattributed: &[Value]) -> Outcome {
        let text = |field: &str| session.get(field).and_then(Value::as_str);
        let has_exited = text("liveness") == Some(EXITED);
        let is_reached = match self {
            Self::Exited => has_exited,
            Self::Phase(phase) => text("phase") == Some(phase.name()),
        };
        if is_reached {
            return Outcome::Reached;
        }
        if has_exited {
            return Outcome::Exited;
        }
        let may_change = || {
            let has_owner = session.get("owner").is_some_and(|owner| !owner.is_null());
            let reason = text("reason").unwrap_or_default();
            has_owner
                || MAY_CHANGE.contains(&reason)
                || unattributed.iter().any(|one| may_serve(one, session))
        };
        if text("liveness") == Some("unknown") && !may_change() {
            return Outcome::Unknown;
        }
        Outcome::NotYet
    }
}

/// Whether a process without a session may serve this session.
fn may_serve(process: &Value, session: &Map<String, Value>) -> bool {
    let is_same = |field: &str| session.get(field) == Some(&process[field]);
    let candidates = process["candidates"].as_array();
    let is_candidate = candidates.is_some_and(|candidates| {
        let id = session.get("session_id");
        candidates.iter().any(|candidate| Some(candidate) == id)
    });
    is_same("agent") && (is_same("work_dir") || is_candidate)
}

/// Whether nothing that `--next` waits for has happened.
pub(crate) fn is_same_phase(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let fields = ["liveness", "phase", "phase_since"];
    fields
        .iter()
        .all(|field| one.get(*field) == other.get(*field))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Outcome, Until};

    #[track_caller]
    fn check(until: &str, session: Value, expected: Outcome) {
        let until = Until::from_name(until).unwrap();
        let beside = [json!({ "agent": "pi", "work_dir": "/w" })];
        let session = session.as_object().unwrap();
        assert_eq!(until.judge(session, &beside), expected, "{session:?}");
    }

    #[test]
    fn an_exit_before_the_phase_is_no_success_and_an_unknown_ends_it_if_nothing_can_change_it() {
        let live =
            |phase| json!({ "agent": "codex", "liveness": "live", "phase": phase, "owner": {} });
        check("idle", live("idle"), Outcome::Reached);
        check("idle", live("working"), Outcome::NotYet);
        check("exited", live("idle"), Outcome::NotYet);
        let dead = json!({ "agent": "codex", "liveness": "exited", "phase": null });
        check("idle", dead.clone(), Outcome::Exited);
        check("exited", dead, Outcome::Reached);
        let ended = json!({ "agent": "codex", "liveness": "exited", "phase": "ended" });
        check("ended", ended, Outcome::Reached);
        let unknown = |agent, reason| json!({ "agent": agent, "liveness": "unknown", "reason": reason, "owner": null, "work_dir": "/w" });
        check(
            "idle",
            unknown("codex", "other-pid-namespace"),
            Outcome::Unknown,
        );
        check("exited", unknown("codex", "other-host"), Outcome::Unknown);
        check(
            "idle",
            unknown("codex", "may-be-served-by"),
            Outcome::NotYet,
        );
        // A process of its agent runs, and may serve it.
        check("idle", unknown("pi", "owner-not-found"), Outcome::NotYet);
    }
}
