//! The last known phase of each session. A look that fails shows a session without its phase, or
//! not at all, and the phase after it is news only if it is another than before.

use std::collections::HashMap;

use whosup_core::adapter::claim::SessionKey;
use whosup_core::process::{Pid, StartStamp};
use whosup_live::Row;

/// How many sessions are remembered. Then all are forgotten, and one that waits is announced again
/// after a look that fails.
const REMEMBERED_MAX: usize = 4_096;

/// The phases, each with the process that was in it.
#[derive(Debug, Default)]
pub(super) struct Phases(HashMap<SessionKey, ((Pid, StartStamp), String)>);

impl Phases {
    /// The phase that a session was last known in, if the same process serves it.
    pub(super) fn of(&self, key: &SessionKey, row: &Row) -> Option<&str> {
        let (owner, phase) = self.0.get(key)?;
        (row.owner().as_ref() == Some(owner)).then_some(phase)
    }

    /// Remembers the phase of a session, if it has one, until its process has exited.
    pub(super) fn note(&mut self, key: &SessionKey, row: &Row) {
        if row.text("liveness") == Some("exited") {
            self.0.remove(key);
        } else if let (Some(owner), Some(phase)) = (row.owner(), row.text("phase")) {
            if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(key) {
                self.0.clear();
            }
            self.0.insert(key.clone(), (owner, phase.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;
    use whosup_core::adapter::claim::SessionKey;
    use whosup_core::sidecar::{AgentId, SessionId};
    use whosup_live::Row;

    use super::{Phases, REMEMBERED_MAX};
    use crate::commands::notify::kind::Kind;

    fn key(number: usize) -> SessionKey {
        SessionKey {
            agent: AgentId::from_static("codex"),
            session: SessionId::parse(&format!("s{number}")).unwrap(),
            home: Path::new("/home/dev/.codex").into(),
        }
    }

    fn row(liveness: &str, phase: Option<&str>, pid: i32) -> Row {
        let owner = json!({ "pid": pid, "start_stamp": "7", "start_stamp_kind": "linux-ticks" });
        let session = json!({ "liveness": liveness, "phase": phase, "owner": owner });
        Row {
            session: session.as_object().unwrap().clone(),
            directory: None,
        }
    }

    /// What is announced, if the session is shown like this.
    fn announced(phases: &mut Phases, before: Option<&Row>, after: &Row) -> Option<Kind> {
        let kind = Kind::between(before, phases.of(&key(0), after), after);
        phases.note(&key(0), after);
        kind
    }

    #[test]
    fn a_look_that_fails_repeats_and_hides_no_transition() {
        let unread = row("unknown", None, 7);
        for unread in [Some(&unread), None] {
            let live = |phase| row("live", Some(phase), 7);
            let mut phases = Phases::default();
            let mut then =
                |before: Option<&Row>, after: &Row| announced(&mut phases, before, after);
            assert_eq!(
                then(Some(&live("working")), &live("waiting")),
                Some(Kind::Waiting)
            );
            if let Some(unread) = unread {
                assert_eq!(then(Some(&live("waiting")), unread), None);
            }
            assert_eq!(then(unread, &live("waiting")), None);
            assert_eq!(then(Some(&live("waiting")), &live("working")), None);
            assert_eq!(then(unread, &live("idle")), Some(Kind::TurnEnded));
        }
    }

    #[test]
    fn another_process_has_phases_of_its_own() {
        let mut phases = Phases::default();
        phases.note(&key(0), &row("live", Some("waiting"), 7));
        assert_eq!(phases.of(&key(0), &row("live", None, 8)), None);
        assert_eq!(phases.of(&key(1), &row("live", None, 7)), None);
        phases.note(&key(0), &row("exited", None, 7));
        assert_eq!(phases.of(&key(0), &row("live", None, 7)), None);
        for number in 0..2 * REMEMBERED_MAX {
            phases.note(&key(number), &row("live", Some("waiting"), 7));
        }
        assert!(phases.0.len() <= REMEMBERED_MAX);
    }
}
