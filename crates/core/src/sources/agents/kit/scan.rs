//! The scan of one home while it grows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::file::FileFacts;
use whosup_sidecar::{AgentId, SessionId};

use super::folder::{Names, list_folders_or_report, list_or_report};
use super::one_per_session::OnePerSession;
use crate::adapter::claim::{Claim, Evidence, SessionKey, Subject};
use crate::adapter::{AgentProcess, AgentScan, Home, Look, Role, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::trust::trust_of;

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

    /// The processes that run one session of this home at a time.
    pub(crate) fn seekers(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        let processes = self.look.processes_of(self.home);
        processes.filter(|process| process.role == Role::Session)
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
        let processes = self.look.processes_of(self.home);
        processes.filter(move |process| process.role == role)
    }

    /// The process of this home with this PID.
    pub(crate) fn process(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let mut processes = self.look.processes_of(self.home);
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
