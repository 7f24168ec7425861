//! One home of Crush: the projects and their sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::FileFacts;

use super::AGENT;
use super::database::ProjectDb;
use super::process::PROGRAMS;
use super::project::{Lock, Project, projects};
use super::record::{SessionRow, phase};
use super::short_id::is_meant;
use crate::adapter::claim::{
    Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject, Trust,
};
use crate::adapter::phase::Phase;
use crate::adapter::{
    AgentProcess, AgentScan, Clue, ClueKind, Home, Look, Role, Sketch, Unclaimed,
};
use crate::machine::problem::{Found, Problem};
use crate::sources::trust::trust_of;

/// What a date in whole seconds leaves out, in milliseconds.
const SECOND_MS: i64 = 1_000;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut problems = Vec::new();
    let projects = projects(look, home, &mut problems);
    let mut scanning = Scanning {
        look,
        home,
        claims: Vec::new(),
        sketches: BTreeMap::new(),
        problems,
    };
    let openers: Vec<Opener<'_>> = projects
        .iter()
        .map(|project| scanning.opener_of(project, &projects))
        .collect();
    for (project, opener) in projects.iter().zip(openers) {
        if look.depth.is_walk() || !matches!(opener, Opener::NoProcess) {
            scanning.add_project(project, opener);
        }
    }
    scanning.problems.sort();
    scanning.problems.dedup();
    Found {
        found: AgentScan::of(scanning.claims, scanning.sketches.into_values()),
        problems: scanning.problems,
    }
}

/// Which of Crush's processes have a project open.
#[derive(Clone)]
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
    look: &'a Look<'a>,
    home: &'a Home,
    claims: Vec<Claim>,
    sketches: BTreeMap<SessionId, Sketch>,
    problems: Vec<Problem>,
}

impl<'a> Scanning<'a> {
    fn process(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let mut processes = self.look.processes.iter();
        processes.find(|process| process.process.pid == pid)
    }

    fn opener_of(&self, project: &Project, all: &[Project]) -> Opener<'a> {
        if let Lock::Held(pid, _) = project.lock {
            return match self.process(pid) {
                Some(process) if process.role == Role::Host => Opener::Server(process),
                Some(process) => Opener::One(process),
                None => Opener::NoProcess,
            };
        }
        let has_lock = |pid: Pid| {
            all.iter()
                .any(|other| matches!(other.lock, Lock::Held(holder, _) if holder == pid))
        };
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

    fn add_project(&mut self, project: &Project, opener: Opener<'a>) {
        let path = project.database();
        let read = ProjectDb::read(&path).and_then(|database| match database {
            Some(database) => Ok(Some((database.sessions()?, database))),
            None => Ok(None),
        });
        let (rows, database) = match read {
            Ok(Some(read)) => read,
            // The project has been opened, and no session has a message.
            Ok(None) => return,
            Err(message) => {
                self.problems.push(Problem::at(&AGENT, &path, message));
                return;
            }
        };
        let rows: Vec<SessionRow> = rows.into_iter().filter(|row| !row.is_passing()).collect();
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            let is_open = may_be_open(row, &opener);
            if is_open {
                open.insert(&row.id);
            }
            if is_open || self.look.depth.is_walk() {
                self.add_session(project, row, is_open, &opener);
            }
        }
        for row in &rows {
            let Some(parent) = row.parent.as_deref() else {
                continue;
            };
            let is_open = open.contains(parent);
            if is_open || self.look.depth.is_walk() {
                self.add_sub_agent(project, row, is_open.then_some(&database));
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
                sketch.unclaimed = Unclaimed::Owner;
                let at_ms = sketch.last_record_at_ms.max(sketch.born_at_ms);
                sketch
                    .clues
                    .extend(at_ms.map(|at_ms| used_since(process, at_ms)));
                if PROGRAMS
                    .session(&process.program())
                    .is_some_and(|named| is_meant(named, &row.id))
                {
                    let pid = process.process.pid;
                    sketch.clues.push(Clue {
                        pid,
                        kind: ClueKind::Names,
                        says: format!("the arguments of process {pid} name it"),
                    });
                }
                sketch.is_headless = Some(PROGRAMS.is_headless(&process.program()));
                let own = process.work_dir().map(PathBuf::from);
                sketch.work_dir = own.or(sketch.work_dir);
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
            Opener::Some(_) | Opener::NoProcess => unheld(&project.lock),
        };
        if let Some((says, is_everyone_asked)) = claim {
            let claim = self.claim(project, &sketch, says, is_everyone_asked);
            self.claims.push(claim);
        }
        self.sketches.insert(sketch.key.session.clone(), sketch);
    }

