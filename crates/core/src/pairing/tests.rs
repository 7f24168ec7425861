//! Who goes with whom, and who stays alone.

use std::collections::BTreeSet;

use proptest::prelude::*;

use whosup_process::Pid;

use super::{Candidate, PairedBy, Pairs, Seeker, pair};

const T: i64 = 1_795_800_000_000;

fn seeker(began_s: i64) -> Seeker {
    Seeker {
        pid: Pid::new(4711).unwrap(),
        work_dir: Some("/w/a".into()),
        began_at_ms: Some(T + began_s * 1_000),
        named: None,
        names_any_directory: false,
        homes: Vec::new(),
        terminal_title: None,
        has_session: false,
    }
}

fn session(id: &str, born_s: i64) -> Candidate {
    Candidate {
        id: id.to_owned(),
        home: "/h".into(),
        work_dir: Some("/w/a".into()),
        born_at_ms: Some(T + born_s * 1_000),
        last_record_at_ms: None,
        perhaps_until_ms: None,
        title: None,
        is_first_of_a_process: false,
        is_held: false,
        possible_owners: None,
        doubtful_owners: BTreeSet::new(),
    }
}

fn held(id: &str, born_s: i64) -> Candidate {
    Candidate {
        is_held: true,
        ..session(id, born_s)
    }
}

fn launched(began_s: i64) -> Seeker {
    Seeker {
        has_session: true,
        ..seeker(began_s)
    }
}

#[track_caller]
fn check_pairs(
    seekers: &[Seeker],
    sessions: &[Candidate],
    right: &[(usize, usize, PairedBy)],
) -> Pairs {
    let mut result = pair(seekers, sessions);
    result.pairs.sort_by_key(|(seeker, ..)| *seeker);
    assert_eq!(result.pairs, right, "{result:?}");
    result
}

use PairedBy::{Arguments, Elimination, Title};

#[test]
fn one_process_and_one_session_born_after_it_are_a_pair() {
    check_pairs(&[seeker(0)], &[session("a", 1)], &[(0, 0, Elimination)]);
}

#[test]
fn an_older_session_without_newer_records_is_nobodys() {
    let result = check_pairs(&[seeker(3_600)], &[session("a", 0)], &[]);
    assert_eq!(result.open, [(0, vec![])]);
}

#[test]
fn a_session_whose_records_began_anew_after_the_process_started_fits() {
    let mut old = session("a", 0);
    old.last_record_at_ms = Some(T + 3_700_000);
    check_pairs(&[seeker(3_600)], &[old], &[(0, 0, Elimination)]);
}

#[test]
fn another_directory_or_home_never_fits() {
    let mut elsewhere = session("a", 1);
    elsewhere.work_dir = Some("/w/b".into());
    check_pairs(&[seeker(0)], &[elsewhere], &[]);
    let mut other_home = seeker(0);
    other_home.homes = vec!["/other".into()];
    check_pairs(&[other_home], &[session("a", 1)], &[]);
    let mut unknown = session("a", 1);
    unknown.work_dir = None;
    check_pairs(&[seeker(0)], &[unknown], &[]);
}

#[test]
fn two_processes_that_both_fit_stay_open_with_the_candidate() {
    let result = check_pairs(&[seeker(0), seeker(1)], &[session("a", 10)], &[]);
    assert_eq!(result.open, [(0, vec![0]), (1, vec![0])]);
}

#[test]
fn launches_one_after_another_are_told_apart_by_elimination() {
    let seekers = [launched(0), launched(100), launched(200)];
    let sessions = [held("c", 201), held("a", 1), held("b", 101)];
    let right = [
        (0, 1, Elimination),
        (1, 2, Elimination),
        (2, 0, Elimination),
    ];
    check_pairs(&seekers, &sessions, &right);
}

#[test]
fn without_a_session_at_launch_the_same_three_stay_open() {
    let seekers = [seeker(0), seeker(100)];
    let sessions = [session("a", 1), session("b", 101)];
    let result = check_pairs(&seekers, &sessions, &[]);
    assert_eq!(result.open.len(), 2);
}

