//! Which session each process was launched with, where nothing names one. Pure.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;

/// A session that was born when some processes had just begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Newborn {
    pub(super) born_at_ms: i64,
    /// The processes that had just begun, and may have been launched with it.
    pub(super) just_begun: Vec<Pid>,
    /// Other processes were there that may have gone on to it.
    pub(super) is_perhaps_of_others: bool,
}

/// Finds out which process was launched with which session, by its place.
///
/// A process is launched with one session, which is older than those that it
/// goes on to. So they are taken in the order of their birth. One is a process's
/// if no other that is free had just begun, and either nobody else was there at
/// all, or there is no later session that it may have been launched with.
pub(super) fn match_launches(sessions: &[Newborn]) -> BTreeMap<usize, Pid> {
    let mut in_order: Vec<usize> = (0..sessions.len()).collect();
    in_order.sort_by_key(|at| sessions.get(*at).map(|session| session.born_at_ms));
    let mut placed: BTreeMap<usize, Pid> = BTreeMap::new();
    // Those that may have been launched with one of which nobody can say.
    let mut doubtful: BTreeSet<Pid> = BTreeSet::new();
    for at in in_order {
        let Some(session) = sessions.get(at) else {
            continue;
        };
        let is_free = |pid: &&Pid| !placed.values().any(|taken| taken == *pid);
        let free: Vec<Pid> = session.just_begun.iter().filter(is_free).copied().collect();
        let rivals = |pid: Pid| {
            let others = sessions.iter().enumerate();
            others.filter(move |(other, its)| *other != at && its.just_begun.contains(&pid))
        };
        if let [only] = free.as_slice() {
            let is_tie = rivals(*only).any(|(_, its)| its.born_at_ms == session.born_at_ms);
            let is_alone = !session.is_perhaps_of_others && session.just_begun.len() == 1;
            let is_sole = rivals(*only).all(|(other, _)| placed.contains_key(&other));
            if !is_tie && !doubtful.contains(only) && (is_alone || is_sole) {
                placed.insert(at, *only);
                continue;
            }
        }
        doubtful.extend(free);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_among(others: bool, sessions: &[(i64, &[i64])], right: &[(usize, i64)]) {
        let pid = |number: &i64| Pid::new(*number).expect("a PID");
        let sessions: Vec<Newborn> = sessions
            .iter()
            .map(|(born_at_ms, pids)| Newborn {
                born_at_ms: *born_at_ms,
                just_begun: pids.iter().map(pid).collect(),
                is_perhaps_of_others: others,
            })
            .collect();
        let right = right.iter().map(|(at, number)| (*at, pid(number)));
        assert_eq!(match_launches(&sessions), right.collect());
    }

    #[track_caller]
    fn check(sessions: &[(i64, &[i64])], right: &[(usize, i64)]) {
        check_among(false, sessions, right);
    }

    #[test]
    fn a_session_that_one_process_fits_is_that_ones() {
        for others in [false, true] {
            check_among(others, &[], &[]);
            check_among(others, &[(1, &[]), (2, &[7])], &[(1, 7)]);
            check_among(others, &[(1, &[7]), (2, &[8])], &[(0, 7), (1, 8)]);
        }
    }

    #[test]
    fn of_two_launched_together_the_first_leaves_the_second_session_to_the_other() {
        check(&[(1, &[7]), (2, &[7, 8])], &[(0, 7), (1, 8)]);
        check(&[(2, &[7, 8]), (1, &[7])], &[(1, 7), (0, 8)]);
        // The first may be what a third one went on to.
        check_among(true, &[(1, &[7]), (2, &[7, 8])], &[]);
    }

    #[test]
    fn a_process_that_went_on_at_once_keeps_its_first_session() {
        check(&[(1, &[7]), (2, &[7])], &[(0, 7)]);
        check_among(true, &[(1, &[7]), (2, &[7])], &[]);
    }

    #[test]
    fn what_is_not_unique_stays_open() {
        check(&[(1, &[7, 8])], &[]);
        check(&[(1, &[7, 8]), (2, &[7, 8])], &[]);
        check(&[(1, &[7]), (1, &[7])], &[]);
        // Any of the later ones may be what another process went on to.
        check(&[(1, &[7]), (2, &[7, 8]), (3, &[8])], &[(0, 7)]);
        check(&[(1, &[7, 8]), (2, &[8])], &[]);
    }
}
