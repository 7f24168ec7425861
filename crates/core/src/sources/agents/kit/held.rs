//! Finds the processes that hold an agent's files: first the agent's own, then all others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use whosup_process::{Absent, Among, Details, FileId, Holder, Holders, Pid, ProbeError, Process};
use whosup_sidecar::file::FileFacts;

use crate::adapter::claim::Subject;
use crate::adapter::{Adapter, Home, Look, Program};
use crate::sources::recognize::what_it_runs;

/// Who holds one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Processes that hold the file: the agent's own if there are any, else all others. A
    /// child that inherited the descriptor counts as a holder too.
    pub(crate) by: Vec<Pid>,
    /// Every process that could hold it was asked.
    pub(crate) is_everyone_asked: bool,
    /// A process of the agent has another file of this name open: the file was replaced while
    /// the process held it.
    pub(crate) replaced_in: Option<Pid>,
}

impl Held {
    /// What a lock shows that no process holds, and the evidence in words.
    pub(crate) fn free_lock(&self) -> (Subject, String) {
        let is_everyone_asked = self.is_everyone_asked && self.replaced_in.is_none();
        let says = match self.replaced_in {
            Some(pid) => {
                format!("no process holds it; process {pid} holds a file that it replaced")
            }
            None => no_holder(self.is_everyone_asked).to_owned(),
        };
        (Subject::LockFree { is_everyone_asked }, says)
    }
}

/// Which kind of open file counts as held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Having a lock on it.
    Lock,
    /// Having it open for writing.
    OpenForWriting,
}

impl Hold {
    fn is_by(self, holder: &Holder) -> bool {
        match self {
            Self::Lock => !holder.locks.is_empty(),
            Self::OpenForWriting => holder.access.is_writer(),
        }
    }
}

/// The evidence that no process holds a lock.
pub(crate) const fn no_holder(is_everyone_asked: bool) -> &'static str {
    if is_everyone_asked {
        "no process holds it"
    } else {
        "no process was found that holds it, and not all could be asked"
    }
}

/// A file, as descriptors are compared with it.
pub(crate) const fn file_id(facts: &FileFacts) -> FileId {
    FileId {
        device: facts.device,
        inode: facts.inode,
    }
}

/// Finds the holders of `files`. To show that a file has no holder, all processes must be
/// asked. A process that cannot be asked matters only if it may be the agent.
///
/// # Errors
///
/// The system's error if holders cannot be found at all.
pub(crate) fn who_holds(
    look: &Look<'_>,
    adapter: &dyn Adapter,
    files: &[FileId],
) -> Result<BTreeMap<FileId, Held>, ProbeError> {
    let mut held = BTreeMap::new();
    find_holders(look, adapter, files, &mut held)?;
    Ok(held)
}

/// Adds the holders of `files` to `held`, as [`who_holds`] finds them. After an error, those
/// that were found before it are there.
///
/// # Errors
///
/// The system's error if holders cannot be found at all.
pub(crate) fn find_holders(
    look: &Look<'_>,
    adapter: &dyn Adapter,
    files: &[FileId],
    held: &mut BTreeMap<FileId, Held>,
) -> Result<(), ProbeError> {
    let own: Vec<Pid> = look
        .processes
        .iter()
        .map(|process| process.process.pid)
        .collect();
    if files.is_empty() {
        return Ok(());
    }
    let table = look.machine.table();
    let among_own = table.holders(files, Among::These(&own))?;
    add(held, &among_own, Hold::Lock, &own);
    let free: Vec<FileId> = files
        .iter()
        .copied()
        .filter(|file| !held.contains_key(file))
        .collect();
    if !free.is_empty() {
        let among_all = table.holders(&free, Among::All)?;
        let is_everyone_asked = !may_hide_a_holder(look, adapter, &among_all);
        add(held, &among_all, Hold::Lock, &own);
        for file in free {
            held.entry(file).or_default().is_everyone_asked = is_everyone_asked;
        }
    }
    Ok(())
}