#[test]
fn a_younger_session_that_only_this_process_can_explain_moves_the_pair() {
    let sessions = [session("a", 1), session("b", 500)];
    let result = check_pairs(&[seeker(0)], &sessions, &[(0, 1, Elimination)]);
    assert_eq!(result.superseded, [(0, 1)]);
}

#[test]
fn a_session_with_records_after_the_younger_one_was_born_was_not_left() {
    let mut first = session("a", 1);
    first.last_record_at_ms = Some(T + 900_000);
    let result = check_pairs(&[seeker(0)], &[first, session("b", 500)], &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
}

#[test]
fn arguments_name_a_session_by_id_or_by_its_beginning() {
    let mut named = seeker(3_600);
    named.named = Some("a1".to_owned());
    let sessions = [session("a1b2", 0), session("b", 0)];
    check_pairs(&[named.clone()], &sessions, &[(0, 0, Arguments)]);
    let ambiguous = [session("a1b2", 0), session("a1c3", 0)];
    let result = check_pairs(&[named], &ambiguous, &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
}

#[test]
fn arguments_mean_a_session_of_the_processs_own_home_and_directory() {
    let mut named = seeker(3_600);
    named.named = Some("a".to_owned());
    named.homes = vec!["/other".into()];
    check_pairs(&[named.clone()], &[session("a", 0)], &[]);
    named.homes = vec!["/h".into()];
    let mut elsewhere = session("a", 0);
    elsewhere.work_dir = Some("/w/b".into());
    check_pairs(&[named.clone()], &[elsewhere.clone()], &[]);
    named.names_any_directory = true;
    check_pairs(&[named], &[elsewhere], &[(0, 0, Arguments)]);
}

#[test]
fn arguments_lose_to_a_younger_session_of_this_process_alone() {
    let mut named = seeker(3_600);
    named.named = Some("a".to_owned());
    let sessions = [session("a", 0), session("b", 4_000)];
    let result = check_pairs(&[named], &sessions, &[(0, 1, Elimination)]);
    assert_eq!(result.superseded, [(0, 1)]);
}

#[test]
fn two_processes_that_name_one_session_share_it_with_nobody() {
    let mut named = seeker(3_600);
    named.named = Some("a".to_owned());
    check_pairs(&[named.clone(), named], &[session("a", 0)], &[]);
}

#[test]
fn a_title_that_one_terminal_shows_and_one_session_has_is_a_pair() {
    let mut first = seeker(0);
    first.terminal_title = Some("fix login | app".to_owned());
    let second = seeker(0);
    let mut a = held("a", 10);
    a.title = Some("fix login".to_owned());
    let b = held("b", 11);
    check_pairs(
        &[first.clone(), second.clone()],
        &[a.clone(), b.clone()],
        &[(0, 0, Title), (1, 1, Elimination)],
    );
    let mut same = second;
    same.terminal_title = Some("fix login".to_owned());
    check_pairs(&[first.clone(), same], &[a.clone(), b], &[]);
    let mut longer = a;
    longer.title = Some("fix".to_owned());
    check_pairs(&[first, seeker(0)], &[longer, held("b", 11)], &[]);
}

#[test]
fn one_terminal_and_one_held_session_need_no_date() {
    let mut undated = launched(100);
    let mut resumed = held("a", 0);
    check_pairs(
        &[undated.clone()],
        &[resumed.clone()],
        &[(0, 0, Elimination)],
    );
    undated.began_at_ms = None;
    resumed.born_at_ms = None;
    check_pairs(
        &[undated.clone()],
        &[resumed.clone()],
        &[(0, 0, Elimination)],
    );
    let result = check_pairs(&[undated.clone(), undated], &[resumed], &[]);
    assert_eq!(result.open, [(0, vec![0]), (1, vec![0])]);
}

#[test]
fn a_held_session_of_no_known_directory_may_be_anywhere() {
    let mut unknown = held("a", 1);
    unknown.work_dir = None;
    check_pairs(&[launched(0)], &[unknown.clone()], &[(0, 0, Elimination)]);
    let mut elsewhere = launched(0);
    elsewhere.work_dir = Some("/w/b".into());
    let result = check_pairs(&[launched(0), elsewhere], &[unknown], &[]);
    assert_eq!(result.open, [(0, vec![0]), (1, vec![0])]);
}

#[test]
fn what_is_told_of_a_sessions_owner_outweighs_dates() {
    let process = |pid: i64, began_s| Seeker {
        pid: Pid::new(pid).unwrap(),
        ..launched(began_s)
    };
    let told = |id: &str, born_s, pids: &[i64]| Candidate {
        possible_owners: Some(pids.iter().map(|pid| Pid::new(*pid).unwrap()).collect()),
        ..session(id, born_s)
    };
    let two = [process(1, 0), process(2, 1)];
    // By their dates both sessions fit both processes.
    let pairs = [(0, 0, Elimination), (1, 1, Elimination)];
    check_pairs(&two, &[told("a", 5, &[1]), told("b", 6, &[1, 2])], &pairs);
    check_pairs(&two, &[told("a", 5, &[1]), session("b", 6)], &pairs);
    // Nobody's, though a process is beside it.
    let result = check_pairs(&[process(1, 0)], &[told("a", 5, &[])], &[]);
    assert_eq!(result.open, [(0, vec![])]);
}

fn any_seeker() -> impl Strategy<Value = Seeker> {
    (0..5_i64, 0..2_u8, any::<bool>()).prop_map(|(began, dir, has_session)| Seeker {
        work_dir: Some(format!("/w/{dir}").into()),
        began_at_ms: Some(T + began * 10_000),
        has_session,
        ..seeker(0)
    })
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    (0..8_i64, 0..2_u8, any::<bool>(), prop::option::of(0..9_i64)).prop_map(
        |(born, dir, is_held, last)| Candidate {
            work_dir: Some(format!("/w/{dir}").into()),
            born_at_ms: Some(T + born * 7_000),
            last_record_at_ms: last.map(|last| T + last * 7_500),
            is_held,
            ..session("x", 0)
        },
    )
}

proptest! {
    #[test]
    fn nobody_is_paired_twice_and_order_does_not_matter(
        seekers in prop::collection::vec(any_seeker(), 0..6),
        mut sessions in prop::collection::vec(any_candidate(), 0..6),
    ) {
        for (at, session) in sessions.iter_mut().enumerate() {
            session.id = format!("s{at}");
        }
        let by_id = |seekers: &[Seeker], sessions: &[Candidate]| {
            let result = pair(seekers, sessions);
            let mut taken: Vec<_> = result.pairs.iter().map(|(_, at, _)| *at).collect();
            taken.extend(result.superseded.iter().map(|(left, _)| *left));
            let count = taken.len();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(count, taken.len(), "a session was given twice");
            assert_eq!(result.pairs.len() + result.open.len(), seekers.len());
            let mut pairs: Vec<(String, String)> = result
                .pairs
                .iter()
                .map(|(seeker, at, _)| (format!("{:?}", seekers[*seeker]), sessions[*at].id.clone()))
                .collect();
            pairs.sort();
            pairs
        };
        let forward = by_id(&seekers, &sessions);
        let seekers: Vec<_> = seekers.into_iter().rev().collect();
        let sessions: Vec<_> = sessions.into_iter().rev().collect();
        prop_assert_eq!(forward, by_id(&seekers, &sessions));
    }
}

#[test]
fn of_several_sessions_that_processes_began_with_none_is_taken_for_a_clear() {
    let first = |id: &str, born_s: i64| Candidate {
        is_first_of_a_process: true,
        ..session(id, born_s)
    };
    let went_on = [first("a", 1), session("b", 60)];
    check_pairs(&[seeker(0)], &went_on, &[(0, 1, Elimination)]);
    let of_somebody_else = [first("a", 1), first("b", 60)];
    let result = check_pairs(&[seeker(0)], &of_somebody_else, &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
}

#[test]
fn a_session_that_a_dead_process_explains_as_well_leaves_its_process_open() {
    let doubtful = |id: &str, born_s: i64| Candidate {
        doubtful_owners: BTreeSet::from([seeker(0).pid]),
        ..session(id, born_s)
    };
    let result = check_pairs(&[seeker(0)], &[doubtful("a", 60)], &[]);
    assert_eq!(result.open, [(0, vec![0])]);
    let result = check_pairs(&[seeker(0)], &[session("a", 1), doubtful("b", 60)], &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
    // Neither does it take a process away from what its arguments name.
    let named = Seeker {
        named: Some("a".to_owned()),
        ..seeker(0)
    };
    let result = check_pairs(&[named], &[session("a", -60), doubtful("b", 60)], &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
}

/// Its last record is of `last_s`, and it may have gone on until `until_s`.
fn torn(id: &str, born_s: i64, last_s: i64, until_s: i64) -> Candidate {
    Candidate {
        last_record_at_ms: Some(T + last_s * 1_000),
        perhaps_until_ms: Some(T + until_s * 1_000),
        ..session(id, born_s)
    }
}

#[test]
fn a_session_that_lacks_its_end_is_left_only_if_it_would_be_whenever_that_was() {
    let result = check_pairs(&[seeker(0)], &[torn("a", 1, 10, 90), session("b", 60)], &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
    assert!(result.superseded.is_empty());
    let before = [torn("a", 1, 10, 50), session("b", 60)];
    let result = check_pairs(&[seeker(0)], &before, &[(0, 1, Elimination)]);
    assert_eq!(result.superseded, [(0, 1)]);
    // The younger one is the process's whenever its end was.
    let younger = [session("a", 1), torn("b", 60, 70, 900)];
    let result = check_pairs(&[seeker(0)], &younger, &[(0, 1, Elimination)]);
    assert_eq!(result.superseded, [(0, 1)]);
}

#[test]
fn what_a_process_may_have_gone_on_with_keeps_it_open_and_proves_nothing() {
    // The one that lacks its end is older than the process.
    let result = check_pairs(&[seeker(0)], &[torn("a", -90, -80, 90)], &[]);
    assert_eq!(result.open, [(0, vec![0])]);
    let beside = [torn("a", -90, -80, 90), session("b", 60)];
    let result = check_pairs(&[seeker(0)], &beside, &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
    let result = check_pairs(&[seeker(0)], &[torn("a", -90, -80, -10)], &[]);
    assert_eq!(result.open, [(0, vec![])]);
}

#[test]
fn a_session_that_has_lost_its_birth_as_well_may_be_what_a_process_went_on_to() {
    let lost = Candidate {
        born_at_ms: None,
        last_record_at_ms: None,
        ..torn("b", 0, 0, 90)
    };
    let named = Seeker {
        named: Some("a".to_owned()),
        ..seeker(0)
    };
    let result = check_pairs(&[named], &[session("a", -60), lost], &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
}

#[test]
fn a_named_session_that_got_records_after_a_younger_one_was_born_was_not_left_for_it() {
    let named = |last_s: i64| {
        let went_on = Candidate {
            last_record_at_ms: Some(T + last_s * 1_000),
            ..session("a", -60)
        };
        let seeker = Seeker {
            named: Some("a".to_owned()),
            ..seeker(0)
        };
        ([seeker], [went_on, session("b", 60)])
    };
    let (seekers, sessions) = named(30);
    let result = check_pairs(&seekers, &sessions, &[(0, 1, Elimination)]);
    assert_eq!(result.superseded, [(0, 1)]);
    let (seekers, sessions) = named(90);
    let result = check_pairs(&seekers, &sessions, &[]);
    assert_eq!(result.open, [(0, vec![0, 1])]);
}
