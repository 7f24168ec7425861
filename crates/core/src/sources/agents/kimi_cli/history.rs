//! What became of the sessions of one folder, by the log.

use std::collections::HashMap;

use whosup_sidecar::SessionId;

use super::log::{Event, EventKind, Log, time_of};
use super::wire::Dates;
use crate::adapter::Switch;
use crate::adapter::claim::CLOCK_SLACK_MS;

/// How long after its launch a process has made its session, on a slow machine.
pub(super) const START_MS_MAX: i64 = 30_000;
/// How much later than it does something a process may look begun, in milliseconds: the
/// steps in which kernels date that, and more.
const TICK_MS: i64 = 50;
/// How soon after its birth a session is resumed by the process that made it with `/clear`,
/// in milliseconds.
const SWITCH_MS_MAX: i64 = 3_000;

/// Events of one session in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// When a process was launched with it, or may have been: it was made at a launch, or
    /// resumed at a launch or later.
    pub(super) launches_ms: Vec<i64>,
    /// A running process made it and took it up.
    pub(super) switched: Option<Switch>,
    was_created: bool,
    was_taken_up: bool,
}

impl Events {
    /// A process made it at its launch, and no process has resumed it since. So a process
    /// that was launched at another time cannot serve it.
    pub(super) fn exclude(&self, began_at_ms: Option<i64>) -> bool {
        let Some(began) = began_at_ms else {
            return false;
        };
        self.was_created
            && !self.was_taken_up
            && !self.launches_ms.is_empty()
            && !self.launches_ms.iter().any(|at| is_of_launch(began, *at))
    }
}

fn is_of_launch(began_ms: i64, at_ms: i64) -> bool {
    (-CLOCK_SLACK_MS..=START_MS_MAX).contains(&at_ms.saturating_sub(began_ms))
}

/// The log's events for the sessions of one folder.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The events, with dates where these are known.
    events: Vec<(Event, Option<i64>)>,
    /// Lines are missing.
    pub(super) has_hole: bool,
    /// When each session was born.
    born: HashMap<String, i64>,
    /// When the processes began that run now.
    began_ms: Vec<i64>,
}

impl History {
    pub(super) fn new(
        log: Log,
        born: impl IntoIterator<Item = (SessionId, Option<i64>)>,
        began_ms: Vec<i64>,
    ) -> Self {
        let born: HashMap<String, i64> = born
            .into_iter()
            .filter_map(|(session, born)| Some((session.as_str().to_owned(), born?)))
            .collect();
        let born_at_ms = |session: &str| born.get(session).copied();
        let Log { events, has_hole } = log;
        let times: Vec<_> = (0..events.len())
            .map(|at| time_of(&events, at, born_at_ms))
            .collect();
        Self {
            events: events.into_iter().zip(times).collect(),
            has_hole,
            born,
            began_ms,
        }
    }

    /// The log's events for one session.
    pub(super) fn events_of(&self, session: &SessionId) -> Events {
        let mut found = Events::default();
        let events = self.events.iter();
        for (event, at_ms) in events.filter(|(event, _)| event.session == session.as_str()) {
            found.was_created |= event.kind == EventKind::Created;
            found.was_taken_up |= event.kind == EventKind::TakenUp;
            found.launches_ms.extend(*at_ms);
        }
        found.switched = self.switched(session);
        found
    }

