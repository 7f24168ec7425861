//! Any order of events, deaths and sweeps, against a simple model of what must
//! come of it.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;
use whosup_core::adapter::hook_event::{EventKind, StartSource};
use whosup_core::adapter::phase::{Phase, WaitingFor, next_phase};
use whosup_core::sources::record::EndCause;

use super::scene::Scene;

/// The processes that there may be, by PID.
const PIDS: [i32; 3] = [101, 102, 103];
/// The sessions that they speak of.
const SESSIONS: [&str; 2] = ["s1", "s2"];

const EVENTS: &[(&str, &str, EventKind)] = &[
    (
        "SessionStart",
        "startup",
        EventKind::SessionStarted(StartSource::Startup),
    ),
    (
        "SessionStart",
        "resume",
        EventKind::SessionStarted(StartSource::Resume),
    ),
    (
        "SessionStart",
        "clear",
        EventKind::SessionStarted(StartSource::Clear),
    ),
    (
        "SessionStart",
        "compact",
        EventKind::SessionStarted(StartSource::Compact),
    ),
    ("UserPromptSubmit", "", EventKind::TurnStarted),
    ("PreToolUse", "", EventKind::ToolStarted),
    ("PostToolUse", "", EventKind::ToolEnded),
    (
        "PermissionRequest",
        "",
        EventKind::InputRequested(WaitingFor::Permission),
    ),
    ("Stop", "", EventKind::TurnEnded),
    ("PreCompact", "", EventKind::Compacted),
    ("SubagentStop", "", EventKind::SubAgentEnded),
    ("SessionEnd", "", EventKind::SessionEnded),
];

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    /// An agent starts, if that PID is free.
    Start(usize),
    /// It is killed, if it is there.
    Kill(usize),
    /// One of its hooks reports an event, if it is there.
    Report(usize, usize, usize),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..PIDS.len()).prop_map(Step::Start),
        1 => (0..PIDS.len()).prop_map(Step::Kill),
        6 => (0..PIDS.len(), 0..SESSIONS.len(), 0..EVENTS.len())
            .prop_map(|(by, of, what)| Step::Report(by, of, what)),
        1 => Just(Step::Sweep),
    ]
}

/// A process, by its PID and start.
type Process = (usize, u64);

/// What the model knows of a session and one process that reported on it.
#[derive(Debug, Clone, Copy)]
struct Owner {
    process: Process,
    /// It has not reported that the session ended, or has worked in it since.
    is_open: bool,
    /// When it was last heard to work in it.
    heard_ms: Option<i64>,
    /// When it last reported anything but an end of what it has ended.
    last_ms: i64,
    /// When it reported that the session ended, if it has not worked in it since.
    let_go_ms: Option<i64>,
    /// What it was doing when it was last heard.
    phase: Option<Phase>,
}

/// What the model knows of a session.
#[derive(Debug, Clone)]
struct Known {
    phase: Phase,
    /// In the order of the last reports.
    owners: Vec<Owner>,
    last_ms: i64,
    end: Option<(EndCause, i64)>,
    /// How often its end was passed on.
    passed_on: u32,
    /// How often it came to an end.
    ends: u32,
}

impl Known {
    /// The open owner that reported last, or else the owner that reported last.
    fn owner(&self) -> Option<Process> {
        let open = self.owners.iter().rev().find(|owner| owner.is_open);
        open.or(self.owners.last()).map(|owner| owner.process)
    }

    fn have_let_go(&self) -> bool {
        self.owners.iter().all(|owner| !owner.is_open)
    }

    /// Whoever is silent since then left nothing unfinished.
    fn was_released_last(&self) -> bool {
        let released = self.owners.iter().filter_map(|owner| owner.let_go_ms);
        let open = self.owners.iter().filter(|owner| owner.is_open);
        released.max() > open.map(|owner| owner.last_ms).max()
    }
}

