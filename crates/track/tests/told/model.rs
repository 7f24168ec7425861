//! Any order of events, deaths and sweeps, against a simple model of what must
//! come of it.

use proptest::prelude::*;
use serde_json::json;
use whosup_core::hook_event::{EventKind, StartSource};
use whosup_core::phase::{Phase, WaitingFor, next_phase};
use whosup_core::record::EndCause;

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
    /// One of its hooks tells of an event, if it is there.
    Tell(usize, usize, usize),
    /// Somebody sweeps.
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..PIDS.len()).prop_map(Step::Start),
        1 => (0..PIDS.len()).prop_map(Step::Kill),
        6 => (0..PIDS.len(), 0..SESSIONS.len(), 0..EVENTS.len())
            .prop_map(|(by, of, what)| Step::Tell(by, of, what)),
        1 => Just(Step::Sweep),
    ]
}

/// What the model knows of a session.
#[derive(Debug, Clone, Copy)]
struct Known {
    phase: Phase,
    /// Its last process, by PID and start.
    owner: (usize, u64),
    last_ms: i64,
    end: Option<(EndCause, i64)>,
    /// How often its end was passed on.
    passed_on: u32,
    /// How often it came to an end.
    ends: u32,
}

struct Model {
    /// When the process with this PID began; `None` if there is none.
    live: [Option<u64>; PIDS.len()],
    known: [Option<Known>; SESSIONS.len()],
}

impl Model {
    fn told(&mut self, by: usize, of: usize, kind: EventKind, at_ms: i64) {
        let owner = (by, self.live[by].unwrap());
        let known = self.known[of].get_or_insert(Known {
            phase: Phase::Starting,
            owner,
            last_ms: at_ms,
            end: None,
            passed_on: 0,
            ends: 0,
        });
        let is_other = known.owner != owner;
        // The end of an earlier process says nothing, nor does a second end.
        if kind == EventKind::SessionEnded && (is_other || known.phase == Phase::Ended) {
            return;
        }
        let is_start =
            matches!(kind, EventKind::SessionStarted(source) if source != StartSource::Compact);
        let from = if is_start && is_other {
            Phase::Ended
        } else {
            known.phase
        };
        let before = known.phase;
        known.phase = next_phase(from, kind);
        known.owner = owner;
        known.last_ms = at_ms;
        if known.phase != Phase::Ended {
            known.end = None;
        } else if before != Phase::Ended || known.end.is_none() {
            known.end = Some((EndCause::ExitHook, at_ms));
            known.ends += 1;
        }
    }

    /// A sweep ends what is not ended and whose process is not there. It may leave
    /// what a process may serve that is not known to serve anything.
    fn swept(&mut self, scene: &Scene) {
        let serves = |pid: usize, began| {
            let mut known = self.known.iter().flatten();
            known.any(|known| known.owner == (pid, began) && known.phase != Phase::Ended)
        };
        let live = self.live.iter().enumerate();
        let mut live = live.filter_map(|(pid, began)| Some((pid, (*began)?)));
        let is_one_free = live.any(|(pid, began)| !serves(pid, began));
        for (session, known) in SESSIONS.iter().zip(&mut self.known) {
            let Some(known) = known else { continue };
            if is_one_free && scene.end(session).is_none() {
                continue;
            }
            let (pid, began) = known.owner;
            let cause = match self.live[pid] {
                Some(now) if now == began => continue,
                Some(_) => EndCause::PidReused,
                None => EndCause::ProcessGone,
            };
            if known.phase != Phase::Ended {
                known.phase = Phase::Ended;
                known.end = Some((cause, known.last_ms));
                known.ends += 1;
            }
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
        let mut model = Model { live: [None; PIDS.len()], known: [None; SESSIONS.len()] };
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
                Step::Tell(by, of, what) if model.live[by].is_some() => {
                    let (name, source, kind) = EVENTS[what];
                    let is_end = scene.tell(PIDS[by], SESSIONS[of], name, json!({"source": source}));
                    model.told(by, of, kind, scene.now_ms);
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
                prop_assert_eq!(owner, Some(PIDS[known.owner.0]));
                prop_assert_eq!(scene.end(session), known.end, "{}", session);
                prop_assert_eq!(known.passed_on, known.ends, "{}", session);
                prop_assert_eq!(record.last_event_at_ms, known.last_ms);
            }
        }
    }
}
