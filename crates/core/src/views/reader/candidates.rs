//! The titles of the sessions that a process without a known session may be serving.

use std::collections::HashSet;

use whosup_sidecar::{AgentId, SessionId};

use crate::sessions::session::{Session, Snapshot, Unattributed};

/// These sessions. A process names at most as many as the attribution keeps.
pub(super) struct Candidates(HashSet<(AgentId, SessionId)>);

impl Candidates {
    pub(super) fn of(processes: &[Unattributed]) -> Self {
        let named = processes.iter().flat_map(|one| {
            let agent = &one.process.agent;
            one.candidates.iter().map(|id| (agent.clone(), id.clone()))
        });
        Self(named.collect())
    }

    pub(super) fn include(&self, session: &Session) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let name = (session.key.agent.clone(), session.key.session.clone());
        self.0.contains(&name)
    }
}

/// Gives each process the titles of its candidates, as far as their files were read.
pub(super) fn take_titles(snapshot: &mut Snapshot) {
    for one in &mut snapshot.unattributed {
        for session in &snapshot.sessions {
            if session.key.agent == one.process.agent
                && one.candidates.contains(&session.key.session)
                && let Some(title) = session.title()
            {
                one.titles
                    .insert(session.key.session.clone(), title.to_owned());
            }
        }
    }
}
