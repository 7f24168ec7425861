//! Random events, kills and sweeps, against a simple model of the expected record.

use std::collections::HashMap;

use serde_json::json;
use whosup_core::adapter::hook_event::{EventKind, StartSource};
use whosup_core::adapter::phase::{Phase, WaitingFor, next_phase};

use super::chance::Chance;
use super::shell_agent::{ShellAgent, event, file_of, record_of};
use super::world::World;

/// How many stories are played, each with its own chances.
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

/// What the model knows of a session and a process that reported it.
#[derive(Debug, Clone, Copy)]
struct Owner {
    pid: u32,
    /// It has not reported that the session ended, or has worked in it since.
    is_open: bool,
    /// What it was doing when it reported last.
    phase: Option<Phase>,
    /// How many sessions it had taken up when it last worked in this one.
    worked_after: Option<usize>,
}

/// What the model knows of a session.
#[derive(Debug, Clone)]
struct Known {
    phase: Phase,
    /// The last to report is the last.
    owners: Vec<Owner>,
}

impl Known {
    /// The last open owner to report, else the last to report.
    fn owner(&self) -> Option<u32> {
        let open = self.owners.iter().rev().find(|owner| owner.is_open);
        open.or(self.owners.last()).map(|owner| owner.pid)
    }

    fn have_let_go(&self) -> bool {
        self.owners.iter().all(|owner| !owner.is_open)
    }
}

/// The sessions that each process reported as taken up, in order.
type Taken = HashMap<u32, Vec<usize>>;

#[test]
fn the_record_matches_a_model_and_no_live_session_is_ended() {
    for seed in 1..=STORIES {
        play(seed);
    }
}

fn play(seed: u64) {
    let world = World::new();
    let mut chance = Chance::of_seed(seed);
    let mut agents = vec![ShellAgent::start(&world)];
    let sessions = [world.s1.clone(), world.s2.clone()];
    let mut known: [Option<Known>; 2] = [None, None];
    let mut taken = Taken::new();
    let mut story = Vec::new();
    for _ in 0..STEPS {
        match chance.index(10) {
            0 if agents.len() < AGENTS => {
                agents.push(ShellAgent::start(&world));
                story.push("an agent starts".to_owned());
            }
            1 if agents.len() > 1 || (!agents.is_empty() && chance.index(3) == 0) => {
                let mut killed = agents.swap_remove(chance.index(agents.len()));
                killed.kill();
                taken.remove(&killed.pid());
                story.push(format!("{} is killed", killed.pid()));
            }
            2 => {
                let said = world.run(["sweep"]);
                assert_eq!(said.status, 0, "{}", said.err);
                story.push(format!("a sweep says {:?}", said.out));
                let live: Vec<u32> = agents.iter().map(ShellAgent::pid).collect();
                for (session, known) in sessions.iter().zip(&mut known) {
                    swept(&world, session, known, &live, &story);
                }
            }
            _ if !agents.is_empty() => {
                let at = chance.index(2);
                let by = chance.index(agents.len());
                let (name, kind) = EVENTS[chance.index(EVENTS.len())];
                agents[by].hook(&event(&world, &sessions[at], name, json!({})));
                story.push(format!(
                    "{} reports {name} of session {at}",
                    agents[by].pid()
                ));
                let reported = (at, kind, agents[by].pid());
                known[at] = Some(after(known[at].take(), reported, &mut taken));
            }
            _ => {}
        }
        for (session, known) in sessions.iter().zip(&known) {
            check(&world, session, known.as_ref(), &story);
        }
    }
}

