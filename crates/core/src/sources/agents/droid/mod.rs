//! Droid, of Factory.
//!
//! What it leaves below its home (`.factory` in `FACTORY_HOME_OVERRIDE` or in
//! the user's home). Read in the executable of Droid 0.225.2, 2026-11; it was
//! not seen running past its login.
//!
//! | File | Says |
//! |---|---|
//! | `sessions/FOLDER/SESSION.jsonl` | the conversation; the folder is the directory with hyphens for slashes |
//! | `sessions/FOLDER/SESSION.settings.json` | the model |
//!
//! Nothing names a process but its own arguments. The directory and the dates of
//! messages make candidates, among which the use of the terminal chooses.

mod hooks;
mod process;
mod scan;
mod tokens;
mod transcript;

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::AgentId;
use whosup_sidecar::file::ReadFileError;

use self::transcript::DIALECT;
use crate::adapter::{Adapter, AgentScan, Description, Home, Look, Profile, Sketch, Watched};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::transcript::{TranscriptError, TranscriptFile};

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("droid");

/// The variable that stands for the user's home.
const HOME_VARIABLE: &str = "FACTORY_HOME_OVERRIDE";
/// Where the home is, below that or the user's.
const DEFAULT_HOME: &str = ".factory";

/// The adapter for Droid.
#[derive(Debug, Clone, Copy)]
pub struct Droid;

static PROFILE: Profile = Profile {
    id: "droid",
    name: "Droid",
    default_home: DEFAULT_HOME,
    home_variables: &[HOME_VARIABLE],
    moves_users_home: true,
    detection: "arguments; the terminal's use",
    checked_against: "0.225.2, 2026-11, read and not seen running",
    watched: &[Watched::tree("sessions")],
    programs: &process::PROGRAMS,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&tokens::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["droid", "--resume", "{id}"],
    ..Profile::USUAL
};

/// The directory of a home's sessions.
fn sessions_in(home: &Path) -> PathBuf {
    home.join("sessions")
}

impl Adapter for Droid {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        scan::scan(look, home)
    }

    fn describe(&self, _look: &Look<'_>, sketch: &Sketch) -> Found<Description> {
        let Some(path) = &sketch.transcript else {
            return Found::default();
        };
        let mut found = Description {
            transcript: Some(path.clone()),
            ..Description::default()
        };
        let mut problems = Vec::new();
        // The scan has reported bad lines.
        let mut bad_lines = BadLines::default();
        let read =
            TranscriptFile::open(path).and_then(|file| transcript::read(&file, &mut bad_lines));
        match read {
            Ok(read) => found = read.into_description(),
            Err(TranscriptError::File(ReadFileError::NotFound { .. })) => {}
            Err(error) => problems.push(Problem::at(&AGENT, path, error.reason())),
        }
        let beside = transcript::settings_path(path);
        match transcript::read_settings(&beside) {
            Ok(settings) => {
                found.model = settings.model;
                found.git_branch = settings.git_branch;
                found.context = settings.context;
            }
            Err(message) => problems.push(Problem::at(&AGENT, &beside, message)),
        }
        Found { found, problems }
    }

    fn counted_files(&self, _sketch: &Sketch) -> Vec<PathBuf> {
        // The settings are small, and those of the session before count too.
        Vec::new()
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let mut problems = Vec::new();
        for (at, sketch) in sketches.iter().enumerate() {
            let Some(path) = &sketch.transcript else {
                continue;
            };
            match tokens::counted(path) {
                Ok(records) if records.is_empty() => {}
                Ok(records) => each(at, &records),
                Err(why) => {
                    let path = transcript::settings_path(path);
                    problems.push(Problem::at(&AGENT, &path, why));
                }
            }
        }
        Some(problems)
    }
}
