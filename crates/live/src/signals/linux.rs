//! Linux: one epoll over inotify, pidfds, and a timer that reports clock changes.

mod files;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime,
    timerfd_create, timerfd_settime,
};
use whosup_core::machine::Machine;
use whosup_core::process::{ExitWatch, Pid, StartStamp};
use whosup_core::sessions::watch::Watch;

use self::files::Files;
use super::{Happened, WAIT_MAX, Watched};

/// How many events are read at once.
const EVENTS_MAX: usize = 64;
/// How many descriptors are reserved for looks and for what else the process does.
const DESCRIPTORS_SPARE: u64 = 64;
/// A date that never comes, in seconds since 1970.
const NEVER_S: i64 = 1 << 40;

// The tokens of descriptors in the epoll. From PROCESSES on: a process, by PID.
const FILES: u64 = 0;
const WAKER: u64 = 1;
const CLOCK: u64 = 2;
const PROCESSES: u64 = 1 << 32;

/// Waits for signals.
#[derive(Debug)]
pub struct Signals {
    epoll: OwnedFd,
    /// `None` if the system has no inotify instance left: files are polled.
    files: Option<Files>,
    clock: OwnedFd,
    waker: Waker,
    processes: HashMap<Pid, (StartStamp, ExitWatch)>,
    /// Processes that have exited and may still be listed.
    exited: HashMap<Pid, StartStamp>,
}

/// Wakes the waiting thread.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<Wanted>);

#[derive(Debug)]
struct Wanted {
    event: OwnedFd,
    what: AtomicU8,
}

/// A request to the woken thread.
const LOOK: u8 = 1;
const STOP: u8 = 2;

impl Waker {
    /// Makes it return from its wait.
    pub(crate) fn wake(&self) {
        // A full pipe means that it is awake.
        rustix::io::write(&self.0.event, &1_u64.to_ne_bytes()).ok();
    }

    /// Makes it take a look.
    pub(crate) fn look(&self) {
        self.want(LOOK);
    }

    /// Makes it stop.
    pub(crate) fn stop(&self) {
        self.want(STOP);
    }

    fn want(&self, what: u8) {
        self.0.what.fetch_or(what, Ordering::Release);
        self.wake();
    }

    fn take(&self) -> u8 {
        let mut count = [0; 8];
        rustix::io::read(&self.0.event, &mut count).ok();
        self.0.what.swap(0, Ordering::Acquire)
    }
}

impl Signals {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the system has no descriptors left, or lacks a facility.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let clock = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let mut signals = Self {
            files: None,
            clock,
            waker: Waker(Arc::new(Wanted {
                event,
                what: AtomicU8::new(0),
            })),
            processes: HashMap::new(),
            exited: HashMap::new(),
            epoll,
        };
        signals.arm_clock()?;
        // Otherwise each look tries again, and reports why not.
        signals.renew_files().ok();
        signals.listen(&signals.waker.0.event, WAKER)?;
        signals.listen(&signals.clock, CLOCK)?;
        Ok(signals)
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Watches these paths and processes, and no others any more.
    pub(crate) fn watch(&mut self, machine: &Machine, watch: &Watch) -> Watched {
        let mut watched = Watched::default();
        self.watch_processes(machine, watch, &mut watched);
        self.files_again(machine, watch, &mut watched);
        watched
    }

    /// Watches only the files, for tests.
    #[doc(hidden)]
    pub fn watch_files(&mut self, machine: &Machine, watch: &Watch) {
        self.files_again(machine, watch, &mut Watched::default());
    }

    fn files_again(&mut self, machine: &Machine, watch: &Watch, watched: &mut Watched) {
        let is_outdated = |files: &Files| files.is_spoilt() || files.has_moved(machine, watch);
        if self.files.as_ref().is_none_or(is_outdated)
            && let Err(error) = self.renew_files()
        {
            watched.fail(format!("cannot watch files: {error}"));
        }
        if let Some(files) = &mut self.files {
            files.watch(machine, watch, watched);
        }
    }

    fn renew_files(&mut self) -> Result<(), String> {
        let files = Files::new()?;
        self.listen(files.descriptor(), FILES)
            .map_err(|error| error.to_string())?;
        self.files = Some(files);
        Ok(())
    }