/// The model of an event.
fn after(known: Option<Known>, event: (usize, EventKind, u32), taken: &mut Taken) -> Known {
    let (of, kind, by) = event;
    let taken = taken.entry(by).or_default();
    let is_end = kind == EventKind::SessionEnded;
    let is_elsewhere = taken.last().is_some_and(|last| *last != of);
    let worked_after = known.as_ref().and_then(|known| {
        let own = known.owners.iter().find(|owner| owner.pid == by)?;
        own.worked_after
    });
    let is_before = !kind.starts_work() && worked_after != Some(taken.len());
    let has_left =
        is_elsewhere && !is_end && !kind.is_claim() && (taken.contains(&of) || is_before);
    if kind.is_claim() {
        taken.push(of);
    }
    let mut known = known.unwrap_or(Known {
        phase: Phase::Starting,
        owners: Vec::new(),
    });
    let is_other = known.owner().is_some_and(|owner| owner != by);
    let at = known.owners.iter().position(|owner| owner.pid == by);
    let was_open = at.is_none_or(|at| known.owners[at].is_open);
    let phase_of_own = at.and_then(|at| known.owners[at].phase);
    if let Some(at) = at {
        known.owners.remove(at);
    }
    let is_reopened = kind.starts_work() && !has_left;
    known.owners.push(Owner {
        pid: by,
        is_open: !is_end && (was_open || is_reopened),
        phase: phase_of_own.filter(|_| was_open || !is_reopened),
        worked_after: is_reopened.then_some(taken.len()).or(worked_after),
    });
    // A second end has no effect.
    if is_end && !was_open {
        return known;
    }
    if let Some(own) = phase_of_own.filter(|_| is_other && !is_end && known.phase != Phase::Ended) {
        known.phase = own;
    }
    known.phase = match known.phase {
        _ if is_end && known.have_let_go() => Phase::Ended,
        Phase::Working | Phase::Waiting if is_end && !is_other => Phase::Idle,
        same if is_end || has_left => same,
        Phase::Ended if known.have_let_go() => Phase::Ended,
        _ if kind.is_claim() && is_other => next_phase(Phase::Ended, kind),
        same => match next_phase(same, kind) {
            Phase::Ended => next_phase(Phase::Idle, kind),
            phase => phase,
        },
    };
    if is_end && known.phase != Phase::Ended {
        // Another process continues it, and does what it was doing.
        let open = known.owners.iter().rfind(|owner| owner.is_open);
        known.phase = open.and_then(|open| open.phase).unwrap_or(known.phase);
    } else if !is_end && !matches!(known.phase, Phase::Starting | Phase::Ended) {
        known.owners.last_mut().unwrap().phase = Some(known.phase);
    }
    known
}

/// The model of a sweep: a session with a live owner that has not released it stays; a session
/// whose owners are gone ends, unless another process may serve it.
#[track_caller]
fn swept(world: &World, session: &str, known: &mut Option<Known>, live: &[u32], story: &[String]) {
    let Some(known) = known else { return };
    let mut open = known.owners.iter().filter(|owner| owner.is_open);
    if known.phase == Phase::Ended || open.any(|owner| live.contains(&owner.pid)) {
        return;
    }
    let is_ended = record_of(world, session)["phase"] == "ended";
    assert!(is_ended || !live.is_empty(), "{session}: {story:#?}");
    if is_ended {
        known.phase = Phase::Ended;
        for owner in &mut known.owners {
            owner.is_open = false;
        }
    }
}

#[track_caller]
fn check(world: &World, session: &str, known: Option<&Known>, story: &[String]) {
    let Some(known) = known else {
        assert!(!file_of(world, session, "json").exists(), "{story:#?}");
        return;
    };
    let record = record_of(world, session);
    let phase = record["phase"].as_str().unwrap();
    assert_eq!(phase, known.phase.name(), "{session}: {story:#?}");
    let is_ended = known.phase == Phase::Ended;
    if !is_ended {
        let owner = record["owner"]["pid"].as_u64();
        let right = known.owner().map(u64::from);
        assert_eq!(owner, right, "{session}: {story:#?}");
    }
    assert_eq!(record["ended_at"].is_null(), !is_ended, "{story:#?}");
}
