//! The only access of a scan to the world.
//!
//! Comes in: this computer, or a test's stand-in for it. Goes out: its environment, clock,
//! [process table](whosup_process), [mounts], and the answers of [commands](command), each
//! wait bounded. [`reachable`] avoids mounts that hang, and [`problem`] reports failed looks.

pub mod command;
pub mod composed;
pub mod mounts;
pub mod observer;
pub(crate) mod parallel;
pub mod problem;
pub mod reachable;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Process, ProcessTable};

use crate::machine::command::{Commands, SystemCommands};
use crate::machine::mounts::Mounts;
use crate::machine::observer::{About, Observer, Step};

/// The clock of this machine, in milliseconds since 1970. A [`Machine`] keeps the time of its
/// look: [`Machine::now_ms`].
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// All that one scan may touch on this computer: home, environment, clock, process table,
/// mounts and commands. Files are read only below the paths that these lead to.
///
/// A test gives a scan another world by building another `Machine`.
#[derive(Debug)]
pub struct Machine {
    environment: Environment,
    now_ms: i64,
    table: ProcessTable,
    mounts: Mounts,
    commands: Arc<dyn Commands>,
    observer: Option<Arc<dyn Observer>>,
}

/// The variables that a program was started with, and the directories for relative values:
/// ours, or those of an agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    home: Option<PathBuf>,
    cwd: Option<PathBuf>,
    /// The home belongs to another process, and lies on a mount that may not answer.
    is_home_barred: bool,
}

impl Environment {
    /// An environment of a home directory and some variables.
    pub fn new(
        home: Option<PathBuf>,
        cwd: Option<PathBuf>,
        variables: impl IntoIterator<Item = (String, OsString)>,
    ) -> Self {
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        Self {
            variables,
            home,
            cwd,
            is_home_barred: false,
        }
    }

    /// This program's own environment.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn here() -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let cwd = std::env::current_dir().ok();
        Self::new(home, cwd, variables)
    }

    /// The value of a variable; an empty one counts as unset.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(name)
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// The user's home directory.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The home directory, if access to it can't block for ever.
    #[must_use]
    pub fn touchable_home(&self) -> Option<&Path> {
        self.home().filter(|_| !self.is_home_barred)
    }

    /// A variable that names a directory: `~` means home, relative values start at the directory
    /// that the program was started in, and a slash at the end is dropped. Empty = unset.
    #[must_use]
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        self.resolve(Path::new(self.variable(name)?))
    }

    /// The directories that programs understand the variable to name: [`Self::directory`];
    /// where there is a `~`, the directory of that name, which Claude Code, Codex and kimi-cli
    /// make (read in 2.1.197, 0.171.0 and 1.50.0); and the composed Unicode form, which Claude
    /// Code makes of any value.
    #[must_use]
    pub fn readings(&self, name: &str) -> Vec<PathBuf> {
        let value = self.variable(name).map(Path::new);
        let is_in_home = value.is_some_and(|value| value.starts_with("~"));
        let literal = self.cwd.as_ref().filter(|_| is_in_home);
        let literal = literal.zip(value).map(|(cwd, value)| cwd.join(value));
        let mut readings: Vec<PathBuf> = self.directory(name).into_iter().chain(literal).collect();
        let others: Vec<PathBuf> = readings.iter().cloned().map(composed::composed).collect();
        readings.extend(others);
        let mut seen = BTreeSet::new();
        readings.retain(|path| seen.insert(path.clone()));
        readings
    }

    /// A directory that a configuration file names, by the rules of [`Environment::directory`];
    /// `None` if it is relative to an unknown directory.
    #[must_use]
    pub fn resolve(&self, value: &Path) -> Option<PathBuf> {
        let path = match value.strip_prefix("~") {
            Ok(rest) => self.home.as_ref()?.join(rest),
            Err(_) if value.is_absolute() => value.to_owned(),
            Err(_) => self.cwd.as_ref()?.join(value),
        };
        Some(path.components().collect())
    }

    /// A directory of the XDG base directory specification: the variable if it is absolute (as
    /// the specification requires), else `fallback` below home.
    #[must_use]
    pub fn xdg_directory(&self, name: &str, fallback: &str) -> Option<PathBuf> {
        self.directory(name)
            .filter(|_| {
                self.variable(name)
                    .is_some_and(|value| Path::new(value).is_absolute())
            })
            .or_else(|| Some(self.home.as_ref()?.join(fallback)))
    }
}

impl Machine {
    /// A machine put together from its parts.
    #[must_use]
    pub fn new(
        environment: Environment,
        now_ms: i64,
        table: ProcessTable,
        mounts: Mounts,
        commands: Arc<dyn Commands>,
    ) -> Self {
        if let Some(home) = environment.home() {
            mounts.rely_on(home);
        }
        Self {
            environment,
            now_ms,
            table,
            mounts,
            commands,
            observer: None,
        }
    }

    /// The same machine, with an observer of what is looked at.
    #[must_use]
    pub fn followed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self {
            observer: Some(observer),
            ..self
        }
    }

    /// Begins a step of a look.
    pub(crate) fn step(&self, about: About<'_>) -> Step {
        Step::begin(self.observer.as_deref(), about)
    }

    /// This computer, now: looks at the process table once.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "when a look begins")]
    pub fn here() -> Self {
        Self::new(
            Environment::here(),
            now_ms(),
            ProcessTable::look(whosup_process::system_backend()),
            Mounts::of_this_machine(),
            Arc::new(SystemCommands),
        )
    }

    /// The environment of the calling process.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// When this look was taken, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The process table of this look.
    #[must_use]
    pub fn table(&self) -> &ProcessTable {
        &self.table
    }

    /// What is mounted where.
    #[must_use]
    pub fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    /// Runs external commands (pane hosts), bounded.
    #[must_use]
    pub fn commands(&self) -> &Arc<dyn Commands> {
        &self.commands
    }

    /// The environment of a process, for these `names` and `HOME`. `None` if it can't be read.
    #[must_use]
    pub fn environment_of(&self, process: &Process, names: &[&str]) -> Option<Environment> {
        let mut wanted = vec!["HOME"];
        wanted.extend(names);
        let variables = self.table.environment(process, &wanted).ok()?;
        let home = variables
            .iter()
            .find(|(name, value)| name == "HOME" && !value.is_empty())
            .map(|(_, value)| PathBuf::from(value));
        let cwd = self.table.details(process).cwd.clone().ok();
        let is_home_barred = home
            .as_deref()
            .is_some_and(|home| self.mounts.touchable(home).is_err());
        Some(Environment {
            is_home_barred,
            ..Environment::new(home, cwd, variables)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_may_be_understood_in_several_ways() {
        let readings = |value: &str| {
            let (home, cwd) = (PathBuf::from("/home/dev"), PathBuf::from("/w"));
            let variable = ("V".to_owned(), OsString::from(value));
            Environment::new(Some(home), Some(cwd), [variable]).readings("V")
        };
        assert_eq!(readings(""), <[PathBuf; 0]>::default());
        assert_eq!(readings("/h/cc/"), [PathBuf::from("/h/cc")]);
        assert_eq!(readings("cc"), [PathBuf::from("/w/cc")]);
        let of_tilde = ["/home/dev/cc", "/w/~/cc"].map(PathBuf::from);
        assert_eq!(readings("~/cc"), of_tilde);
        let of_letter = ["/h/cafe\u{301}", "/h/caf\u{e9}"].map(PathBuf::from);
        assert_eq!(readings("/h/cafe\u{301}"), of_letter);
    }
}
