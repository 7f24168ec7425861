//! Looks once at each directory of a session or process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use whosup_process::{Details, Pid, Process};

use super::directory::{Beside, Directory};
use crate::adapter::{AgentProcess, LaunchedIn};
use crate::machine::mounts::Mounts;

/// The directories that sessions name and that processes work in.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// By the recorded path, as bytes, which are compared faster than paths.
    recorded: HashMap<OsString, Directory>,
    of_processes: HashMap<Pid, Vec<Directory>>,
}

impl Places {
    /// Looks at a directory that a session names or a process works in, unless that was done before.
    pub(crate) fn find(&mut self, mounts: &Mounts, directory: &Path) {
        let written = directory.as_os_str();
        if !self.recorded.contains_key(written) {
            let found = Directory::recorded(mounts, directory);
            self.recorded.insert(written.to_owned(), found);
        }
    }

    /// Looks at the directories that processes work in: their own, those that they were
    /// started in, and those that their arguments name.
    pub(crate) fn find_processes(&mut self, mounts: &Mounts, processes: &[&AgentProcess]) {
        for process in processes {
            let named = process.adapter.work_dir_named_by(&process.program());
            let named = named.map(|named| self.found(mounts, &named));
            let launched_in = match &process.launched_in {
                LaunchedIn::Gone(gone) => Some(Directory::unseen(gone)),
                LaunchedIn::NotKnown | LaunchedIn::There => None,
            };
            let own = self.own(mounts, &process.details);
            let all = own.into_iter().chain(named).chain(launched_in);
            // An argument that was not read may name another one.
            let all = all.filter(|_| !process.details.is_argv_cut);
            self.add(process.process.pid, all.collect());
        }
    }

    /// Looks at the directory that a process works in, where that can be read.
    pub(crate) fn find_details(&mut self, mounts: &Mounts, process: &Process, details: &Details) {
        let own = self.own(mounts, details).into_iter().collect();
        self.add(process.pid, own);
    }

    fn add(&mut self, process: Pid, all: Vec<Directory>) {
        // Without any the directory of the process is not known, and excludes nothing.
        if !all.is_empty() {
            self.of_processes.insert(process, all);
        }
    }

    /// The directory that a process works in, by what the kernel calls it. The link of the
    /// process is not followed. In another mount namespace the path means something else,
    /// so that it is text alone.
    fn own(&mut self, mounts: &Mounts, details: &Details) -> Option<Directory> {
        let own = details.cwd.as_deref().ok()?;
        Some(if details.shares_mounts == Ok(true) {
            self.found(mounts, own)
        } else {
            Directory::unseen(own)
        })
    }

    fn found(&mut self, mounts: &Mounts, directory: &Path) -> Directory {
        self.find(mounts, directory);
        let found = self.recorded.get(directory.as_os_str());
        found.map_or_else(|| Directory::unseen(directory), Directory::clone)
    }

    /// The directory of a session may have been that of a process, and renamed since: it is
    /// not there any more, or was made anew, that of the process is another one, and nothing
    /// shows where that was started.
    pub(crate) fn may_be_renamed(&self, process: &AgentProcess, directory: Option<&Path>) -> bool {
        let recorded = directory.and_then(|written| self.recorded.get(written.as_os_str()));
        let own = self.of_processes.get(&process.process.pid);
        let beside = || self.beside(&process.process, &process.details, directory);
        process.launched_in == LaunchedIn::NotKnown
            && recorded.is_some_and(|recorded| recorded.is_made_since(process.process.began_ms()))
            && own.into_iter().flatten().any(Directory::is_seen)
            && beside() == Beside::Unknown
    }

    /// Compares the directory of a session with that of a process, if both were looked at.
    pub(crate) fn beside(
        &self,
        process: &Process,
        details: &Details,
        directory: Option<&Path>,
    ) -> Beside {
        let Some(directory) = directory else {
            return Beside::Unknown;
        };
        let unseen_own;
        let own: &[Directory] = match (self.of_processes.get(&process.pid), &details.cwd) {
            (Some(own), _) => own,
            (None, Ok(own)) => {
                unseen_own = [Directory::unseen(own)];
                &unseen_own
            }
            (None, Err(_)) => return Beside::Unknown,
        };
        let began_ms = process.began_ms();
        let unseen;
        let recorded = match self.recorded.get(directory.as_os_str()) {
            Some(recorded) => recorded,
            None => {
                unseen = Directory::unseen(directory);
                &unseen
            }
        };
        let mut result = Beside::Excluded;
        for own in own {
            match recorded.beside(own, began_ms) {
                Beside::Same => return Beside::Same,
                Beside::Unknown => result = Beside::Unknown,
                Beside::Excluded => {}
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use whosup_process::RecordedProcess;
    use whosup_sidecar::file::{Links, facts_of_any};

    use super::*;

    /// After every directory that is there was born: the year 2100.
    const BEGAN_MS: i64 = 4_102_444_800_000;

    #[test]
    fn a_directory_of_other_mounts_excludes_no_process() {
        let mounts = Mounts::of_this_machine();
        let session = Path::new(env!("CARGO_MANIFEST_DIR"));
        let beside = |shares_mounts| {
            let mut one = RecordedProcess::new(7, 1_000, BEGAN_MS);
            one.details.cwd = Ok(session.join("src"));
            one.details.shares_mounts = Ok(shares_mounts);
            let mut places = Places::default();
            places.find(&mounts, session);
            places.find_details(&mounts, &one.process, &one.details);
            places.beside(&one.process, &one.details, Some(session))
        };
        assert_eq!(beside(false), Beside::Unknown);
        let facts = facts_of_any(session, Links::Refuse).expect("it is there");
        if facts.born_ms.is_none() {
            eprintln!("skipped: the file system does not remember when a directory was made");
            return;
        }
        assert_eq!(beside(true), Beside::Excluded);
    }
}
