//! Random events, deaths and sweeps, against a simple model of what must come of
//! them.

use serde_json::json;
use whosup_core::hook_event::{EventKind, StartSource};
use whosup_core::phase::{Phase, WaitingFor, next_phase};

use super::chance::Chance;
use super::shell_agent::{ShellAgent, event, file_of, record_of};
use super::world::World;

/// How many stories are told, each with its own chances.
const STORIES: u64 = 4;
/// How long a story is.
const STEPS: usize = 40;
/// How many processes there are at most at once.
const AGENTS: usize = 3;

const EVENTS: &[(&str, EventKind)] = &[
    (
        "SessionStart",
        EventKind::SessionStarted(StartSource::Other),
    ),
    ("UserPromptSubmit", EventKind::TurnStarted),
    ("PreToolUse", EventKind::ToolStarted),
    ("PostToolUse", EventKind::ToolEnded),
    (
        "PermissionRequest",
        EventKind::InputRequested(WaitingFor::Permission),
    ),
    ("Stop", EventKind::TurnEnded),
    ("PreCompact", EventKind::Compacted),
    ("SessionEnd", EventKind::SessionEnded),
];

/// What the model knows of a session.
#[derive(Debug, Clone, Copy)]
struct Known {
    phase: Phase,
    owner: u32,
}

#[test]
fn whatever_happens_the_record_says_what_did_and_nothing_living_is_ended() {
    for seed in 1..=STORIES {
        tell(seed);
    }
}

fn tell(seed: u64) {
    let world = World::new();
    let mut chance = Chance::of_seed(seed);
    let mut agents = vec![ShellAgent::start(&world)];
    let sessions = [world.s1.clone(), world.s2.clone()];
    let mut known: [Option<Known>; 2] = [None, None];
    let mut told = Vec::new();
    for _ in 0..STEPS {
        match chance.index(10) {
            0 if agents.len() < AGENTS => {
                agents.push(ShellAgent::start(&world));
                told.push("an agent starts".to_owned());
            }
            1 if agents.len() > 1 || (!agents.is_empty() && chance.index(3) == 0) => {
                let mut killed = agents.swap_remove(chance.index(agents.len()));
                killed.kill();
                told.push(format!("{} is killed", killed.pid()));
            }
            2 => {
                let said = world.run(["sweep"]);
                assert_eq!(said.status, 0, "{}", said.err);
                told.push(format!("a sweep says {:?}", said.out));
                let live: Vec<u32> = agents.iter().map(ShellAgent::pid).collect();
                for (session, known) in sessions.iter().zip(&mut known) {
                    swept(&world, session, known, &live, &told);
                }
            }
            _ if !agents.is_empty() => {
                let at = chance.index(2);
                let by = chance.index(agents.len());
                let (name, kind) = EVENTS[chance.index(EVENTS.len())];
                agents[by].hook(&event(&world, &sessions[at], name, json!({})));
                told.push(format!("{} tells {name} of session {at}", agents[by].pid()));
                known[at] = Some(after(known[at], kind, agents[by].pid()));
            }
            _ => {}
        }
        for (session, known) in sessions.iter().zip(&known) {
            check(&world, session, *known, &told);
        }
    }
}

/// The model of an event.
fn after(known: Option<Known>, kind: EventKind, by: u32) -> Known {
    let Some(known) = known else {
        return Known {
            phase: next_phase(Phase::Starting, kind),
            owner: by,
        };
    };
    let is_other = known.owner != by;
    match kind {
        EventKind::SessionEnded if is_other => known,
        EventKind::SessionStarted(_) if is_other => Known {
            phase: next_phase(Phase::Ended, kind),
            owner: by,
        },
        kind => Known {
            phase: next_phase(known.phase, kind),
            owner: by,
        },
    }
}

/// The model of a sweep: a session whose owner lives stays; one whose owner is
/// gone ends, unless another process may serve it.
#[track_caller]
fn swept(world: &World, session: &str, known: &mut Option<Known>, live: &[u32], told: &[String]) {
    let Some(known) = known else { return };
    if known.phase == Phase::Ended || live.contains(&known.owner) {
        return;
    }
    let is_ended = record_of(world, session)["phase"] == "ended";
    assert!(is_ended || !live.is_empty(), "{session}: {told:#?}");
    if is_ended {
        known.phase = Phase::Ended;
    }
}

#[track_caller]
fn check(world: &World, session: &str, known: Option<Known>, told: &[String]) {
    let Some(known) = known else {
        assert!(!file_of(world, session, "json").exists(), "{told:#?}");
        return;
    };
    let record = record_of(world, session);
    let found = (
        record["phase"].as_str().unwrap(),
        record["owner"]["pid"].as_u64(),
    );
    let right = (known.phase.name(), Some(u64::from(known.owner)));
    assert_eq!(found, right, "{session}: {told:#?}");
    assert_eq!(
        record["ended_at"].is_null(),
        known.phase != Phase::Ended,
        "{told:#?}"
    );
}
