//! What became of the sessions of one folder, by the log.

use std::collections::{BTreeSet, HashMap};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::log::{Event, EventKind, Log, Span, local_clock_ahead_ms, time_of};
use super::session::Dates;
use crate::agents::launch::{Newborn, match_launches};
use crate::claim::CLOCK_SLACK_MS;

/// How long after its start a process has made its session, as a rule: one to
/// two seconds where this was seen.
const START_MS_USUAL: i64 = 5_000;
/// How much older than its process it may look, for rounding.
const START_SLACK_MS: i64 = 250;
/// How long that may take on a slow machine.
const START_MS_MAX: i64 = 30_000;

/// A process that is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Maker {
    pub(super) pid: Pid,
    pub(super) began_at_ms: Option<i64>,
}

/// Which processes can have made a session that nobody has taken up since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Makers {
    pub(super) possible: BTreeSet<Pid>,
    /// It was made too late after their start to be theirs, unless that took
    /// very long: one that is gone may have made it as well.
    pub(super) are_doubtful: bool,
}

/// What the log says of the sessions of one folder.
#[derive(Debug, Default)]
pub(super) struct History {
    /// What happened, and when as far as that can be told.
    events: Vec<(Event, Option<i64>)>,
    /// From when to when the logs tell what happened, as far as that can be told.
    spans: Vec<Span>,
    /// The log lacks its end: what happened last is not told.
    pub(super) is_torn: bool,
    /// Something in its middle is missing.
    pub(super) has_hole: bool,
    processes: Vec<Maker>,
    /// The process of each session that was made when just one had begun.
    placed: HashMap<String, Pid>,
}

impl History {
    pub(super) fn new(
        log: Log,
        born: impl IntoIterator<Item = (SessionId, Option<i64>)>,
        processes: impl IntoIterator<Item = Maker>,
    ) -> Self {
        let born: HashMap<String, i64> = born
            .into_iter()
            .filter_map(|(session, born)| Some((session.as_str().to_owned(), born?)))
            .collect();
        let born_at_ms = |session: &str| born.get(session).copied();
        let Log {
            events,
            spans,
            is_torn,
            has_hole,
        } = log;
        let ahead_ms = local_clock_ahead_ms(&events, events.len(), born_at_ms);
        let at_ms = |local_ms: i64| ahead_ms.and_then(|ahead| local_ms.checked_sub(ahead));
        let spans = spans.into_iter().filter_map(|span| {
            Some(Span {
                begins_ms: at_ms(span.begins_ms)?,
                ends_ms: at_ms(span.ends_ms)?,
            })
        });
        let times: Vec<_> = (0..events.len())
            .map(|at| time_of(&events, at, born_at_ms))
            .collect();
        let mut history = Self {
            events: events.into_iter().zip(times).collect(),
            spans: spans.collect(),
            is_torn,
            has_hole,
            processes: processes.into_iter().collect(),
            placed: HashMap::new(),
        };
        history.placed = history.place();
        history
    }

    /// A process makes at most one session when it starts.
    fn place(&self) -> HashMap<String, Pid> {
        let created = self.events.iter().filter_map(|(event, at)| {
            (event.kind == EventKind::Created).then_some((event.session.as_str(), (*at)?))
        });
        let created: Vec<(&str, i64)> = created.collect();
        let newborn = |(session, at): &(&str, i64)| Newborn {
            born_at_ms: *at,
            just_begun: self.likely_makers(session, *at).collect(),
            // What is created is so at a launch.
            is_perhaps_of_others: false,
        };
        let newborn: Vec<Newborn> = created.iter().map(newborn).collect();
        let placed = match_launches(&newborn).into_iter();
        placed
            .filter_map(|(at, pid)| Some((created.get(at)?.0.to_owned(), pid)))
            .collect()
    }