    /// A sub-agent of an open session has ended once its last message has
    /// ended its turn. Others are as their parents are.
    fn add_sub_agent(&mut self, project: &Project, row: &SessionRow, open: Option<&ProjectDb>) {
        let Some(mut sketch) = self.sketch(project, row) else {
            return;
        };
        let parent = row
            .parent
            .as_deref()
            .and_then(|parent| SessionId::parse(parent).ok());
        sketch.parent = parent.filter(|parent| *parent != sketch.key.session);
        if sketch.parent.is_none() {
            return;
        }
        if let Some(database) = open {
            let newest = database.newest_messages(&row.id, 1).unwrap_or_default();
            if newest
                .first()
                .is_some_and(|last| phase(last) == Some(Phase::Idle))
            {
                let mut claim = self.claim(project, &sketch, String::new(), true);
                claim.subject = Subject::Released;
                claim.exclusivity = Exclusivity::Exclusive;
                claim.evidence = Evidence::new(
                    EvidenceKind::Transcript,
                    Some(project.database()),
                    "its last message has ended its turn".to_owned(),
                );
                self.claims.push(claim);
            }
        }
        self.sketches.insert(sketch.key.session.clone(), sketch);
    }

    /// `None` if its id can't be one, or is another project's already.
    fn sketch(&mut self, project: &Project, row: &SessionRow) -> Option<Sketch> {
        let id = match SessionId::parse(&row.id) {
            Ok(id) => id,
            Err(error) => {
                let message = format!("a session's id cannot be used: {error}");
                self.problems
                    .push(Problem::at(&AGENT, &project.database(), message));
                return None;
            }
        };
        if self.sketches.contains_key(&id) {
            return None;
        }
        Some(Sketch {
            work_dir: project.work_dir.clone(),
            born_at_ms: row.created_at_ms,
            last_record_at_ms: row.last_at_ms(),
            started_at_ms: row.created_at_ms,
            transcript: Some(project.database()),
            title: row
                .title
                .as_deref()
                .and_then(crate::sources::agents::kit::title::one_line),
            ..Sketch::new(SessionKey {
                agent: AGENT,
                session: id,
                home: self.home.root.clone(),
            })
        })
    }

    fn claim(
        &self,
        project: &Project,
        sketch: &Sketch,
        says: String,
        is_everyone_asked: bool,
    ) -> Claim {
        let machine = self.look.machine;
        let path = project.lock_path();
        let facts = facts_of(&project.lock);
        Claim {
            modified_at_ms: facts.and_then(|facts| facts.modified_ms),
            // Locks may be turned off.
            exclusivity: Exclusivity::Shared,
            serving: Serving::Many,
            trust: facts.map_or(Trust::Trusted, |facts| trust_of(facts, self.home, machine)),
            placement: machine.mounts().placement_of(&path),
            ..Claim::new(
                sketch.key.clone(),
                Subject::LockFree { is_everyone_asked },
                Evidence::new(EvidenceKind::Lock, Some(path), says),
            )
        }
    }
}

/// The reason why no process owns the sessions of a project, by a lock that no Crush process
/// holds, and whether all processes were asked.
fn unheld(lock: &Lock) -> Option<(String, bool)> {
    match lock {
        Lock::Free {
            is_everyone_asked, ..
        } => {
            let says = if *is_everyone_asked {
                "nobody has the project open"
            } else {
                "nobody was found to have the project open, and not everybody could be asked"
            };
            Some((says.to_owned(), *is_everyone_asked))
        }
        Lock::HeldByOther(pid, _) => Some((
            format!("process {pid} has the project open, and may serve it"),
            false,
        )),
        Lock::Unreadable => Some(("it can't be looked at".to_owned(), false)),
        Lock::Missing | Lock::Held(..) | Lock::NotHeldByOwn(_) => None,
    }
}

/// Dates are whole seconds: in the second in which a process began, another process may have
/// used the session before.
fn used_since(process: &AgentProcess, at_ms: i64) -> Clue {
    let pid = process.process.pid;
    let began = process.process.began_at_ms.as_ref();
    if began.is_ok_and(|began| at_ms >= *began) {
        let says = format!("process {pid} alone has had the project open since");
        Clue::run(pid, at_ms, says)
    } else {
        Clue {
            pid,
            kind: ClueKind::Touched,
            says: format!("it was used in the second in which process {pid} began"),
        }
    }
}

fn facts_of(lock: &Lock) -> Option<&FileFacts> {
    match lock {
        Lock::Missing | Lock::Unreadable => None,
        Lock::Held(_, facts)
        | Lock::NotHeldByOwn(facts)
        | Lock::HeldByOther(_, facts)
        | Lock::Free { facts, .. } => Some(facts),
    }
}

/// Returns whether a process may have a session open now: the arguments name the session, or
/// the session was born or got records since the process began.
fn may_be_open(row: &SessionRow, opener: &Opener<'_>) -> bool {
    let is_since = |process: &AgentProcess| {
        let Ok(began) = process.process.began_at_ms else {
            return true;
        };
        let newest = row.created_at_ms.max(row.last_at_ms());
        newest.is_some_and(|at| at.saturating_add(SECOND_MS) > began)
    };
    let is_named = |process: &AgentProcess| {
        PROGRAMS
            .session(&process.program())
            .is_some_and(|named| is_meant(named, &row.id))
    };
    let may_have = |process: &AgentProcess| is_named(process) || is_since(process);
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
