//! Linux: processes by `/proc`, read raw and parsed as bytes (proc(5)).
//!
//! Nothing here trusts a name that a process gave itself, the text of a link,
//! or that two reads meet the same process: a process is opened once, as its
//! directory, and its stamp is compared before anything else is read by it.

mod accounts;
mod argv;
mod clock;
mod details;
mod environment;
mod exit_watch;
#[cfg(test)]
mod garbage;
mod holders;
mod kernel_threads;
mod look;
mod mount;
mod open;
mod open_files;
mod raw;
mod stat;
mod status;
mod terminal;
mod view;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use look::Look;
use status::Status;

use crate::{
    Among, AtPid, AtPids, Backend, Details, ExitStatus, ExitWatch, Field, FileId, Holders, Listing,
    OpenFile, Pid, PidScope, ProbeError, Process, StartStamp, Still, StorageBytes, View,
};

/// Where Linux mounts its process table.
const SYSTEM_ROOT: &str = "/proc";

/// Whether this process ignores a signal.
pub(super) fn is_signal_ignored(signal: i32) -> bool {
    let status = std::fs::read(Path::new(SYSTEM_ROOT).join("self/status")).unwrap_or_default();
    let ignored = Status(&status).ignored_signals().unwrap_or_default();
    let bit = u32::try_from(signal)
        .ok()
        .and_then(|signal| signal.checked_sub(1));
    let signal = bit.and_then(|bit| 1_u64.checked_shl(bit));
    signal.is_some_and(|signal| ignored & signal != 0)
}

/// The process table of a Linux kernel.
#[derive(Debug)]
pub struct Proc {
    root: PathBuf,
    /// The folder of the running kernel's table, opened once: every process is looked up in it.
    opened: OnceLock<Arc<OwnedFd>>,
    /// The PID for which this table was last seen to be ours; 0 before that.
    seen_ours_by: AtomicI32,
}

impl Proc {
    /// The table of the running kernel, at `/proc`.
    #[must_use]
    pub fn system() -> Self {
        Self::at(PathBuf::from(SYSTEM_ROOT))
    }

    /// A table at another place: a copy in a folder, or another mount of `/proc`.
    ///
    /// Such a table is asked nothing but its files: no `kill`, no pidfd. A
    /// process exists if its directory does, and `self` in it is the process
    /// that looks. Dates come from `btime` in its `stat`.
    #[must_use]
    pub const fn at(root: PathBuf) -> Self {
        Self {
            root,
            opened: OnceLock::new(),
            seen_ours_by: AtomicI32::new(0),
        }
    }

    /// The folder that is read.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel may be asked too, for its PIDs are those of this table.
    fn is_system(&self) -> bool {
        self.root == Path::new(SYSTEM_ROOT)
    }

    /// Opens the table after checking that it shows this very process.
    fn look_anew(&self) -> Result<Look<'_>, ProbeError> {
        let look = Look::open(self)?;
        match view::read_is_proc_ours(&look) {
            Ok(true) => {
                self.note_whether_ours(true);
                Ok(look)
            }
            Ok(false) => Err(ProbeError::NotOurs {
                root: self.root.clone(),
            }),
            Err(reason) => Err(ProbeError::File {
                path: self.root.join("self"),
                reason,
            }),
        }
    }

    fn note_whether_ours(&self, is_ours: bool) {
        let by = if is_ours { Pid::own().get() } else { 0 };
        self.seen_ours_by.store(by, Ordering::Relaxed);
    }

    /// Opens the table; that it is ours is checked once, and whenever the
    /// [`View`] is asked for: one look at a missing PID costs less than that check.
    fn look(&self) -> Result<Look<'_>, ProbeError> {
        if self.was_seen_ours() {
            return Look::open(self);
        }
        self.look_anew()
    }

    fn was_seen_ours(&self) -> bool {
        self.seen_ours_by.load(Ordering::Relaxed) == Pid::own().get()
    }

    /// Nothing has this PID, as the kernel says without the table being opened: most
    /// of the PIDs that files name are those of the dead.
    fn is_missing(&self, pid: Pid) -> Result<bool, ProbeError> {
        Ok(self.is_system() && self.was_seen_ours() && !look::exists_in_kernel(pid)?)
    }
}

impl Backend for Proc {
    fn scope(&self) -> PidScope {
        view::read_scope(self)
    }

    fn view(&self) -> View {
        let view = view::read_view(self);
        self.note_whether_ours(view.is_proc_ours == Ok(true));
        view
    }

    fn processes(&self) -> Result<Listing, ProbeError> {
        self.look()?.processes()
    }

    fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        if self.is_missing(pid)? {
            return Ok(None);
        }
        self.look()?.probe(pid)
    }

    fn read_again(&self, listed: &Process) -> Option<Process> {
        let process = self.look().ok()?.read_process(listed.pid).ok()?;
        (process.stamp == listed.stamp).then_some(process)
    }

    fn is_thread(&self, pid: Pid) -> Result<bool, ProbeError> {
        if self.is_missing(pid)? {
            return Ok(false);
        }
        self.look()?.is_thread(pid)
    }

    fn at_pid(&self, pid: Pid) -> Result<AtPid, ProbeError> {
        if self.is_missing(pid)? {
            return Ok(AtPid::Nothing);
        }
        let mut look = self.look()?;
        Ok(match look.probe(pid)? {
            Some(process) => AtPid::Process(process),
            None if look.is_thread(pid)? => AtPid::Thread,
            None => AtPid::Nothing,
        })
    }

    fn at_pids(&self) -> AtPids<'_> {
        let may_ask_kernel = self.is_system() && self.was_seen_ours();
        AtPids::of(move |pid| {
            if may_ask_kernel && !look::exists_in_kernel(pid)? {
                return Ok(AtPid::Nothing);
            }
            self.at_pid(pid)
        })
    }

    fn details(&self, process: &Process) -> Details {
        details::read_details(self, process)
    }

    fn inner_pids(&self, process: &Process) -> Field<Vec<Pid>> {
        details::read_inner_pids(self, process)
    }

    fn executable(&self, process: &Process) -> Field<PathBuf> {
        details::read_executable(self, process)
    }

    fn exit_status(&self, process: &Process) -> Field<Option<ExitStatus>> {
        details::read_exit_status(self, process)
    }

    fn storage_bytes(&self, process: &Process) -> Field<StorageBytes> {
        accounts::read_storage_bytes(self, process)
    }

    fn pss_bytes(&self, process: &Process) -> Field<u64> {
        accounts::read_pss_bytes(self, process)
    }

    fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>> {
        environment::read_environment(self, process, names)
    }

    fn open_files(&self, process: &Process) -> Field<Vec<OpenFile>> {
        open_files::read_open_files(self, process)
    }

    fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError> {
        holders::find_holders(&mut self.look()?, files, among)
    }

    fn is_still(&self, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError> {
        exit_watch::is_still(&mut self.look()?, pid, stamp)
    }

    fn watch_exit(&self, pid: Pid, stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError> {
        exit_watch::watch_exit(&mut self.look()?, pid, stamp)
    }
}
