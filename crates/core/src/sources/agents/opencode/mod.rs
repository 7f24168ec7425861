//! opencode (`opencode`, npm `opencode-ai`).
//!
//! What it leaves, below its data directory (`XDG_DATA_HOME/opencode`, by
//! default `~/.local/share/opencode`). Seen in opencode 1.18.33, 2026-11.
//!
//! | What | When | Says |
//! |---|---|---|
//! | `opencode.db`, table `session` | from the first prompt on, or when it is forked | id, parent, directory, title, model, version |
//! | the same, tables `message` and `part` | from then on | the conversation |
//! | `log/opencode.log` | by all processes | which *run* made or prompted which session, when |
//! | nothing | at the end, however it ends | |
//!
//! No file names a process. The log names runs, by eight hexadecimal digits, and
//! a run is a process: it writes its first line within seconds after the process
//! began, and names the directory. So a process whose first line can only be one
//! run's, and that run only its, claims what that run prompted last, as an
//! *inferred* owner (`run.rs`). Where the log is silent (`OPENCODE_LOG_LEVEL`),
//! arguments decide, or the terminal: directories and dates only make candidates.
//!
//! A log whose end is missing is like one to which nothing was added since, but for
//! what the database has: who may have gone on to a session that was used after the
//! last line is in neither for certain (`beyond.rs`).
//!
//! Traps: `session.time_updated` is no date of use: renaming a session, and the
//! first start after `git init`, renew it from any process. Only the dates of
//! messages count. `/new` makes no session, and picking another one from the list
//! shows in the terminal's title alone, before the next prompt. A fork has no parent;
//! a sub-agent has.
//! `opencode serve`, `web` and `acp` work in every directory and on many sessions.
//! Shells that it starts have `OPENCODE_PID`, which is their parent's, not theirs.
//!
//! `OPENCODE_DB` names another database; that file is a home of its own then. A
//! build of another channel has `opencode-CHANNEL.db`.

mod beyond;
mod claims;
#[cfg_attr(not(feature = "sqlite"), path = "database_without.rs")]
mod database;
mod fit;
mod hooks;
mod log;
#[cfg(feature = "sqlite")]
mod message;
mod process;
mod run;
mod scan;
#[cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "what is only found in a database")
)]
mod session;
mod sketches;

use std::path::{Path, PathBuf};

use whosup_sidecar::AgentId;

use crate::adapter::{
    Adapter, AgentScan, CommandLine, Description, Home, Hooks, Invocation, Look, Message, Profile,
    Program, Sketch, WatchPath,
};
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::folder::metadata;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("opencode");

/// The variable that moves the data of all programs.
const DATA_VARIABLE: &str = "XDG_DATA_HOME";
/// The variable that names another database.
const DATABASE_VARIABLE: &str = "OPENCODE_DB";
/// Its directory below those data.
const DIRECTORY: &str = "opencode";
/// Its database.
const DATABASE: &str = "opencode.db";

/// The adapter for opencode.
#[derive(Debug, Clone, Copy)]
pub struct OpenCode;

static PROFILE: Profile = Profile {
    id: "opencode",
    name: "opencode",
    default_home: ".local/share/opencode",
    home_variables: &[DATA_VARIABLE, DATABASE_VARIABLE],
    detection: "its log's runs, matched with processes; arguments; the terminal's title and use",
    checked_against: "1.18.33, 2026-11",
    is_quiet_when_idle: true,
    shows_title_at_once: true,
    ..Profile::USUAL
};

impl Adapter for OpenCode {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn hooks(&self) -> Option<&'static Hooks> {
        Some(&hooks::HOOKS)
    }

    fn homes(&self, environment: &Environment) -> Vec<PathBuf> {
        let default = || Some(environment.home()?.join(".local/share"));
        let data = environment.directory(DATA_VARIABLE).or_else(default);
        let Some(data) = data.map(|data| data.join(DIRECTORY)) else {
            return Vec::new();
        };
        vec![database_named_by(environment, &data).unwrap_or(data)]
    }

    fn programs(&self) -> &'static CommandLine {
        &process::PROGRAMS
    }

    fn work_dir_named_by(&self, program: &Program<'_>) -> Option<PathBuf> {
        // That of the server, wherever this process was started.
        process::is_client_without_directory(program).then(PathBuf::new)
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        scan::scan(look, home)
    }

    fn describe(&self, _look: &Look<'_>, sketch: &Sketch) -> Found<Description> {
        Found::clean(sketch.described.as_deref().cloned().unwrap_or_default())
    }

    fn messages(
        &self,
        _machine: &Machine,
        sketch: &Sketch,
        messages_max: usize,
    ) -> Found<Vec<Message>> {
        let mut problems = Vec::new();
        for path in databases_of(&sketch.key.home, &mut problems) {
            let read = database::SessionDb::read(&path)
                .and_then(|database| database.messages(sketch.key.session.as_str(), messages_max));
            match read {
                Ok(messages) if messages.is_empty() => {}
                Ok(found) => return Found { found, problems },
                Err(reason) => problems.push(Problem::at(&AGENT, &path, reason)),
            }
        }
        Found {
            found: Vec::new(),
            problems,
        }
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let command = Invocation::new(["opencode", "--session", sketch.key.session.as_str()]);
        let home = &sketch.key.home;
        Some(if is_default_home {
            command
        } else if is_database(home) {
            command.with(DATABASE_VARIABLE, home)
        } else if home.ends_with(DIRECTORY) {
            command.with(DATA_VARIABLE, home.parent().unwrap_or(home))
        } else {
            command.with(DATABASE_VARIABLE, &home.join(DATABASE))
        })
    }

    fn watch_paths(&self, _machine: &Machine, home: &Home) -> Vec<WatchPath> {
        let directory = match home.root.parent() {
            Some(parent) if is_database(&home.root) => parent,
            _ => &home.root,
        };
        let paths = [directory.to_owned(), directory.join("log")];
        paths.map(WatchPath::at).into()
    }
}

/// The database that the environment names: by its path, or by its name in the
/// data directory. One that is kept in memory is nowhere.
fn database_named_by(environment: &Environment, data: &Path) -> Option<PathBuf> {
    let named = Path::new(environment.variable(DATABASE_VARIABLE)?);
    if named == Path::new(":memory:") {
        return None;
    }
    if named.is_absolute() || named.starts_with("~") {
        return environment.resolve(named);
    }
    Some(data.join(named).components().collect())
}

/// A home that is a database, and not the directory of one.
fn is_database(home: &Path) -> bool {
    home.extension().is_some_and(|end| end == "db")
        || metadata(home).is_ok_and(|home| home.is_file())
}

/// The databases of a home: usually one.
fn databases_of(home: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    if is_database(home) {
        return vec![home.to_owned()];
    }
    match crate::sources::agents::kit::folder::names_in(home, scan::HOME_ENTRIES_MAX) {
        Ok(names) => {
            let is_its = |name: &&str| {
                let stem = name.strip_suffix(".db");
                stem.is_some_and(|stem| stem == DIRECTORY || stem.starts_with("opencode-"))
            };
            let its = names.texts().filter(is_its).take(scan::DATABASES_MAX);
            its.map(|name| home.join(name)).collect()
        }
        Err(error) => {
            problems.push(Problem::at(&AGENT, home, error));
            Vec::new()
        }
    }
}
