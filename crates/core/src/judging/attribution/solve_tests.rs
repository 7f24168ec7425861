//! Which session each process serves, by what is known of each pair.

use proptest::prelude::*;

use super::*;

fn touched(process: usize, session: usize) -> Pair {
    Pair {
        process,
        session,
        is_touched: true,
        ..Pair::default()
    }
}

fn launched(process: usize, session: usize, at_ms: i64) -> Pair {
    Pair {
        launched_at_ms: Some(at_ms),
        ..touched(process, session)
    }
}

fn visited(process: usize, session: usize, at_ms: i64) -> Pair {
    Pair {
        visited_at_ms: Some(at_ms),
        ..touched(process, session)
    }
}

fn named(process: usize, session: usize, at_ms: i64) -> Pair {
    Pair {
        process,
        session,
        named_at_ms: Some(at_ms),
        ..Pair::default()
    }
}

fn dates(last_ms: &[i64]) -> Vec<SessionDates> {
    let dates = last_ms.iter().map(|last| SessionDates {
        born_ms: None,
        latest_ms: Some(*last),
    });
    dates.collect()
}

/// `last_ms` are the last records of the sessions.
#[track_caller]
fn check(last_ms: &[i64], pairs: &[Pair], right: &[(usize, usize, Because)]) -> Solution {
    let processes = pairs.iter().map(|pair| pair.process + 1).max().unwrap_or(0);
    let processes = vec![ProcessFacts::default(); processes];
    let solution = solve(&processes, &dates(last_ms), pairs);
    let found = solution.serves.iter();
    let found: Vec<_> = found
        .map(|(process, (session, by))| (*process, *session, *by))
        .collect();
    assert_eq!(found, right, "{solution:?}");
    solution
}

use Because::{Arguments, Launch, Run, Terminal};

#[test]
fn touching_alone_decides_nothing() {
    let solution = check(&[10], &[touched(0, 0)], &[]);
    assert_eq!(solution.open[&0], [0]);
}

#[test]
fn the_last_evidence_is_current_and_the_earlier_is_left() {
    let pairs = [launched(0, 0, 1), visited(0, 1, 50)];
    let solution = check(&[40, 60], &pairs, &[(0, 1, Run)]);
    assert_eq!(solution.left[&0], 1);
    check(&[40], &[named(0, 0, 1)], &[(0, 0, Arguments)]);
}

#[test]
fn another_session_that_was_touched_puts_a_launch_in_doubt() {
    let pairs = [launched(0, 0, 1), touched(0, 1)];
    let solution = check(&[40, 60], &pairs, &[]);
    assert_eq!(solution.open[&0], [0, 1]);
    // What happened later in the first one may have been another process.
    let solution = check(&[70, 60], &pairs, &[]);
    assert_eq!(solution.open[&0], [0, 1]);
    // A log has every visit.
    check(
        &[40, 60],
        &[visited(0, 0, 1), touched(0, 1)],
        &[(0, 0, Run)],
    );
}

#[test]
fn a_session_that_another_process_serves_puts_nothing_in_doubt() {
    let pairs = [launched(0, 0, 1), touched(0, 1), launched(1, 1, 50)];
    check(&[40, 60], &pairs, &[(0, 0, Launch), (1, 1, Launch)]);
}

#[test]
fn the_terminal_chooses_among_possible_sessions() {
    let used = Pair {
        is_last_used: true,
        ..touched(0, 1)
    };
    let solution = check(
        &[40, 60],
        &[launched(0, 0, 1), used.clone()],
        &[(0, 1, Terminal)],
    );
    assert_eq!(solution.left[&0], 1);
    // It fits both.
    let both = Pair {
        is_last_used: true,
        ..launched(0, 0, 1)
    };
    check(&[40, 60], &[both, used.clone()], &[]);
    // Another process may also have done so.
    check(&[40, 60], &[used, touched(1, 1)], &[]);
}

#[test]
fn a_title_chooses_unless_two_terminals_show_it() {
    let shown = |process| Pair {
        is_shown: true,
        ..touched(process, 1)
    };
    check(&[40, 60], &[touched(0, 0), shown(0)], &[(0, 1, Terminal)]);
    check(&[40, 60], &[touched(0, 0), shown(0), shown(1)], &[]);
}

#[test]
fn a_title_alone_makes_a_candidate_and_beside_evidence_decides() {
    let shown = Pair {
        process: 0,
        session: 1,
        is_shown: true,
        ..Pair::default()
    };
    let solution = check(&[40, 5], std::slice::from_ref(&shown), &[]);
    assert_eq!(solution.open[&0], [1]);
    let pairs = [visited(0, 0, 30), shown.clone()];
    let solution = check(&[40, 5], &pairs, &[(0, 1, Terminal)]);
    assert_eq!(solution.left[&0], 1);
    let both = [touched(0, 0), shown];
    check(&[40, 5], &both, &[(0, 1, Terminal)]);
}

