use whosup_process::RecordedProcess;

use super::*;

const SOURCES: [FactSource; 4] = [
    FactSource::Hook,
    FactSource::Registry,
    FactSource::Title,
    FactSource::Transcript,
];

fn fact(source: FactSource, phase: Phase, at_ms: impl Into<Option<i64>>) -> PhaseFact {
    PhaseFact::new(source, Some(phase)).dated(at_ms.into())
}

fn owner(began_at_ms: i64) -> Process {
    RecordedProcess::new(4711, 8123, began_at_ms).process
}

#[track_caller]
fn check(facts: &[PhaseFact], phase: Option<Phase>) {
    let mut turned = facts.to_vec();
    turned.reverse();
    for facts in [facts, &turned] {
        assert_eq!(doing(facts.iter(), None).phase, phase, "{facts:?}");
    }
}

#[test]
fn the_newest_dated_fact_wins_whatever_its_source() {
    for newer in SOURCES {
        for older in SOURCES {
            for phase in [Phase::Starting, Phase::Idle, Phase::Working, Phase::Waiting] {
                for other in Phase::ALL {
                    check(
                        &[fact(newer, phase, 101), fact(older, other, 100)],
                        Some(phase),
                    );
                }
            }
        }
    }
}

#[test]
fn of_equal_dates_the_earlier_source_wins() {
    for pair in SOURCES.windows(2) {
        check(
            &[
                fact(pair[0], Phase::Idle, 7),
                fact(pair[1], Phase::Working, 7),
            ],
            Some(Phase::Idle),
        );
    }
}

#[test]
fn a_fact_without_a_date_loses_to_a_dated_one() {
    check(
        &[
            fact(FactSource::Hook, Phase::Working, None),
            fact(FactSource::Transcript, Phase::Idle, 1),
        ],
        Some(Phase::Idle),
    );
    check(
        &[
            fact(FactSource::Transcript, Phase::Idle, None),
            fact(FactSource::Registry, Phase::Working, None),
        ],
        Some(Phase::Working),
    );
    check(&[], None);
}

#[test]
fn a_transcript_ends_a_turn_and_not_what_continues_in_the_background() {
    let background = fact(FactSource::Hook, Phase::Working, 1_000).in_word(BACKGROUND);
    let facts = |source, phase, at_ms| [background.clone(), fact(source, phase, at_ms)];
    let end = facts(FactSource::Transcript, Phase::Idle, 1_400);
    check(&end, Some(Phase::Working));
    assert_eq!(doing(end.iter(), None).word.as_deref(), Some(BACKGROUND));
    // A later turn, of which no hook has reported anything.
    let later = facts(FactSource::Transcript, Phase::Idle, 1_001 + HOOKS_MS_MAX);
    check(&later, Some(Phase::Idle));
    check(
        &facts(FactSource::Registry, Phase::Idle, 1_400),
        Some(Phase::Idle),
    );
    check(
        &facts(FactSource::Transcript, Phase::Waiting, 1_400),
        Some(Phase::Waiting),
    );
    let in_turn = fact(FactSource::Hook, Phase::Working, 1_000).in_word("working");
    let end = fact(FactSource::Transcript, Phase::Idle, 1_400);
    check(&[in_turn, end], Some(Phase::Idle));
}

#[test]
fn a_word_that_maps_to_no_phase_hides_older_phases() {
    let unknown = PhaseFact::new(FactSource::Registry, None)
        .in_word("pondering")
        .dated(Some(8));
    let facts = [unknown, fact(FactSource::Transcript, Phase::Idle, 7)];
    let doing = doing(facts.iter(), None);
    assert_eq!(
        (doing.phase, doing.word.as_deref()),
        (None, Some("pondering"))
    );
}

#[test]
fn a_date_ahead_of_the_clock_is_none() {
    let ahead = fact(FactSource::Registry, Phase::Working, 10_000).by_the_clock(7_000);
    assert_eq!(ahead.at_ms, None);
    let slack = fact(FactSource::Registry, Phase::Working, 9_000).by_the_clock(7_000);
    assert_eq!(slack.at_ms, Some(9_000));
}

#[test]
fn a_title_takes_its_details_from_who_agrees_with_it() {
    let asking = fact(FactSource::Hook, Phase::Waiting, 7)
        .waiting_for(Some(WaitingFor::Permission))
        .in_word("asks");
    let title = fact(FactSource::Title, Phase::Waiting, 90).in_word("Action Required");
    let facts = [asking.clone(), title.clone()];
    let agreed = doing(facts.iter(), None);
    assert_eq!(agreed.waiting_for, Some(WaitingFor::Permission));
    assert_eq!(
        (agreed.since_ms, agreed.word.as_deref()),
        (Some(7), Some("asks"))
    );
    let working = fact(FactSource::Title, Phase::Working, 90).in_word("spinner");
    let facts = [asking, working];
    let refined = doing(facts.iter(), None);
    assert_eq!(refined.phase, Some(Phase::Working));
    assert_eq!((refined.waiting_for, refined.since_ms), (None, None));
    assert_eq!(refined.word.as_deref(), Some("spinner"));
}

#[test]
fn a_title_without_the_sign_of_a_turn_leaves_what_hooks_say_of_one_in_doubt() {
    let bare = || PhaseFact::new(FactSource::Title, None).dated(Some(90));
    check(&[fact(FactSource::Hook, Phase::Working, 7), bare()], None);
    check(&[fact(FactSource::Hook, Phase::Waiting, 7), bare()], None);
    check(
        &[fact(FactSource::Hook, Phase::Idle, 7), bare()],
        Some(Phase::Idle),
    );
    check(
        &[
            fact(FactSource::Hook, Phase::Working, 7),
            fact(FactSource::Transcript, Phase::Idle, 8),
            bare(),
        ],
        Some(Phase::Idle),
    );
    check(&[bare()], None);
}

#[test]
fn what_an_earlier_process_left_unfinished_is_not_done_now() {
    for phase in [Phase::Working, Phase::Waiting] {
        for source in SOURCES {
            let facts = [fact(source, phase, 10_000)];
            let younger = owner(12_001);
            assert_eq!(doing(facts.iter(), Some(&younger)).phase, Some(Phase::Idle));
            assert_eq!(doing(facts.iter(), Some(&owner(12_000))).phase, Some(phase));
            // The dates do not count here: a clock was set.
            let own = [PhaseFact {
                process: Some((younger.pid, younger.stamp.clone())),
                ..facts[0].clone()
            }];
            assert_eq!(doing(own.iter(), Some(&younger)).phase, Some(phase));
        }
    }
    let ended = [fact(FactSource::Hook, Phase::Ended, 10_000)];
    let now = owner(20_000);
    assert_eq!(doing(ended.iter(), Some(&now)).phase, Some(Phase::Idle));
    let others = [PhaseFact {
        process: Some((now.pid, whosup_process::StartStamp::LinuxTicks(1))),
        ..ended[0].clone()
    }];
    assert_eq!(doing(others.iter(), Some(&now)).phase, None);
}
