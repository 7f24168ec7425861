//! Crush, of Charm.
//!
//! Its home is the directory for global data (`CRUSH_GLOBAL_DATA`, `crush` in
//! `XDG_DATA_HOME`, `~/.local/share/crush`), which lists the projects; each
//! project has its data in a directory of its own. Read in the sources of Crush,
//! 2026-08, and not seen running.
//!
//! | File | Says |
//! |---|---|
//! | `projects.json` of the home | which projects there are, and where their data are |
//! | `crush.lock` of a project, held | which process has the project open: one at a time |
//! | `crush.db` of a project | its sessions and messages; a row for each session from the first prompt on |
//!
//! Nothing shows which session a process has in front. Since only one process at a
//! time writes to a project, what was written there since its start is its own;
//! of several such sessions it is in the youngest, unless an older one went on
//! after that. With a server (`CRUSH_CLIENT_SERVER`) that is not known either.

mod database;
mod process;
mod project;
mod record;
mod scan;
mod short_id;
mod tokens;

use std::path::PathBuf;

use serde_json::Value;
use whosup_sidecar::AgentId;

use self::database::ProjectDb;
use crate::adapter::{
    Adapter, Description, Home, Invocation, Message, Profile, Program, Sketch, TurnTokens,
    WatchPath,
};
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::database::{sessions_by, with_wal};
use crate::sources::agents::kit::reading::found_or_problem;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("crush");

/// The variables that move the home, the stronger one first.
const HOME_VARIABLE: &str = "CRUSH_GLOBAL_DATA";
const DATA_HOME_VARIABLE: &str = "XDG_DATA_HOME";
/// How many messages are looked at for the model of the last reply.
const REPLIES_MAX: usize = 64;

/// The adapter for Crush.
#[derive(Debug, Clone, Copy)]
pub struct Crush;

static PROFILE: Profile = Profile {
    id: "crush",
    name: "Crush",
    default_home: ".local/share/crush",
    home_variables: &[HOME_VARIABLE, DATA_HOME_VARIABLE],
    detection: "lock per project and arguments; the session that was written last since",
    checked_against: "sources of 2026-08; not seen running",
    programs: &process::PROGRAMS,
    scan: scan::scan,
    counting: Some(&tokens::COUNTING),
    // The sessions of a project are in its own database.
    resumes_from_anywhere: false,
    ..Profile::USUAL
};

impl Adapter for Crush {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn homes(&self, environment: &Environment) -> Vec<PathBuf> {
        let in_data_home = || Some(environment.directory(DATA_HOME_VARIABLE)?.join("crush"));
        let default = || Some(environment.home()?.join(PROFILE.default_home));
        let home = environment
            .directory(HOME_VARIABLE)
            .or_else(in_data_home)
            .or_else(default);
        home.into_iter().collect()
    }

    fn session_named_by<'a>(&self, program: &Program<'a>) -> Option<&'a str> {
        // A short form is no beginning of an id: the scan finds whose it is.
        process::PROGRAMS
            .session(program)
            .filter(|named| named.contains('-'))
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let read = read_of(sketch, |database, session| {
            let newest = database.newest_messages(session, REPLIES_MAX)?;
            // Without its counts there is still the rest of it.
            Ok((newest, database.counted(session).unwrap_or_default()))
        });
        let (newest, counted) = read.found;
        let prompt = newest.iter().find(|row| row.role == "user");
        let prompted_at_ms = prompt.and_then(|prompt| prompt.created_at_ms);
        let mut replies = newest.iter().filter(|row| row.role == "assistant");
        let last = newest.first();
        let found = Description {
            title: sketch.title.clone(),
            transcript: sketch.transcript.clone(),
            started_at_ms: sketch.started_at_ms,
            last_activity_at_ms: sketch.last_record_at_ms,
            context: tokens::DIALECT.tail_of(&counted).context,
            turn: prompted_at_ms.map(|at_ms| TurnTokens {
                started_at_ms: Some(at_ms),
                output_tokens: None,
            }),
            model: replies.find_map(|row| row.model.clone().filter(|model| !model.is_empty())),
            phase: last.and_then(record::phase),
            phase_at_ms: last.and_then(|last| last.updated_at_ms),
            ..Description::default()
        };
        let problems = read.problems;
        Found { found, problems }
    }

    fn counted_files(&self, sketch: &Sketch) -> Vec<PathBuf> {
        let database = sketch.transcript.as_deref();
        database.map(with_wal).into_iter().flatten().collect()
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let mut problems = Vec::new();
        for (path, sessions) in sessions_by(sketches, |sketch| sketch.transcript.as_deref()) {
            let read = ProjectDb::read(path).and_then(|database| {
                for (at, session) in sessions {
                    let records = database.as_ref().map(|database| database.counted(session));
                    match records.transpose()?.unwrap_or_default().as_slice() {
                        [] => {}
                        records => each(at, records),
                    }
                }
                Ok(())
            });
            let problem = read.err();
            problems.extend(problem.map(|why| Problem::at(&AGENT, path, why)));
        }
        Some(problems)
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        let read = read_of(sketch, |database, session| {
            database.newest_messages(session, messages_max)
        });
        let oldest_first = read.found.iter().rev();
        let mut found: Vec<Message> = oldest_first.flat_map(record::messages_of).collect();
        found.drain(..found.len().saturating_sub(messages_max));
        let problems = read.problems;
        Found { found, problems }
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let session = sketch.key.session.as_str();
        let command = match project::data_dir_that_needs_naming(sketch) {
            Some(data_dir) => {
                // Of another directory it would be another one, or an option.
                let data_dir = data_dir.to_str().filter(|_| data_dir.is_absolute())?;
                Invocation::new(["crush", "--data-dir", data_dir, "--session", session])
            }
            None => Invocation::new(["crush", "--session", session]),
        };
        PROFILE.in_home_of(sketch, is_default_home, command)
    }

    fn watch_paths(&self, _machine: &Machine, home: &Home) -> Vec<WatchPath> {
        let data_dirs = project::listed_data_dirs(&home.root);
        let paths = std::iter::once(home.root.to_path_buf()).chain(data_dirs);
        paths.map(WatchPath::at).collect()
    }
}

/// Reads something of a session in the database of its project, if there is one.
fn read_of<T: Default>(
    sketch: &Sketch,
    read: impl FnOnce(&ProjectDb, &str) -> Result<T, String>,
) -> Found<T> {
    let Some(path) = &sketch.transcript else {
        return Found::default();
    };
    let read = ProjectDb::read(path).and_then(|database| match database {
        Some(database) => read(&database, sketch.key.session.as_str()),
        None => Ok(T::default()),
    });
    found_or_problem(read.map_err(|why| Problem::at(&AGENT, path, why)))
}
