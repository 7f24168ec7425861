//! One reader of the changes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use whosup_core::views::wire::timestamp;

use crate::change::Change;
use crate::cursor::Cursor;
use crate::filter::Filter;
use crate::history::{Entry, History, Shared};
use crate::rows::Rows;

/// How long one step of the iterator waits; the end of a step has no effect.
const WAIT_STEP: Duration = Duration::from_secs(3_600);

/// One reader of the changes: first a snapshot, then each change once, in order.
///
/// A reader that falls behind what is kept gets a snapshot again, and delays no other.
pub struct Subscription {
    shared: Arc<Shared>,
    filter: Filter,
    is_shown_everything: bool,
    /// The number of the last change that was read; `None` if a snapshot is due.
    place: Option<u64>,
    is_closed: Arc<AtomicBool>,
}

/// Ends a [`Subscription`] from another thread.
#[derive(Clone)]
pub struct Closer {
    shared: Arc<Shared>,
    is_closed: Arc<AtomicBool>,
}

/// The result of a wait.
#[derive(Debug, Clone)]
pub enum Received {
    /// Something to read.
    Message(Message),
    /// Nothing happened in time.
    Nothing,
    /// The changes have ended, for this reason.
    Over(String),
}

/// A snapshot, or a change.
#[derive(Debug, Clone)]
pub enum Message {
    /// The whole view.
    Snapshot {
        /// Its cursor.
        cursor: Cursor,
        /// The view.
        rows: Arc<Rows>,
    },
    /// A change of it.
    Change(Place),
}

/// A change with its number.
#[derive(Debug, Clone)]
pub struct Place {
    entry: Arc<Entry>,
    /// The change as seen through the filter, if it differs.
    own: Option<Change>,
}

impl Subscription {
    pub(crate) fn new(shared: Arc<Shared>, filter: Filter, after: Option<Cursor>) -> Self {
        shared.watchers.fetch_add(1, Ordering::Relaxed);
        let place = after.and_then(|cursor| shared.lock().place_of(cursor));
        Self {
            shared,
            is_shown_everything: filter == Filter::default(),
            filter,
            place,
            is_closed: Arc::default(),
        }
    }

    /// A handle that ends it from another thread.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer {
            shared: Arc::clone(&self.shared),
            is_closed: Arc::clone(&self.is_closed),
        }
    }

    /// Waits for something to read, up to `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Received {
        let until = Instant::now().checked_add(timeout);
        let shared = Arc::clone(&self.shared);
        let mut history = shared.lock();
        loop {
            if self.is_closed.load(Ordering::Relaxed) {
                return Received::Over("it was closed".to_owned());
            }
            if let Some(message) = self.take(&history) {
                return Received::Message(message);
            }
            if let Some(why) = &history.over {
                return Received::Over(why.clone());
            }
            let rest = until.map_or(timeout, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if rest.is_zero() {
                return Received::Nothing;
            }
            history = shared.wait(history, rest);
        }
    }

    fn take(&mut self, history: &History) -> Option<Message> {
        let Some(place) = &mut self.place else {
            return Some(self.snapshot(history));
        };
        loop {
            let Ok(next) = history.after(*place) else {
                return Some(self.snapshot(history));
            };
            let entry = next?;
            *place = entry.cursor.sequence;
            if self.is_shown_everything {
                if entry.change.is_hidden() {
                    continue;
                }
                return Some(Message::Change(Place { entry, own: None }));
            }
            let Some(own) = self.filter.of_change(&entry.change) else {
                continue;
            };
            let own = (own != entry.change).then_some(own);
            return Some(Message::Change(Place { entry, own }));
        }
    }

    fn snapshot(&mut self, history: &History) -> Message {
        let cursor = history.cursor();
        self.place = Some(cursor.sequence);
        Message::snapshot(history, &self.filter)
    }
}

/// Waits for each message, until the changes end.
impl Iterator for Subscription {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        loop {
            match self.next(WAIT_STEP) {
                Received::Message(message) => return Some(message),
                Received::Nothing => {}
                Received::Over(_) => return None,
            }
        }
    }
}

impl Closer {
    /// Ends it: a call that waits for something to read returns at once.
    pub fn close(&self) {
        // A reader that is about to wait holds the lock.
        let history = self.shared.lock();
        self.is_closed.store(true, Ordering::Relaxed);
        drop(history);
        self.shared.wake_all();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Subscription");
        debug
            .field("filter", &self.filter)
            .field("place", &self.place);
        debug.finish_non_exhaustive()
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Message {
    pub(crate) fn snapshot(history: &History, filter: &Filter) -> Self {
        let rows = if *filter == Filter::default() {
            Arc::clone(&history.rows)
        } else {
            Arc::new(filter.of_rows(&history.rows))
        };
        Self::Snapshot {
            cursor: history.cursor(),
            rows,
        }
    }

    /// The cursor behind it.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        match self {
            Self::Snapshot { cursor, .. } => *cursor,
            Self::Change(place) => place.entry.cursor,
        }
    }

    /// The kind of message.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Snapshot { .. } => "snapshot",
            Self::Change(place) => place.change().kind(),
        }
    }

    /// When the look that showed it was taken, in milliseconds since 1970.
    #[must_use]
    pub fn as_of_ms(&self) -> i64 {
        match self {
            Self::Snapshot { rows, .. } => rows.as_of_ms,
            Self::Change(place) => place.entry.as_of_ms,
        }
    }

    /// The message as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("kind".to_owned(), self.kind().into());
        json.insert("cursor".to_owned(), self.cursor().to_string().into());
        json.insert("as_of".to_owned(), timestamp(self.as_of_ms()).into());
        match self {
            Self::Change(place) => json.extend(place.change().fields()),
            Self::Snapshot { rows, .. } => {
                json.extend((*rows.frame).clone());
                json.insert("taken_at".to_owned(), timestamp(rows.as_of_ms).into());
                let sessions = rows.sessions.values().map(|row| &row.session);
                json.insert("sessions".to_owned(), sessions.cloned().collect());
                json.insert("unattributed".to_owned(), json!(*rows.unattributed));
                json.insert("problems".to_owned(), json!(*rows.problems));
            }
        }
        Value::Object(json)
    }
}

/// One line of JSON: control characters are escaped.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(Place { entry, own: None }) => {
                let line = entry.line.get_or_init(|| self.to_json().to_string());
                f.write_str(line)
            }
            _ => write!(f, "{}", self.to_json()),
        }
    }
}

impl Place {
    /// The change.
    #[must_use]
    pub fn change(&self) -> &Change {
        self.own.as_ref().unwrap_or(&self.entry.change)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::{Message, Subscription};
    use crate::filter::Filter;
    use crate::history::Shared;
    use crate::rows::Rows;

    #[test]
    fn who_waits_hears_at_once_that_it_was_closed() {
        let shared = Arc::new(Shared::new(1, Rows::default()));
        let mut changes = Subscription::new(Arc::clone(&shared), Filter::default(), None);
        let closer = changes.closer();
        let first = Iterator::next(&mut changes);
        assert!(matches!(first, Some(Message::Snapshot { .. })));
        let waiting = std::thread::spawn(move || Iterator::next(&mut changes).is_none());
        closer.close();
        assert!(waiting.join().unwrap());
        assert_eq!(shared.watchers.load(Ordering::Relaxed), 0);
    }
}