    fn likely_makers<'a>(
        &'a self,
        session: &'a str,
        born_at_ms: i64,
    ) -> impl Iterator<Item = Pid> + 'a {
        let is_likely = move |maker: &&Maker| {
            let began = maker.began_at_ms;
            began.is_none_or(|began| self.is_soon_after(began, session, born_at_ms))
        };
        self.processes
            .iter()
            .filter(is_likely)
            .map(|maker| maker.pid)
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

    /// The processes that can have made the session when they started; `None`
    /// if somebody has taken it up since, or nothing tells that one made it so.
    pub(super) fn makers_of(&self, session: &SessionId, dates: Dates) -> Option<Makers> {
        let was_created = self.events_of(session, EventKind::Created).next().is_some();
        let was_taken_up = self.events_of(session, EventKind::TakenUp).next().is_some();
        let born = dates.born_at_ms?;
        if !was_created || was_taken_up {
            return None;
        }
        let id = session.as_str();
        if let Some(pid) = self.placed.get(id) {
            return Some(Makers {
                possible: BTreeSet::from([*pid]),
                are_doubtful: false,
            });
        }
        let has_another = |pid: &Pid| self.placed.values().any(|placed| placed == pid);
        let likely = self.likely_makers(id, born).filter(|pid| !has_another(pid));
        let likely: BTreeSet<Pid> = likely.collect();
        if !likely.is_empty() {
            return Some(Makers {
                possible: likely,
                are_doubtful: false,
            });
        }
        let can_have = self.processes.iter().filter(|maker| {
            let began = maker.began_at_ms;
            began.is_none_or(|began| born.saturating_sub(began) >= -CLOCK_SLACK_MS)
        });
        let possible = can_have.map(|maker| maker.pid);
        Some(Makers {
            possible: possible.filter(|pid| !has_another(pid)).collect(),
            are_doubtful: true,
        })
    }

    /// The logs do not tell how a session came to be, for it was made after one of them
    /// ended and before the next began, or they lack something. (A process logs that it
    /// makes one, by `/clear` as well.)
    pub(super) fn is_beyond(&self, session: &SessionId, born_at_ms: Option<i64>) -> bool {
        let is_between_logs = born_at_ms.is_some_and(|born| {
            let ended_before = |span: &Span| span.ends_ms.saturating_add(CLOCK_SLACK_MS) < born;
            let is_within = |span: &Span| {
                let begins_ms = span.begins_ms.saturating_sub(CLOCK_SLACK_MS);
                begins_ms <= born && !ended_before(span)
            };
            self.spans.iter().any(ended_before) && !self.spans.iter().any(is_within)
        });
        !self.is_told(session) && (is_between_logs || self.has_hole)
    }

    fn is_told(&self, session: &SessionId) -> bool {
        let mut events = self.events.iter();
        events.any(|(event, _)| event.session == session.as_str())
    }

    /// The log does not tell how a session came to be, and may not reach back to
    /// that: it is begun anew now and then.
    pub(super) fn is_untold(&self, session: &SessionId, born_at_ms: Option<i64>) -> bool {
        let first = self.events.iter().filter_map(|(_, at)| *at).min();
        let reaches_back = first
            .zip(born_at_ms)
            .is_some_and(|(first, born)| first <= born.saturating_add(CLOCK_SLACK_MS));
        !self.is_told(session) && !reaches_back
    }

    /// A session was made soon after a process began; or, as on a slow machine,
    /// not so soon, but as the first thing that happened after.
    fn is_soon_after(&self, began_at_ms: i64, session: &str, born_at_ms: i64) -> bool {
        let took_ms = born_at_ms.saturating_sub(began_at_ms);
        let is_first = || {
            !self.events.iter().any(|(event, at)| {
                event.session != session
                    && at.is_some_and(|at| (began_at_ms..born_at_ms).contains(&at))
            })
        };
        let is_after = took_ms >= -START_SLACK_MS;
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
            perhaps_until_ms: None,
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
        let processes = (1..).zip(began).map(|(number, began)| Maker {
            pid: pid(number),
            began_at_ms: Some(*began),
        });
        let log = Log {
            spans: vec![Span {
                begins_ms: 7_101_500,
                ends_ms: events.iter().map(|event| event.local_ms).max().unwrap(),
            }],
            events,
            is_torn: false,
            has_hole: false,
        };
        History::new(
            log,
            born.map(|(session, born)| (id(session), Some(born))),
            processes,
        )
    }

    fn pid(number: i64) -> Pid {
        Pid::new(number).expect("a PID")
    }

    /// The PIDs that may have made a session, and whether that is doubtful.
    fn makers(history: &History, session: &str, born: i64) -> Option<(Vec<i32>, bool)> {
        let makers = history.makers_of(&id(session), dates(born))?;
        let pids = makers.possible.iter().map(|pid| pid.get()).collect();
        Some((pids, makers.are_doubtful))
    }

    #[test]
    fn a_session_is_of_who_made_it_and_of_nobody_once_that_one_is_gone() {
        let history = history(&[], &[100_000]);
        assert_eq!(makers(&history, "a", 101_500), Some((vec![1], false)));
        // The one process that is there has made another.
        assert_eq!(makers(&history, "b", 161_500), Some((vec![], true)));
        assert_eq!(makers(&history, "c", 199_900), None);
        assert_eq!(makers(&history, "unheard-of", 161_500), None);
    }

    #[test]
    fn a_session_that_is_younger_than_the_log_is_not_told_of_by_its_silence() {
        let history = history(&[], &[100_000]);
        let is_beyond = |session: &str, born| history.is_beyond(&id(session), Some(born));
        assert!(is_beyond("unheard-of", 203_000));
        assert!(!is_beyond("unheard-of", 201_000));
        assert!(!is_beyond("c", 203_000));
    }

    #[test]
    fn of_two_that_were_started_together_the_first_leaves_the_second_session_to_the_other() {
        let more = event(EventKind::Created, "d", 7_162_500);
        let history = history(&[more], &[160_900, 162_200]);
        assert_eq!(makers(&history, "b", 161_500), Some((vec![1], false)));
        let d = history.placed.get("d").copied();
        assert_eq!(d, Some(pid(2)));
    }

    #[test]
    fn a_session_that_was_taken_up_may_be_anybodys_and_has_that_date() {
        let history = history(&[event(EventKind::TakenUp, "b", 7_300_000)], &[100_000]);
        assert_eq!(makers(&history, "b", 161_500), None);
        let corrected = history.corrected(&id("b"), dates(161_500));
        assert_eq!(corrected.last_record_at_ms, Some(300_000));
        assert_eq!(corrected.born_at_ms, Some(161_500));
        let same = history.corrected(&id("a"), dates(101_500));
        assert_eq!(same.last_record_at_ms, Some(102_500));
    }

    #[test]
    fn a_slow_start_makes_the_first_session_after_it_or_is_doubtful() {
        assert_eq!(
            makers(&history(&[], &[140_000]), "b", 161_500),
            Some((vec![1], false))
        );
        // Something else happened first after that start.
        let taken_up = event(EventKind::TakenUp, "a", 7_145_000);
        let history_with = history(&[taken_up], &[140_000]);
        assert_eq!(makers(&history_with, "b", 161_500), Some((vec![1], true)));
        assert_eq!(
            makers(&history(&[], &[120_000]), "b", 161_500),
            Some((vec![1], true))
        );
        // Both began before the first one, and only one can have made that.
        let both = history(&[], &[100_000, 100_400]);
        assert_eq!(makers(&both, "b", 161_500), Some((vec![1, 2], true)));
        // It began after.
        assert_eq!(
            makers(&history(&[], &[170_000]), "b", 161_500),
            Some((vec![], true))
        );
    }

    #[test]
    fn a_process_whose_start_is_not_known_may_have_made_any() {
        let mut history = history(&[], &[]);
        history.processes = vec![Maker {
            pid: pid(1),
            began_at_ms: None,
        }];
        assert_eq!(makers(&history, "b", 161_500), Some((vec![1], false)));
    }
}
