//! The sketches of sessions: all facts except claims.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::claims::Shown;
use super::scan::Scanning;
use super::session::SessionDir;
use super::{AGENT, process};
use crate::adapter::claim::SessionKey;
use crate::adapter::phase::{FactSource, Phase, PhaseFact};
use crate::adapter::{AgentProcess, Clue, Description, Role, Sketch};

impl Scanning<'_> {
    pub(super) fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    pub(super) fn sketch(
        &self,
        session: &SessionDir,
        last: Option<&Description>,
        shown: &BTreeMap<Pid, Shown>,
    ) -> Sketch {
        let servers: Vec<&AgentProcess> = self
            .servers()
            .filter(|server| self.serves(server, session, shown))
            .collect();
        let workspace = &session.workspace;
        let is_headless = |server: &&AgentProcess| process::PROGRAMS.is_headless(&server.program());
        let is_phantom = shown
            .values()
            .any(|shown| shown.unused.contains(&session.id));
        let version = servers.iter().find_map(|server| {
            let (_, _, log) = self.logs.get(&server.process.pid)?;
            log.version.clone()
        });
        Sketch {
            work_dir: last
                .and_then(|last| last.work_dir.clone())
                .or_else(|| workspace.work_dir.clone()),
            born_at_ms: workspace.created_at_ms,
            last_record_at_ms: last.and_then(|last| last.last_activity_at_ms),
            transcript: session.events.clone(),
            facts: self.fact(session, last, &servers).into_iter().collect(),
            clues: self.clues(session, last, shown),
            is_orphan_when_stale: true,
            is_resumable: session.has_events(),
            is_headless: (!servers.is_empty() && servers.iter().all(is_headless)).then_some(true),
            is_provisional: is_phantom,
            title: workspace.name.clone(),
            agent_version: version,
            started_at_ms: workspace.created_at_ms,
            ..Sketch::new(self.key(&session.id))
        }
    }

    fn serves(
        &self,
        server: &AgentProcess,
        session: &SessionDir,
        shown: &BTreeMap<Pid, Shown>,
    ) -> bool {
        let pid = server.process.pid;
        let is_shown = shown
            .get(&pid)
            .is_some_and(|shown| shown.current.as_ref() == Some(&session.id));
        is_shown
            || session
                .locks
                .iter()
                .any(|lock| self.holders_of(lock).contains(&pid))
    }

    /// For early versions: a lock names the process, without a file that could be held, and
    /// the session was used since the process began. (The PID may have been reused.)
    fn clues(
        &self,
        session: &SessionDir,
        last: Option<&Description>,
        shown: &BTreeMap<Pid, Shown>,
    ) -> Vec<Clue> {
        let used_at_ms = last
            .and_then(|last| last.last_activity_at_ms)
            .max(session.workspace.created_at_ms);
        let clue = |server: &AgentProcess| {
            let pid = server.process.pid;
            let is_phantom = shown
                .get(&pid)
                .is_some_and(|shown| shown.unused.contains(&session.id));
            let used_at_ms = used_at_ms.filter(|at| {
                let began = server.process.began_at_ms.as_ref();
                began.is_ok_and(|began| at >= began)
            })?;
            let has_lock = session
                .locks
                .iter()
                .any(|lock| !lock.is_hold && lock.pid == pid);
            let is_free = server.role == Role::Session && !self.is_connected(pid);
            let says = || format!("a lock names process {pid}, and it was used since");
            (has_lock && is_free && !is_phantom).then(|| Clue::run(pid, used_at_ms, says()))
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
        let said = |source, phase, word: &str, at_ms| {
            let fact = PhaseFact::new(source, Some(phase)).in_word(word);
            Some(fact.dated(at_ms))
        };
        let phase = last.and_then(|last| last.phase);
        if servers.is_empty() && phase == Some(Phase::Ended) {
            let at_ms = last?.phase_at_ms;
            return said(
                FactSource::Transcript,
                Phase::Ended,
                "session.shutdown",
                at_ms,
            );
        }
        // The list keeps what a killed process was doing, so it is of use only
        // for a session that is served.
        let open = self.open.get(&session.id).filter(|_| !servers.is_empty())?;
        match (phase, open.is_working?) {
            (None, true) if session.has_events() => said(
                FactSource::Registry,
                Phase::Working,
                "working",
                open.refreshed_at_ms,
            ),
            _ => None,
        }
    }
}

/// Where a session's events are, by its sketch.
pub(super) fn directory_of(sketch: &Sketch) -> PathBuf {
    let sessions = sketch.key.home.join("session-state");
    sessions.join(sketch.key.session.as_str())
}
