//! Which terminals may show a session that a host serves, by the times when terminals have
//! opened sessions. Pure.
//!
//! A session that a terminal makes is born at most a tenth of a second before the log records
//! that the terminal has opened it (Codex 0.171, 2026-11). So a session that was born just
//! before the row of one terminal, and of no other, was made by that terminal. What rows do
//! not decide goes by directories and dates.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::launch::{Event, Launched, match_launches};
use crate::adapter::{Opening, Terminal};

/// How much later than the birth of a session its row may be dated, in milliseconds.
/// Seen: 30 to 60.
const ROW_AFTER_BIRTH_MS: i64 = 1_000;
/// How long a row may take to be written, in milliseconds. Seen: up to ten
/// seconds. Until then other rows may still appear.
const WRITTEN_AFTER_MS: i64 = 15_000;
/// How much older than its process a row may look, in milliseconds, for rounding.
const ROUNDING_MS: i64 = 250;

/// For each session that one of `terminals` made, finds the terminals that may show it now:
/// that terminal, and each that has since opened a session that it did not make.
///
/// `births` are those of all sessions of a home, in milliseconds since 1970. Nothing is
/// found while one of the terminals has logged nothing: it may have opened any session.
pub(crate) fn openers(
    births: &BTreeMap<SessionId, i64>,
    terminals: &[Terminal],
    openings: &[Opening],
    now_ms: i64,
) -> BTreeMap<SessionId, BTreeSet<Pid>> {
    let Some(names) = names_of(terminals, openings) else {
        return BTreeMap::new();
    };
    let made = makers(births, openings, now_ms);
    let explained: BTreeSet<usize> = made.values().copied().collect();
    let is_living = |opening: &Opening| names.get(&opening.pid) == Some(&opening.process.as_str());
    let later_ones = |made_at_ms: i64| {
        let unexplained = openings.iter().enumerate();
        unexplained
            .filter(|(at, _)| !explained.contains(at))
            .map(|(_, opening)| opening)
            .filter(move |opening| opening.at_ms > made_at_ms)
    };
    let all = made.iter().filter_map(|(session, at)| {
        let opening = openings.get(*at).filter(|opening| is_living(opening))?;
        let mut possible = BTreeSet::from([opening.pid]);
        let later = later_ones(opening.at_ms).filter(|opening| is_living(opening));
        possible.extend(later.map(|opening| opening.pid));
        Some(((*session).clone(), possible))
    });
    all.collect()
}

/// The opening with which each session was made, by its place among `openings`.
///
/// Sessions born within one another's second are matched together: each is to have a row,
/// each row a session, and there must be one way only to do that.
fn makers<'a>(
    born: &'a BTreeMap<SessionId, i64>,
    openings: &[Opening],
    now_ms: i64,
) -> BTreeMap<&'a SessionId, usize> {
    let mut births: Vec<(&SessionId, i64)> = born.iter().map(|(id, born)| (id, *born)).collect();
    births.sort_by_key(|(_, born)| *born);
    let together =
        births.chunk_by(|(_, one), (_, next)| *next <= one.saturating_add(ROW_AFTER_BIRTH_MS));
    let written = together.filter(|births| {
        births
            .last()
            .is_some_and(|(_, born)| born.saturating_add(WRITTEN_AFTER_MS) <= now_ms)
    });
    written
        .filter_map(|births| match_all(births, openings))
        .flatten()
        .collect()
}

