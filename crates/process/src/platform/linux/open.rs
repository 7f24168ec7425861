//! A process opened as its directory, so that all that is read by it is of
//! this one process, even if another process gets its PID meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{Absent, Field, Pid, Process};

use super::look::Look;
use super::raw::{absent, for_each_number, open_dir, open_listing, read_record};
use super::stat::{STAT_BYTES_MAX, Stat, parse_stat};

/// Threads of a zombie leader that are tried at most until one runs.
const THREADS_MAX: usize = 4096;

/// One process, held by its directory.
#[derive(Debug)]
pub(super) struct Opened {
    dir: OwnedFd,
    /// A thread that runs on though the leader is a zombie: the leader has
    /// lost memory, directory and files, the thread has them still.
    thread: Option<(OwnedFd, Stat)>,
    pub(super) stat: Stat,
    has_exited: bool,
}

impl Opened {
    /// Opens whatever process has this PID now.
    ///
    /// # Errors
    ///
    /// [`Absent::PermissionDenied`] if it exists and is not shown.
    pub(super) fn open(look: &mut Look<'_>, pid: Pid) -> Field<Self> {
        let opened = open_dir(look.root(), pid.to_string())
            .map_err(absent)
            .and_then(|dir| Ok((read_stat(&dir, &mut look.buffer)?, dir)));
        let (stat, dir) = match opened {
            Ok(opened) => opened,
            // Hidden processes look as if they were not there.
            Err(Absent::Vanished) if look.is_system() && look.exists(pid) == Ok(true) => {
                return Err(Absent::PermissionDenied);
            }
            Err(reason) => return Err(reason),
        };
        let has_exited = super::exit_watch::has_exited(look, &stat);
        let mut opened = Self {
            dir,
            thread: None,
            stat,
            has_exited,
        };
        if opened.stat.run_state.is_exited() && !has_exited {
            opened.thread = opened.find_running_thread(&mut look.buffer);
        }
        Ok(opened)
    }

    /// Opens `process`.
    ///
    /// # Errors
    ///
    /// [`Absent::Vanished`] if its PID is another process's by now.
    pub(super) fn open_same(look: &mut Look<'_>, process: &Process) -> Field<Self> {
        let opened = Self::open(look, process.pid)?;
        if opened.stat.stamp() != process.stamp {
            return Err(Absent::Vanished);
        }
        Ok(opened)
    }

    /// Its directory.
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The directory that shows its memory, its current directory and its files.
    pub(super) fn body(&self) -> BorrowedFd<'_> {
        let thread = self.thread.as_ref().map(|(dir, _)| dir);
        thread.unwrap_or(&self.dir).as_fd()
    }

    /// The `stat` of what the body shows, as it was when it was opened.
    pub(super) fn body_stat(&self) -> &Stat {
        let thread = self.thread.as_ref().map(|(_, stat)| stat);
        thread.unwrap_or(&self.stat)
    }

    /// Why it has no memory, directory or files, if so.
    pub(super) const fn bodiless(&self) -> Option<Absent> {
        if self.stat.is_kernel_thread {
            Some(Absent::KernelThread)
        } else if self.has_exited {
            Some(Absent::Exited)
        } else {
            None
        }
    }

    /// Reads the `stat` of what the body shows anew.
    pub(super) fn read_body_stat(&self, buffer: &mut Vec<u8>) -> Field<Stat> {
        read_stat(self.body(), buffer)
    }

    /// Returns why something was not there: because the process is gone, or on
    /// its way out, or because this system does not report it.
    pub(super) fn explain(&self, reason: Absent, buffer: &mut Vec<u8>) -> Absent {
        if reason != Absent::Vanished {
            return reason;
        }
        match read_stat(&self.dir, buffer) {
            Ok(stat) if stat.is_exiting() => Absent::Exited,
            Ok(_) => Absent::Unsupported,
            Err(_) => reason,
        }
    }

    /// Returns whether the PID leads to this process still. By the kernel's own
    /// directories nothing else can have been read; in a copy of a table the
    /// files may have been replaced one by one.
    pub(super) fn is_same(&self, look: &mut Look<'_>) -> bool {
        look.is_system()
            || look
                .read_stat(self.stat.pid)
                .is_ok_and(|stat| stat.start_ticks == self.stat.start_ticks)
    }

    fn find_running_thread(&self, buffer: &mut Vec<u8>) -> Option<(OwnedFd, Stat)> {
        let tasks = open_listing(&self.dir, "task").ok()?;
        let mut running = None;
        // A list that breaks off may have led to a thread before it did.
        let _ = for_each_number(&tasks, THREADS_MAX, |name, _| {
            if running.is_some() {
                return;
            }
            let Ok(thread) = open_dir(&tasks, name) else {
                return;
            };
            if let Ok(stat) = read_stat(&thread, buffer)
                && !stat.run_state.is_exited()
            {
                running = Some((thread, stat));
            }
        });
        running
    }
}

fn read_stat(dir: impl AsFd, buffer: &mut Vec<u8>) -> Field<Stat> {
    read_record(dir, "stat", STAT_BYTES_MAX, buffer)?;
    parse_stat(buffer)
}
