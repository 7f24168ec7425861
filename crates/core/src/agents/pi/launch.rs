//! Which session each process was launched with. Pure.

use std::collections::BTreeMap;

use whosup_process::Pid;

/// Finds out, of sessions that were each born when some processes had just
/// begun, which process was launched with which: by its place, to a fixed point.
///
/// A process is launched with one session, so one that is placed is no
/// candidate for another. A process that alone fits several sessions (it went
/// on at once, or another one did) is left with none.
pub(super) fn match_launches(just_begun: &[Vec<Pid>]) -> BTreeMap<usize, Pid> {
    let mut placed: BTreeMap<usize, Pid> = BTreeMap::new();
    // Each round places a session or is the last.
    loop {
        let mut sole: BTreeMap<Pid, Vec<usize>> = BTreeMap::new();
        for (at, pids) in just_begun.iter().enumerate() {
            if placed.contains_key(&at) {
                continue;
            }
            let mut free = pids
                .iter()
                .filter(|pid| !placed.values().any(|taken| taken == *pid));
            if let (Some(only), None) = (free.next(), free.next()) {
                sole.entry(*only).or_default().push(at);
            }
        }
        let before = placed.len();
        for (pid, sessions) in sole {
            if let [only] = sessions.as_slice() {
                placed.insert(*only, pid);
            }
        }
        if placed.len() == before {
            return placed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(just_begun: &[&[i64]], right: &[(usize, i64)]) {
        let pid = |number: &i64| Pid::new(*number).expect("a PID");
        let just_begun: Vec<Vec<Pid>> = just_begun
            .iter()
            .map(|pids| pids.iter().map(pid).collect())
            .collect();
        let right = right.iter().map(|(at, number)| (*at, pid(number)));
        assert_eq!(match_launches(&just_begun), right.collect());
    }

    #[test]
    fn a_session_that_one_process_fits_is_that_ones() {
        check(&[], &[]);
        check(&[&[], &[7]], &[(1, 7)]);
        check(&[&[7], &[8]], &[(0, 7), (1, 8)]);
    }

    #[test]
    fn of_two_launched_together_the_first_to_be_placed_leaves_one_for_the_other() {
        check(&[&[7], &[7, 8]], &[(0, 7), (1, 8)]);
        check(&[&[7, 8, 9], &[7, 8], &[7]], &[(2, 7), (1, 8), (0, 9)]);
    }

    #[test]
    fn what_is_not_unique_stays_open() {
        check(&[&[7, 8]], &[]);
        check(&[&[7, 8], &[7, 8]], &[]);
        check(&[&[7], &[7]], &[]);
        check(&[&[7], &[7], &[7, 8]], &[]);
    }
}
