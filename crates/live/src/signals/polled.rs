//! Systems whose events are not used yet: the engine polls, and reports that.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use whosup_core::machine::Machine;
use whosup_core::sessions::watch::Watch;

use super::{Happened, WAIT_MAX, Watched};

/// Waits only to be woken.
#[derive(Debug)]
pub struct Signals {
    waker: Waker,
}

/// Wakes the waiting thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waker(Arc<(Mutex<Wanted>, Condvar)>);

#[derive(Debug, Default)]
struct Wanted {
    is_woken: bool,
    happened: Happened,
}

impl Waker {
    pub(crate) fn wake(&self) {
        self.want(Happened::default());
    }

    pub(crate) fn look(&self) {
        self.want(Happened {
            is_anything: true,
            ..Happened::default()
        });
    }

    pub(crate) fn stop(&self) {
        self.want(Happened {
            is_stopped: true,
            ..Happened::default()
        });
    }

    fn want(&self, what: Happened) {
        let (wanted, condition) = &*self.0;
        let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_woken = true;
        wanted.happened.is_anything |= what.is_anything;
        wanted.happened.is_stopped |= what.is_stopped;
        condition.notify_all();
    }
}

impl Signals {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// Never on this system.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Waker::default(),
        })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(crate) fn watch(&mut self, _machine: &Machine, _watch: &Watch) -> Watched {
        let why = "events of this system are not used; it is looked at every 2 s";
        Watched {
            is_more: false,
            is_polling: true,
            problems: vec![why.to_owned()],
        }
    }

    /// Waits until it is woken, up to `timeout`.
    ///
    /// # Errors
    ///
    /// Never on this system.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Happened> {
        let until = Instant::now() + timeout.min(WAIT_MAX);
        let (wanted, condition) = &*self.waker.0;
        let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !wanted.is_woken {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            let waited = condition.wait_timeout(wanted, rest);
            wanted = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(std::mem::take(&mut *wanted).happened)
    }
}

/// The elapsed time, since the processor time of this thread is not known here.
pub(crate) fn thread_time() -> Duration {
    use std::sync::OnceLock;

    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Far longer than any of these waits takes.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_wanted_before_and_during_a_wait_ends_it_once() {
        let mut signals = Signals::new().expect("signals");
        let waker = signals.waker();
        waker.look();
        waker.wake();
        let looked = signals.wait(LONG).expect("a wait");
        assert!(looked.is_anything && looked.is_change() && !looked.is_stopped);
        // What was reported is not reported again.
        let nothing = signals.wait(Duration::from_millis(1)).expect("a wait");
        assert_eq!(nothing, Happened::default());
        let before = thread_time();
        let stopping = thread::spawn(move || waker.stop());
        let stopped = signals.wait(LONG).expect("a wait");
        stopping.join().expect("it stops the wait");
        assert!(stopped.is_stopped && !stopped.is_anything);
        assert!(thread_time() >= before);
    }

    #[test]
    fn whoever_watches_hears_that_it_is_polled() {
        let machine = Machine::here();
        let watched = Signals::new()
            .expect("signals")
            .watch(&machine, &Watch::default());
        assert!(watched.is_polling && !watched.is_more);
        assert_eq!(watched.problems.len(), 1);
    }
}
