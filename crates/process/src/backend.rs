//! The seam between this crate and an operating system.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::{
    Absent, Among, Details, ExitStatus, ExitWatch, Field, FileId, Holders, OpenFile, Pid, PidScope,
    Process, StartStamp, Still, StorageBytes, View,
};

/// Why the process table could not be looked at.
///
/// Never "no such process": that is an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A process exists that we may not look at.
    #[error("cannot inspect process {pid}: {reason}")]
    Process {
        /// The process.
        pid: Pid,
        /// Why not.
        reason: Absent,
    },
    /// A process exists that the process table hides from us.
    #[error("cannot inspect process {pid}: hidden by the mount options of /proc")]
    Hidden {
        /// The process.
        pid: Pid,
    },
    /// A file of the system could not be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Absent,
    },
    /// There is no process table here that shows our own processes.
    #[error("cannot use the process table at `{}`: it does not show this process", root.display())]
    NotOurs {
        /// Where the table was looked for.
        root: PathBuf,
    },
    /// This platform has no backend.
    #[error("cannot inspect processes: not supported on this platform")]
    Unsupported,
}

/// Every process of a table, and those that are there and can't be read.
pub type Listing = (Vec<Process>, Vec<(Pid, Absent)>);

/// What has a PID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtPid {
    /// Nothing.
    Nothing,
    /// A thread other than its process's leader.
    Thread,
    /// A process.
    Process(Process),
}

/// Looks at whatever has an id, for many of them one after another.
pub struct AtPids<'a>(Box<LookAtPid<'a>>);

type LookAtPid<'a> = dyn Fn(Pid) -> Result<AtPid, ProbeError> + 'a;

impl<'a> AtPids<'a> {
    /// Looks by `look`.
    pub fn of(look: impl Fn(Pid) -> Result<AtPid, ProbeError> + 'a) -> Self {
        Self(Box::new(look))
    }

    /// Looks at whatever has this id now.
    ///
    /// # Errors
    ///
    /// As [`Backend::at_pid`].
    pub fn look(&self, pid: Pid) -> Result<AtPid, ProbeError> {
        (self.0)(pid)
    }
}

impl fmt::Debug for AtPids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtPids").finish_non_exhaustive()
    }
}

/// What one operating system reports of processes. Implemented by one file per
/// platform, by [`Recorded`](crate::Recorded) for a table kept as data, and by
/// whoever has another way to look.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Where a PID of this table means something.
    fn scope(&self) -> PidScope;

    /// What can be seen from here.
    fn view(&self) -> View;

    /// Reads the `stat` of every process; those that vanish meanwhile are left
    /// out, those that can't be read are named in the second list. What the kernel
    /// runs for itself may be left out too; [`Backend::probe`] finds it.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if there is no table to read.
    fn processes(&self) -> Result<Listing, ProbeError>;

    /// Looks at one process now: `Ok(None)` if there is none.
    ///
    /// The id of a thread other than the leader names no process: it is
    /// `Ok(None)` too, and [`Backend::is_thread`] distinguishes the two.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if we could not look, or if it exists but is hidden.
    fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError>;

    /// Looks at a listed process once more, where that costs less than [`Backend::probe`].
    /// `None` where it does not, or the process is not found: then that decides.
    fn read_again(&self, _listed: &Process) -> Option<Process> {
        None
    }

    /// Returns whether `pid` is the ID of a thread that is not its process's leader.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if we could not look.
    fn is_thread(&self, pid: Pid) -> Result<bool, ProbeError>;

    /// Looks at whatever has this id now; [`Backend::probe`] and
    /// [`Backend::is_thread`] in one.
    ///
    /// # Errors
    ///
    /// As theirs.
    fn at_pid(&self, pid: Pid) -> Result<AtPid, ProbeError> {
        Ok(match self.probe(pid)? {
            Some(process) => AtPid::Process(process),
            None if self.is_thread(pid)? => AtPid::Thread,
            None => AtPid::Nothing,
        })
    }

    /// Looks at many ids, one after another, as [`Backend::at_pid`] does. What it would
    /// ask each time alike may be asked once, now.
    fn at_pids(&self) -> AtPids<'_> {
        AtPids::of(|pid| self.at_pid(pid))
    }

    /// Reads what is known of a process beyond its `stat`. Fields of a process that
    /// is no longer `process` (its PID reused between the reads) are
    /// [`Absent::Vanished`].
    fn details(&self, process: &Process) -> Details;

    /// Reads [`Details::inner_pids`] alone, where that costs less.
    ///
    /// # Errors
    ///
    /// As in [`Backend::details`].
    fn inner_pids(&self, process: &Process) -> Field<Vec<Pid>> {
        self.details(process).inner_pids
    }

    /// Reads [`Details::exe`] alone, where that costs less. It may be that of another
    /// process which has the PID since, and have the kernel's mark behind it: good for
    /// deciding who is worth a closer look, and for nothing else.
    ///
    /// # Errors
    ///
    /// As in [`Backend::details`].
    fn executable(&self, process: &Process) -> Field<PathBuf> {
        self.details(process).exe
    }

    /// Reads named variables from a process's environment, as it was when the
    /// process executed its program. A name that is not there is left out.
    ///
    /// # Errors
    ///
    /// [`Absent::PermissionDenied`], [`Absent::Vanished`],
    /// [`Absent::Overwritten`] if the process blanked it, …
    fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>>;

    /// Reads which files a process has open, those that have a path.
    ///
    /// # Errors
    ///
    /// [`Absent::PermissionDenied`], [`Absent::Vanished`],
    /// [`Absent::Unsupported`] where nothing shows it, …
    fn open_files(&self, _process: &Process) -> Field<Vec<OpenFile>> {
        Err(Absent::Unsupported)
    }

    /// Finds who has `files` open, in one walk. Processes that the table does
    /// not show are asked only by name; [`View::is_everything_shown`] shows
    /// whether there may be such.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if there is no table to walk. Processes that can't be
    /// read are listed in the answer.
    fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError>;

    /// Returns, free of races, whether `pid` is still the process with `stamp`.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if we could not look.
    fn is_still(&self, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError>;

    /// How a process ended, while its parent has not waited for it: `Ok(None)` if
    /// it has not ended.
    ///
    /// # Errors
    ///
    /// [`Absent::PermissionDenied`] if we may not know, [`Absent::Vanished`] once
    /// its parent has waited for it, [`Absent::Unsupported`] where nothing shows it.
    fn exit_status(&self, _process: &Process) -> Field<Option<ExitStatus>> {
        Err(Absent::Unsupported)
    }

    /// Reads how much storage a process has used.
    ///
    /// # Errors
    ///
    /// [`Absent::PermissionDenied`] for most processes of other users,
    /// [`Absent::Vanished`], [`Absent::Unsupported`] where nothing counts it, …
    fn storage_bytes(&self, _process: &Process) -> Field<StorageBytes> {
        Err(Absent::Unsupported)
    }

    /// Reads the memory that a process has resident, what it shares with other processes
    /// divided among them. The kernel walks all of that memory and may hold the process
    /// up meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Backend::storage_bytes`].
    fn pss_bytes(&self, _process: &Process) -> Field<u64> {
        Err(Absent::Unsupported)
    }

    /// Opens a watch on the exit of the process `pid` with `stamp`: `Ok(None)`
    /// if that process is gone.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if it could not be opened; that is no fact about the process.
    fn watch_exit(&self, pid: Pid, stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError>;
}
