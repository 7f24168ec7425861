//! What the runs of the log and the arguments of processes claim.

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, facts};

use super::fit::{continued, is_named, is_since};
use super::log::Log;
use super::process::may_be_server_of;
use super::scan::{Scanning, first_began_at_ms};
use super::session::{Row, Turn};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Serving, Subject, Trust};
use crate::adapter::{AgentProcess, Role};
use crate::sources::agents::kit::unlogged::doubted;

impl Scanning<'_> {
    /// Makes the claims of all processes.
    pub(super) fn claim_all(&mut self) {
        self.claim_by_runs();
        self.claim_for_unknown_hosts();
        self.claim_by_clients();
    }

    /// Claims of processes with known runs: the sessions that they worked on or were started
    /// for.
    fn claim_by_runs(&mut self) {
        let Some(runs) = &self.runs else { return };
        let mut claims = Vec::new();
        for process in self.processes() {
            let pid = process.process.pid;
            let Some((name, run)) = runs.of(pid) else {
                continue;
            };
            // What is not in the database can't be seen to be missing in the log.
            let is_doubted = self.strayed.has(pid) || (runs.log.has_hole && !self.is_all_read);
            let last = runs.log.last_session_of(run);
            for (session, at_ms) in &run.worked_on {
                let row = self.row(session);
                let is_sub_agent = runs.log.sub_agents.contains(session)
                    || row.is_some_and(|row| row.parent.is_some());
                let is_left = is_doubted && last != Some(session);
                // A session that is in no database was deleted, or belongs to another home.
                if is_sub_agent || is_left || (row.is_none() && self.is_all_read) {
                    continue;
                }
                let Ok(session) = SessionId::parse(session) else {
                    continue;
                };
                let says =
                    format!("run {name}, which can only be process {pid}, last worked on it then");
                let claim = self.claim(&runs.log, &session, process, Some(*at_ms), says);
                claims.push(if is_doubted { doubted(claim) } else { claim });
            }
            if !is_doubted {
                claims.extend(self.claim_by_arguments(&runs.log, process));
            }
        }
        self.scan.claims.extend(claims.into_iter().map(Box::new));
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
                    format!("process {pid} was started to resume the last one, which this was");
                (row, says)
            }
        };
        let began = process.process.began_ms();
        Some(Claim {
            trust: Trust::Trusted,
            evidence: Evidence::new(EvidenceKind::Arguments, None, says),
            ..self.claim(log, &row.id, process, began, String::new())
        })
    }

    /// A server may be serving every session that was used since it began and that the log
    /// does not assign to a run: all sessions if the server's run is unknown.
    fn claim_for_unknown_hosts(&mut self) {
        let mut claims = Vec::new();
        for host in self.scan.of_role(Role::Host) {
            let pid = host.process.pid;
            let is_known = self.is_known(host);
            let may_serve = |row: &&Row| {
                row.parent.is_none() && is_since(host, row) && (!is_known || self.is_untold(row))
            };
            for row in self.rows.iter().filter(may_serve) {
                let says = format!("process {pid} is a server and may be serving it");
                let evidence = Evidence::new(EvidenceKind::Log, None, says);
                let (scan, subject) = (&self.scan, Subject::Process(pid));
                claims.push(Claim {
                    is_inferred: true,
                    serving: Serving::Many,
                    ..scan.claim_without_facts(&row.id, subject, evidence)
                });
            }
        }
        self.scan.claims.extend(claims.into_iter().map(Box::new));
    }

    /// The session that a client was started for is served by the only server that the client
    /// may be connected to.
    fn claim_by_clients(&mut self) {
        let programs = self.agent.profile.programs;
        let mut claims = Vec::new();
        for client in self.scan.of_role(Role::Client) {
            let Some(row) = self.rows.iter().find(|row| is_named(client, row)) else {
                continue;
            };
            let mut servers = self
                .scan
                .of_role(Role::Host)
                .filter(|server| may_be_server_of(programs, &server.program(), &client.program()));
            let (Some(server), None) = (servers.next(), servers.next()) else {
                continue;
            };
            let pid = client.process.pid;
            let says = format!("the arguments of process {pid}, a client of the server, name it");
            let evidence = Evidence::new(EvidenceKind::Arguments, None, says);
            let (scan, subject) = (&self.scan, Subject::Process(server.process.pid));
            claims.push(Claim {
                dated_at_ms: client.process.began_ms(),
                is_inferred: true,
                serving: Serving::Many,
                ..scan.claim_without_facts(&row.id, subject, evidence)
            });
        }
        self.scan.claims.extend(claims.into_iter().map(Box::new));
    }

    fn claim(
        &self,
        log: &Log,
        session: &SessionId,
        process: &AgentProcess,
        dated_at_ms: Option<i64>,
        says: String,
    ) -> Claim {
        let row = self.row(session.as_str());
        let subject = Subject::Process(process.process.pid);
        let evidence = Evidence::new(EvidenceKind::Log, log.path.clone(), says);
        let scan = &self.scan;
        Claim {
            dated_at_ms,
            work_dir: row.and_then(|row| row.directory.clone()),
            is_inferred: true,
            serving: match process.role {
                Role::Host => Serving::Many,
                _ => Serving::One,
            },
            ..scan.claim_by_file(session, subject, evidence, &log.facts)
        }
    }

    /// A sub-agent ends with its turn, and with the process that ran it: then every process
    /// of the home is younger than its last message.
    pub(super) fn claim_of_ended(&self, row: &Row) -> Option<Claim> {
        let (path, database) = self.databases.get(row.database)?;
        let oldest = first_began_at_ms(&self.scan);
        let (at_ms, says) = match database.turn(row.id.as_str()).ok()?? {
            Turn::Ended => {
                let says = "its last message has ended its turn".to_owned();
                (row.last_message_at_ms, says)
            }
            Turn::GoesOn { since_ms, .. } if oldest.is_some_and(|began| began > since_ms) => {
                let agent = self.agent.profile.name;
                let says = format!("every process of {agent} is younger than its last message");
                (Some(since_ms), says)
            }
            Turn::GoesOn { .. } => return None,
        };
        let facts = facts(path, Links::Follow).ok()?;
        let evidence = Evidence::new(EvidenceKind::Transcript, path.clone(), says);
        Some(self.scan.ended(&row.id, evidence, Some(&facts), at_ms))
    }
}
