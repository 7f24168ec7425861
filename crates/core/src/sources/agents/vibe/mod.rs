//! Vibe, of Mistral.
//!
//! What it leaves below its home (`VIBE_HOME`, `~/.vibe`), in `logs/session` or
//! where `session_logging.save_dir` in `config.toml` says. Seen in mistral-vibe
//! 3.0.2, 2026-11.
//!
//! | File | Written | Says |
//! |---|---|---|
//! | `active/SESSION.lock`, held | when the session is opened, before any prompt | which process runs it |
//! | `active/SESSION.lock.json` | just after | since when, and its PID |
//! | `unified/SESSION/` | from the first prompt on | the conversation |
//!
//! The terminal is another process's: the interface's, which started the one
//! that runs the session. Sessions of releases before 3 are read as well
//! (`early.rs`; 2026-11).

mod early;
mod hooks;
mod lease;
mod process;
mod scan;
mod state;
mod storage;
mod store;
mod tokens;

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::AgentId;

use crate::adapter::phase::Phase;
use crate::adapter::{Adapter, Description, Home, Message, Profile, Sketch, WatchPath};
use crate::machine::Machine;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::reading::{count_each, found_or_problem};

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("vibe");

/// The adapter for Vibe.
#[derive(Debug, Clone, Copy)]
pub struct Vibe;

static PROFILE: Profile = Profile {
    id: "vibe",
    name: "Mistral Vibe",
    default_home: ".vibe",
    home_variables: &["VIBE_HOME"],
    detection: "lock per session, held by its server; the terminal's process is that one's parent",
    checked_against: "3.0.2, 2026-11",
    has_session_at_launch: true,
    hosts_claim: true,
    programs: &process::PROGRAMS,
    scan: scan::scan,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&tokens::COUNTING),
    resume: &["vibe", "--resume", "{id}"],
    ..Profile::USUAL
};

impl Adapter for Vibe {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let Some(directory) = &sketch.transcript else {
            return Found::clean(Description {
                phase: sketch.is_unprompted().then_some(Phase::Idle),
                ..Description::default()
            });
        };
        let mut problems = Vec::new();
        let found = match early::is_early(directory) {
            true => early::describe(directory, &mut problems),
            false => description(directory, sketch, &mut problems),
        };
        Found { found, problems }
    }

    fn counted_files(&self, _sketch: &Sketch) -> Vec<PathBuf> {
        // The state is small, and in several files.
        Vec::new()
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let read = |sketch: &Sketch| match sketch.transcript.as_deref() {
            Some(directory) if !early::is_early(directory) => {
                state::counted(directory, sketch.key.session.as_str())
            }
            _ => Ok(Vec::new()),
        };
        Some(count_each(sketches, read, each))
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        found_or_problem(match sketch.transcript.as_deref() {
            None => Ok(Vec::new()),
            Some(directory) if early::is_early(directory) => {
                early::messages(directory, messages_max)
            }
            Some(directory) => state::messages(directory, messages_max),
        })
    }

    fn watch_paths(&self, machine: &Machine, home: &Home) -> Vec<WatchPath> {
        let roots = storage::roots(&home.root, machine.mounts(), &mut Vec::new());
        let paths = roots.into_iter().flat_map(|root| {
            let active = WatchPath::at(root.join("active"));
            [active, WatchPath::tree(root.join("unified"))]
        });
        let config = WatchPath::at(home.root.join("config.toml"));
        paths.chain([config]).collect()
    }
}

fn description(directory: &Path, sketch: &Sketch, problems: &mut Vec<Problem>) -> Description {
    let meta = store::read_meta(directory, sketch.key.session.as_str());
    let without_meta = || Description {
        title: sketch.title.clone(),
        ..Description::default()
    };
    let mut found = found_or_problem(meta)
        .take(problems)
        .map_or_else(without_meta, store::Meta::into_description);
    found.transcript = Some(directory.to_owned());
    if let Some(state) = found_or_problem(state::read(directory)).take(problems) {
        problems.extend(state.problem.clone());
        add_state(&mut found, state);
    }
    found
}

fn add_state(found: &mut Description, state: state::State) {
    // The state is newer than what is kept for lists.
    if let Some(title) = state.title {
        found.title = Some(title);
    }
    if found.title.is_none() {
        found.is_title_a_prompt = state.preview.is_some();
        found.title = state.preview;
    }
    found.context = state.counts.context(found.model.as_deref());
    found.turn = state.counts.turn();
    found.phase = state.phase;
    found.waiting_for = state.waiting_for;
    found.phase_at_ms = state.phase_at_ms;
    found.started_at_ms = found.started_at_ms.or(state.created_at_ms);
    found.last_activity_at_ms = found.last_activity_at_ms.max(state.updated_at_ms);
}
