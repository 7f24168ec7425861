//! Event logs and the records that they come to.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own files, and fails where that fails"
)]

use std::path::PathBuf;

use proptest::prelude::*;
use whosup_core::adapter::hook_event::EventKind;
use whosup_core::adapter::phase::{Phase, next_phase};
use whosup_core::process::{BootId, Pid, PidNamespace, StartStamp};
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::sources::record::{
    EndCause, LogLine, LoggedEnd, LoggedEvent, OWNERS_MAX, PaneHint, RecordedOwner, SessionRecord,
    fold, fold_on, parse_line, parse_record, passed_on_line, record_line,
};

fn agent() -> AgentId {
    AgentId::parse("claude-code").unwrap()
}

fn session() -> SessionId {
    SessionId::parse("s1").unwrap()
}

fn owner(pid: i64) -> RecordedOwner {
    RecordedOwner {
        pid: Pid::new(pid).unwrap(),
        stamp: Some(StartStamp::LinuxTicks(u64::try_from(pid).unwrap() * 10)),
        host: Some("devbox".to_owned()),
        boot: BootId::parse("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a"),
        pid_namespace: Some(PidNamespace::INITIAL),
        executable: None,
        is_shared: false,
        is_unrecognized: false,
    }
}

/// The event with this number, of the process with this PID.
fn event(number: i64, name: &str, pid: Option<i64>) -> LoggedEvent {
    LoggedEvent {
        id: number.to_string(),
        at_ms: 1_795_812_000_000 + number * 1_000,
        kind: EventKind::from_name(name).unwrap(),
        home: PathBuf::from("/home/dev/.claude"),
        owner: pid.map(owner),
        chain: Vec::new(),
        has_left: false,
        work_dir: Some(PathBuf::from("/home/dev/app")),
        git_branch: None,
        transcript: None,
        prompt: None,
        reason: None,
        pane: None,
        cpu_ms: None,
        is_aftermath: false,
        end: None,
    }
}

fn record_of(log: &str) -> SessionRecord {
    fold(&agent(), &session(), log.as_bytes()).record.unwrap()
}

fn log_of(events: &[LoggedEvent]) -> String {
    events.iter().map(LoggedEvent::to_line).collect()
}

#[test]
fn an_event_reads_as_it_was_written() {
    let mut full = event(1, "session-ended", Some(7));
    full.git_branch = Some("main".to_owned());
    full.transcript = Some(PathBuf::from("/t.jsonl"));
    full.prompt = Some("line\nfeed \u{1b}[0m \u{1f600}".to_owned());
    full.reason = Some("clear".to_owned());
    full.cpu_ms = Some(12_340);
    full.is_aftermath = true;
    full.pane = Some(PaneHint {
        tmux: "/run/tmux,1,0".to_owned(),
        pane: "%1".to_owned(),
    });
    full.end = Some(LoggedEnd {
        cause: EndCause::PidReused,
        ended_at_ms: 1_795_812_000_500,
    });
    for event in [full, event(2, "heartbeat", None)] {
        let line = event.to_line();
        assert_eq!(line.trim().lines().count(), 1);
        let read = parse_line(line.trim().as_bytes()).unwrap();
        assert_eq!(read, LogLine::Event(Box::new(event)));
    }
}

#[test]
fn a_line_that_was_cut_off_spoils_no_other() {
    let one = event(1, "turn-started", Some(7)).to_line();
    let two = event(2, "turn-ended", Some(7)).to_line();
    for cut in 0..one.len() {
        let log = format!("{}{two}", &one[..cut]);
        let folded = fold(&agent(), &session(), log.as_bytes());
        assert_eq!(folded.record.unwrap().phase, Phase::Idle, "cut at {cut}");
    }
    // What is not written to its end is left for later.
    for cut in 0..two.len() - 1 {
        let log = format!("{one}{}", &two[..cut]);
        assert_eq!(record_of(&log).phase, Phase::Working, "cut at {cut}");
        assert_eq!(record_of(&log).heard.log_bytes, Some(log.len() as u64));
    }
}

#[test]
fn an_event_that_is_in_the_log_twice_counts_once() {
    let turn = event(1, "turn-started", Some(7));
    let end = event(2, "turn-ended", Some(7));
    let log = log_of(&[turn.clone(), end.clone(), turn, end]);
    let record = record_of(&log);
    assert_eq!((record.heard.turns, record.phase), (1, Phase::Idle));
}

