//! Decides which session each process was launched with. Pure.

use std::collections::BTreeMap;

/// A process, as far as its launch is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launched {
    /// The agent makes or takes up a session when it is launched, so that one of the
    /// events is this process's.
    pub(super) has_event: bool,
}

/// A birth or take-up of a session, and the processes in whose start window it lies, by
/// their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) processes: Vec<usize>,
    /// The processes that it is matched with. For the other processes it may not be their
    /// launch: it only counts against other events.
    pub(super) sure: Vec<usize>,
}

impl Event {
    /// The launch of one of `processes`.
    pub(super) fn launch(processes: Vec<usize>) -> Self {
        let sure = processes.clone();
        Self { processes, sure }
    }
}

/// Matches launches and events, each by its place.
///
/// A match is unique both ways: an event that no live process explains counts against
/// every process in whose window it lies, since an exited process may have made it.
/// Where every process has an event, the one event in the window of a process is its own,
/// although the event may lie in the windows of others too.
pub(super) fn match_launches(processes: &[Launched], events: &[Event]) -> BTreeMap<usize, usize> {
    let mut event_of: BTreeMap<usize, usize> = BTreeMap::new();
    // Each round matches a process or is the last.
    loop {
        let is_free = |event: usize| !event_of.values().any(|taken| *taken == event);
        let free_events = |process: usize| -> Vec<usize> {
            let events = events.iter().enumerate();
            let possible = events.filter(|(_, event)| event.processes.contains(&process));
            let free = possible.map(|(at, _)| at).filter(|at| is_free(*at));
            free.collect()
        };
        let free = (0..processes.len()).filter(|process| !event_of.contains_key(process));
        let sole: Vec<(usize, usize)> = free
            .filter_map(|process| match free_events(process).as_slice() {
                [only] => {
                    let is_sure = events.get(*only)?.sure.contains(&process);
                    is_sure.then_some((process, *only))
                }
                _ => None,
            })
            .collect();
        let is_own = |(process, event): &(usize, usize)| {
            let has_event = processes
                .get(*process)
                .is_some_and(|process| process.has_event);
            let rivals = events.get(*event).map(|event| &event.processes);
            let mut rivals = rivals.into_iter().flatten().filter(|rival| {
                *rival != process
                    && !event_of.contains_key(rival)
                    && (!has_event || sole.contains(&(**rival, *event)))
            });
            rivals.next().is_none()
        };
        let found: Vec<_> = sole.iter().filter(|pair| is_own(pair)).copied().collect();
        if found.is_empty() {
            return event_of;
        }
        event_of.extend(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_of(has_event: bool, processes: usize, events: &[&[usize]], right: &[(usize, usize)]) {
        let processes = vec![Launched { has_event }; processes];
        let events: Vec<Event> = events
            .iter()
            .map(|processes| Event::launch(processes.to_vec()))
            .collect();
        let right: BTreeMap<usize, usize> = right.iter().copied().collect();
        assert_eq!(match_launches(&processes, &events), right);
    }

    #[test]
    fn one_event_in_the_window_of_one_process_is_its_own() {
        for has_event in [false, true] {
            check_of(has_event, 1, &[], &[]);
            check_of(has_event, 1, &[&[0]], &[(0, 0)]);
            check_of(has_event, 2, &[&[0], &[1]], &[(0, 0), (1, 1)]);
        }
    }

    #[test]
    fn an_event_that_no_living_process_explains_counts_against_it() {
        for has_event in [false, true] {
            check_of(has_event, 1, &[&[0], &[0]], &[]);
        }
    }

    #[test]
    fn what_was_perhaps_no_launch_counts_against_others_and_is_matched_with_none() {
        let processes = [Launched { has_event: true }];
        let launch = Event::launch(vec![0]);
        let perhaps = Event {
            processes: vec![0],
            sure: Vec::new(),
        };
        assert!(match_launches(&processes, std::slice::from_ref(&perhaps)).is_empty());
        assert!(match_launches(&processes, &[launch.clone(), perhaps]).is_empty());
        assert_eq!(match_launches(&processes, &[launch])[&0], 0);
    }

    #[test]
    fn one_event_and_two_processes_stay_open() {
        for has_event in [false, true] {
            check_of(has_event, 2, &[&[0, 1]], &[]);
            check_of(has_event, 2, &[&[0, 1], &[0, 1]], &[]);
        }
    }

    #[test]
    fn where_every_process_has_an_event_the_only_one_left_is_its_own() {
        check_of(true, 2, &[&[0], &[0, 1]], &[(1, 1), (0, 0)]);
        // Otherwise the second process may have no session yet.
        check_of(false, 2, &[&[0], &[0, 1]], &[]);
    }
}