    /// `/clear` makes a session and takes it up at once. It logs the latter alone.
    ///
    /// A process that has gone may have done so where the log has a launch that no running
    /// process explains.
    fn switched(&self, session: &SessionId) -> Option<Switch> {
        let mut taken_up = self.taken_up_ms(session);
        let at_ms = taken_up.find(|at| self.is_of_birth(session.as_str(), *at))?;
        let is_switch = |event: &Event, at: Option<i64>| {
            event.kind == EventKind::TakenUp
                && at.is_some_and(|at| self.is_of_birth(&event.session, at))
        };
        let others = self.events.iter();
        let others = others.filter(|(event, at)| !is_switch(event, *at));
        let (before, mut after): (Vec<_>, Vec<_>) =
            others.partition(|(_, at)| at.is_none_or(|at| at <= at_ms));
        after.retain(|(event, _)| event.kind == EventKind::TakenUp);
        let mut running = self.began_ms.clone();
        running.sort_unstable();
        // Each is of another process.
        let mut running = running.into_iter();
        let mut is_of_running = |at: Option<i64>| {
            at.is_some_and(|at| {
                running.any(|began| (-TICK_MS..=START_MS_MAX).contains(&at.saturating_sub(began)))
            })
        };
        let mut are_of_running = |events: Vec<&(Event, Option<i64>)>| {
            let mut dates: Vec<_> = events.into_iter().map(|(_, at)| *at).collect();
            dates.sort_unstable();
            dates.into_iter().all(&mut is_of_running)
        };
        Some(Switch {
            at_ms,
            is_perhaps: !are_of_running(before),
            may_be_left: !are_of_running(after),
        })
    }

    /// A running process made the session and took it up then. One that a process made at its
    /// start is only taken up again.
    fn is_of_birth(&self, session: &str, at_ms: i64) -> bool {
        let is_made_at_start = |(event, _): &(Event, Option<i64>)| {
            event.kind == EventKind::Created && event.session == session
        };
        let is_young = self.born.get(session).is_some_and(|born| {
            (-CLOCK_SLACK_MS..=SWITCH_MS_MAX).contains(&at_ms.saturating_sub(*born))
        });
        is_young && !self.events.iter().any(is_made_at_start)
    }

    /// The known dates at which it was resumed.
    fn taken_up_ms(&self, session: &SessionId) -> impl Iterator<Item = i64> {
        let events = self.events.iter();
        let resumes = events.filter(|(event, _)| {
            event.kind == EventKind::TakenUp && event.session == session.as_str()
        });
        resumes.filter_map(|(_, at)| *at)
    }

    /// The dates of a session: the last resume is its last date if no prompt came since.
    pub(super) fn corrected(&self, session: &SessionId, dates: Dates) -> Dates {
        let taken_up = self.taken_up_ms(session).max();
        Dates {
            last_record_at_ms: dates.last_record_at_ms.max(taken_up),
            ..dates
        }
    }

    /// The log lacks a session that was made since the log's first event, so that lines are
    /// missing: a process logs each session that it makes, by `/clear` too.
    pub(super) fn is_unlogged(&self, session: &SessionId, born_at_ms: Option<i64>) -> bool {
        !self.is_in_log(session) && self.reaches_back_to(born_at_ms)
    }

    fn is_in_log(&self, session: &SessionId) -> bool {
        let mut events = self.events.iter();
        events.any(|(event, _)| event.session == session.as_str())
    }

    /// With which session the process was launched. Each process logs that, so that the
    /// log lacks something otherwise.
    pub(super) fn has_launch_of(&self, began_at_ms: Option<i64>) -> bool {
        let mut launches = self.events.iter().filter_map(|(_, at)| *at);
        began_at_ms.is_some_and(|began| launches.any(|at| is_of_launch(began, at)))
    }

    /// The log lacks the beginning of a session, and may not reach back to it: the log is
    /// renamed and begun anew now and then.
    pub(super) fn is_origin_unknown(&self, session: &SessionId, born_at_ms: Option<i64>) -> bool {
        !self.is_in_log(session) && !self.reaches_back_to(born_at_ms)
    }

