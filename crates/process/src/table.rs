//! One look at the process table.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{
    Absent, Among, AtPid, AtPids, Backend, Details, Field, FileId, Holders, OpenFile, Pid,
    PidScope, ProbeError, Process, StartStamp, View,
};

/// How many parents [`ProcessTable::ancestors`] follows at most.
const ANCESTORS_MAX: usize = 64;

/// One look at the process table: every process's `stat`, and the rest on demand.
///
/// Details are read once per process and kept. [`ProcessTable::probe`] looks
/// anew each time.
#[derive(Debug)]
pub struct ProcessTable {
    backend: Arc<dyn Backend>,
    scope: PidScope,
    view: View,
    listed: Result<Listed, ProbeError>,
    details: Mutex<HashMap<(Pid, StartStamp), Arc<Details>>>,
    variables: Mutex<HashMap<(Pid, StartStamp), Variables>>,
    has_nested: OnceLock<bool>,
}

/// Variables of one process that were read.
#[derive(Debug)]
struct Variables {
    /// Those that were asked for, also in vain.
    names: Vec<String>,
    found: Vec<(String, OsString)>,
}

#[derive(Debug)]
struct Listed {
    /// Sorted by PID.
    processes: Vec<Process>,
    unreadable: Vec<(Pid, Absent)>,
}

impl ProcessTable {
    /// Looks at every process once.
    ///
    /// A table that can't be read is kept as that: every later question about
    /// a process answers with the same error.
    #[must_use]
    pub fn look(backend: Arc<dyn Backend>) -> Self {
        let scope = backend.scope();
        let view = backend.view();
        let listed = backend.processes().map(|(mut processes, unreadable)| {
            processes.sort_by_key(|process| process.pid);
            Listed {
                processes,
                unreadable,
            }
        });
        Self {
            backend,
            scope,
            view,
            listed,
            details: Mutex::new(HashMap::new()),
            variables: Mutex::new(HashMap::new()),
            has_nested: OnceLock::new(),
        }
    }

    /// Where a PID of this table means something.
    #[must_use]
    pub fn scope(&self) -> &PidScope {
        &self.scope
    }

    /// What can be seen from here.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The backend that this look was taken with.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Every process, by PID. What the kernel runs for itself may be left out, and is
    /// on Linux where one read lists all kernel threads.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if the table could not be read.
    pub fn processes(&self) -> Result<&[Process], ProbeError> {
        match &self.listed {
            Ok(listed) => Ok(&listed.processes),
            Err(error) => Err(error.clone()),
        }
    }

    /// Processes that are there and could not be read.
    #[must_use]
    pub fn unreadable(&self) -> &[(Pid, Absent)] {
        match &self.listed {
            Ok(listed) => &listed.unreadable,
            Err(_) => &[],
        }
    }

    /// A process as this look saw it. `None` does not cover processes that began
    /// since; use [`ProcessTable::probe`] for those.
    #[must_use]
    pub fn seen(&self, pid: Pid) -> Option<&Process> {
        let processes = &self.listed.as_ref().ok()?.processes;
        let at = processes
            .binary_search_by_key(&pid, |process| process.pid)
            .ok()?;
        processes.get(at)
    }

