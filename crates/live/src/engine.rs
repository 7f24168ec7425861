//! The engine: waits for events, and looks when something happened.

mod run;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use self::run::Run;
use crate::cursor::Cursor;
use crate::filter::Filter;
use crate::history::Shared;
use crate::signals::{Signals, Waker};
use crate::subscription::{Message, Subscription};
use crate::world::{World, WorldError};

/// How long [`Engine::refresh`] waits for a look.
const REFRESH_MAX: Duration = Duration::from_secs(10);

/// Why an engine can't be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The configuration can't be used.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The system refuses to tell of events.
    #[error("cannot wait for events")]
    Signals(#[source] io::Error),
    /// No thread can be started.
    #[error("cannot start a thread that waits for events")]
    Thread(#[source] io::Error),
}

/// Watches the sessions of one machine, in a thread of its own, until it is dropped.
pub struct Engine {
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What the engine has done so far, for measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Times that it woke up.
    pub wakeups: u64,
    /// Looks that it took.
    pub looks: u64,
    /// Exits that were published before the look that they led to.
    pub exits: u64,
    /// Times that the titles of panes were listed.
    pub listings: u64,
    /// Processor time that looks took, in microseconds.
    pub look_us: u64,
}

/// [`Counts`] as they are being counted.
#[derive(Debug, Default)]
struct Tally {
    wakeups: AtomicU64,
    looks: AtomicU64,
    exits: AtomicU64,
    listings: AtomicU64,
    look_us: AtomicU64,
}

impl Engine {
    /// Looks once, and then watches.
    ///
    /// # Errors
    ///
    /// [`EngineError`] if the configuration can't be used, or the system can't be asked for
    /// events.
    pub fn start(world: impl World + 'static) -> Result<Self, EngineError> {
        let signals = Signals::new().map_err(EngineError::Signals)?;
        let waker = signals.waker();
        let tally = Arc::new(Tally::default());
        let run = Run::begin(Box::new(world), signals, Arc::clone(&tally))?;
        let shared = run.shared();
        let thread = Builder::new()
            .name("whosup-live".to_owned())
            .spawn(move || run.until_stopped())
            .map_err(EngineError::Thread)?;
        Ok(Self {
            shared,
            tally,
            waker,
            thread: Some(thread),
        })
    }

    /// Reads the changes: those after `after` if they are kept, else a snapshot first.
    #[must_use]
    pub fn subscribe(&self, filter: Filter, after: Option<Cursor>) -> Subscription {
        let subscription = Subscription::new(Arc::clone(&self.shared), filter, after);
        // Titles are listed from now on.
        self.waker.wake();
        subscription
    }

    /// What is shown now, with its place and date.
    #[must_use]
    pub fn state(&self, filter: &Filter) -> Message {
        Message::snapshot(&self.shared.lock(), filter)
    }

    /// Looks now, for what gives no event, and waits for that. Returns whether it came to
    /// that in time.
    pub fn refresh(&self) -> bool {
        let until = Instant::now() + REFRESH_MAX;
        let mut history = self.shared.lock();
        // The one that is being taken may have passed by already.
        let wanted = history.looks + 2;
        loop {
            self.waker.look();
            if history.looks >= wanted {
                return true;
            }
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() || history.over.is_some() {
                return false;
            }
            history = self.shared.wait(history, rest);
        }
    }

    /// Calls `call` after each change, in the thread of the engine: for who waits for other
    /// things too. It must not block.
    pub fn on_change(&self, call: impl Fn() + Send + 'static) {
        self.shared.call_on_change(Box::new(call));
    }

    /// What the engine has done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Tally {
            wakeups,
            looks,
            exits,
            listings,
            look_us,
        } = &*self.tally;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            wakeups: read(wakeups),
            looks: read(looks),
            exits: read(exits),
            listings: read(listings),
            look_us: read(look_us),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.waker.stop();
        if let Some(thread) = self.thread.take() {
            // It says itself why it ended.
            thread.join().ok();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