/// The sessions that a process has reported to take up.
#[derive(Debug, Clone, Default)]
struct Taken {
    /// The last one, and when.
    last: Option<(usize, i64)>,
    all: Vec<usize>,
}

impl Taken {
    /// It moved on from this session, in which it was first seen to work at `heard_ms`.
    fn has_left(&self, session: usize, heard_ms: Option<i64>) -> bool {
        self.last.is_some_and(|(last, at_ms)| {
            let is_older = heard_ms.is_none_or(|heard| heard <= at_ms);
            last != session && (self.all.contains(&session) || is_older)
        })
    }
}

struct Model {
    /// When the process with this PID began; `None` if there is none.
    live: [Option<u64>; PIDS.len()],
    taken: HashMap<Process, Taken>,
    known: [Option<Known>; SESSIONS.len()],
}

impl Model {
    fn reported(&mut self, by: usize, of: usize, kind: EventKind, at_ms: i64) {
        let process = (by, self.live[by].unwrap());
        let taken = self.taken.entry(process).or_default();
        let is_work = kind.starts_work();
        let is_end = kind == EventKind::SessionEnded;
        let worked_ms = || {
            let mut owners = self.known[of].iter().flat_map(|known| &known.owners);
            owners.find(|owner| owner.process == process)?.heard_ms
        };
        let late = is_work.then_some(i64::MAX).or_else(worked_ms);
        let has_left = !kind.is_claim() && !is_end && taken.has_left(of, late);
        if kind.is_claim() {
            taken.last = Some((of, at_ms));
            taken.all.push(of);
        }
        let known = self.known[of].get_or_insert(Known {
            phase: Phase::Starting,
            owners: Vec::new(),
            last_ms: at_ms,
            end: None,
            passed_on: 0,
            ends: 0,
        });
        // The end of what has ended is not even written down.
        if is_end && known.phase == Phase::Ended {
            return;
        }
        let is_other = known.owner().is_some_and(|owner| owner != process);
        let at = known
            .owners
            .iter()
            .position(|owner| owner.process == process);
        let before = at.map(|at| known.owners.remove(at));
        let mut owner = before.unwrap_or(Owner {
            process,
            is_open: true,
            heard_ms: None,
            last_ms: at_ms,
            let_go_ms: None,
            phase: None,
        });
        let was_open = owner.is_open;
        if was_open || !is_end {
            owner.last_ms = at_ms;
        }
        if is_end {
            owner.is_open = false;
            owner.let_go_ms = owner.let_go_ms.or(Some(at_ms));
        } else if is_work && !has_left {
            if !was_open {
                owner.phase = None;
            }
            owner.is_open = true;
            owner.let_go_ms = None;
            owner.heard_ms = Some(at_ms);
        }
        if kind.is_claim() {
            owner.heard_ms = Some(at_ms);
        }
        known.owners.push(owner);
        // A second end changes nothing.
        if is_end && !was_open {
            return;
        }
        if let Some(own) = owner
            .phase
            .filter(|_| is_other && !is_end && known.phase != Phase::Ended)
        {
            known.phase = own;
        }
        let before = known.phase;
        known.last_ms = at_ms;
        known.phase = match before {
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
        if known.phase != Phase::Ended {
            known.end = None;
        } else if before != Phase::Ended || known.end.is_none() {
            known.end = Some((EndCause::ExitHook, at_ms));
            known.ends += 1;
        }
    }

    /// A sweep ends what is not ended and whose processes are not there. It may leave
    /// what a process may serve that is not known to serve anything.
    fn swept(&mut self, scene: &Scene) {
        let serves = |process: Process| {
            let is_left = |of: usize, owner: &Owner| {
                let taken = self.taken.get(&process);
                taken.is_some_and(|taken| taken.has_left(of, owner.heard_ms))
            };
            self.known.iter().enumerate().any(|(of, known)| {
                let owners = known.iter().flat_map(|known| &known.owners);
                let mut open = owners.filter(|owner| owner.process == process && owner.is_open);
                open.any(|owner| !is_left(of, owner))
            })
        };
        let live = self.live.iter().enumerate();
        let mut live = live.filter_map(|(pid, began)| Some((pid, (*began)?)));
        let is_one_free = live.any(|process| !serves(process));
        for (of, (session, known)) in SESSIONS.iter().zip(&mut self.known).enumerate() {
            let Some(known) = known else { continue };
            if known.phase == Phase::Ended || is_one_free && scene.end(session).is_none() {
                continue;
            }
            let open = || known.owners.iter().filter(|owner| owner.is_open);
            let Some(last) = open().next_back() else {
                continue;
            };
            let is_there = |owner: &Owner| self.live[owner.process.0] == Some(owner.process.1);
            if open().any(is_there) {
                continue;
            }
            let has_left = |owner: &Owner| {
                let taken = self.taken.get(&owner.process);
                taken.is_some_and(|taken| taken.has_left(of, owner.heard_ms))
            };
            // Another process may have reported its end and moved on, before or after this one
            // was killed: either may be the cause.
            let said = scene.end(session).map(|(cause, _)| cause);
            let is_left_by_one = || known.owners.iter().any(has_left);
            let was_left = has_left(last) || said == Some(EndCause::Superseded) && is_left_by_one();
            let cause = match self.live[last.process.0] {
                _ if was_left => EndCause::Superseded,
                _ if known.was_released_last() => EndCause::Left,
                Some(_) => EndCause::PidReused,
                None => EndCause::ProcessGone,
            };
            for owner in &mut known.owners {
                owner.is_open = false;
            }
            known.phase = Phase::Ended;
            known.end = Some((cause, known.last_ms));
            known.ends += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
    #[test]
    fn whatever_happens_the_record_says_what_did_and_nothing_living_is_ended(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut scene = Scene::new();
        let mut model = Model {
            live: [None; PIDS.len()],
            taken: HashMap::new(),
            known: [const { None }; SESSIONS.len()],
        };
        let mut ticks = 1_000;
        for step in steps {
            match step {
                Step::Start(at) if model.live[at].is_none() => {
                    ticks += 10;
                    scene.start(PIDS[at], ticks);
                    model.live[at] = Some(ticks);
                }
                Step::Kill(at) if model.live[at].is_some() => {
                    scene.kill(PIDS[at]);
                    model.live[at] = None;
                }
                Step::Report(by, of, what) if model.live[by].is_some() => {
                    let (name, source, kind) = EVENTS[what];
                    let is_end = scene.report(PIDS[by], SESSIONS[of], name, json!({"source": source}));
                    model.reported(by, of, kind, scene.now_ms);
                    model.known[of].as_mut().unwrap().passed_on += u32::from(is_end);
                }
                Step::Sweep => {
                    let report = scene.sweep();
                    model.swept(&scene);
                    for ended in report.to_pass_on {
                        let of = SESSIONS.iter().position(|id| *id == ended.session.as_str());
                        model.known[of.unwrap()].as_mut().unwrap().passed_on += 1;
                    }
                }
                _ => {}
            }
            for (session, known) in SESSIONS.iter().zip(&model.known) {
                let record = scene.record(session);
                prop_assert_eq!(record.is_some(), known.is_some());
                let (Some(record), Some(known)) = (record, known) else { continue };
                prop_assert_eq!(record.phase, known.phase, "{}", session);
                let owner = record.owner.as_ref().map(|owner| owner.pid.get());
                if known.phase != Phase::Ended {
                    prop_assert_eq!(owner, known.owner().map(|(at, _)| PIDS[at]));
                }
                prop_assert_eq!(scene.end(session), known.end, "{}", session);
                prop_assert_eq!(known.passed_on, known.ends, "{}", session);
                prop_assert_eq!(record.last_event_at_ms, known.last_ms);
            }
        }
    }
}