#[test]
fn the_only_session_is_served_if_the_terminal_had_input_since() {
    let typed = Pair {
        is_typed_since: true,
        ..touched(0, 0)
    };
    check(&[40], std::slice::from_ref(&typed), &[(0, 0, Terminal)]);
    check(&[40], &[typed.clone(), touched(1, 0)], &[]);
    check(&[40, 60], &[typed.clone(), touched(0, 1)], &[]);
    let later = Pair {
        is_begun_later: true,
        ..typed
    };
    check(&[40], &[later], &[]);
}

#[test]
fn a_prefix_of_two_sessions_names_none() {
    check(&[40, 60], &[named(0, 0, 1), named(0, 1, 1)], &[]);
}

#[test]
fn two_processes_may_be_resumed_for_one_session() {
    let pairs = [named(0, 0, 1), named(1, 0, 2)];
    check(&[40], &pairs, &[(0, 0, Arguments), (1, 0, Arguments)]);
}

#[test]
fn a_process_that_went_on_to_an_unknown_session_serves_none() {
    let lost = ProcessFacts {
        is_lost: true,
        ..ProcessFacts::default()
    };
    let solution = solve(&[lost], &dates(&[40]), &[launched(0, 0, 1)]);
    assert!(solution.serves.is_empty());
    assert_eq!(solution.open[&0], [0]);
}

#[test]
fn what_arguments_name_may_have_been_left() {
    let pair = Pair {
        may_be_left: true,
        ..named(0, 0, 1)
    };
    let solution = check(&[40], &[pair], &[]);
    assert_eq!(solution.open[&0], [0]);
    // A log shows the process there since.
    check(&[40], &[visited(0, 0, 1)], &[(0, 0, Run)]);
}

#[test]
fn a_process_that_was_seen_to_go_on_is_not_where_it_was_before() {
    let left = ProcessFacts {
        left_at_ms: Some(20),
        ..ProcessFacts::default()
    };
    let solution = solve(&[left], &dates(&[40]), &[named(0, 0, 1)]);
    assert!(solution.serves.is_empty());
    let solution = solve(&[left], &dates(&[40]), &[launched(0, 0, 30)]);
    assert_eq!(solution.serves[&0], (0, Launch));
}

fn any_pair() -> impl Strategy<Value = Pair> {
    let date = || prop::option::weighted(0.2, 0..100_i64);
    let flags = prop::collection::vec(any::<bool>(), 6);
    (0..4_usize, 0..4_usize, date(), date(), date(), flags).prop_map(
        |(process, session, named, launched, visited, flags)| Pair {
            process,
            session,
            named_at_ms: named,
            launched_at_ms: launched,
            visited_at_ms: visited,
            is_touched: flags[0],
            is_begun_later: flags[1],
            is_shown: flags[2],
            is_last_used: flags[3],
            is_typed_since: flags[4],
            may_be_left: flags[5],
        },
    )
}

proptest! {
    #[test]
    fn the_order_does_not_matter_and_no_two_processes_share_a_choice(
        pairs in prop::collection::vec(any_pair(), 0..12),
        last_ms in prop::collection::vec(0..100_i64, 4),
    ) {
        let mut pairs = pairs;
        pairs.sort_by_key(|pair| (pair.process, pair.session));
        pairs.dedup_by_key(|pair| (pair.process, pair.session));
        let processes = [ProcessFacts::default(); 4];
        let dates = dates(&last_ms);
        let forward = solve(&processes, &dates, &pairs);
        pairs.reverse();
        prop_assert_eq!(&solve(&processes, &dates, &pairs), &forward);
        let mut chosen: Vec<usize> = forward
            .serves
            .values()
            .filter(|(_, because)| *because >= Because::Terminal)
            .map(|(session, _)| *session)
            .collect();
        let count = chosen.len();
        chosen.sort_unstable();
        chosen.dedup();
        prop_assert_eq!(chosen.len(), count);
        for (process, (session, _)) in &forward.serves {
            let mut known = pairs.iter();
            prop_assert!(known.any(|pair| pair.process == *process && pair.session == *session));
            prop_assert!(!forward.open.contains_key(process));
        }
    }
}

#[test]
fn a_session_that_was_born_before_its_process_may_be_that_of_another_process() {
    // The first process was launched for session 0 and made session 1, which the second
    // process took up later.
    let pairs = [named(0, 0, 10), touched(0, 1), named(1, 1, 30)];
    let solve_with = |born_ms: i64| {
        let facts = |began_ms| ProcessFacts {
            began_ms: Some(began_ms),
            ..ProcessFacts::default()
        };
        let mut dates = dates(&[5, 40]);
        dates[1].born_ms = Some(born_ms);
        solve(&[facts(10), facts(30)], &dates, &pairs)
    };
    let between = solve_with(20);
    assert_eq!(between.serves.get(&0), None);
    assert_eq!(between.open[&0], [0, 1]);
    assert_eq!(between.serves[&1], (1, Because::Arguments));
    for elsewhere in [5, 30] {
        let solution = solve_with(elsewhere);
        assert_eq!(solution.serves[&0], (0, Because::Arguments));
    }
}
