//! What became of the sessions of one folder, by the log.

use std::collections::HashMap;

use whosup_sidecar::SessionId;

use super::log::{Event, EventKind, time_of};
use super::session::Dates;
use crate::claim::CLOCK_SLACK_MS;

/// How long after its start a process has made its session, as a rule: one to
/// two seconds where this was seen.
const START_MS_USUAL: i64 = 5_000;
/// How long that may take on a slow machine.
const START_MS_MAX: i64 = 30_000;

/// What the log says of the sessions of one folder.
#[derive(Debug, Default)]
pub(super) struct History {
    /// What happened, and when as far as that can be told.
    events: Vec<(Event, Option<i64>)>,
    /// When the processes began that are there now.
    began_at_ms: Vec<Option<i64>>,
}

impl History {
    pub(super) fn new(
        events: Vec<Event>,
        born: impl IntoIterator<Item = (SessionId, Option<i64>)>,
        began_at_ms: impl IntoIterator<Item = Option<i64>>,
    ) -> Self {
        let born: HashMap<String, i64> = born
            .into_iter()
            .filter_map(|(session, born)| Some((session.as_str().to_owned(), born?)))
            .collect();
        let born_at_ms = |session: &str| born.get(session).copied();
        let times: Vec<_> = (0..events.len())
            .map(|at| time_of(&events, at, born_at_ms))
            .collect();
        Self {
            events: events.into_iter().zip(times).collect(),
            began_at_ms: began_at_ms.into_iter().collect(),
        }
    }

    fn events_of<'a>(
        &'a self,
        session: &'a SessionId,
        kind: EventKind,
    ) -> impl Iterator<Item = Option<i64>> + 'a {
        self.events
            .iter()
            .filter(move |(event, _)| event.kind == kind && event.session == session.as_str())
            .map(|(_, at)| *at)
    }

    /// The dates of a session: that it was taken up is the last that is known
    /// of it, where nobody has said anything since.
    pub(super) fn corrected(&self, session: &SessionId, dates: Dates) -> Dates {
        let taken_up = self.events_of(session, EventKind::TakenUp).flatten().max();
        Dates {
            last_record_at_ms: dates.last_record_at_ms.max(taken_up),
            ..dates
        }
    }

    /// Tells whether a process made the session when it started, is gone since,
    /// and nobody has taken the session up after that.
    pub(super) fn is_left_behind(&self, session: &SessionId, dates: Dates) -> bool {
        let was_created = self.events_of(session, EventKind::Created).next().is_some();
        let was_taken_up = self.events_of(session, EventKind::TakenUp).next().is_some();
        let Some(born) = dates.born_at_ms else {
            return false;
        };
        was_created
            && !was_taken_up
            && !self.began_at_ms.iter().any(|began| match began {
                Some(began) => self.may_have_made(*began, session, born),
                None => true,
            })
    }

    /// A process that began then may have made this session when it started:
    /// soon after, or, on a slow machine, as the first thing that happened after.
    fn may_have_made(&self, began_at_ms: i64, session: &SessionId, born_at_ms: i64) -> bool {
        let took_ms = born_at_ms.saturating_sub(began_at_ms);
        let is_first = || {
            !self.events.iter().any(|(event, at)| {
                event.session != session.as_str()
                    && at.is_some_and(|at| (began_at_ms..born_at_ms).contains(&at))
            })
        };
        let is_after = took_ms >= -CLOCK_SLACK_MS;
        is_after && (took_ms <= START_MS_USUAL || (took_ms <= START_MS_MAX && is_first()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).expect("an id")
    }

    fn event(kind: EventKind, session: &str, local_ms: i64) -> Event {
        Event {
            kind,
            session: session.to_owned(),
            local_ms,
        }
    }

    fn dates(born: i64) -> Dates {
        Dates {
            born_at_ms: Some(born),
            last_record_at_ms: Some(born + 1_000),
        }
    }

    /// A made `a` at its start and went on to `c`; B made `b` and is gone; the
    /// local clock is 7,000,000 ms ahead.
    fn history(more: &[Event], began: &[i64]) -> History {
        let mut events = vec![
            event(EventKind::Created, "a", 7_101_500),
            event(EventKind::Created, "b", 7_161_500),
            event(EventKind::TakenUp, "c", 7_200_000),
        ];
        events.extend_from_slice(more);
        let born = [("a", 101_500), ("b", 161_500), ("c", 199_900)];
        History::new(
            events,
            born.map(|(session, born)| (id(session), Some(born))),
            began.iter().copied().map(Some),
        )
    }

    #[test]
    fn a_session_of_a_process_that_is_gone_is_left_behind() {
        let history = history(&[], &[100_000]);
        assert!(!history.is_left_behind(&id("a"), dates(101_500)));
        assert!(history.is_left_behind(&id("b"), dates(161_500)));
        assert!(!history.is_left_behind(&id("c"), dates(199_900)));
        assert!(!history.is_left_behind(&id("unheard-of"), dates(161_500)));
    }

    #[test]
    fn a_session_that_was_taken_up_is_not_and_has_that_date() {
        let history = history(&[event(EventKind::TakenUp, "b", 7_300_000)], &[100_000]);
        assert!(!history.is_left_behind(&id("b"), dates(161_500)));
        let corrected = history.corrected(&id("b"), dates(161_500));
        assert_eq!(corrected.last_record_at_ms, Some(300_000));
        assert_eq!(corrected.born_at_ms, Some(161_500));
        let same = history.corrected(&id("a"), dates(101_500));
        assert_eq!(same.last_record_at_ms, Some(102_500));
    }

    #[test]
    fn a_slow_start_makes_the_first_session_after_it() {
        assert!(!history(&[], &[140_000]).is_left_behind(&id("b"), dates(161_500)));
        // Something else happened first after that start.
        let taken_up = event(EventKind::TakenUp, "a", 7_145_000);
        let history_with = history(&[taken_up], &[140_000]);
        assert!(history_with.is_left_behind(&id("b"), dates(161_500)));
        assert!(history(&[], &[100_000, 100_400]).is_left_behind(&id("b"), dates(161_500)));
        assert!(history(&[], &[120_000]).is_left_behind(&id("b"), dates(161_500)));
    }

    #[test]
    fn a_process_whose_start_is_not_known_may_have_made_any() {
        let mut history = history(&[], &[]);
        history.began_at_ms = vec![None];
        assert!(!history.is_left_behind(&id("b"), dates(161_500)));
    }
}
