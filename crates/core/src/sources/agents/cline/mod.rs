//! Cline CLI (`cline`, npm `cline`).
//!
//! What it leaves, below its data directory (`CLINE_DATA_DIR`, else `data` in
//! `CLINE_DIR`, by default `~/.cline/data`). Seen in Cline CLI 3.0.65, 2026-11.
//!
//! | What | When | Says |
//! |---|---|---|
//! | `logs/cline.log` | by every terminal, from launch on | its PID, host, time; `session.started` with the session's id |
//! | `db/sessions.db`, table `sessions` | from the first prompt on | directory, title, model, status, branch, and *a* PID |
//! | `sessions/ID/ID.json` | the same | the same |
//! | `sessions/ID/ID.messages.json` | the same | the conversation |
//! | `locks/hub/production.json` | while the hub runs | never read: it holds a token |
//!
//! Who serves a session is claimed by the log: a terminal writes `session.started`
//! with its own PID when it opens one, at launch, by `--id`, and with the first
//! prompt after `/clear`; the newest such line of a process is its current session,
//! unless a part of the log is missing (`beyond.rs`).
//!
//! The PID of a row is a trap. It is the terminal's only if no *hub* was there when
//! the session began; otherwise it is the hub's. And it stays what it first was
//! when another process takes the session up. So a row is a claim that is not
//! exclusive, dated by its `started_at`, and no claim at all if the PID is a
//! hub's. The hub (`--cline-hub-daemon`, one for each data directory, outliving
//! all terminals) owns a session only while the row says that it is in a turn and
//! no terminal has it open: a turn goes on there when its terminal is killed. Of a
//! turn whose row has another PID, which is gone, the hub *may* be the owner.
//!
//! A status is what was said last: `idle` stays after SIGKILL, and after a clean
//! exit under a hub; a later start turns it into `failed`, with the date of that
//! start.

mod beyond;
mod database;
mod log;
mod manifest;
mod message;
mod process;
mod row;
mod scan;

use std::path::PathBuf;

use serde_json::Value;
use whosup_sidecar::AgentId;

use crate::adapter::{Adapter, Description, Message, Profile, Program, Sketch, Watched};
use crate::machine::Environment;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::document::{count_documents, from_document};

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("cline");

/// The variable that moves the data directory.
const DATA_VARIABLE: &str = "CLINE_DATA_DIR";
/// The variable that moves the directory above it.
const DIRECTORY_VARIABLE: &str = "CLINE_DIR";

/// The adapter for the Cline CLI.
#[derive(Debug, Clone, Copy)]
pub struct Cline;

static PROFILE: Profile = Profile {
    id: "cline",
    name: "Cline CLI",
    default_home: ".cline/data",
    home_variables: &[DATA_VARIABLE, DIRECTORY_VARIABLE],
    detection: "its log, which names PID and session; the database's PID where it is a terminal's",
    checked_against: "3.0.65, 2026-11",
    watched: &[
        Watched::at("db"),
        Watched::at("logs"),
        Watched::tree("sessions"),
    ],
    hosts_claim: true,
    programs: &process::PROGRAMS,
    scan: scan::scan,
    counting: Some(&message::COUNTING),
    resume: &["cline", "--id", "{id}"],
    ..Profile::USUAL
};

impl Adapter for Cline {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn homes(&self, environment: &Environment) -> Vec<PathBuf> {
        let moved = environment.directory(DATA_VARIABLE);
        let above = || environment.directory(DIRECTORY_VARIABLE);
        let default = || Some(environment.home()?.join(".cline"));
        let data = moved.or_else(|| Some(above().or_else(default)?.join("data")));
        data.into_iter().collect()
    }

    fn homes_named_by(&self, program: &Program<'_>, environment: &Environment) -> Vec<PathBuf> {
        process::home(program, environment)
            .map_or_else(|| self.homes(environment), |home| vec![home])
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let described = sketch.described.as_deref().cloned().unwrap_or_default();
        let path = sketch.transcript.as_deref();
        let last = from_document(&AGENT, path, message::MESSAGES_BYTES_MAX, |document| {
            message::DIALECT.tail_of(message::messages_in(document))
        });
        Found {
            found: Description {
                context: last.found.context,
                turn: last.found.turn,
                ..described
            },
            problems: last.problems,
        }
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let bytes_max = message::MESSAGES_BYTES_MAX;
        let count = |at, document: &Value| each(at, message::messages_in(document));
        Some(count_documents(&AGENT, sketches, bytes_max, count))
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        let path = sketch.transcript.as_deref();
        from_document(&AGENT, path, message::MESSAGES_BYTES_MAX, |document| {
            message::last_of(document, messages_max)
        })
    }
}
