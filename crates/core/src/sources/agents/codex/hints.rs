//! Facts about threads from the session index and the state database.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::AGENT;
use super::header::Origin;
use super::session_index::{INDEX, read_names};
use super::state_db::StateDb;
use crate::machine::problem::Problem;

/// What could not be read, and why.
pub(super) type Failure = (PathBuf, String);

/// Facts about a thread that come from outside of the thread's own files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// The rollout that continues the thread.
    pub(super) rollout: Option<PathBuf>,
    /// The directory that it works in.
    pub(super) work_dir: Option<PathBuf>,
    /// The name or title; `None` if that is just the first prompt.
    pub(super) title: Option<String>,
    /// Who started it.
    pub(super) origin: Option<Origin>,
    /// The thread that started it.
    pub(super) parent: Option<String>,
}

/// The hints of one home; the database is opened when it is first needed.
#[derive(Debug)]
pub(super) struct Hints<'a> {
    home: &'a Path,
    database: Option<Option<StateDb>>,
    of_thread: HashMap<String, Hint>,
    /// What could not be read.
    pub(super) problems: Vec<Problem>,
}

impl<'a> Hints<'a> {
    /// Hints without anything read yet.
    pub(super) fn new(home: &'a Path) -> Self {
        Self {
            home,
            database: None,
            of_thread: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// The facts known about a thread so far.
    pub(super) fn of(&self, thread: &str) -> Option<&Hint> {
        self.of_thread.get(thread)
    }

    /// Reads the names of `threads`.
    pub(super) fn read_names(&mut self, threads: &[&str]) {
        let wanted: HashSet<&str> = threads.iter().copied().collect();
        let names = read_names(self.home, |id| wanted.contains(id)).unwrap_or_else(|error| {
            self.fail((self.home.join(INDEX), error.reason()));
            HashMap::new()
        });
        for (id, name) in names {
            self.of_thread.entry(id).or_default().title = Some(name);
        }
    }

    fn fail(&mut self, (path, reason): Failure) {
        self.problems.push(Problem::at(&AGENT, &path, reason));
    }

    /// Asks the database about `threads`. `false`: there is none, or it could
    /// not be read, so that its silence means nothing.
    pub(super) fn ask_database(&mut self, threads: &[&str]) -> bool {
        if threads.is_empty() {
            return false;
        }
        if self.database.is_none() {
            let newest = StateDb::newest(self.home);
            self.database = Some(newest.unwrap_or_else(|failure| {
                self.fail(failure);
                None
            }));
        }
        let Some(Some(database)) = &self.database else {
            return false;
        };
        let mut hints = match database.hints(threads) {
            Ok(hints) => hints,
            Err(failure) => {
                self.fail(failure);
                return false;
            }
        };
        for thread in threads {
            if let Some(hint) = hints.remove(*thread) {
                let known = self.of_thread.entry((*thread).to_owned()).or_default();
                // The index has the newest name.
                let title = known.title.take().or(hint.title);
                *known = Hint { title, ..hint };
            }
        }
        true
    }
}
