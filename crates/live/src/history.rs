//! The changes so far, as many as are kept, and the current view.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::change::Change;
use crate::cursor::Cursor;
use crate::rows::Rows;

/// How many changes are kept for readers that reconnect or are slow: each holds a session of
/// some 14 KiB.
const CHANGES_MAX: usize = 1_024;

/// One change with its number.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) cursor: Cursor,
    /// When the look was taken, in milliseconds since 1970.
    pub(crate) as_of_ms: i64,
    pub(crate) change: Change,
    /// Its JSON, made on the first request by a subscriber without a filter.
    pub(crate) line: OnceLock<String>,
}

/// The state that the engine and its subscribers share.
pub(crate) struct Shared {
    history: Mutex<History>,
    has_changed: Condvar,
    /// How many subscriptions there are.
    pub(crate) watchers: AtomicUsize,
    on_change: Mutex<Vec<OnChange>>,
}

type OnChange = Box<dyn Fn() + Send>;

/// The changes so far.
#[derive(Debug)]
pub(crate) struct History {
    epoch: u64,
    /// The number of the last change.
    last: u64,
    kept: VecDeque<Arc<Entry>>,
    /// The current view.
    pub(crate) rows: Arc<Rows>,
    /// How many looks were finished.
    pub(crate) looks: u64,
    /// The changes have ended, for this reason.
    pub(crate) over: Option<String>,
}

impl Shared {
    pub(crate) fn new(epoch: u64, rows: Rows) -> Self {
        Self {
            history: Mutex::new(History {
                epoch,
                last: 0,
                kept: VecDeque::new(),
                rows: Arc::new(rows),
                looks: 1,
                over: None,
            }),
            has_changed: Condvar::new(),
            watchers: AtomicUsize::new(0),
            on_change: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, History> {
        // The state is replaced as a whole, so that it is consistent even after a panic.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is published, or until `timeout`.
    pub(crate) fn wait<'a>(
        &'a self,
        history: MutexGuard<'a, History>,
        timeout: Duration,
    ) -> MutexGuard<'a, History> {
        let waited = self.has_changed.wait_timeout(history, timeout);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn has_watchers(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn call_on_change(&self, call: OnChange) {
        let calls = self.on_change.lock();
        calls.unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Publishes the result of a look.
    pub(crate) fn publish(&self, rows: Arc<Rows>, changes: Vec<Change>) {
        let is_change = !changes.is_empty();
        self.lock().add(rows, changes);
        self.wake(is_change);
    }

    /// Counts a finished look that showed nothing new.
    pub(crate) fn finish_look(&self) {
        self.lock().looks += 1;
        self.wake(false);
    }

    /// Ends the changes.
    pub(crate) fn end(&self, why: String) {
        self.lock().over.get_or_insert(why);
        self.wake(true);
    }

    /// Wakes all waiting subscribers, though nothing was published.
    pub(crate) fn wake_all(&self) {
        self.has_changed.notify_all();
    }

    fn wake(&self, is_change: bool) {
        self.wake_all();
        if is_change {
            let calls = self.on_change.lock();
            for call in calls.unwrap_or_else(PoisonError::into_inner).iter() {
                call();
            }
        }
    }
}

impl History {
    /// The cursor behind the last change.
    pub(crate) const fn cursor(&self) -> Cursor {
        Cursor {
            epoch: self.epoch,
            sequence: self.last,
        }
    }

    /// The number of the last change that a subscriber at `cursor` knows; `None` if a later
    /// change is no longer kept.
    pub(crate) fn place_of(&self, cursor: Cursor) -> Option<u64> {
        let is_known = cursor.epoch == self.epoch && cursor.sequence <= self.last;
        (is_known && cursor.sequence >= self.forgotten()).then_some(cursor.sequence)
    }

    /// The change behind a place: `Err` if it is no longer kept, `Ok(None)` if there is none yet.
    pub(crate) fn after(&self, place: u64) -> Result<Option<Arc<Entry>>, Forgotten> {
        let at = place.checked_sub(self.forgotten()).ok_or(Forgotten)?;
        let at = usize::try_from(at).map_err(|_| Forgotten)?;
        Ok(self.kept.get(at).cloned())
    }

    /// How many changes are no longer kept.
    fn forgotten(&self) -> u64 {
        let kept = u64::try_from(self.kept.len()).unwrap_or(u64::MAX);
        self.last.saturating_sub(kept)
    }

    fn add(&mut self, rows: Arc<Rows>, changes: Vec<Change>) {
        for change in changes {
            self.last += 1;
            self.kept.push_back(Arc::new(Entry {
                cursor: self.cursor(),
                as_of_ms: rows.as_of_ms,
                change,
                line: OnceLock::new(),
            }));
        }
        let spare = self.kept.len().saturating_sub(CHANGES_MAX);
        self.kept.drain(..spare);
        self.rows = rows;
    }
}

/// A change that is no longer kept.
#[derive(Debug)]
pub(crate) struct Forgotten;
