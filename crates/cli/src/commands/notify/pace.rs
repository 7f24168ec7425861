//! The rate of notifications. Pure: time is an argument.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use whosup_core::adapter::claim::SessionKey;
use whosup_live::Row;

use super::kind::Kind;

/// The least time between two notifications of the same kind for one session.
const SAME_APART: Duration = Duration::from_secs(10);
/// How long a burst is collected before it is summarized.
const BURST: Duration = Duration::from_secs(2);
/// How many notifications pass within that time.
const BURST_MAX: usize = 5;
/// How many sessions a summary holds; further sessions are only counted.
const HELD_MAX: usize = 200;

/// A transition of a session.
#[derive(Debug, Clone)]
pub(super) struct Happening {
    pub(super) kind: Kind,
    pub(super) key: SessionKey,
    pub(super) row: Arc<Row>,
}

/// What to notify now.
#[derive(Debug)]
pub(super) enum Notice {
    /// One session.
    One(Happening),
    /// A burst: some of the transitions, and the number of all.
    Several(Vec<Happening>, usize),
}

/// Decides what is notified, and when.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last: HashMap<(SessionKey, Kind), Instant>,
    passed: Vec<Instant>,
    held: Vec<Happening>,
    held_count: usize,
    /// When the burst is summarized.
    due: Option<Instant>,
}

impl Pace {
    /// Takes a transition; `None` if it is dropped, or waits for the end of a burst.
    pub(super) fn take(&mut self, happening: Happening, now: Instant) -> Option<Notice> {
        let is_recent = |at: Instant, span| now.saturating_duration_since(at) < span;
        self.last.retain(|_, at| is_recent(*at, SAME_APART));
        self.passed.retain(|at| is_recent(*at, BURST));
        let same = (happening.key.clone(), happening.kind);
        if self.last.contains_key(&same) {
            return None;
        }
        self.last.insert(same, now);
        if self.due.is_none() && self.passed.len() < BURST_MAX {
            self.passed.push(now);
            return Some(Notice::One(happening));
        }
        self.due.get_or_insert(now + BURST);
        self.held_count += 1;
        if self.held.len() < HELD_MAX {
            self.held.push(happening);
        }
        None
    }

    /// When [`Pace::flush`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The summary of a burst, once it is due.
    pub(super) fn flush(&mut self, now: Instant) -> Option<Notice> {
        self.due.take_if(|due| *due <= now)?;
        self.passed.push(now);
        let count = std::mem::take(&mut self.held_count);
        let mut held = std::mem::take(&mut self.held);
        match held.pop() {
            Some(only) if held.is_empty() => Some(Notice::One(only)),
            Some(last) => {
                held.push(last);
                Some(Notice::Several(held, count))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use whosup_core::adapter::claim::SessionKey;
    use whosup_core::sidecar::{AgentId, SessionId};

    use super::{Happening, Kind, Notice, Pace};

    fn happening(number: usize, kind: Kind) -> Happening {
        Happening {
            kind,
            key: SessionKey {
                agent: AgentId::parse("codex").unwrap(),
                session: SessionId::parse(&format!("s{number}")).unwrap(),
                home: std::path::Path::new("/home/dev/.codex").into(),
            },
            row: Arc::default(),
        }
    }

    #[test]
    fn one_session_is_announced_once_in_ten_seconds_for_each_kind() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let mut passes = |number, kind, after| {
            let now = start + Duration::from_millis(after);
            pace.take(happening(number, kind), now).is_some()
        };
        assert!(passes(1, Kind::Waiting, 0));
        assert!(!passes(1, Kind::Waiting, 9_999));
        assert!(passes(1, Kind::TurnEnded, 9_999));
        assert!(passes(2, Kind::Waiting, 9_999));
        assert!(passes(1, Kind::Waiting, 10_000));
    }

    #[test]
    fn what_comes_after_five_in_two_seconds_is_one_summary() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let passed = |pace: &mut Pace| {
            let all = (0..250).map(|number| happening(number, Kind::Died));
            all.filter(|one| pace.take(one.clone(), start).is_some())
                .count()
        };
        assert_eq!(passed(&mut pace), 5);
        let due = pace.due().unwrap();
        assert_eq!(due, start + Duration::from_secs(2));
        assert!(pace.flush(due - Duration::from_millis(1)).is_none());
        let Some(Notice::Several(some, count)) = pace.flush(due) else {
            panic!("no summary");
        };
        assert_eq!((some.len(), count), (200, 245));
        assert!(pace.due().is_none() && pace.flush(due).is_none());
        assert!(pace.take(happening(300, Kind::Died), due).is_some());
    }

    #[test]
    fn a_summary_of_one_is_that_one() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for number in 0..6 {
            pace.take(happening(number, Kind::Died), start);
        }
        let summary = pace.flush(start + Duration::from_secs(2));
        assert!(matches!(summary, Some(Notice::One(_))), "{summary:?}");
    }
}
