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
mod sidecar;
mod untouched;
mod wire;
mod work_dir;

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{Links, ReadFileError, read_regular};
use whosup_sidecar::{AgentId, StrictObject};

use self::session::Reading;
use self::wire::DIALECT;
use crate::adapter::{Adapter, AgentScan, Description, Home, Look, Profile, Sketch, Watched};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::kimi_wire;
use crate::sources::agents::kit::title::one_line;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("kimi-cli");

/// The variable that moves the share directory.
const HOME_VARIABLE: &str = "KIMI_SHARE_DIR";
/// Where it is by default, below the user's home.
const DEFAULT_HOME: &str = ".kimi";
/// How long a `state.json` may be: it has the session's whole to-do list.
const STATE_BYTES_MAX: u64 = 4 << 20;

/// The adapter for kimi-cli.
#[derive(Debug, Clone, Copy)]
pub struct KimiCli;

static PROFILE: Profile = Profile {
    id: "kimi-cli",
    name: "Kimi CLI",
    default_home: DEFAULT_HOME,
    home_variables: &[HOME_VARIABLE],
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

    fn describe(&self, _look: &Look<'_>, sketch: &Sketch) -> Found<Description> {
        // Nor has it a title: that is written when a turn has ended.
        if sketch.lacks_transcript && sketch.transcript.is_none() {
            return Found::clean(kimi_wire::of_untouched());
        }
        let Some(directory) = session_directory(sketch) else {
            return Found::default();
        };
        let described = kimi_wire::describe(&DIALECT, &AGENT, &directory.join(session::WIRE));
        let Found {
            mut found,
            mut problems,
        } = described;
        let path = directory.join("state.json");
        match read_title(&path) {
            Ok(Some(title)) => {
                found.is_title_a_prompt = !title.is_given;
                found.title = Some(title.text);
            }
            Ok(None) => {}
            Err(message) => problems.push(Problem::at(&AGENT, &path, message)),
        }
        Found { found, problems }
    }
}

/// The directory of a session: beside its transcript, or, before there is one,
/// by the MD5 of where it works.
fn session_directory(sketch: &Sketch) -> Option<PathBuf> {
    if let Some(transcript) = &sketch.transcript {
        return transcript.parent().map(Path::to_owned);
    }
    let folder = work_dir::folder_of(sketch.work_dir.as_deref()?)?;
    let sessions = sketch.key.home.join("sessions");
    Some(sessions.join(folder).join(sketch.key.session.as_str()))
}

/// A title in a session's `state.json`.
struct Title {
    text: String,
    /// A person or a model gave it. Otherwise it is the first prompt, cut.
    is_given: bool,
}

fn read_title(path: &Path) -> Result<Option<Title>, String> {
    let file = match read_regular(path, STATE_BYTES_MAX, Links::Follow) {
        Ok(file) => file,
        // There is none before the first turn has ended.
        Err(ReadFileError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.reason()),
    };
    let state = StrictObject::parse(&file.bytes).map_err(|error| error.to_string())?;
    let text = state
        .opt_string("custom_title")
        .map_err(|error| error.to_string())?;
    let is_given = state
        .opt_bool("title_generated")
        .map_err(|error| error.to_string())?;
    Ok(text.and_then(one_line).map(|text| Title {
        text,
        is_given: is_given == Some(true),
    }))
}
