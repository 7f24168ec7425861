//! The sketches of sessions: all facts except claims.

use super::process;
use super::scan::Scanning;
use super::session::SessionDir;
use crate::adapter::phase::{FactSource, Phase, PhaseFact};
use crate::adapter::{AgentProcess, Clue, ClueKind, Description, Role, Sketch};

impl Scanning<'_> {
    pub(super) fn sketch(&self, session: &SessionDir) -> Sketch {
        let last = self.lasts.get(&session.id);
        let serves = |server: &&AgentProcess| self.serves(server, session);
        let servers: Vec<&AgentProcess> = self.servers().filter(serves).collect();
        let workspace = &session.workspace;
        let is_headless = |server: &&AgentProcess| process::PROGRAMS.is_headless(&server.program());
        let mut all_shown = self.shown.values();
        let mut logs = servers
            .iter()
            .filter_map(|server| self.logs.get(&server.process.pid));
        let work_dir = last.and_then(|last| last.work_dir.clone());
        Sketch {
            work_dir: work_dir.or_else(|| workspace.work_dir.clone()),
            born_at_ms: workspace.created_at_ms,
            last_record_at_ms: last.and_then(|last| last.last_activity_at_ms),
            transcript: session.events.clone(),
            lacks_transcript: session.events.is_none(),
            facts: self.fact(session, last, &servers).into_iter().collect(),
            clues: self.clues(session),
            is_orphan_when_stale: true,
            is_resumable: session.has_events(),
            is_headless: (!servers.is_empty() && servers.iter().all(is_headless)).then_some(true),
            is_provisional: all_shown.any(|shown| shown.unused.contains(&session.id)),
            title: workspace.name.clone(),
            agent_version: logs.find_map(|file| file.log.version.clone()),
            started_at_ms: workspace.created_at_ms,
            ..Sketch::new(self.scan.key(&session.id))
        }
    }

    fn serves(&self, server: &AgentProcess, session: &SessionDir) -> bool {
        let pid = server.process.pid;
        let shown = self.shown.get(&pid);
        shown.is_some_and(|shown| shown.is_current(session)) || self.held_by(session, pid).is_some()
    }

    /// For early versions: a lock names the process, without a file that could be held, and
    /// the session was used since the process began. (The PID may have been reused.)
    fn clues(&self, session: &SessionDir) -> Vec<Clue> {
        let used_at_ms = self.last_used_ms(session);
        let clue = |server: &AgentProcess| {
            let pid = server.process.pid;
            let began = server.process.began_ms();
            let used_at_ms = used_at_ms.filter(|at| began.is_some_and(|began| *at >= began))?;
            let mut locks = session.locks.iter();
            let has_lock = locks.any(|lock| !lock.is_hold && lock.pid == pid);
            let is_free = server.role == Role::Session && self.unconnected.contains(&pid);
            let says = format!("a lock names process {pid}, and it was used since");
            let is_clue = has_lock && is_free && !self.is_unused(session, pid);
            is_clue.then(|| Clue::new(pid, ClueKind::Run { at_ms: used_at_ms }, says))
        };
        self.servers().filter_map(clue).collect()
    }

    /// A phase that the last events do not show. The phase in the events is read when the
    /// session is described.
    fn fact(
        &self,
        session: &SessionDir,
        last: Option<&Description>,
        servers: &[&AgentProcess],
    ) -> Option<PhaseFact> {
        let phase = last.and_then(|last| last.phase);
        if servers.is_empty() {
            let ended = last.filter(|_| phase == Some(Phase::Ended))?;
            let fact = PhaseFact::new(FactSource::Transcript, Some(Phase::Ended));
            return Some(fact.in_word("session.shutdown").dated(ended.phase_at_ms));
        }
        // The list keeps what a killed process was doing, so it is of use only
        // for a session that is served.
        let open = self.open.get(&session.id)?;
        let is_news = phase.is_none() && open.is_working? && session.has_events();
        let fact = PhaseFact::new(FactSource::Registry, Some(Phase::Working)).in_word("working");
        is_news.then(|| fact.dated(open.refreshed_at_ms))
    }
}
