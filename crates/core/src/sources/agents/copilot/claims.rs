//! What locks, logs and the list of open sessions claim.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::events::DIALECT;
use super::scan::{LogFile, Scanning};
use super::session::{InUse, SessionDir};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Exclusivity, Serving, Subject};
use crate::adapter::{AgentProcess, AgentScan, Description};
use crate::machine::problem::Found;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::held::no_holder;
use crate::sources::transcript::TranscriptFile;

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

impl Shown {
    pub(super) fn is_current(&self, session: &SessionDir) -> bool {
        self.current.as_ref() == Some(&session.id)
    }
}

impl Scanning<'_> {
    /// Makes claims and sketches of what was found.
    pub(super) fn finish(mut self) -> Found<AgentScan> {
        self.lasts = self.read_lasts();
        let servers = self.servers();
        let shown = servers.map(|server| (server.process.pid, self.shown_by(server)));
        self.shown = shown.collect();
        let sessions = self.sessions.values();
        let claims = sessions.flat_map(|session| self.claims_of(session));
        self.scan.claims = claims.map(Box::new).collect();
        let unconnected = self.servers().map(|server| server.process.pid);
        let unconnected = unconnected.filter(|pid| !self.is_connected(*pid));
        self.unconnected = unconnected.collect();
        // There may be very many, and each is held once.
        let sessions = std::mem::take(&mut self.sessions).into_values();
        let sketches = sessions.map(|session| Box::new(self.sketch(&session)));
        let sketches: Vec<_> = sketches.collect();
        self.scan.finish_with(sketches)
    }

    fn claims_of(&self, session: &SessionDir) -> Vec<Claim> {
        let mut claims = self.claims_of_locks(session);
        let logs = self.logs.iter();
        claims.extend(logs.filter_map(|(pid, log)| self.claim_of_log(session, *pid, log)));
        claims.extend(self.claims_of_phantoms(session));
        if claims.is_empty() {
            claims.extend(self.claim_of_open(session));
        }
        claims
    }

    /// The last events of every claimed session. Problems with them are reported when the
    /// session is described.
    fn read_lasts(&self) -> BTreeMap<SessionId, Description> {
        let logs = self.logs.values();
        let named: BTreeSet<&SessionId> = logs
            .flat_map(|file| file.log.foreground.iter().map(|(id, _)| id))
            .collect();
        let read = |session: &SessionDir| {
            let is_of_interest = !session.locks.is_empty()
                || self.open.contains_key(&session.id)
                || named.contains(&session.id);
            let events = session.events.as_deref().filter(|_| is_of_interest)?;
            let file = TranscriptFile::open(events).ok()?;
            let last = DIALECT.tail(&file, &mut BadLines::default()).ok()?;
            Some((session.id.clone(), last))
        };
        self.sessions.values().filter_map(read).collect()
    }

    /// When a session was used last, by itself.
    pub(super) fn last_used_ms(&self, session: &SessionDir) -> Option<i64> {
        let last = self.lasts.get(&session.id);
        let active_at_ms = last.and_then(|last| last.last_activity_at_ms);
        active_at_ms.max(session.workspace.created_at_ms)
    }

    /// The session in front of a process: by the log; else the only session that the process
    /// holds; else the held session with the newest event.
    fn shown_by(&self, server: &AgentProcess) -> Shown {
        let pid = server.process.pid;
        let is_loaded = |session: &&SessionDir| {
            let mut locks = session.locks.iter();
            locks.any(|lock| self.is_by(lock, pid))
        };
        let loaded: Vec<&SessionDir> = self.sessions.values().filter(is_loaded).collect();
        let file = self.logs.get(&pid);
        if loaded.len() > 1 && file.is_some_and(|file| file.log.is_torn) {
            // Any of them may be in front, even a session without messages.
            return Shown::default();
        }
        let in_log = file
            .and_then(|file| file.log.foreground.as_ref())
            .map(|(id, _)| id);
        let newest = || {
            let dated = loaded.iter().map(|session| {
                let used_ms = self.last_used_ms(session);
                (session.has_events(), used_ms, &session.id)
            });
            dated.max().map(|(_, _, id)| id)
        };
        let known = in_log.filter(|id| self.sessions.contains_key(*id));
        let current = known.or_else(newest).cloned();
        let unused = loaded
            .iter()
            .filter(|session| !session.has_events() && Some(&session.id) != current.as_ref())
            .map(|session| session.id.clone())
            .collect();
        Shown { current, unused }
    }

    /// A process holds a lock, or (of an early version) has its PID in the name
    /// of one.
    fn is_by(&self, lock: &InUse, pid: Pid) -> bool {
        self.holders_of(lock).contains(&pid) || (!lock.is_hold && lock.pid == pid)
    }

    fn claims_of_locks(&self, session: &SessionDir) -> Vec<Claim> {
        // Of a process that uses another session, a lock that it does not hold is ignored.
        let counts = |lock: &&InUse| lock.is_hold || !self.is_unused(session, lock.pid);
        let locks = session.locks.iter().filter(counts);
        let claims = locks.flat_map(|lock| self.claims_of_lock(session, lock));
        claims.collect()
    }

    /// The process uses another session.
    pub(super) fn is_unused(&self, session: &SessionDir, pid: Pid) -> bool {
        let shown = self.shown.get(&pid);
        shown.is_some_and(|shown| shown.unused.contains(&session.id))
    }

    fn claims_of_lock(&self, session: &SessionDir, lock: &InUse) -> Vec<Claim> {
        let claim = |subject, kind, says: String| {
            let evidence = Evidence::new(kind, lock.path.clone(), says);
            let scan = &self.scan;
            scan.claim_by_file(&session.id, subject, evidence, &lock.facts)
        };
        let held_by = |pid: &Pid| {
            let says = format!("held by process {pid}");
            Claim {
                dated_at_ms: self.used_at_ms(session, *pid),
                exclusivity: Exclusivity::Exclusive,
                serving: self.serving(session, *pid),
                ..claim(Subject::Holder(*pid), EvidenceKind::Lock, says)
            }
        };
        let holders = self.holders_of(lock);
        if !holders.is_empty() {
            return holders.iter().map(held_by).collect();
        }
        let (subject, kind, says) = if lock.is_hold {
            let held = self.held.get(&lock.file());
            let is_all_asked = held.is_some_and(|held| held.is_everyone_asked);
            let says = no_holder(is_all_asked);
            let (subject, says) = self.lock_free(session, says, is_all_asked);
            (subject, EvidenceKind::Lock, says)
        } else {
            let says = format!("pid {}, and nothing that could be held", lock.pid);
            (Subject::Process(lock.pid), EvidenceKind::LockFile, says)
        };
        vec![Claim {
            exclusivity: self.exclusivity(),
            ..claim(subject, kind, says)
        }]
    }

    /// Nothing that was asked holds a lock. A process whose log lacks a part may have opened the
    /// session without one.
    fn lock_free(&self, session: &SessionDir, says: &str, is_all_asked: bool) -> (Subject, String) {
        let opener = self.perhaps_opened_by(session);
        let mut says = says.to_owned();
        if let Some(pid) = opener.filter(|_| is_all_asked) {
            says += &format!(", but process {pid} may have opened it: its log lacks a part");
        }
        let is_everyone_asked = is_all_asked && opener.is_none();
        (Subject::LockFree { is_everyone_asked }, says)
    }

    /// The lock of a session that a process holds.
    pub(super) fn held_by<'s>(&self, session: &'s SessionDir, pid: Pid) -> Option<&'s InUse> {
        let mut locks = session.locks.iter();
        locks.find(|lock| self.holders_of(lock).contains(&pid))
    }

    /// Further sessions that the process in front holds: they have no prompt and get no row.
    fn claims_of_phantoms(&self, session: &SessionDir) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (pid, shown) in &self.shown {
            if !shown.is_current(session) || self.held_by(session, *pid).is_none() {
                continue;
            }
            for phantom in shown.unused.iter().filter_map(|id| self.sessions.get(id)) {
                let Some(lock) = self.held_by(phantom, *pid) else {
                    continue;
                };
                let says = format!(
                    "process {pid} has locked session {} too, which has no messages",
                    phantom.id
                );
                let evidence = Evidence::new(EvidenceKind::Lock, lock.path.clone(), says);
                let (scan, subject) = (&self.scan, Subject::Holder(*pid));
                claims.push(scan.claim_by_file(&session.id, subject, evidence, &lock.facts));
            }
        }
        claims
    }

    /// Before its first prompt a resumed session has no lock, so a stale lock proves nothing
    /// while there is a process without a known session.
    fn exclusivity(&self) -> Exclusivity {
        let mut servers = self.servers();
        match servers.all(|server| self.is_connected(server.process.pid)) {
            true => Exclusivity::Exclusive,
            false => Exclusivity::Shared,
        }
    }

    /// When a session was used last. The one in front of a process counts as
    /// used after all others of that process.
    fn used_at_ms(&self, session: &SessionDir, pid: Pid) -> Option<i64> {
        let shown = self.shown.get(&pid);
        let shown = shown.filter(|shown| shown.is_current(session));
        let others = shown.into_iter().flat_map(|shown| &shown.unused);
        let others = others.filter_map(|id| self.last_used_ms(self.sessions.get(id)?));
        let after_others = others.max().map(|at_ms| at_ms.saturating_add(1));
        after_others.max(self.last_used_ms(session))
    }

    /// The claim from the log of a process without a lock on the session: the session is in
    /// front, or open beside that.
    fn claim_of_log(&self, session: &SessionDir, pid: Pid, file: &LogFile) -> Option<Claim> {
        if self.held_by(session, pid).is_some() {
            return None;
        }
        let claim = |subject, dated_at_ms, serving, says: String| {
            let evidence = Evidence::new(EvidenceKind::Log, file.path.clone(), says);
            let scan = &self.scan;
            Claim {
                dated_at_ms,
                serving,
                ..scan.claim_by_file(&session.id, subject, evidence, &file.facts)
            }
        };
        let log = &file.log;
        let subject = Subject::Process(pid);
        let in_front = log.foreground.as_ref().filter(|(id, _)| *id == session.id);
        if let Some((_, at_ms)) = in_front {
            let says = format!("process {pid} registered it as its foreground session");
            let serving = self.serving(session, pid);
            return Some(claim(subject, *at_ms, serving, says));
        }
        let opened_at_ms = self.opened_by(session, file);
        if opened_at_ms.is_some() {
            // While a process ends, its only session is not in front any more.
            let is_alone = log.foreground.is_none() && log.opened.len() == 1 && !log.is_torn;
            let (serving, beside) = match is_alone {
                true => (Serving::One, ""),
                false => (Serving::Many, " beside another one"),
            };
            let says = format!("process {pid} has opened it{beside}");
            let mut all = self.shown.values();
            return Some(Claim {
                // The list of open sessions does not name the process.
                is_inferred: all.any(|shown| shown.is_current(session)),
                ..claim(subject, opened_at_ms, serving, says)
            });
        }
        let is_perhaps_open = !self.is_open_known && log.opened.contains(&session.id);
        is_perhaps_open.then(|| {
            let says = format!(
                "process {pid} has opened it, and the list of what is still open can't be read"
            );
            claim(Subject::Unreadable, None, Serving::Many, says)
        })
    }

    /// When a process has opened a session that it has not closed since.
    fn opened_by(&self, session: &SessionDir, file: &LogFile) -> Option<i64> {
        let opened_at_ms = self.open.get(&session.id)?.opened_at_ms?;
        let mut locks = session.locks.iter();
        let is_by_another = locks.any(|lock| !self.holders_of(lock).is_empty());
        // A process that opens a session again has it in front again.
        let left_at_ms = file.log.left_at_ms.get(&session.id);
        let is_opened_since = left_at_ms.is_some_and(|left| opened_at_ms > *left);
        let is_its = file.log.opened.contains(&session.id) && !is_opened_since;
        (is_its && !is_by_another).then_some(opened_at_ms)
    }

    /// It was open in a terminal and never closed, and no process has a lock of it.
    fn claim_of_open(&self, session: &SessionDir) -> Option<Claim> {
        self.open.get(&session.id)?;
        let facts = self.open_facts.as_ref()?;
        let processes = self.scan.look.machine.table().processes();
        let says = "it was open and not closed, and no process has a lock of it";
        let (subject, says) = self.lock_free(session, says, processes.is_ok());
        let evidence = Evidence::new(EvidenceKind::LockFile, self.open_path.clone(), says);
        let scan = &self.scan;
        Some(scan.claim_by_file(&session.id, subject, evidence, facts))
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
        let may_have = |server: &&AgentProcess| {
            let file = self.logs.get(&server.process.pid);
            let had_begun = opened_at_ms.and_then(|at_ms| server.had_begun_at(at_ms));
            file.is_some_and(|file| !file.log.is_telling()) && had_begun != Some(false)
        };
        let opener = self.servers().find(may_have);
        opener.map(|server| server.process.pid)
    }

    /// The session in front of a process and its unused sessions are steps of one terminal.
    /// The process serves all other loaded sessions beside that.
    fn serving(&self, session: &SessionDir, pid: Pid) -> Serving {
        let shown = self.shown.get(&pid);
        let is_step = shown
            .is_none_or(|shown| shown.is_current(session) || shown.unused.contains(&session.id));
        match is_step {
            true => Serving::One,
            false => Serving::Many,
        }
    }
}
