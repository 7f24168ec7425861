//! Every pair of a phase and an event, and the document that draws them.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads and writes files, and fails where that fails"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use whosup_core::adapter::hook_event::EventKind;
use whosup_core::adapter::phase::{Phase, next_phase};

/// What each event leads to from starting, idle, working, waiting and ended.
const TABLE: &[(&str, [&str; 5])] = &[
    (
        "session-started:startup",
        ["starting", "idle", "working", "waiting", "starting"],
    ),
    (
        "session-started:resume",
        ["idle", "idle", "working", "waiting", "idle"],
    ),
    (
        "session-started:clear",
        ["starting", "idle", "working", "waiting", "starting"],
    ),
    (
        "session-started:compact",
        ["starting", "idle", "working", "waiting", "ended"],
    ),
    (
        "session-started:run",
        ["starting", "idle", "working", "waiting", "starting"],
    ),
    (
        "session-started:other",
        ["starting", "idle", "working", "waiting", "starting"],
    ),
    (
        "turn-started",
        ["working", "working", "working", "working", "working"],
    ),
    (
        "tool-started",
        ["working", "working", "working", "working", "working"],
    ),
    (
        "tool-ended",
        ["working", "idle", "working", "working", "ended"],
    ),
    (
        "input-requested:permission",
        ["waiting", "waiting", "waiting", "waiting", "waiting"],
    ),
    (
        "input-requested:question",
        ["waiting", "waiting", "waiting", "waiting", "waiting"],
    ),
    (
        "input-requested:auth",
        ["waiting", "waiting", "waiting", "waiting", "waiting"],
    ),
    (
        "input-requested:prompt",
        ["waiting", "waiting", "waiting", "waiting", "waiting"],
    ),
    ("turn-ended", ["idle", "idle", "idle", "idle", "ended"]),
    (
        "turn-ended:background",
        ["working", "working", "working", "working", "ended"],
    ),
    (
        "compacted",
        ["starting", "idle", "working", "waiting", "ended"],
    ),
    (
        "session-ended",
        ["ended", "ended", "ended", "ended", "ended"],
    ),
    (
        "sub-agent-started",
        ["starting", "idle", "working", "waiting", "ended"],
    ),
    (
        "sub-agent-ended",
        ["starting", "idle", "working", "waiting", "ended"],
    ),
    (
        "heartbeat",
        ["starting", "idle", "working", "waiting", "ended"],
    ),
];

#[test]
fn every_pair_of_a_phase_and_an_event_has_its_answer() {
    let names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
    let listed: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, listed, "the table lists every event once");
    for (name, answers) in TABLE {
        let event = EventKind::from_name(name).unwrap();
        for (phase, answer) in Phase::ALL.into_iter().zip(answers) {
            let next = next_phase(phase, event);
            assert_eq!(next.name(), *answer, "{} after {name}", phase.name());
        }
    }
}

#[test]
fn an_event_that_comes_twice_changes_nothing_the_second_time() {
    for phase in Phase::ALL {
        for event in EventKind::ALL {
            let once = next_phase(phase, event);
            assert_eq!(next_phase(once, event), once, "{phase:?} {event:?}");
        }
    }
}

#[test]
fn only_what_starts_work_leaves_the_end() {
    for event in EventKind::ALL {
        let leaves = next_phase(Phase::Ended, event) != Phase::Ended;
        assert_eq!(leaves, event.starts_work(), "{event:?}");
    }
}

#[test]
fn the_document_draws_what_the_function_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/phase.md");
    let right = document();
    if std::env::var_os("WHOSUP_BLESS").is_some() {
        std::fs::write(&path, &right).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == right,
        "docs/phase.md differs: write it again with WHOSUP_BLESS=1\n{right}"
    );
}

/// The document: a diagram of the moves, and the table of every pair.
fn document() -> String {
    let mut text = String::from(
        "# Phases\n\nWhat a session is doing, by what its agent's hooks tell. About the conversation, never\n\
         about the process: whether that lives is the [verdict](verdicts.md). Generated from\n\
         `next_phase` in `crates/core/src/adapter/phase.rs`, and held by a test.\n\n\
         An event that is not drawn leaves the phase as it is.\n\n```mermaid\nstateDiagram-v2\n",
    );
    let mut moves: BTreeMap<(Phase, Phase), Vec<&str>> = BTreeMap::new();
    for phase in Phase::ALL {
        for event in EventKind::ALL {
            let next = next_phase(phase, event);
            let label = event.name().split(':').next().unwrap();
            let labels = moves.entry((phase, next)).or_default();
            if next != phase && !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    writeln!(text, "    [*] --> starting").unwrap();
    for ((from, to), labels) in moves.iter().filter(|((from, to), _)| from != to) {
        let labels = labels.join(", ");
        writeln!(text, "    {} --> {}: {labels}", from.name(), to.name()).unwrap();
    }
    text.push_str("```\n\n| Event | starting | idle | working | waiting | ended |\n|---|---|---|---|---|---|\n");
    for event in EventKind::ALL {
        write!(text, "| `{}` |", event.name()).unwrap();
        for phase in Phase::ALL {
            let next = next_phase(phase, event);
            let shown = if next == phase { "–" } else { next.name() };
            write!(text, " {shown} |").unwrap();
        }
        text.push('\n');
    }
    text
}