    fn read_files(&mut self, happened: &mut Happened) {
        if let Some(files) = &mut self.files {
            files.read(happened);
        }
    }

    fn watch_processes(&mut self, machine: &Machine, watch: &Watch, watched: &mut Watched) {
        let is_wanted = |pid: &Pid, known: &StartStamp| watch.processes.get(pid) == Some(known);
        self.processes
            .retain(|pid, (stamp, _)| is_wanted(pid, stamp));
        self.exited.retain(|pid, stamp| is_wanted(pid, stamp));
        let backend = machine.table().backend();
        let most = processes_max();
        let mut failed = None;
        for (pid, stamp) in &watch.processes {
            if self.processes.contains_key(pid) || self.exited.contains_key(pid) {
                continue;
            }
            if self.processes.len() >= most {
                failed = Some(format!(
                    "only {most} of {} can be watched; `ulimit -n` sets how many descriptors there are",
                    watch.processes.len()
                ));
                break;
            }
            match backend.watch_exit(*pid, stamp) {
                Ok(Some(exit)) => match self.listen(&exit, PROCESSES | token(*pid)) {
                    Ok(()) => {
                        self.processes.insert(*pid, (stamp.clone(), exit));
                    }
                    Err(error) => failed = Some(error.to_string()),
                },
                // It has exited since the look.
                Ok(None) => watched.is_more = true,
                Err(error) => failed = Some(error.to_string()),
            }
        }
        if let Some(why) = failed {
            watched.fail(format!("cannot watch for the exit of processes: {why}"));
        }
    }

    /// Waits until something happens, up to `timeout`.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the system refuses to wait.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Happened> {
        let timeout = Timespec::try_from(timeout.min(WAIT_MAX)).ok();
        let mut events = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened = Happened::default();
        for event in events {
            match event.data.u64() {
                FILES => self.read_files(&mut happened),
                WAKER => {
                    let wanted = self.waker.take();
                    happened.is_stopped |= wanted & STOP != 0;
                    happened.is_anything |= wanted & LOOK != 0;
                }
                CLOCK => {
                    // The clock was set, or the machine was asleep.
                    rustix::io::read(&self.clock, &mut [0; 8]).ok();
                    self.arm_clock()?;
                    happened.is_anything = true;
                }
                process => {
                    // Otherwise it would be reported again and again.
                    let pid = Pid::new(i64::try_from(process ^ PROCESSES).unwrap_or_default());
                    if let Some((pid, (stamp, _))) = pid
                        .ok()
                        .and_then(|pid| Some((pid, self.processes.remove(&pid)?)))
                    {
                        self.exited.insert(pid, stamp.clone());
                        happened.exited.push((pid, stamp));
                    }
                }
            }
        }
        if !happened.exited.is_empty() {
            // What a process did to files before its exit counts first.
            self.read_files(&mut happened);
        }
        Ok(happened)
    }

    fn listen(&self, descriptor: impl std::os::fd::AsFd, what: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(what);
        Ok(epoll::add(
            &self.epoll,
            descriptor,
            data,
            epoll::EventFlags::IN,
        )?)
    }

    /// A timer that never expires is cancelled when the clock is set or the machine wakes up:
    /// timerfd_create(2), `TFD_TIMER_CANCEL_ON_SET`.
    fn arm_clock(&self) -> io::Result<()> {
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let never = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: NEVER_S,
                tv_nsec: 0,
            },
        };
        timerfd_settime(&self.clock, flags, &never)?;
        Ok(())
    }
}

impl Watched {
    /// Something can't be watched, and has to be polled.
    fn fail(&mut self, why: String) {
        self.is_polling = true;
        self.problems
            .push(format!("{why}; it is looked at every 2 s"));
    }
}

/// How many processes can be watched: each takes a descriptor, and a look without descriptors
/// fails. Half of what is not reserved is for other uses, such as connections.
fn processes_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(DESCRIPTORS_SPARE) / 2).unwrap_or(usize::MAX)
}

fn token(pid: Pid) -> u64 {
    u64::try_from(pid.get()).unwrap_or_default()
}

/// The processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests;
