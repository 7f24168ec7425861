//! pidfds: whether a process has exited, free of races (pidfd_open(2)).

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};

use crate::{ExitWatch, Pid, ProbeError, StartStamp, Still};

use super::look::Look;
use super::raw::absent;
use super::stat::Stat;

const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Opens a pidfd. An error is no fact about the process: the kernel may lack
/// the call, a sandbox may refuse it, we may be out of descriptors.
fn open_pidfd(pid: Pid) -> Result<OwnedFd, Errno> {
    let raw = rustix::process::Pid::from_raw(pid.get()).ok_or(Errno::INVAL)?;
    pidfd_open(raw, PidfdFlags::empty())
}

/// Returns whether the process of a pidfd has exited with all of its threads.
fn is_readable(pidfd: &OwnedFd) -> Result<bool, Errno> {
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    let ready = loop {
        match poll(&mut polled, Some(&NO_WAIT)) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    Ok(ready > 0 && polled[0].revents().contains(PollFlags::IN))
}

/// Returns whether a process that looks like a zombie has exited with all of its
/// threads. The zombie itself counts as one of them (field 20).
pub(super) fn has_exited(look: &mut Look<'_>, stat: &Stat) -> bool {
    if !stat.run_state.is_exited() {
        return false;
    }
    let is_last_thread = stat.threads <= 1;
    if !look.is_system() {
        return is_last_thread;
    }
    match open_pidfd(stat.pid).and_then(|pidfd| is_readable(&pidfd)) {
        Ok(false) if is_last_thread => {
            // One of the two is of a process that has taken the PID since.
            let now = look.read_stat(stat.pid);
            !now.is_ok_and(|now| now.start_ticks == stat.start_ticks)
        }
        Ok(is_readable) => is_readable,
        Err(Errno::SRCH) => true,
        Err(_) => is_last_thread,
    }
}

/// Returns whether `pid` is still the process with `stamp`.
pub(super) fn is_still(
    look: &mut Look<'_>,
    pid: Pid,
    stamp: &StartStamp,
) -> Result<Still, ProbeError> {
    if look.is_system()
        && let Ok(pidfd) = open_pidfd(pid)
    {
        return is_still_by(look, pid, stamp, &pidfd);
    }
    compare(look, pid, stamp)
}

/// Opens a watch on the exit of the process `pid` with `stamp`.
pub(super) fn watch_exit(
    look: &mut Look<'_>,
    pid: Pid,
    stamp: &StartStamp,
) -> Result<Option<ExitWatch>, ProbeError> {
    if !look.is_system() {
        return Err(ProbeError::Unsupported);
    }
    match open_pidfd(pid) {
        Ok(pidfd) => match is_still_by(look, pid, stamp, &pidfd)? {
            Still::Running => Ok(Some(ExitWatch::new(pid, pidfd))),
            Still::Exited => Ok(None),
        },
        Err(errno) => match compare(look, pid, stamp)? {
            Still::Exited => Ok(None),
            Still::Running => Err(ProbeError::Process {
                pid,
                reason: absent(errno),
            }),
        },
    }
}

/// Compares the stamp while a pidfd is held: if that is not readable
/// afterwards, its process has had the PID all along, so the stamp is that process's.
/// If it is readable, the process that had the PID at first is gone, and with it the
/// process with `stamp`, which had begun before.
fn is_still_by(
    look: &mut Look<'_>,
    pid: Pid,
    stamp: &StartStamp,
    pidfd: &OwnedFd,
) -> Result<Still, ProbeError> {
    let compared = compare(look, pid, stamp);
    match is_readable(pidfd) {
        Ok(true) => Ok(Still::Exited),
        Ok(false) => compared,
        Err(errno) => Err(ProbeError::Process {
            pid,
            reason: absent(errno),
        }),
    }
}

fn compare(look: &mut Look<'_>, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError> {
    let Some(process) = look.probe(pid)? else {
        return Ok(Still::Exited);
    };
    match process.stamp.is_same_as(stamp) {
        Some(true) if !process.is_exited => Ok(Still::Running),
        Some(_) => Ok(Still::Exited),
        None => Err(ProbeError::Process {
            pid,
            reason: crate::Absent::Unsupported,
        }),
    }
}
