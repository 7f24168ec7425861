//! Codex (`codex`, npm `@openai/codex`).
//!
//! Seen in Codex 0.171.0, 2026-11. A *thread* is a session. Below `~/.codex`
//! (`CODEX_HOME`):
//!
//! | What | When | Says |
//! |---|---|---|
//! | `thread-writer-locks/ID.lock`, held | from launch to the end | its process runs the thread |
//! | the same, not held | after a crash, until the next start | no process does |
//! | `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl` | from the first prompt on | the thread's transcript, held open |
//! | `archived_sessions/rollout-TIME-ID.jsonl` | once archived | the same |
//! | `session_index.jsonl`, `state_N.sqlite` | from the first prompt on | its name, and hints |
//!
//! By default one daemon (`codex app-server … --managed-daemon`) runs the
//! threads of all terminals, and keeps each for 60 s after its terminal left
//! it. No file says which terminal shows which thread: that is left to
//! arguments, terminal titles and the log. The
//! daemon's parent and environment are those of the terminal that happened to
//! start it.
//!
//! `logs_2.sqlite` says, some seconds late, when a terminal has opened a thread,
//! and not which. It is read only where there are several terminals, and never
//! for the threads that it names: it has some that are no sessions. Not read: the
//! daemon's PID file (it names no session), and compressed rollouts, of which
//! their names and the database tell enough for a list.
//!
//! Rollouts of 2025 without typed records are read as well (`header.rs`,
//! `record.rs`; 2026-11).

mod claims;
mod describe;
mod header;
mod hints;
mod hooks;
mod limits;
mod locks;
mod log_db;
mod process;
mod record;
mod rollout;
mod scan;
mod session_index;
mod state_db;
mod tail;
mod terminal_title;
mod terminals;
mod thread;
mod thread_id;
mod tree;

use whosup_sidecar::AgentId;

use crate::adapter::phase::PhaseFact;
use crate::adapter::{Adapter, Description, LimitRecord, Message, Profile, Sketch, Watched};
use crate::machine::problem::Found;
use crate::sources::agents::kit::dialect::{LAST_BOUNDS, find_last};
use crate::sources::transcript::TranscriptFile;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("codex");

static PROFILE: Profile = Profile {
    id: "codex",
    name: "Codex",
    default_home: ".codex",
    home_variables: &["CODEX_HOME"],
    detection: "held thread locks, open rollouts; terminals of the daemon by arguments, titles and Codex's log",
    checked_against: "0.171.0, 2026-11",
    has_session_at_launch: true,
    launch_window_ms: Some(60_000),
    announces_within_ms: Some(60_000),
    watched: &[
        Watched::at("thread-writer-locks"),
        Watched::tree("sessions"),
        Watched::at("archived_sessions"),
        Watched::at("session_index.jsonl"),
        Watched::at("logs_2.sqlite"),
        Watched::at("logs_2.sqlite-wal"),
    ],
    hosts_claim: true,
    programs: &process::PROGRAMS,
    scan: scan::scan,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&record::COUNTING),
    resume: &["codex", "resume", "{id}"],
    ..Profile::USUAL
};

/// The adapter.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Adapter for Codex {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn phase_in_title(&self, title: &str) -> Option<PhaseFact> {
        terminal_title::split(title).0
    }

    fn name_in_title<'a>(&self, title: &'a str) -> &'a str {
        terminal_title::split(title).1
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        describe::describe(sketch)
    }

    fn account_limits(&self, sketch: &Sketch) -> Option<LimitRecord> {
        let file = TranscriptFile::open(sketch.transcript.as_deref()?).ok()?;
        find_last(&file, LAST_BOUNDS, limits::of_record).ok()?
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        describe::messages(sketch, messages_max)
    }
}