/// Notes of locks that no process holds whether a process of `home` has another file of that
/// name open.
pub(crate) fn note_replaced<'l>(
    look: &Look<'_>,
    home: &Home,
    locks: impl Iterator<Item = (&'l Path, FileId, &'l mut Held)>,
) {
    let mut free: BTreeMap<&str, (FileId, &mut Held)> = locks
        .filter(|(.., held)| held.by.is_empty())
        .filter_map(|(path, file, held)| Some((path.file_name()?.to_str()?, (file, held))))
        .collect();
    if free.is_empty() {
        return;
    }
    for process in look.processes_of(home) {
        // Who can't be asked is missing among those who were asked for holders, too.
        let open = look.machine.table().open_files(&process.process);
        for open in open.unwrap_or_default() {
            let name = open
                .path
                .file_name()
                .and_then(OsStr::to_str)
                .unwrap_or_default();
            let name = name.strip_suffix(" (deleted)").unwrap_or(name);
            if let Some((file, held)) = free.get_mut(name)
                && open.file != *file
            {
                held.replaced_in = Some(process.process.pid);
            }
        }
    }
}

/// Asks which of the agent's own processes have `files` open for writing.
///
/// # Errors
///
/// The system's error if holders cannot be found at all.
pub(crate) fn which_write(
    look: &Look<'_>,
    files: &[FileId],
) -> Result<BTreeMap<FileId, Held>, ProbeError> {
    which_hold(look, files, Hold::OpenForWriting)
}

/// Asks which of the agent's own processes have locks on `files`.
///
/// # Errors
///
/// The system's error if holders cannot be found at all.
pub(crate) fn which_lock(
    look: &Look<'_>,
    files: &[FileId],
) -> Result<BTreeMap<FileId, Held>, ProbeError> {
    which_hold(look, files, Hold::Lock)
}

fn which_hold(
    look: &Look<'_>,
    files: &[FileId],
    hold: Hold,
) -> Result<BTreeMap<FileId, Held>, ProbeError> {
    let own: Vec<Pid> = look
        .processes
        .iter()
        .map(|process| process.process.pid)
        .collect();
    let mut held = BTreeMap::new();
    if !files.is_empty() && !own.is_empty() {
        let holders = look.machine.table().holders(files, Among::These(&own))?;
        add(&mut held, &holders, hold, &own);
    }
    Ok(held)
}

fn add(held: &mut BTreeMap<FileId, Held>, holders: &Holders, hold: Hold, own: &[Pid]) {
    for holder in holders.found.iter().filter(|holder| hold.is_by(holder)) {
        held.entry(holder.file).or_default().by.push(holder.pid);
    }
    for held in held.values_mut() {
        held.by.sort_unstable();
        held.by.dedup();
        if held.by.iter().any(|pid| own.contains(pid)) {
            held.by.retain(|pid| own.contains(pid));
        }
    }
}

/// Returns whether a process that could not be asked may be the agent. Processes of other
/// users can rarely be asked, but their names show a shell or a server.
fn may_hide_a_holder(look: &Look<'_>, adapter: &dyn Adapter, holders: &Holders) -> bool {
    let table = look.machine.table();
    holders.unreadable.iter().any(|(pid, _)| {
        let process = table.seen(*pid);
        process.is_none_or(|process| {
            may_be_its(adapter, process, &what_it_runs(look.machine, process))
        })
    })
}

fn may_be_its(adapter: &dyn Adapter, process: &Process, details: &Details) -> bool {
    if process.is_kernel_thread || process.is_exited {
        return false;
    }
    let program = Program { process, details };
    if adapter.profile().programs.recognize(&program).is_some() {
        return true;
    }
    if program.exe().is_some() {
        return false;
    }
    let programs = adapter.profile().programs;
    let is_called_so = || {
        program
            .comm()
            .is_some_and(|comm| programs.may_be_called(comm))
    };
    match &details.argv {
        Ok(_) => programs.are_mentioned_by(&program) || is_called_so(),
        Err(Absent::Vanished | Absent::Exited) => false,
        Err(_) => true,
    }
}
