//! kimi-cli, the one written in Python.
//!
//! What it leaves, below its share directory (`KIMI_SHARE_DIR`, `~/.kimi`).
//! Seen in kimi-cli 1.50.0, 2026-11; 1.52.0 only starts its successor.
//!
//! | File | Written | Says |
//! |---|---|---|
//! | `sessions/MD5/SESSION/` with `context.jsonl` | at launch | that the session exists; born then |
//! | `sessions/MD5/SESSION/wire.jsonl` | from the first prompt | the conversation |
//! | `sessions/MD5/SESSION/state.json` | after a turn | the title |
//! | `sessions/MD5/SESSION/runtime.json` | by no release so far (kimi-cli#2082) | PID, host, session, directory |
//! | `logs/kimi.log` | by all processes | which session a starting process made, and which sessions were resumed |
//! | `kimi.json` | at launch | the directories, whose MD5s name the folders |
//!
//! None of this is removed at the end, and apart from the sidecar nothing names a process;
//! the arguments and the environment of the process are blanked. So the dates in the log
//! assign a session to a process: launches, and sessions that were made or resumed since.
//! `/clear` and `/new` make a new session directory in the same process. If a process was
//! started for another directory (`--work-dir`), its working directory shows nothing.

mod history;
mod hooks;
mod log;
mod logs;
mod process;
mod session;
mod untouched;
mod wire;
mod work_dir;

use std::path::{Path, PathBuf};

use whosup_sidecar::AgentId;

use self::session::Reading;
use self::wire::DIALECT;
use crate::adapter::{Adapter, AgentScan, Description, Home, Look, Profile, Sketch, Watched};
use crate::machine::problem::Found;
use crate::sources::agents::kit::document::from_object;
use crate::sources::agents::kit::kimi_wire::{SessionFiles, of_untouched};
use crate::sources::agents::kit::title::one_line;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("kimi-cli");

/// How long a `state.json` may be: it has the session's whole to-do list.
const STATE_BYTES_MAX: u64 = 4 << 20;

/// The adapter for kimi-cli.
#[derive(Debug, Clone, Copy)]
pub struct KimiCli;

static FILES: SessionFiles = SessionFiles {
    agent: AGENT,
    dialect: &DIALECT,
    wire: session::WIRE,
    folder_of: work_dir::folder_of,
};

static PROFILE: Profile = Profile {
    id: "kimi-cli",
    name: "Kimi CLI",
    default_home: ".kimi",
    home_variables: &["KIMI_SHARE_DIR"],
    detection: "its log, which dates the sessions that a process made or resumed; a sidecar where there is one",
    checked_against: "1.50.0, 2026-11",
    has_session_at_launch: true,
    launch_window_ms: Some(history::START_MS_MAX),
    resumes_from_anywhere: false,
    watched: &[
        Watched::tree("sessions"),
        Watched::at("logs"),
        Watched::at("kimi.json"),
    ],
    programs: &process::PROGRAMS,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&wire::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["kimi", "--session", "{id}"],
    ..Profile::USUAL
};

impl Adapter for KimiCli {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn home_of_open_file(&self, path: &Path) -> Option<PathBuf> {
        logs::home_of(path)
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        let mut reading = Reading::new(look, home);
        reading.walk();
        reading.finish()
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        // Nor has it a title: that is written when a turn has ended.
        if sketch.is_unprompted() {
            return Found::clean(of_untouched());
        }
        FILES.describe(sketch, |path, found| {
            // There is none before the first turn has ended.
            let title = from_object(path, STATE_BYTES_MAX, |state| {
                let title = state.opt_string("custom_title")?.and_then(one_line);
                Ok((title, state.opt_bool("title_generated")?))
            })?;
            if let Some((Some(title), is_given)) = title {
                found.title = Some(title);
                // A person or a model gave it. Otherwise it is the first prompt, cut.
                found.is_title_a_prompt = is_given != Some(true);
            }
            Ok(())
        })
    }
}