/// The unique assignment of a row to each session, and of a session to each row of that
/// time.
fn match_all<'a>(
    births: &[(&'a SessionId, i64)],
    openings: &[Opening],
) -> Option<Vec<(&'a SessionId, usize)>> {
    let rows = openings.iter().enumerate().filter_map(|(at, opening)| {
        let explained = births.iter().enumerate().filter(|(_, (_, born))| {
            (*born..=born.saturating_add(ROW_AFTER_BIRTH_MS)).contains(&opening.at_ms)
        });
        let processes: Vec<usize> = explained.map(|(place, _)| place).collect();
        (!processes.is_empty()).then(|| (at, Event::launch(processes)))
    });
    let (places, rows): (Vec<usize>, Vec<Event>) = rows.unzip();
    if rows.len() != births.len() {
        return None;
    }
    let matched = match_launches(&vec![Launched { has_event: true }; births.len()], &rows);
    let births = births.iter().enumerate();
    // One unmatched session leaves all of them open.
    births
        .map(|(place, (id, _))| Some((*id, *places.get(*matched.get(&place)?)?)))
        .collect()
}

/// The name of each terminal in the log; `None` if a terminal has no name, or two since
/// it began.
fn names_of<'a>(terminals: &[Terminal], openings: &'a [Opening]) -> Option<BTreeMap<Pid, &'a str>> {
    let mut names = BTreeMap::new();
    for terminal in terminals {
        let since = terminal.began_at_ms.saturating_sub(ROUNDING_MS);
        let processes: BTreeSet<&str> = openings
            .iter()
            .filter(|opening| opening.pid == terminal.pid && opening.at_ms >= since)
            .map(|opening| opening.process.as_str())
            .collect();
        let mut processes = processes.into_iter();
        let (Some(name), None) = (processes.next(), processes.next()) else {
            return None;
        };
        names.insert(terminal.pid, name);
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute after everything.
    const NOW_MS: i64 = 1_000_000;

    fn pid(number: i64) -> Pid {
        Pid::new(number).expect("a PID")
    }

    fn terminals(of: &[(i64, i64)]) -> Vec<Terminal> {
        of.iter()
            .map(|(number, began_at_ms)| Terminal {
                pid: pid(*number),
                began_at_ms: *began_at_ms,
            })
            .collect()
    }

    fn rows(of: &[(i64, i64)]) -> Vec<Opening> {
        of.iter()
            .map(|(number, at_ms)| Opening {
                pid: pid(*number),
                process: format!("pid:{number}:uuid"),
                at_ms: *at_ms,
            })
            .collect()
    }

    fn possible(
        threads: &[(&str, i64)],
        terminals: &[Terminal],
        rows: &[Opening],
        now_ms: i64,
    ) -> Vec<(String, Vec<i32>)> {
        let threads = threads
            .iter()
            .map(|(id, born)| (SessionId::parse(id).expect("an id"), *born))
            .collect();
        openers(&threads, terminals, rows, now_ms)
            .into_iter()
            .map(|(id, pids)| (id.to_string(), pids.iter().map(|pid| pid.get()).collect()))
            .collect()
    }

    fn only(thread: &str, number: i32) -> (String, Vec<i32>) {
        (thread.to_owned(), vec![number])
    }

    #[test]
    fn each_thread_goes_with_the_terminal_that_opened_one_as_it_was_born() {
        let two = terminals(&[(11, 100_000), (12, 102_000)]);
        let threads = [
            ("aaaaaaaa", 101_000),
            ("bbbbbbbb", 103_000),
            ("cccccccc", 110_000),
        ];
        let rows = rows(&[(11, 101_050), (12, 103_040), (11, 110_040)]);
        let expected = [
            only("aaaaaaaa", 11),
            only("bbbbbbbb", 12),
            only("cccccccc", 11),
        ];
        assert_eq!(possible(&threads, &two, &rows, NOW_MS), expected);
    }

    #[test]
    fn births_within_one_anothers_second_are_distinguished_where_there_is_one_way_only() {
        let two = terminals(&[(11, 100_000), (12, 100_000)]);
        let threads = [("aaaaaaaa", 101_000), ("bbbbbbbb", 101_500)];
        let in_turn = rows(&[(11, 101_050), (12, 101_540)]);
        let expected = [only("aaaaaaaa", 11), only("bbbbbbbb", 12)];
        assert_eq!(possible(&threads, &two, &in_turn, NOW_MS), expected);
        // Both rows could be of either.
        let late = rows(&[(11, 101_550), (12, 101_560)]);
        assert_eq!(possible(&threads, &two, &late, NOW_MS), []);
        // The first one's row is missing, and the second's lies in its second.
        let one = rows(&[(12, 101_540), (11, 100_100)]);
        assert_eq!(possible(&threads, &two, &one, NOW_MS), []);
        // Another session was opened in that second.
        let three = rows(&[(11, 101_050), (12, 101_540), (12, 101_600)]);
        assert_eq!(possible(&threads, &two, &three, NOW_MS), []);
    }

    #[test]
    fn a_thread_is_reported_once_every_row_of_its_time_is_written() {
        let one = terminals(&[(11, 100_000)]);
        let rows = rows(&[(11, 101_050)]);
        let threads = [("aaaaaaaa", 101_000)];
        assert_eq!(possible(&threads, &one, &rows, 115_999), []);
        let expected = [only("aaaaaaaa", 11)];
        assert_eq!(possible(&threads, &one, &rows, 116_000), expected);
    }

    #[test]
    fn while_a_terminal_has_written_nothing_since_it_began_nothing_is_reported() {
        let threads = [("aaaaaaaa", 101_000)];
        let rows = rows(&[(11, 101_050), (12, 90_000)]);
        let silent = terminals(&[(11, 100_000), (13, 102_000)]);
        assert_eq!(possible(&threads, &silent, &rows, NOW_MS), []);
        let reused = terminals(&[(11, 100_000), (12, 102_000)]);
        assert_eq!(possible(&threads, &reused, &rows, NOW_MS), []);
        // Another machine or container may use the same PIDs.
        let mut twice = rows.clone();
        twice.push(Opening {
            process: "pid:11:another".to_owned(),
            ..rows[0].clone()
        });
        let one = terminals(&[(11, 100_000)]);
        assert_eq!(possible(&threads, &one, &twice, NOW_MS), []);
    }

    #[test]
    fn a_thread_of_a_terminal_that_is_gone_is_not_reported() {
        let left = terminals(&[(12, 100_000)]);
        let rows = rows(&[(11, 101_050), (12, 100_500)]);
        assert_eq!(possible(&[("aaaaaaaa", 101_000)], &left, &rows, NOW_MS), []);
    }

    #[test]
    fn who_has_opened_something_old_since_may_show_it_too() {
        let two = terminals(&[(11, 100_000), (12, 100_000)]);
        let threads = [("aaaaaaaa", 101_000), ("bbbbbbbb", 103_000)];
        // 12 made the second one, left it, and has taken up some other.
        let rows = rows(&[(11, 101_050), (12, 103_050), (12, 120_000)]);
        let expected = [("aaaaaaaa".to_owned(), vec![11, 12]), only("bbbbbbbb", 12)];
        assert_eq!(possible(&threads, &two, &rows, NOW_MS), expected);
    }
}
