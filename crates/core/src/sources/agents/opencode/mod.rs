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
//! began, and names the directory. The solver matches both; a process of which the run
//! is known claims what that run prompted last, as an *inferred* owner. Where the log is
//! silent (`OPENCODE_LOG_LEVEL`), arguments decide, or the terminal: directories and dates
//! only make candidates.
//!
//! A part of the log may be missing. The database shows that where it has a use of a session
//! that the log lacks: a terminal that logged nothing since may have moved to that session,
//! and is in neither for certain (`beyond.rs`).
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
//!
//! Other agents were made from opencode. What differs is their `Relative`.

mod beyond;
mod claims;
mod database;
mod fit;
mod hooks;
mod log;
mod message;
pub(super) mod process;
mod run;
mod scan;
mod session;
mod sketches;
mod tokens;

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::AgentId;

use self::database::SessionDb;
use crate::adapter::{
    Adapter, AgentScan, Home, Invocation, Look, Message, Profile, Program, Sketch, WatchPath,
};
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::database::{sessions_by, with_wal};
use crate::sources::agents::kit::folder::{list_or_report, metadata};
use crate::sources::agents::kit::reading::found_or_problem;

/// The variable that moves the data of all programs.
const DATA_VARIABLE: &str = "XDG_DATA_HOME";

/// The adapter for opencode, or for an agent that was made from it.
#[derive(Debug, Clone, Copy)]
pub struct OpenCode(pub(super) &'static Relative);

/// opencode itself.
pub const OPENCODE: OpenCode = OpenCode(&Relative {
    profile: Profile {
        id: "opencode",
        name: "opencode",
        default_home: ".local/share/opencode",
        home_variables: &[DATA_VARIABLE, "OPENCODE_DB"],
        checked_against: "1.18.33, 2026-11",
        programs: &process::PROGRAMS,
        hooks: Some(&hooks::HOOKS),
        ..PROFILE
    },
    database_variable: "OPENCODE_DB",
    other_databases: &["opencode-"],
    terminal_title: ("OC | ", "\u{2026}"),
    loads_first: false,
    terminals_join_server: false,
});

/// What all relatives have in common.
pub(super) const PROFILE: Profile = Profile {
    detection: "its log's runs, matched with processes; arguments; the terminal's title and use",
    is_quiet_when_idle: true,
    shows_title_at_once: true,
    counting: Some(&tokens::COUNTING),
    ..Profile::USUAL
};

/// What differs between opencode and the agents that were made from it. The id of each
/// is also the name of its command, of its data directory and of its database.
#[derive(Debug)]
pub(super) struct Relative {
    pub(super) profile: Profile,
    /// The variable that names another database.
    pub(super) database_variable: &'static str,
    /// What the names of the databases of other builds begin with.
    pub(super) other_databases: &'static [&'static str],
    /// What the title of a terminal begins with that shows a titled session, and what a
    /// long one ends with.
    pub(super) terminal_title: (&'static str, &'static str),
    /// Not only a server loads its configuration before it opens a directory.
    pub(super) loads_first: bool,
    /// A terminal without options shows sessions of a server that runs in its home.
    pub(super) terminals_join_server: bool,
}

