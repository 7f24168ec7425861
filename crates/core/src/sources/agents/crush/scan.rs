//! One home of Crush: the projects and their sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::AGENT;
use super::database::ProjectDb;
use super::process::PROGRAMS;
use super::project::{Lock, Project, projects};
use super::record::{SessionRow, phase};
use super::short_id::is_meant;
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Exclusivity, Serving, Subject};
use crate::adapter::phase::Phase;
use crate::adapter::{
    AgentProcess, AgentScan, Clue, ClueKind, Home, Look, Role, Sketch, Unclaimed,
};
use crate::machine::problem::Found;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::title::one_line;

/// What a date in whole seconds leaves out, in milliseconds.
const SECOND_MS: i64 = 1_000;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning {
        scan: Scan::new(AGENT, look, home),
        sketches: BTreeMap::new(),
    };
    let projects = projects(look, home, &mut scanning.scan.problems);
    let openers = projects.iter();
    let openers = openers.map(|project| (project, scanning.opener_of(project, &projects)));
    let is_open = |opener: &Opener<'_>| !matches!(opener, Opener::NoProcess);
    let (open, idle): (Vec<_>, Vec<_>) = openers.partition(|(_, opener)| is_open(opener));
    // A project that was copied has the sessions of the first one: of those, the open one's count.
    let walked = idle.iter().filter(|_| look.depth.is_walk());
    for (project, opener) in open.iter().chain(walked) {
        scanning.add_project(project, opener);
    }
    scanning.scan.problems.sort();
    scanning.scan.problems.dedup();
    scanning.scan.finish_with(scanning.sketches.into_values())
}

/// Which of Crush's processes have a project open.
enum Opener<'a> {
    /// None, as far as is known.
    NoProcess,
    /// This one alone: it holds the lock.
    One(&'a AgentProcess),
    /// A server, for its clients.
    Server(&'a AgentProcess),
    /// Those that work there, without locks.
    Some(Vec<&'a AgentProcess>),
}

struct Scanning<'a> {
    scan: Scan<'a>,
    sketches: BTreeMap<SessionId, Sketch>,
}

impl<'a> Scanning<'a> {
    /// A process of this agent, of any home.
    fn process(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let mut processes = self.scan.look.processes.iter();
        processes.find(|process| process.process.pid == pid)
    }

    fn opener_of(&self, project: &Project, all: &[Project]) -> Opener<'a> {
        if let Lock::Held(pid) = project.lock {
            return match self.process(pid) {
                Some(process) if process.role == Role::Host => Opener::Server(process),
                Some(process) => Opener::One(process),
                None => Opener::NoProcess,
            };
        }
        let has_lock = |pid: Pid| all.iter().any(|other| other.lock == Lock::Held(pid));
        let pids = project.processes.iter().filter(|pid| !has_lock(**pid));
        let openers: Vec<&AgentProcess> = pids
            .filter_map(|pid| self.process(*pid))
            .filter(|process| process.role == Role::Session)
            .collect();
        if openers.is_empty() {
            Opener::NoProcess
        } else {
            Opener::Some(openers)
        }
    }

    fn add_project(&mut self, project: &Project, opener: &Opener<'a>) {
        let path = project.database();
        let read = ProjectDb::read(&path).and_then(|database| match database {
            Some(database) => Ok(Some((database.sessions()?, database))),
            None => Ok(None),
        });
        let (sessions, database) = match read {
            Ok(Some(read)) => read,
            // The project has been opened, and no session has a message.
            Ok(None) => return,
            Err(message) => return self.scan.problem(&path, message),
        };
        for message in sessions.wrong {
            self.scan.problem(&path, message);
        }
        let mut rows = sessions.rows;
        rows.retain(|row| !row.is_passing());
        let is_walk = self.scan.look.depth.is_walk();
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            let is_open = may_be_open(row, opener);
            if is_open {
                open.insert(&row.id);
            }
            if is_open || is_walk {
                self.add_session(project, row, is_open, opener);
            }
        }
        for row in &rows {
            if let Some(parent) = &row.parent {
                let is_open = open.contains(parent.as_str());
                if is_open || is_walk {
                    self.add_sub_agent(project, row, parent, is_open.then_some(&database));
                }
            }
        }
    }

    fn add_session(
        &mut self,
        project: &Project,
        row: &SessionRow,
        is_open: bool,
        opener: &Opener<'a>,
    ) {
        let Some(mut sketch) = self.sketch(project, row) else {
            return;
        };
        if is_open {
            sketch.agent_version.clone_from(&project.version);
        }
        let claim = match opener {
            Opener::One(process) if is_open => {
                add_owner(&mut sketch, row, process);
                None
            }
            Opener::Some(_) if is_open => {
                sketch.unclaimed = Unclaimed::Owner;
                None
            }
            Opener::Server(server) if is_open => {
                let pid = server.process.pid;
                let says =
                    format!("process {pid} has the project open for its clients, and may serve it");
                Some((says, false))
            }
            Opener::One(_) | Opener::Server(_) => None,
            Opener::Some(_) | Opener::NoProcess => unheld(project.lock),
        };
        if let Some((says, is_everyone_asked)) = claim {
            let claim = self.claim(project, &sketch, says, is_everyone_asked);
            self.scan.claim(claim);
        }
        self.sketches.insert(sketch.key.session.clone(), sketch);
    }

    /// A sub-agent of an open session has ended once its last message has
    /// ended its turn. Others are as their parents are.
    fn add_sub_agent(
        &mut self,
        project: &Project,
        row: &SessionRow,
        parent: &str,
        open: Option<&ProjectDb>,
    ) {
        let Some(mut sketch) = self.sketch(project, row) else {
            return;
        };
        let parent = SessionId::parse(parent).ok();
        sketch.parent = parent.filter(|parent| *parent != sketch.key.session);
        if sketch.parent.is_none() {
            return;
        }
        let newest = open.and_then(|database| database.newest_messages(&row.id, 1).ok());
        let last = newest.as_deref().and_then(<[_]>::first);
        if last.and_then(phase) == Some(Phase::Idle) {
            let says = "its last message has ended its turn";
            let evidence = Evidence::new(EvidenceKind::Transcript, project.database(), says);
            let (session, facts) = (&sketch.key.session, project.lock_facts.as_ref());
            self.scan.claim(Claim {
                serving: Serving::Many,
                ..self.scan.ended(session, evidence, facts, None)
            });
        }
        self.sketches.insert(sketch.key.session.clone(), sketch);
    }

    /// `None` if its id can't be one, or is another project's already.
    fn sketch(&mut self, project: &Project, row: &SessionRow) -> Option<Sketch> {
        let id = SessionId::parse(&row.id).inspect_err(|error| {
            let message = format!("a session's id cannot be used: {error}");
            self.scan.problem(&project.database(), message);
        });
        let id = id.ok()?;
        if self.sketches.contains_key(&id) {
            return None;
        }
        Some(Sketch {
            work_dir: project.work_dir.clone(),
            born_at_ms: row.created_at_ms,
            last_record_at_ms: row.last_at_ms(),
            started_at_ms: row.created_at_ms,
            transcript: Some(project.database()),
            title: row.title.as_deref().and_then(one_line),
            ..Sketch::new(self.scan.key(&id))
        })
    }

    fn claim(
        &self,
        project: &Project,
        sketch: &Sketch,
        says: String,
        is_everyone_asked: bool,
    ) -> Claim {
        let path = project.lock_path();
        let subject = Subject::LockFree { is_everyone_asked };
        let evidence = Evidence::new(EvidenceKind::Lock, path, says);
        let (scan, session) = (&self.scan, &sketch.key.session);
        let claim = match &project.lock_facts {
            Some(facts) => scan.claim_by_file(session, subject, evidence, facts),
            None => scan.claim_without_facts(session, subject, evidence),
        };
        Claim {
            // Locks may be turned off.
            exclusivity: Exclusivity::Shared,
            serving: Serving::Many,
            ..claim
        }
    }
}

