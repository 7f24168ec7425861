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

use std::path::PathBuf;

use serde_json::Value;
use whosup_sidecar::AgentId;

use self::transcript::{DIALECT, Outline};
use crate::adapter::{Adapter, Description, Profile, Sketch, Watched};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::reading::{count_each, found_or_problem, open_if_there};

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("droid");

/// The adapter for Droid.
#[derive(Debug, Clone, Copy)]
pub struct Droid;

static PROFILE: Profile = Profile {
    id: "droid",
    name: "Droid",
    default_home: ".factory",
    home_variables: &["FACTORY_HOME_OVERRIDE"],
    moves_users_home: true,
    detection: "arguments; the terminal's use",
    checked_against: "0.225.2, 2026-11, read and not seen running",
    watched: &[Watched::tree("sessions")],
    programs: &process::PROGRAMS,
    scan: scan::scan,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&tokens::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["droid", "--resume", "{id}"],
    ..Profile::USUAL
};

impl Adapter for Droid {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let Some(path) = &sketch.transcript else {
            return Found::default();
        };
        // The scan has reported bad lines.
        let mut bad_lines = BadLines::default();
        let read = open_if_there(path).and_then(|file| {
            let read = file.map(|file| transcript::read(&file, &mut bad_lines));
            read.transpose()
        });
        let read = read.map_err(|error| Problem::at(&AGENT, path, error.reason()));
        let mut problems = Vec::new();
        let outline = found_or_problem(read).take(&mut problems);
        let settings = transcript::read_settings(&transcript::settings_path(path));
        let settings = found_or_problem(settings).take(&mut problems);
        let found = Description {
            transcript: Some(path.clone()),
            model: settings.model,
            git_branch: settings.git_branch,
            context: settings.context,
            ..outline.map(Outline::into_description).unwrap_or_default()
        };
        Found { found, problems }
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let read = |sketch: &Sketch| {
            let counted = sketch.transcript.as_deref().map(tokens::counted);
            Ok(counted.transpose()?.unwrap_or_default())
        };
        Some(count_each(sketches, read, each))
    }

    fn counted_files(&self, _sketch: &Sketch) -> Vec<PathBuf> {
        // The settings are small, and those of the session before count too.
        Vec::new()
    }
}