#[test]
fn a_look_that_found_nobody_leaves_it_open_who_has_the_session() {
    let mut events = vec![
        event(1, "turn-started", Some(7)),
        event(2, "turn-ended", None),
    ];
    let record = record_of(&log_of(&events));
    assert_eq!(record.owner, Some(owner(7)));
    assert!(record.owners.may_be_another());
    // Then it was found again.
    events.push(event(3, "turn-started", Some(7)));
    assert!(!record_of(&log_of(&events)).owners.may_be_another());
}

#[test]
fn a_start_in_another_process_forgets_what_the_first_was_doing() {
    let log = log_of(&[
        event(1, "turn-started", Some(7)),
        event(2, "session-started:resume", Some(8)),
    ]);
    let record = record_of(&log);
    assert_eq!((record.phase, record.owner), (Phase::Idle, Some(owner(8))));
    // A second start in the same process moves nothing back.
    let log = log_of(&[
        event(1, "turn-started", Some(7)),
        event(2, "session-started:resume", Some(7)),
    ]);
    assert_eq!(record_of(&log).phase, Phase::Working);
}

/// How a session of two processes goes on: events by number, name and PID, in the order
/// in which they are heard; then its phase, and who has not let go.
type Course = (
    &'static str,
    &'static [(i64, &'static str, Option<i64>)],
    Phase,
    &'static [i64],
);

const COURSES: &[Course] = &[
    (
        "a headless run beside a terminal ends",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "session-started:resume", Some(8)),
            (3, "turn-started", Some(8)),
            (4, "session-ended", Some(8)),
        ],
        Phase::Idle,
        &[7],
    ),
    (
        "a headless run comes and goes while the terminal waits",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "input-requested:permission", Some(7)),
            (3, "session-started:resume", Some(8)),
            (4, "turn-started", Some(8)),
            (5, "session-ended", Some(8)),
        ],
        Phase::Waiting,
        &[7],
    ),
    (
        "a terminal goes on beside a headless run that works",
        &[
            (1, "turn-started", Some(7)),
            (2, "turn-ended", Some(7)),
            (3, "session-started:resume", Some(8)),
            (4, "turn-started", Some(8)),
            (5, "heartbeat", Some(7)),
        ],
        Phase::Idle,
        &[7, 8],
    ),
    (
        "the clock is set back by an hour before the end",
        &[
            (3_601, "turn-started", Some(7)),
            (2, "session-ended", Some(7)),
        ],
        Phase::Ended,
        &[],
    ),
    (
        "both end",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "session-started:resume", Some(8)),
            (3, "session-ended", Some(7)),
            (4, "session-ended", Some(8)),
        ],
        Phase::Ended,
        &[],
    ),
    (
        "work after the end",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "session-ended", Some(7)),
            (3, "tool-started", Some(7)),
            (4, "tool-ended", Some(7)),
            (5, "turn-ended", Some(7)),
        ],
        Phase::Idle,
        &[7],
    ),
    (
        "a question after the end",
        &[
            (1, "turn-started", Some(7)),
            (2, "session-ended", Some(7)),
            (3, "input-requested:permission", Some(7)),
        ],
        Phase::Waiting,
        &[7],
    ),
    (
        "what trails behind the end",
        &[
            (1, "turn-started", Some(7)),
            (2, "session-ended", Some(7)),
            (3, "tool-ended", Some(7)),
            (4, "sub-agent-ended", Some(7)),
            (5, "turn-ended", Some(7)),
            (6, "heartbeat", Some(7)),
            (7, "session-started:compact", Some(7)),
        ],
        Phase::Ended,
        &[],
    ),
    (
        "work from before the end, heard after it",
        &[
            (1, "turn-started", Some(7)),
            (5, "session-ended", Some(7)),
            (3, "tool-started", Some(7)),
            (4, "turn-started", Some(7)),
        ],
        Phase::Ended,
        &[],
    ),
    (
        "an end from before the work, heard after it",
        &[
            (1, "session-started:startup", Some(7)),
            (3, "turn-started", Some(7)),
            (2, "session-ended", Some(7)),
        ],
        Phase::Working,
        &[7],
    ),
    (
        "an old end that is heard again",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "session-ended", Some(7)),
            (3, "session-started:resume", Some(7)),
            (2, "session-ended", Some(7)),
        ],
        Phase::Idle,
        &[7],
    ),
    (
        "the end of an agent whose last hook has lost its parent",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "session-ended", None),
        ],
        Phase::Ended,
        &[],
    ),
    (
        "the same where two had the session",
        &[
            (1, "session-started:startup", Some(7)),
            (2, "session-started:resume", Some(8)),
            (3, "session-ended", None),
        ],
        Phase::Idle,
        &[7, 8],
    ),
    (
        "a stop behind the end that nobody was found for",
        &[
            (1, "turn-started", Some(7)),
            (2, "session-ended", Some(7)),
            (3, "turn-ended", None),
        ],
        Phase::Ended,
        &[],
    ),
];