/// Adds what shows whether the process has the session open that alone has the project open.
fn add_owner(sketch: &mut Sketch, row: &SessionRow, process: &AgentProcess) {
    sketch.unclaimed = Unclaimed::Owner;
    let at_ms = sketch.last_record_at_ms.max(sketch.born_at_ms);
    sketch
        .clues
        .extend(at_ms.map(|at_ms| used_since(process, at_ms)));
    if is_named(process, row) {
        let pid = process.process.pid;
        let says = format!("the arguments of process {pid} name it");
        sketch.clues.push(Clue::new(pid, ClueKind::Names, says));
    }
    sketch.is_headless = Some(PROGRAMS.is_headless(&process.program()));
    let own = process.work_dir().map(PathBuf::from);
    sketch.work_dir = own.or(sketch.work_dir.take());
}

/// The reason why no process owns the sessions of a project, by a lock that no Crush process
/// holds, and whether all processes were asked.
fn unheld(lock: Lock) -> Option<(String, bool)> {
    let is_everyone_asked = matches!(lock, Lock::Free { is_everyone_asked } if is_everyone_asked);
    let says = match lock {
        Lock::Free { .. } if is_everyone_asked => "no process has the project open".to_owned(),
        Lock::Free { .. } => {
            "no process was found that has the project open, and not all could be asked".to_owned()
        }
        Lock::HeldByOther(pid) => format!("process {pid} has the project open, and may serve it"),
        Lock::Unreadable => "it can't be looked at".to_owned(),
        Lock::Missing | Lock::Held(_) | Lock::NotHeldByOwn => return None,
    };
    Some((says, is_everyone_asked))
}

/// Dates are whole seconds: in the second in which a process began, another process may have
/// used the session before.
fn used_since(process: &AgentProcess, at_ms: i64) -> Clue {
    let pid = process.process.pid;
    let began = process.process.began_ms();
    if began.is_some_and(|began| at_ms >= began) {
        let says = format!("process {pid} alone has had the project open since");
        Clue::new(pid, ClueKind::Run { at_ms }, says)
    } else {
        let says = format!("it was used in the second in which process {pid} began");
        Clue::new(pid, ClueKind::Touched, says)
    }
}

/// Returns whether the arguments of a process name the session.
fn is_named(process: &AgentProcess, row: &SessionRow) -> bool {
    let named = PROGRAMS.session(&process.program());
    named.is_some_and(|named| is_meant(named, &row.id))
}

/// Returns whether a process may have a session open now: the arguments name the session, or
/// the session was born or got records since the process began.
fn may_be_open(row: &SessionRow, opener: &Opener<'_>) -> bool {
    let newest = row.created_at_ms.max(row.last_at_ms());
    let is_since = |began: i64| newest.is_some_and(|at| at.saturating_add(SECOND_MS) > began);
    let may_have = |process: &AgentProcess| {
        is_named(process, row) || process.process.began_ms().is_none_or(is_since)
    };
    match opener {
        Opener::NoProcess => false,
        Opener::One(process) | Opener::Server(process) => may_have(process),
        Opener::Some(processes) => processes.iter().any(|process| may_have(process)),
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