    fn reaches_back_to(&self, born_at_ms: Option<i64>) -> bool {
        let first = self.events.iter().filter_map(|(_, at)| *at).min();
        first
            .zip(born_at_ms)
            .is_some_and(|(first, born)| first <= born.saturating_add(CLOCK_SLACK_MS))
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

    /// One process made `a` at its launch and moved to `c` with `/clear`; another process
    /// made `b`. The local clock is 7,000,000 ms ahead.
    fn history(more: &[Event], began_ms: &[i64]) -> History {
        let mut events = vec![
            event(EventKind::Created, "a", 7_101_500),
            event(EventKind::Created, "b", 7_161_500),
            event(EventKind::TakenUp, "c", 7_200_000),
        ];
        events.extend_from_slice(more);
        let born = [("a", 101_500), ("b", 161_500), ("c", 199_900)];
        let log = Log {
            events,
            has_hole: false,
        };
        let born = born.map(|(session, born)| (id(session), Some(born)));
        History::new(log, born, began_ms.to_vec())
    }

    #[test]
    fn a_session_that_was_made_at_a_launch_is_of_no_process_launched_at_another_time() {
        let history = history(&[], &[100_000]);
        let made = history.events_of(&id("b"));
        assert_eq!(made.launches_ms, [161_500]);
        assert!(made.exclude(Some(100_000)));
        assert!(!made.exclude(Some(160_000)));
        assert!(!made.exclude(None));
        assert!(!history.events_of(&id("unheard-of")).exclude(Some(1)));
    }

    #[test]
    fn a_session_that_was_taken_up_may_be_anybodys_and_has_that_date() {
        let history = history(&[event(EventKind::TakenUp, "b", 7_300_000)], &[100_000]);
        let taken_up = history.events_of(&id("b"));
        assert_eq!(taken_up.launches_ms, [161_500, 300_000]);
        assert!(!taken_up.exclude(Some(100_000)));
        let corrected = history.corrected(&id("b"), dates(161_500));
        assert_eq!(corrected.last_record_at_ms, Some(300_000));
        assert_eq!(corrected.born_at_ms, Some(161_500));
        let same = history.corrected(&id("a"), dates(101_500));
        assert_eq!(same.last_record_at_ms, Some(102_500));
    }

    #[test]
    fn clear_is_of_a_running_process_if_the_log_knows_no_other() {
        let switched = |began: &[i64]| history(&[], began).events_of(&id("c")).switched;
        let switch = |is_perhaps| Switch {
            at_ms: 200_000,
            is_perhaps,
            may_be_left: false,
        };
        assert_eq!(switched(&[100_000, 160_000]), Some(switch(false)));
        // The other process has gone, and may have done the same.
        assert_eq!(switched(&[100_000]), Some(switch(true)));
        assert_eq!(history(&[], &[100_000]).events_of(&id("b")).switched, None);
    }

    #[test]
    fn a_session_that_was_made_at_a_launch_and_taken_up_at_once_is_of_no_clear() {
        let at_once = event(EventKind::TakenUp, "b", 7_162_000);
        let history = history(&[at_once], &[100_000, 160_000]);
        let events = history.events_of(&id("b"));
        assert_eq!(events.launches_ms, [161_500, 162_000]);
        assert_eq!(events.switched, None);
    }

    #[test]
    fn what_was_taken_up_after_a_clear_may_have_been_by_who_cleared_unless_a_launch_explains_it() {
        let taken_up = event(EventKind::TakenUp, "b", 7_300_000);
        let may_be_left = |began: &[i64]| {
            let history = history(std::slice::from_ref(&taken_up), began);
            history.events_of(&id("c")).switched.unwrap().may_be_left
        };
        assert!(may_be_left(&[100_000, 160_000]));
        assert!(!may_be_left(&[100_000, 160_000, 299_000]));
    }

    #[test]
    fn silence_of_the_log_proves_nothing_about_a_session_younger_than_its_first_event() {
        let history = history(&[], &[100_000]);
        let is_unlogged = |session: &str, born| history.is_unlogged(&id(session), Some(born));
        assert!(is_unlogged("unheard-of", 203_000));
        assert!(is_unlogged("unheard-of", 201_000));
        assert!(!is_unlogged("unheard-of", 90_000));
        assert!(!is_unlogged("c", 203_000));
    }
}
