//! What the runs of the log and the arguments of processes claim.

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, facts};

use super::fit::{continued, is_named, is_since};
use super::log::Log;
use super::run::Runs;
use super::scan::Scanning;
use super::session::{Row, Turn};
use crate::adapter::claim::{
    Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject, Trust,
};
use crate::adapter::{AgentProcess, Role};
use crate::sources::trust::trust_of;

impl Scanning<'_> {
    /// Claims of processes with known runs: the sessions that they worked on or were started
    /// for.
    pub(super) fn claim_by_runs(&mut self) {
        let Some(runs) = &self.runs else { return };
        let mut claims = Vec::new();
        for process in &self.processes {
            let pid = process.process.pid;
            let Some((name, run)) = runs.of(pid) else {
                continue;
            };
            // What is not in the database can't be seen to be missing in the log.
            let is_doubtful = self.has_strayed(process) || (runs.log.is_torn && !self.is_all_read);
            if is_doubtful {
                claims.extend(self.claim_of_strayed(runs, process));
                continue;
            }
            for (session, at_ms) in &run.worked_on {
                let row = self.row(session);
                let is_sub_agent = runs.log.sub_agents.contains(session)
                    || row.is_some_and(|row| row.parent.is_some());
                // A session that is in no database was deleted, or belongs to another home.
                if is_sub_agent || (row.is_none() && self.is_all_read) {
                    continue;
                }
                let Ok(session) = SessionId::parse(session) else {
                    continue;
                };
                let says =
                    format!("run {name}, which can only be process {pid}, last worked on it then");
                let evidence = (EvidenceKind::Log, says);
                claims.push(self.claim(&runs.log, session, process, Some(*at_ms), evidence));
            }
            claims.extend(self.claim_by_arguments(&runs.log, process));
        }
        self.claims.extend(claims);
    }

    /// The last session of a process at the end of the log. The process may have moved to
    /// another session after that.
    fn claim_of_strayed(&self, runs: &Runs, process: &AgentProcess) -> Option<Claim> {
        let pid = process.process.pid;
        let (name, run) = runs.of(pid)?;
        let session = SessionId::parse(runs.log.last_session_of(run)?).ok()?;
        let at_ms = run.worked_on.get(session.as_str()).copied();
        let says = format!(
            "run {name}, which can only be process {pid}, last worked on it then, and the log lacks a part after that"
        );
        let subject = Subject::Unreadable;
        Some(Claim {
            subject,
            ..self.claim(
                &runs.log,
                session,
                process,
                at_ms,
                (EvidenceKind::Log, says),
            )
        })
    }

    /// The session that a process was started for.
    fn claim_by_arguments(&self, log: &Log, process: &AgentProcess) -> Option<Claim> {
        if process.role != Role::Session {
            return None;
        }
        let named = self.rows.iter().find(|row| is_named(process, row));
        let pid = process.process.pid;
        let (row, says) = match named {
            Some(row) => (row, format!("the arguments of process {pid} name it")),
            None => {
                let row = continued(process, &self.rows, self.real_paths)?;
                let says =
                    format!("process {pid} was told to go on with the last one, which this was");
                (row, says)
            }
        };
        let began = process.process.began_at_ms.clone().ok();
        let evidence = (EvidenceKind::Arguments, says);
        let mut claim = self.claim(log, row.id.clone(), process, began, evidence);
        claim.trust = Trust::Trusted;
        claim.evidence.path = None;
        Some(claim)
    }

    /// A server may be serving every session that was used since it began and that the log
    /// does not assign to a run: all sessions if the server's run is unknown.
    pub(super) fn claim_for_unknown_hosts(&mut self) {
        let mut claims = Vec::new();
        for host in self.of_role(Role::Host) {
            let pid = host.process.pid;
            let is_known = self.is_known(host);
            for row in self.rows.iter().filter(|row| {
                row.parent.is_none() && is_since(host, row) && (!is_known || self.is_untold(row))
            }) {
                let says = format!("process {pid} is a server and may be serving it");
                claims.push(Claim {
                    placement: self.look.machine.mounts().placement_of(&self.home.root),
                    ..bare_claim(self.key(&row.id), host, (EvidenceKind::Log, says))
                });
            }
        }
        self.claims.extend(claims);
    }

    fn claim(
        &self,
        log: &Log,
        session: SessionId,
        process: &AgentProcess,
        dated_at_ms: Option<i64>,
        evidence: (EvidenceKind, String),
    ) -> Claim {
        let mut claim = bare_claim(self.key(&session), process, evidence);
        claim.dated_at_ms = dated_at_ms;
        claim.modified_at_ms = log.facts.modified_ms;
        claim.work_dir = self
            .row(session.as_str())
            .and_then(|row| row.directory.clone());
        claim.trust = trust_of(&log.facts, self.home, self.look.machine);
        claim.placement = self.look.machine.mounts().placement_of(&log.path);
        claim.evidence.path = Some(log.path.clone());
        claim
    }

    /// A sub-agent ends with its turn, and with the process that ran it: then every process
    /// of the home is younger than its last message.
    pub(super) fn claim_of_ended(&self, row: &Row) -> Option<Claim> {
        let (path, database) = self.databases.get(row.database)?;
        let processes = self.processes.iter();
        let began = processes.map(|process| process.process.began_at_ms.clone().ok());
        let oldest = began.min().flatten();
        let (at_ms, says) = match database.turn(row.id.as_str()).ok()?? {
            Turn::Ended => (
                row.last_message_at_ms,
                "its last message has ended its turn".to_owned(),
            ),
            Turn::GoesOn { since_ms, .. } if oldest.is_some_and(|began| began > since_ms) => (
                Some(since_ms),
                format!(
                    "every process of {} is younger than its last message",
                    self.agent.profile.name
                ),
            ),
            Turn::GoesOn { .. } => return None,
        };
        let facts = facts(path, Links::Follow).ok()?;
        let machine = self.look.machine;
        Some(Claim {
            dated_at_ms: at_ms,
            exclusivity: Exclusivity::Exclusive,
            trust: trust_of(&facts, self.home, machine),
            placement: machine.mounts().placement_of(path),
            ..Claim::new(
                self.key(&row.id),
                Subject::Released,
                Evidence::new(EvidenceKind::Transcript, Some(path.clone()), says),
            )
        })
    }

    pub(super) fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: self.agent.id(),
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }
}

/// A claim that names a process and nothing else.
fn bare_claim(
    key: SessionKey,
    process: &AgentProcess,
    (kind, says): (EvidenceKind, String),
) -> Claim {
    Claim {
        is_inferred: true,
        serving: match process.role {
            Role::Host => Serving::Many,
            _ => Serving::One,
        },
        ..Claim::new(
            key,
            Subject::Process(process.process.pid),
            Evidence::new(kind, None, says),
        )
    }
}
