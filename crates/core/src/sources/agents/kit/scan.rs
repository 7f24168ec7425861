//! The scan of one home while it grows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use whosup_process::{Pid, Process};
use whosup_sidecar::file::{FileFacts, ReadFileError};
use whosup_sidecar::{AgentId, SessionId};

use super::folder::{Names, list_folders_or_report, list_or_report};
use super::one_per_session::OnePerSession;
use crate::adapter::claim::{Claim, Evidence, Exclusivity, SessionKey, Subject};
use crate::adapter::{AgentProcess, AgentScan, Home, Look, Role, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::transcript::TranscriptError;
use crate::sources::trust::trust_of;

/// How much older than a process what it wrote may seem, in milliseconds: clocks are set.
const WRITTEN_SLACK_MS: i64 = 3_600_000;

/// What one home is scanned with, and the claims and problems that were found.
pub(crate) struct Scan<'a> {
    pub(crate) agent: AgentId,
    pub(crate) look: &'a Look<'a>,
    pub(crate) home: &'a Home,
    pub(crate) claims: Vec<Box<Claim>>,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Scan<'a> {
    pub(crate) const fn new(agent: AgentId, look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            agent,
            look,
            home,
            claims: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The key of a session of this home.
    pub(crate) fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: self.agent.clone(),
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    /// Reports what is wrong with `path`.
    pub(crate) fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&self.agent, path, message));
    }

    /// Adds a claim.
    pub(crate) fn claim(&mut self, claim: Claim) {
        self.claims.push(Box::new(claim));
    }

    /// A claim by a file of the agent, to add or to complete. The evidence names the file.
    pub(crate) fn claim_by_file(
        &self,
        session: &SessionId,
        subject: Subject,
        evidence: Evidence,
        facts: &FileFacts,
    ) -> Claim {
        let machine = self.look.machine;
        let path = evidence.path.as_deref().unwrap_or(&self.home.root);
        Claim {
            modified_at_ms: facts.modified_ms,
            trust: trust_of(facts, self.home, machine),
            placement: machine.mounts().placement_of_file(path, facts),
            ..Claim::new(self.key(session), subject, evidence)
        }
    }

    /// A claim whose evidence is no file, or a file that is not examined.
    pub(crate) fn claim_without_facts(
        &self,
        session: &SessionId,
        subject: Subject,
        evidence: Evidence,
    ) -> Claim {
        let path = evidence.path.as_deref().unwrap_or(&self.home.root);
        Claim {
            placement: self.look.machine.mounts().placement_of(path),
            ..Claim::new(self.key(session), subject, evidence)
        }
    }

    /// A claim that a sub-agent has ended, which no process can contradict. `facts` are those
    /// of the file that shows it, if others could write it.
    pub(crate) fn ended(
        &self,
        session: &SessionId,
        evidence: Evidence,
        facts: Option<&FileFacts>,
        at_ms: Option<i64>,
    ) -> Claim {
        let claim = match facts {
            Some(facts) => self.claim_by_file(session, Subject::Released, evidence, facts),
            None => self.claim_without_facts(session, Subject::Released, evidence),
        };
        Claim {
            dated_at_ms: at_ms,
            exclusivity: Exclusivity::Exclusive,
            ..claim
        }
    }

    /// Lists the names in a directory, and reports why some are missing.
    pub(crate) fn names(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_or_report(directory, entries_max, |message| {
            self.problem(directory, message);
        })
    }

    /// Lists the folders in a directory, and reports why some are missing.
    pub(crate) fn folders(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_folders_or_report(directory, entries_max, |message| {
            self.problem(directory, message);
        })
    }

    /// What was read of a file; `None` if that can't be read, which is reported, or if there
    /// is no such file.
    pub(crate) fn read_or_report<T>(
        &mut self,
        path: &Path,
        read: Result<T, impl Into<TranscriptError>>,
    ) -> Option<T> {
        match read.map_err(Into::into) {
            Ok(read) => return Some(read),
            Err(TranscriptError::File(ReadFileError::NotFound { .. })) => {}
            Err(error) => self.problem(path, error.reason()),
        }
        None
    }

    /// The claims so far that may be about this process.
    pub(crate) fn claims_of(&self, process: &Process) -> impl Iterator<Item = &Claim> {
        let ours = self.look.machine.table().scope();
        let claims = self.claims.iter().map(AsRef::as_ref);
        claims.filter(move |claim: &&Claim| claim.may_be_about(process, ours))
    }

    /// The processes that may use this home.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        self.look.processes_of(self.home)
    }

    /// The processes that run one session of this home at a time.
    pub(crate) fn seekers(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        self.of_role(Role::Session)
    }

    /// The same by what `of` makes of the directories that they work in, a folder's name for
    /// example.
    pub(crate) fn seekers_by<K: Ord>(
        &self,
        of: impl Fn(&Path) -> Option<K>,
    ) -> BTreeMap<K, Vec<&'a AgentProcess>> {
        let mut seekers: BTreeMap<K, Vec<_>> = BTreeMap::new();
        for process in self.seekers() {
            for key in process.work_dirs().filter_map(&of) {
                seekers.entry(key).or_default().push(process);
            }
        }
        seekers
    }

    /// The processes of this home with a role.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        let processes = self.processes();
        processes.filter(move |process| process.role == role)
    }

    /// The process of this home with this PID.
    pub(crate) fn process(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let mut processes = self.processes();
        processes.find(|process| process.process.pid == pid)
    }

    /// Everything that was found.
    pub(crate) fn finish(self, sketches: OnePerSession) -> Found<AgentScan> {
        Found {
            found: sketches.into_scan(self.claims),
            problems: self.problems,
        }
    }

    /// Everything that was found, where no session has several sketches.
    pub(crate) fn finish_with(
        self,
        sketches: impl IntoIterator<Item: Into<Box<Sketch>>>,
    ) -> Found<AgentScan> {
        Found {
            found: AgentScan::of(self.claims, sketches),
            problems: self.problems,
        }
    }
}

/// The earliest date, in milliseconds since 1970, of what one of these processes wrote;
/// `None` if there are none, or if one of them is of unknown age.
pub(crate) fn may_have_written_since<'a>(
    processes: impl Iterator<Item = &'a AgentProcess>,
) -> Option<i64> {
    let began = processes.map(|process| process.process.began_ms());
    Some(began.min().flatten()?.saturating_sub(WRITTEN_SLACK_MS))
}
