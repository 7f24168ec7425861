//! One look at a table: who is listed, and who exists.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use rustix::process::test_kill_process;

use crate::{Absent, Field, Listing, Pid, ProbeError, Process};

use super::clock::{Clock, parse_booted_at_ms};
use super::exit_watch::has_exited;
use super::kernel_threads;
use super::raw::{
    Listed, absent, for_each_number, open_listing, open_root, read_file, read_record,
};
use super::stat::{STAT_BYTES_MAX, Stat, parse_stat};
use super::status::{STATUS_BYTES_MAX, Status};
use super::{Proc, SYSTEM_ROOT};

/// Processes that are listed at most: Linux has no more (`PID_MAX_LIMIT`).
const PROCESSES_MAX: usize = 4 * 1024 * 1024;

/// How often a process is looked up that exists and is not found: it may go
/// away, and its PID come back, between the two questions.
const LOOKS_MAX: usize = 3;

/// The longest `/proc/stat` that is read for its date; a line per processor.
const KERNEL_STAT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A table opened for one look.
#[derive(Debug)]
pub(super) struct Look<'a> {
    pub(super) table: &'a Proc,
    root: Arc<OwnedFd>,
    clock: Option<Clock>,
    pub(super) buffer: Vec<u8>,
}

impl<'a> Look<'a> {
    /// Opens the folder of a table.
    pub(super) fn open(table: &'a Proc) -> Result<Self, ProbeError> {
        let opened = table.opened.get().map(Arc::clone);
        let root = match opened.map_or_else(|| open_root(table.root()).map(Arc::new), Ok) {
            Ok(root) => root,
            Err(Errno::NOENT | Errno::NOTDIR) => {
                return Err(ProbeError::NotOurs {
                    root: table.root().to_path_buf(),
                });
            }
            Err(errno) => {
                return Err(ProbeError::File {
                    path: table.root().to_path_buf(),
                    reason: absent(errno),
                });
            }
        };
        // Another folder may be replaced by one of the same name.
        if table.is_system() {
            table.opened.get_or_init(|| Arc::clone(&root));
        }
        Ok(Self {
            table,
            root,
            clock: None,
            buffer: Vec::new(),
        })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(super) fn is_system(&self) -> bool {
        self.table.is_system()
    }

    /// Reads the `stat` of every process that is listed.
    pub(super) fn processes(mut self) -> Result<Listing, ProbeError> {
        let pids = self.list_pids()?;
        let mut processes = Vec::with_capacity(pids.len());
        let mut unreadable = Vec::new();
        for pid in pids {
            match self.read_process(pid) {
                Ok(process) => processes.push(process),
                Err(Absent::Vanished) => {}
                Err(reason) => unreadable.push((pid, reason)),
            }
        }
        Ok((processes, unreadable))
    }

    /// Lists the processes of the table by their directories, less what the kernel
    /// runs for itself, where one read lists all kernel threads.
    pub(super) fn list_pids(&mut self) -> Result<Vec<Pid>, ProbeError> {
        let mut pids = self.list_directories()?;
        if let Some(of_kernel) = kernel_threads::list(self) {
            pids.retain(|pid| of_kernel.binary_search(pid).is_err());
        }
        Ok(pids)
    }

    fn list_directories(&self) -> Result<Vec<Pid>, ProbeError> {
        let failed = |reason| ProbeError::File {
            path: self.table.root().to_path_buf(),
            reason,
        };
        let listing = open_listing(&self.root, ".").map_err(|errno| failed(absent(errno)))?;
        let mut pids = Vec::new();
        let listed = for_each_number(&listing, PROCESSES_MAX, |_, number| {
            pids.extend(Pid::new(i64::from(number)));
        });
        match listed {
            Ok(Listed::Whole) => Ok(pids),
            Ok(Listed::Cut) => Err(failed(Absent::TooMany {
                entries_max: PROCESSES_MAX,
            })),
            Err(errno) => Err(failed(absent(errno))),
        }
    }

    /// Looks at one process: first whether it exists, which the kernel reports for
    /// every process, then what the table shows of it.
    pub(super) fn probe(&mut self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        for _ in 0..LOOKS_MAX {
            if !self.exists(pid)? {
                return Ok(None);
            }
            let process = self.read_process(pid);
            match process.and_then(|process| Ok((process, self.read_process_id(pid)?))) {
                Ok((process, process_id)) if process_id == pid => return Ok(Some(process)),
                Ok(_) => return Ok(None),
                Err(Absent::Vanished) => {}
                Err(reason) => return Err(ProbeError::Process { pid, reason }),
            }
        }
        Err(self.not_shown(pid))
    }

    /// Returns whether an id is that of a thread other than the leader.
    pub(super) fn is_thread(&mut self, pid: Pid) -> Result<bool, ProbeError> {
        for _ in 0..LOOKS_MAX {
            if !self.exists(pid)? {
                return Ok(false);
            }
            match self.read_process_id(pid) {
                Ok(process_id) => return Ok(process_id != pid),
                Err(Absent::Vanished) => {}
                Err(reason) => return Err(ProbeError::Process { pid, reason }),
            }
        }
        Err(self.not_shown(pid))
    }

    /// Returns whether anything has this id, a thread other than a leader included.
    pub(super) fn exists(&self, pid: Pid) -> Result<bool, ProbeError> {
        if !self.is_system() {
            return match statat(&self.root, pid.to_string(), AtFlags::empty()) {
                Ok(_) => Ok(true),
                Err(Errno::NOENT | Errno::SRCH) => Ok(false),
                Err(errno) => Err(ProbeError::Process {
                    pid,
                    reason: absent(errno),
                }),
            };
        }
        exists_in_kernel(pid)
    }

    /// The answer for a process that exists and that the table does not show.
    fn not_shown(&self, pid: Pid) -> ProbeError {
        if self.is_system() {
            return ProbeError::Hidden { pid };
        }
        ProbeError::Process {
            pid,
            reason: Absent::Vanished,
        }
    }

    /// Reads the `stat` of whatever has this id now.
    pub(super) fn read_stat(&mut self, pid: Pid) -> Field<Stat> {
        let path = format!("{pid}/stat");
        read_record(&self.root, path, STAT_BYTES_MAX, &mut self.buffer)?;
        let stat = parse_stat(&self.buffer)?;
        if stat.pid != pid {
            let found = stat.pid;
            return Err(Absent::Malformed(format!("`stat` of {found} in its place")));
        }
        Ok(stat)
    }

    pub(super) fn read_process(&mut self, pid: Pid) -> Field<Process> {
        let stat = self.read_stat(pid)?;
        let is_exited = has_exited(self, &stat);
        let mut process = stat.into_process(self.clock());
        process.is_exited = is_exited;
        Ok(process)
    }

    /// Reads which process an id belongs to.
    fn read_process_id(&mut self, pid: Pid) -> Field<Pid> {
        let path = format!("{pid}/status");
        read_record(&self.root, path, STATUS_BYTES_MAX, &mut self.buffer)?;
        Status(&self.buffer).process_id()
    }

    /// The clock of this look, read at its first use.
    pub(super) fn clock(&mut self) -> &Clock {
        let clock = match self.clock.take() {
            Some(clock) => clock,
            None if self.table.root() == SYSTEM_ROOT => Clock::system(),
            None => {
                let file = &mut self.buffer;
                let read = read_file(&self.root, "stat", KERNEL_STAT_BYTES_MAX, file);
                Clock::new(read.and_then(|()| parse_booted_at_ms(file)))
            }
        };
        self.clock.insert(clock)
    }
}

/// Asks the running kernel whether anything has this id. `ESRCH` alone is no; a
/// refusal comes after the process was found (kill(2)).
pub(super) fn exists_in_kernel(pid: Pid) -> Result<bool, ProbeError> {
    let Some(raw) = rustix::process::Pid::from_raw(pid.get()) else {
        return Ok(false);
    };
    match test_kill_process(raw) {
        Ok(()) | Err(Errno::PERM | Errno::ACCESS) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(errno) => Err(ProbeError::Process {
            pid,
            reason: absent(errno),
        }),
    }
}