impl Adapter for OpenCode {
    fn profile(&self) -> &'static Profile {
        &self.0.profile
    }

    fn homes(&self, environment: &Environment) -> Vec<PathBuf> {
        let default = || Some(environment.home()?.join(".local/share"));
        let data = environment.directory(DATA_VARIABLE).or_else(default);
        let home = data.map(|data| {
            let data = data.join(self.0.profile.id);
            self.0.database_named_by(environment, &data).unwrap_or(data)
        });
        home.into_iter().collect()
    }

    fn work_dir_named_by(&self, program: &Program<'_>) -> Option<PathBuf> {
        // That of the server, wherever this process was started.
        process::is_client_without_directory(self.0.profile.programs, program).then(PathBuf::new)
    }

    fn name_in_title<'a>(&self, title: &'a str) -> &'a str {
        // A sign of the phase may stand before it.
        match title.split_once(' ') {
            Some((_, name)) if name.starts_with(self.0.terminal_title.0) => name,
            _ => title,
        }
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        scan::scan(self.0, look, home)
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        let mut problems = Vec::new();
        let mut found = Vec::new();
        for path in self.0.databases_of(&sketch.key.home, &mut problems) {
            if found.is_empty() {
                let id = sketch.key.session.as_str();
                let read = self
                    .0
                    .read(&path, |database| database.messages(id, messages_max));
                found = read.take(&mut problems);
            }
        }
        Found { found, problems }
    }

    fn counted_files(&self, sketch: &Sketch) -> Vec<PathBuf> {
        let databases = self.0.databases_of(&sketch.key.home, &mut Vec::new());
        databases.iter().flat_map(|path| with_wal(path)).collect()
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let mut problems = Vec::new();
        for (home, sessions) in sessions_by(sketches, |sketch| Some(&*sketch.key.home)) {
            for path in self.0.databases_of(home, &mut problems) {
                let read = self.0.read(&path, |database| {
                    for (at, id) in &sessions {
                        let records = database.records(id, None)?;
                        if !records.is_empty() {
                            each(*at, &records);
                        }
                    }
                    Ok(())
                });
                read.take(&mut problems);
            }
        }
        Some(problems)
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let name = self.0.profile.id;
        let command = Invocation::new([name, "--session", sketch.key.session.as_str()]);
        let home = &sketch.key.home;
        Some(if is_default_home {
            command
        } else if is_database(home) {
            command.with(self.0.database_variable, home)
        } else if home.ends_with(name) {
            command.with(DATA_VARIABLE, home.parent().unwrap_or(home))
        } else {
            let database = home.join(format!("{name}.db"));
            command.with(self.0.database_variable, &database)
        })
    }

    fn watch_paths(&self, _machine: &Machine, home: &Home) -> Vec<WatchPath> {
        let directory = directory_of(&home.root);
        let paths = [directory.to_owned(), directory.join("log")];
        paths.map(WatchPath::at).into()
    }
}

impl Relative {
    const fn id(&self) -> AgentId {
        AgentId::from_static(self.profile.id)
    }

    /// The database that the environment names: by its path, or by its name in the
    /// data directory. One that is kept in memory is nowhere.
    fn database_named_by(&self, environment: &Environment, data: &Path) -> Option<PathBuf> {
        let named = Path::new(environment.variable(self.database_variable)?);
        if named == Path::new(":memory:") {
            return None;
        }
        if named.is_absolute() || named.starts_with("~") {
            return environment.resolve(named);
        }
        Some(data.join(named).components().collect())
    }

    /// The databases of a home: usually one.
    fn databases_of(&self, home: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
        if is_database(home) {
            return vec![home.to_owned()];
        }
        let mut report = |why: String| problems.push(Problem::at(&self.id(), home, why));
        let names = list_or_report(home, scan::HOME_ENTRIES_MAX, &mut report);
        let is_its = |name: &&str| {
            let stem = name.strip_suffix(".db").unwrap_or_default();
            let mut others = self.other_databases.iter();
            stem == self.profile.id || others.any(|start| stem.starts_with(start))
        };
        let mut its = names.texts().filter(is_its);
        let databases = its.by_ref().take(scan::DATABASES_MAX);
        let databases = databases.map(|name| home.join(name)).collect();
        if its.next().is_some() {
            report(format!(
                "it has more than {} databases",
                scan::DATABASES_MAX
            ));
        }
        databases
    }

    /// Reads something in the database at `path`.
    fn read<T: Default>(
        &self,
        path: &Path,
        read: impl FnOnce(&SessionDb) -> Result<T, String>,
    ) -> Found<T> {
        let read = SessionDb::read(path).and_then(|database| read(&database));
        found_or_problem(read.map_err(|why| Problem::at(&self.id(), path, why)))
    }
}

/// The directory that the database and the log of a home are in.
fn directory_of(home: &Path) -> &Path {
    let is_inside = is_database(home);
    home.parent().filter(|_| is_inside).unwrap_or(home)
}

/// A home that is a database, and not the directory of one.
fn is_database(home: &Path) -> bool {
    home.extension().is_some_and(|end| end == "db")
        || metadata(home).is_ok_and(|home| home.is_file())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn databases_beyond_the_bound_are_reported() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..=scan::DATABASES_MAX {
            let name = format!("opencode-{number:02}.db");
            std::fs::write(home.path().join(name), "").unwrap();
        }
        let mut problems = Vec::new();
        let databases = OPENCODE.0.databases_of(home.path(), &mut problems);
        assert_eq!(databases.len(), scan::DATABASES_MAX);
        let messages: Vec<_> = problems.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["it has more than 16 databases"]);
    }
}