    /// Looks at one process now: `Ok(None)` if there is none.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if we could not look.
    pub fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        self.processes()?;
        self.backend.probe(pid)
    }

    /// Looks at whatever has a PID now, for many of them one after another.
    ///
    /// Each look is a [`ProbeError`] if we could not look.
    #[must_use]
    pub fn at_pids(&self) -> AtPids<'_> {
        let others = match self.processes() {
            Ok(_) => self.backend.at_pids(),
            Err(error) => return AtPids::of(move |_| Err(error.clone())),
        };
        AtPids::of(move |pid| {
            let still = self
                .seen(pid)
                .and_then(|seen| self.backend.read_again(seen));
            still.map_or_else(|| others.look(pid), |process| Ok(AtPid::Process(process)))
        })
    }

    /// What can be read of a process beyond its `stat`, read once and kept.
    #[must_use]
    pub fn details(&self, process: &Process) -> Arc<Details> {
        let key = (process.pid, process.stamp.clone());
        let lock = || self.details.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(details) = lock().get(&key) {
            return Arc::clone(details);
        }
        let read = Arc::new(self.backend.details(process));
        // What another thread has read meanwhile was first.
        Arc::clone(lock().entry(key).or_insert(read))
    }

    /// The executable of a process, where nothing else is asked of it:
    /// [`Backend::executable`].
    ///
    /// # Errors
    ///
    /// [`Absent`] if it could not be read.
    pub fn executable(&self, process: &Process) -> Field<PathBuf> {
        self.backend.executable(process)
    }

    /// Named variables of a process's environment. What was read last is kept: who asks for
    /// all names first reads it once.
    ///
    /// # Errors
    ///
    /// [`Absent`] if the environment could not be read.
    pub fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>> {
        let key = (process.pid, process.stamp.clone());
        let lock = || {
            let kept = self.variables.lock();
            kept.unwrap_or_else(PoisonError::into_inner)
        };
        let is_wanted = |(name, _): &&(String, OsString)| names.contains(&name.as_str());
        if let Some(kept) = lock().get(&key)
            && names
                .iter()
                .all(|name| kept.names.iter().any(|one| one == name))
        {
            return Ok(kept.found.iter().filter(is_wanted).cloned().collect());
        }
        let found = self.backend.environment(process, names)?;
        let kept = Variables {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            found: found.clone(),
        };
        lock().insert(key, kept);
        Ok(found)
    }

    /// The files that a process has open, those that have a path.
    ///
    /// # Errors
    ///
    /// [`Absent`] if they could not be read.
    pub fn open_files(&self, process: &Process) -> Field<Vec<OpenFile>> {
        self.backend.open_files(process)
    }

    /// The parents of a process, nearest first, as this look saw them.
    ///
    /// Ends at a parent that began after its child: then the PID of the real
    /// parent has been reused.
    pub fn ancestors<'a>(
        &'a self,
        process: &Process,
    ) -> impl Iterator<Item = &'a Process> + use<'a> {
        // Dates of two looks differ by what the clock did in between, so they
        // are compared within this one.
        let as_seen = self.seen(process.pid);
        let process = as_seen
            .filter(|seen| seen.stamp == process.stamp)
            .unwrap_or(process);
        let mut next = process.ppid;
        let mut child_began = process.began_at_ms.clone().ok();
        std::iter::from_fn(move || {
            let parent = self.seen(next?)?;
            let began = parent.began_at_ms.clone().ok();
            if let (Some(parent_began), Some(child_began)) = (began, child_began)
                && parent_began > child_began
            {
                return None;
            }
            child_began = began;
            next = parent.ppid;
            Some(parent)
        })
        .take(ANCESTORS_MAX)
    }

    /// Returns whether processes of nested PID namespaces are about: some visible
    /// process has an id of its own in a namespace below ours. Asks every
    /// process the first time it is called.
    #[must_use]
    pub fn has_nested_namespaces(&self) -> bool {
        *self.has_nested.get_or_init(|| {
            let Ok(listed) = &self.listed else {
                return false;
            };
            // What was read of a process already need not be read again.
            let read = self.details.lock();
            let read = read.unwrap_or_else(PoisonError::into_inner).clone();
            let is_nested = |process: &Process| {
                let key = (process.pid, process.stamp.clone());
                let known = read.get(&key).map(|details| details.inner_pids.clone());
                let inner_pids = known.unwrap_or_else(|| self.backend.inner_pids(process));
                inner_pids.is_ok_and(|pids| pids.len() > 1)
            };
            let processes = listed.processes.iter();
            let mut processes = processes.filter(|process| !process.is_kernel_thread);
            processes.any(is_nested)
        })
    }

    /// Finds who has `files` open, in one walk.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if there is no table to walk.
    pub fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError> {
        self.backend.holders(files, among)
    }
}
