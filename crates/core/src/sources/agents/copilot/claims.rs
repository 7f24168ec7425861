//! What locks, logs and the list of open sessions claim.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::FileFacts;

use super::AGENT;
use super::events::DIALECT;
use super::scan::Scanning;
use super::session::{InUse, SessionDir};
use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, Evidence, EvidenceKind, Exclusivity, Serving, Subject, Trust,
};
use crate::adapter::{AgentProcess, AgentScan, Description};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::transcript::TranscriptFile;
use crate::sources::trust::trust_of;

/// Which session a process shows, and which other sessions it has loaded.
///
/// Several sessions may be open in one terminal. The process serves all of them, and one is
/// in front.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// The one in front.
    pub(super) current: Option<SessionId>,
    /// Loaded, but neither used nor in front: left over from a resume that the person backed
    /// out of (copilot-cli#3086), or a session without a prompt.
    pub(super) unused: BTreeSet<SessionId>,
}

impl Scanning<'_> {
    /// Makes claims and sketches of what was found.
    pub(super) fn finish(mut self) -> Found<AgentScan> {
        let lasts = self.read_lasts();
        let shown: BTreeMap<Pid, Shown> = self
            .servers()
            .map(|server| (server.process.pid, self.shown_by(server, &lasts)))
            .collect();
        let mut found = AgentScan::default();
        for session in self.sessions.values() {
            let mut claims = self.claims_of_locks(session, &lasts, &shown);
            claims.extend(self.claims_of_logs(session, &shown));
            claims.extend(self.claims_of_phantoms(session, &shown));
            if claims.is_empty() {
                claims.extend(self.claim_of_open(session));
            }
            found.claim_all(claims);
        }
        // There may be very many, and each is held once.
        for (id, session) in std::mem::take(&mut self.sessions) {
            found.sketch(self.sketch(&session, lasts.get(&id), &shown));
        }
        let mut problems = Vec::new();
        for claim in &found.claims {
            if let (Trust::Untrusted { because }, Some(path)) = (&claim.trust, &claim.evidence.path)
            {
                problems.push(Problem::at(&AGENT, path, because));
            }
        }
        problems.extend(self.problems);
        Found { found, problems }
    }

    /// The last events of every claimed session. Problems with them are reported when the
    /// session is described.
    fn read_lasts(&mut self) -> BTreeMap<SessionId, Description> {
        let named: BTreeSet<&SessionId> = self
            .logs
            .values()
            .flat_map(|(_, _, log)| log.foreground.iter().map(|(id, _)| id))
            .collect();
        let is_of_interest = |session: &&SessionDir| {
            session.has_events()
                && (!session.locks.is_empty()
                    || self.open.contains_key(&session.id)
                    || named.contains(&session.id))
        };
        let read = |session: &SessionDir| {
            let file = TranscriptFile::open(session.events.as_deref()?).ok()?;
            let last = DIALECT.tail(&file, &mut BadLines::default()).ok()?;
            Some((session.id.clone(), last))
        };
        self.sessions
            .values()
            .filter(is_of_interest)
            .filter_map(read)
            .collect()
    }

    /// The session in front of a process: by the log; else the only session that the process
    /// holds; else the held session with the newest event.
    fn shown_by(&self, server: &AgentProcess, lasts: &BTreeMap<SessionId, Description>) -> Shown {
        let pid = server.process.pid;
        let loaded: Vec<&SessionDir> = self
            .sessions
            .values()
            .filter(|session| session.locks.iter().any(|lock| self.is_by(lock, server)))
            .collect();
        let in_log = self.logs.get(&pid).and_then(|(_, _, log)| log.in_front());
        if loaded.len() > 1 && self.is_torn(pid) {
            // Any of them may be in front, even a session without messages.
            return Shown::default();
        }
        let latest = || {
            let dated = loaded.iter().map(|session| {
                let last = lasts
                    .get(&session.id)
                    .and_then(|last| last.last_activity_at_ms);
                (
                    session.has_events(),
                    last.max(session.workspace.created_at_ms),
                    &session.id,
                )
            });
            dated.max().map(|(_, _, id)| id)
        };
        let current = in_log
            .map(|(id, _)| id)
            .filter(|id| self.sessions.contains_key(*id))
            .or_else(latest)
            .cloned();
        let unused = loaded
            .iter()
            .filter(|session| !session.has_events() && Some(&session.id) != current.as_ref())
            .map(|session| session.id.clone())
            .collect();
        Shown { current, unused }
    }

    /// A process holds a lock, or (of an early version) has its PID in the name
    /// of one.
    fn is_by(&self, lock: &InUse, server: &AgentProcess) -> bool {
        let pid = server.process.pid;
        self.holders_of(lock).contains(&pid) || (!lock.is_hold && lock.pid == pid)
    }

    fn claims_of_locks(
        &self,
        session: &SessionDir,
        lasts: &BTreeMap<SessionId, Description>,
        shown: &BTreeMap<Pid, Shown>,
    ) -> Vec<Claim> {
        let mut claims = Vec::new();
        for lock in &session.locks {
            let is_phantom = |shown: &Shown| shown.unused.contains(&session.id);
            if !lock.is_hold && shown.get(&lock.pid).is_some_and(is_phantom) {
                // The process uses another session: this lock is ignored.
                continue;
            }
            let claim = |subject, exclusivity, serving, says: String| Claim {
                modified_at_ms: lock.facts.modified_ms,
                exclusivity,
                serving,
                ..self.claim(
                    &session.id,
                    subject,
                    &lock.path,
                    &lock.facts,
                    EvidenceKind::Lock,
                    says,
                )
            };
            let holders = self.holders_of(lock);
            for pid in holders {
                let held = claim(
                    Subject::Holder(*pid),
                    Exclusivity::Exclusive,
                    serving(session, shown.get(pid)),
                    format!("held by process {pid}"),
                );
                claims.push(Claim {
                    dated_at_ms: self.used_at_ms(session, lasts, shown.get(pid)),
                    ..held
                });
            }
            if holders.is_empty() {
                let exclusivity = self.exclusivity();
                claims.push(if lock.is_hold {
                    let held = self.held.get(&lock.file());
                    let is_everyone_asked = held.is_some_and(|held| held.is_everyone_asked);
                    let opener = self.perhaps_opened_by(session);
                    let says = match (is_everyone_asked, opener) {
                        (true, None) => "nobody holds it".to_owned(),
                        (true, Some(pid)) => format!(
                            "nobody holds it, but process {pid} may have opened it: its log lacks its end"
                        ),
                        (false, _) => {
                            "nobody was found to hold it, and not everybody could be asked".to_owned()
                        }
                    };
                    let is_everyone_asked = is_everyone_asked && opener.is_none();
                    let subject = Subject::LockFree { is_everyone_asked };
                    claim(subject, exclusivity, Serving::One, says)
                } else {
                    let says = format!("pid {}, and nothing that could be held", lock.pid);
                    let subject = Subject::Process(lock.pid);
                    let mut bare = claim(subject, exclusivity, Serving::One, says);
                    bare.evidence.kind = EvidenceKind::LockFile;
                    bare
                });
            }
        }
        claims
    }

    fn held_by<'b>(&self, session: &'b SessionDir, pid: Pid) -> Option<&'b InUse> {
        let mut locks = session.locks.iter();
        locks.find(|lock| self.holders_of(lock).contains(&pid))
    }

    /// Further sessions that the process in front holds: they have no prompt and get no row.
    fn claims_of_phantoms(&self, session: &SessionDir, shown: &BTreeMap<Pid, Shown>) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (pid, shown) in shown {
            let is_in_front = shown.current.as_ref() == Some(&session.id);
            if !is_in_front || self.held_by(session, *pid).is_none() {
                continue;
            }
            for phantom in shown.unused.iter().filter_map(|id| self.sessions.get(id)) {
                let Some(lock) = self.held_by(phantom, *pid) else {
                    continue;
                };
                let says = format!(
                    "process {pid} has locked session {} too, in which nobody has said anything",
                    phantom.id
                );
                let subject = Subject::Holder(*pid);
                let kind = EvidenceKind::Lock;
                claims.push(Claim {
                    exclusivity: Exclusivity::Shared,
                    ..self.claim(&session.id, subject, &lock.path, &lock.facts, kind, says)
                });
            }
        }
        claims
    }

    /// Before its first prompt a resumed session has no lock, so a stale lock proves nothing
    /// while there is a process without a known session.
    fn exclusivity(&self) -> Exclusivity {
        let mut servers = self.servers();
        if servers.all(|server| self.is_connected(server.process.pid)) {
            Exclusivity::Exclusive
        } else {
            Exclusivity::Shared
        }
    }

    /// When a session was used last. The one in front of a process counts as
    /// used after all others of that process.
    fn used_at_ms(
        &self,
        session: &SessionDir,
        lasts: &BTreeMap<SessionId, Description>,
        shown: Option<&Shown>,
    ) -> Option<i64> {
        let used = |session: &SessionDir| {
            let last = lasts
                .get(&session.id)
                .and_then(|last| last.last_activity_at_ms);
            last.max(session.workspace.created_at_ms)
        };
        let shown = shown.filter(|shown| shown.current.as_ref() == Some(&session.id));
        let others = shown.into_iter().flat_map(|shown| &shown.unused);
        let others = others.filter_map(|id| used(self.sessions.get(id)?));
        others
            .map(|at_ms| at_ms.saturating_add(1))
            .max()
            .max(used(session))
    }

    /// Claims from the log of a process without a lock on the session: the session is in
    /// front, or open beside that.
    fn claims_of_logs(&self, session: &SessionDir, shown: &BTreeMap<Pid, Shown>) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (pid, (path, facts, log)) in &self.logs {
            let is_held = session
                .locks
                .iter()
                .any(|lock| self.holders_of(lock).contains(pid));
            if is_held {
                continue;
            }
            let claim = |dated_at_ms, serving, says: String| {
                let subject = Subject::Process(*pid);
                Claim {
                    dated_at_ms,
                    modified_at_ms: facts.modified_ms,
                    exclusivity: Exclusivity::Shared,
                    serving,
                    ..self.claim(&session.id, subject, path, facts, EvidenceKind::Log, says)
                }
            };
            match log.in_front() {
                Some((id, at_ms)) if *id == session.id => claims.push(claim(
                    *at_ms,
                    serving(session, shown.get(pid)),
                    format!("process {pid} registered it as its foreground session"),
                )),
                _ => {
                    if let Some(opened_at_ms) = self.opened_by(session, *pid) {
                        // While a process ends, its only session is not in front any more.
                        let is_alone =
                            log.in_front().is_none() && log.opened.len() == 1 && !log.is_torn;
                        let (serving, beside) = if is_alone {
                            (Serving::One, "")
                        } else {
                            (Serving::Many, " beside another one")
                        };
                        let says = format!("process {pid} has opened it{beside}");
                        // The list of open sessions does not name the process.
                        let mut all = shown.values();
                        let is_inferred =
                            all.any(|shown| shown.current.as_ref() == Some(&session.id));
                        claims.push(Claim {
                            is_inferred,
                            ..claim(Some(opened_at_ms), serving, says)
                        });
                    } else if !self.is_open_known && log.opened.contains(&session.id) {
                        let says = format!(
                            "process {pid} has opened it, and the list of what is still open can't be read"
                        );
                        let subject = Subject::Unreadable;
                        claims.push(Claim {
                            subject,
                            ..claim(None, Serving::Many, says)
                        });
                    }
                }
            }
        }
        claims
    }

    /// When a process has opened a session that it has not closed since.
    fn opened_by(&self, session: &SessionDir, pid: Pid) -> Option<i64> {
        let (_, _, log) = self.logs.get(&pid)?;
        let opened_at_ms = self.open.get(&session.id)?.opened_at_ms?;
        let is_by_another = session
            .locks
            .iter()
            .any(|lock| !self.holders_of(lock).is_empty());
        // A process that opens a session again has it in front again.
        let left_at_ms = log.left_at_ms.get(&session.id);
        let is_opened_since = left_at_ms.is_some_and(|left| opened_at_ms > *left);
        let is_its = log.opened.contains(&session.id) && !is_opened_since;
        (is_its && !is_by_another).then_some(opened_at_ms)
    }

    /// It was open in a terminal and never closed, and no process has a lock of it.
    fn claim_of_open(&self, session: &SessionDir) -> Option<Claim> {
        self.open.get(&session.id)?;
        let facts = self.open_facts.as_ref()?;
        // A terminal may have opened it without a lock, beside another session.
        let opener = self.perhaps_opened_by(session);
        let is_everyone_asked = self.look.machine.table().processes().is_ok() && opener.is_none();
        let subject = Subject::LockFree { is_everyone_asked };
        let mut says = "it was open and not closed, and nobody has a lock of it".to_owned();
        if let Some(pid) = opener {
            says += &format!("; process {pid} may have opened it: its log lacks something");
        }
        let kind = EvidenceKind::LockFile;
        Some(Claim {
            exclusivity: Exclusivity::Shared,
            ..self.claim(&session.id, subject, &self.open_path, facts, kind, says)
        })
    }

    /// A process that may have opened a session: the session is listed as open since that
    /// process began, and the log of the process does not show it; or the list cannot be
    /// read.
    fn perhaps_opened_by(&self, session: &SessionDir) -> Option<Pid> {
        let open = self.open.get(&session.id);
        if open.is_none() && self.is_open_known {
            return None;
        }
        let opened_at_ms = open.and_then(|open| open.opened_at_ms);
        let may_have = |server: &AgentProcess| {
            let log = self.logs.get(&server.process.pid);
            let is_silent = log.is_some_and(|(_, _, log)| !log.is_telling());
            let began_at_ms = server.process.began_at_ms.as_ref().ok();
            let is_before = began_at_ms
                .zip(opened_at_ms)
                .is_some_and(|(began, opened)| opened < began.saturating_sub(CLOCK_SLACK_MS));
            is_silent && !is_before
        };
        let mut servers = self.servers();
        servers
            .find(|server| may_have(server))
            .map(|server| server.process.pid)
    }

    /// The log of a process lacks a part.
    fn is_torn(&self, pid: Pid) -> bool {
        let log = self.logs.get(&pid);
        log.is_some_and(|(_, _, log)| log.is_torn)
    }

    fn claim(
        &self,
        session: &SessionId,
        subject: Subject,
        path: &Path,
        facts: &FileFacts,
        kind: EvidenceKind,
        says: String,
    ) -> Claim {
        Claim {
            exclusivity: Exclusivity::Exclusive,
            trust: trust_of(facts, self.home, self.look.machine),
            placement: self.look.machine.mounts().placement_of(path),
            ..Claim::new(
                self.key(session),
                subject,
                Evidence::new(kind, Some(path.to_owned()), says),
            )
        }
    }
}

/// The session in front of a process and its unused sessions are steps of one terminal. The
/// process serves all other loaded sessions beside that.
fn serving(session: &SessionDir, shown: Option<&Shown>) -> Serving {
    let is_step = shown.is_none_or(|shown| {
        shown.current.as_ref() == Some(&session.id) || shown.unused.contains(&session.id)
    });
    if is_step { Serving::One } else { Serving::Many }
}