#[test]
fn a_session_has_ended_when_everybody_has_let_go_who_had_it() {
    for (course, events, phase, open) in COURSES {
        let events: Vec<_> = events
            .iter()
            .map(|(number, name, pid)| event(*number, name, *pid))
            .collect();
        let record = record_of(&log_of(&events));
        let still: Vec<i64> = pids_of_open(&record);
        assert_eq!(
            (record.phase, still.as_slice()),
            (*phase, *open),
            "{course}"
        );
        let text = record.to_json().to_string();
        assert_eq!(parse_record(text.as_bytes()), Ok(record), "{course}");
    }
}

fn pids_of_open(record: &SessionRecord) -> Vec<i64> {
    let open = record.owners.open();
    let found = open.filter_map(|known| known.identity.as_ref());
    let mut pids: Vec<i64> = found.map(|owner| owner.pid.get().into()).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn an_event_from_a_process_that_went_on_to_another_session_makes_nothing_current() {
    let late = |number, name| LoggedEvent {
        has_left: true,
        ..event(number, name, Some(7))
    };
    let mut events = vec![
        event(1, "session-started:startup", Some(7)),
        late(2, "turn-started"),
        late(3, "tool-started"),
        late(4, "turn-ended"),
    ];
    let record = record_of(&log_of(&events));
    assert_eq!(record.phase, Phase::Starting);
    let claimed = record.owners.open().next().unwrap().taken_up_at_ms();
    assert_eq!(claimed, events[0].at_ms);
    // Nor does it reopen what has ended.
    events.insert(1, event(1, "session-ended", Some(7)));
    events[1].id = "end".to_owned();
    assert_eq!(record_of(&log_of(&events)).phase, Phase::Ended);
}

#[test]
fn more_owners_than_are_kept_leave_it_open_who_has_the_session() {
    let many = i64::try_from(OWNERS_MAX).unwrap() + 3;
    let starts = (1..=many).map(|pid| event(pid, "session-started:resume", Some(pid)));
    let record = record_of(&log_of(&starts.collect::<Vec<_>>()));
    assert_eq!(record.owners.iter().count(), OWNERS_MAX);
    assert!(record.owners.may_be_another() && !record.owners.have_let_go());
    // Those that let go make room.
    let runs = (1..=many).flat_map(|pid| {
        let start = event(10 * pid, "session-started:resume", Some(pid));
        [start, event(10 * pid + 1, "session-ended", Some(pid))]
    });
    let record = record_of(&log_of(&runs.collect::<Vec<_>>()));
    assert!(record.owners.have_let_go());
    assert_eq!(record.phase, Phase::Ended);
}

#[test]
fn the_end_of_an_earlier_process_is_passed_over() {
    let log = log_of(&[
        event(1, "session-started:startup", Some(7)),
        event(2, "session-started:resume", Some(8)),
        event(3, "session-ended", Some(7)),
    ]);
    let record = record_of(&log);
    assert_eq!((record.phase, record.ended_at_ms), (Phase::Idle, None));
    assert_eq!(record.owner, Some(owner(8)));
}

#[test]
fn a_session_that_goes_on_has_not_ended() {
    let log = log_of(&[
        event(1, "session-started:startup", Some(7)),
        event(2, "session-ended", Some(7)),
        event(3, "turn-started", Some(7)),
    ]);
    let record = record_of(&log);
    assert_eq!((record.phase, record.ended_at_ms), (Phase::Working, None));
    assert_eq!(record.heard.end_cause, None);
}

#[test]
fn a_program_that_is_run_once_more_has_no_phase_before_it_announces_one() {
    let mut events = vec![
        event(1, "session-started:run", Some(7)),
        event(2, "turn-started", Some(7)),
        event(3, "session-ended", Some(7)),
        event(4, "session-started:run", Some(8)),
    ];
    let heard = record_of(&log_of(&events)).heard;
    assert_eq!((heard.phase_at_ms, heard.phase_since_ms), (None, None));
    events.push(event(5, "turn-started", Some(8)));
    let record = record_of(&log_of(&events));
    assert_eq!(record.phase, Phase::Working);
    assert_eq!(record.heard.phase_at_ms, Some(events[4].at_ms));
}

#[test]
fn the_first_end_stays() {
    let mut swept = event(3, "session-ended", Some(7));
    swept.end = Some(LoggedEnd {
        cause: EndCause::ProcessGone,
        ended_at_ms: 1,
    });
    let mut reported = event(2, "session-ended", Some(7));
    reported.reason = Some("clear".to_owned());
    let record = record_of(&log_of(&[
        event(1, "turn-started", Some(7)),
        reported.clone(),
        swept,
    ]));
    assert_eq!(record.ended_at_ms, Some(reported.at_ms));
    assert_eq!(record.heard.end_cause, Some(EndCause::ExitHook));
    assert_eq!(record.heard.end_reason.as_deref(), Some("clear"));
}

#[test]
fn an_end_is_passed_on_once_and_that_of_a_later_life_once_more() {
    let started = event(1, "turn-started", Some(7)).to_line();
    let ended = event(2, "session-ended", Some(7)).to_line();
    let again = event(3, "session-ended", Some(7)).to_line();
    let resumed = event(4, "turn-started", Some(8)).to_line();
    let ended_again = event(5, "session-ended", Some(8)).to_line();
    let reported = passed_on_line("2");
    let of = |log: String| {
        let heard = record_of(&log).heard;
        (heard.end_event, heard.is_end_passed_on)
    };
    let end = |id: &str| Some(id.to_owned());
    assert_eq!(of(format!("{started}{reported}")), (None, false));
    assert_eq!(of(format!("{started}{ended}")), (end("2"), false));
    assert_eq!(
        of(format!("{started}{ended}{reported}{again}")),
        (end("2"), true)
    );
    let later = format!("{started}{ended}{reported}{resumed}");
    assert_eq!(of(later.clone()), (None, false));
    assert_eq!(
        of(format!("{later}{ended_again}{reported}")),
        (end("5"), false)
    );
}

#[test]
fn a_record_further_on_in_a_log_is_passed_over() {
    // Two hooks found the log gone, and each began it with the record.
    let kept = record_of(&log_of(&[event(1, "turn-started", Some(7))]));
    let line = record_line(&kept, &["1".to_owned()]);
    let reported = event(2, "turn-ended", Some(7)).to_line();
    let again = event(3, "turn-started", Some(7)).to_line();
    let record = record_of(&format!("{line}{reported}{line}{again}"));
    assert_eq!((record.phase, record.heard.turns), (Phase::Working, 2));
}

#[test]
fn the_processor_time_of_a_session_is_what_its_processes_used_meanwhile() {
    let with = |number, name, pid, cpu_ms| LoggedEvent {
        cpu_ms,
        ..event(number, name, pid)
    };
    let at_least = |events: &[LoggedEvent]| record_of(&log_of(events)).heard.cpu.at_least_ms;
    let start = with(1, "session-started:startup", Some(7), Some(900));
    let turn = with(2, "turn-started", Some(7), Some(1_500));
    let ended = with(3, "session-ended", Some(7), Some(4_000));
    // The session that a process began with has all that it used.
    assert_eq!(at_least(std::slice::from_ref(&start)), Some(900));
    assert_eq!(
        at_least(&[start.clone(), turn.clone(), ended.clone()]),
        Some(4_000)
    );
    // Out of order, and one of which nothing could be read.
    let unread = with(4, "tool-ended", Some(7), None);
    assert_eq!(
        at_least(&[start.clone(), ended.clone(), turn.clone()]),
        Some(4_000)
    );
    assert_eq!(at_least(&[start.clone(), unread, ended.clone()]), Some(900));
    // One that it went over to has what was used since; so has one that is resumed.
    assert_eq!(at_least(&[turn.clone(), ended.clone()]), Some(2_500));
    let resumed = with(5, "session-started:resume", Some(8), Some(700));
    let last = with(6, "turn-ended", Some(8), Some(800));
    assert_eq!(at_least(&[turn, ended, resumed, last]), Some(2_600));
    assert_eq!(at_least(&[with(1, "turn-started", Some(7), None)]), None);
    // A process of many sessions tells nothing of one, nobody nothing at all.
    let mut shared = start;
    shared.owner.as_mut().unwrap().is_shared = true;
    assert_eq!(at_least(&[shared]), None);
    assert_eq!(at_least(&[with(1, "turn-started", None, Some(5))]), None);
}

proptest! {
    #[test]
    fn a_shortened_log_comes_to_the_same(
        events in prop::collection::vec((0..EventKind::ALL.len(), prop::option::of(1_i64..4)), 1..40),
        cut in 0_usize..40,
    ) {
        let events: Vec<LoggedEvent> = events
            .into_iter()
            .zip(1..)
            .map(|((kind, pid), number)| event(number, EventKind::ALL[kind].name(), pid))
            .collect();
        let cut = cut.min(events.len());
        let whole = record_of(&log_of(&events));
        let before = fold(&agent(), &session(), log_of(&events[..cut]).as_bytes());
        let mut shortened = before
            .record
            .map(|record| record_line(&record, &before.last_ids))
            .unwrap_or_default();
        // Some of what was folded is appended again by those who wrote it.
        shortened += &log_of(&events[cut.saturating_sub(2)..]);
        let mut same = record_of(&shortened);
        same.heard.log_bytes = whole.heard.log_bytes;
        prop_assert_eq!(same, whole);
    }

    #[test]
    fn a_log_that_is_folded_on_comes_to_the_same(
        events in prop::collection::vec((0..EventKind::ALL.len(), prop::option::of(1_i64..4)), 2..40),
        cut in 1_usize..40,
    ) {
        let events: Vec<LoggedEvent> = events
            .into_iter()
            .zip(1..)
            .map(|((kind, pid), number)| event(number, EventKind::ALL[kind].name(), pid))
            .collect();
        let cut = cut.min(events.len());
        let before = record_of(&log_of(&events[..cut]));
        let on = fold_on(before, log_of(&events[cut..]).as_bytes());
        prop_assert_eq!(on, record_of(&log_of(&events)));
    }

    #[test]
    fn the_phase_of_one_process_is_that_of_its_events(
        kinds in prop::collection::vec(0..EventKind::ALL.len(), 1..40),
    ) {
        let events: Vec<LoggedEvent> = kinds
            .iter()
            .zip(1..)
            .map(|(kind, number)| event(number, EventKind::ALL[*kind].name(), Some(7)))
            .collect();
        let phase = events
            .iter()
            .fold(Phase::Starting, |phase, event| next_phase(phase, event.kind));
        let record = record_of(&log_of(&events));
        prop_assert_eq!(record.phase, phase);
        prop_assert_eq!(record.ended_at_ms.is_some(), phase == Phase::Ended);
        prop_assert_eq!(record.waiting_for.is_some(), phase == Phase::Waiting);
    }

    /// In whatever order hooks report, twice or late: who has reported a session and has
    /// not reported its end since keeps it open.
    #[test]
    fn an_owner_that_has_not_let_go_keeps_its_session_open(
        reported in prop::collection::vec((0..EventKind::ALL.len(), 1_i64..4, 0_i64..30), 1..40),
    ) {
        let events: Vec<LoggedEvent> = reported
            .iter()
            .zip(1..)
            .map(|((kind, pid, at), number)| {
                let reported = event(*at, EventKind::ALL[*kind].name(), Some(*pid));
                // What is heard twice has one id and one time.
                LoggedEvent { id: (number / 2).to_string(), ..reported }
            })
            .collect();
        let record = record_of(&log_of(&events));
        let mut counted: Vec<&LoggedEvent> = Vec::new();
        for event in &events {
            if counted.iter().all(|earlier| earlier.id != event.id) {
                counted.push(event);
            }
        }
        let mut is_any_open = false;
        for pid in 1_i64..4 {
            let its = || counted.iter().filter(|event| event.owner == Some(owner(pid)));
            let ends = || its().enumerate().filter(|(_, event)| event.kind == EventKind::SessionEnded);
            let is_after_ends = |place: usize, work: &LoggedEvent| {
                ends().all(|(at, end)| at < place && end.at_ms < work.at_ms)
            };
            let mut works = its().enumerate().filter(|(_, event)| event.kind.starts_work());
            let is_heard = its().next().is_some();
            // Work after every end of it, by date and by report, or no end at all.
            let has_worked_since = works.any(|(place, work)| is_after_ends(place, work));
            let is_open = is_heard && (ends().next().is_none() || has_worked_since);
            is_any_open |= is_open;
            prop_assert!(!is_open || pids_of_open(&record).contains(&pid), "{pid}");
        }
        prop_assert!(!is_any_open || record.phase != Phase::Ended);
        prop_assert_eq!(record.phase == Phase::Ended, record.ended_at_ms.is_some());
    }

    #[test]
    fn no_log_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folded = fold(&agent(), &session(), &bytes);
        prop_assert!(folded.record.is_none());
    }
}
