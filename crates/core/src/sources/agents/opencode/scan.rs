//! One home: its databases, the runs of its log, and what they claim.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::database::SessionDb;
use super::fit::{RealPaths, is_named};
use super::log;
use super::run::Runs;
use super::session::Row;
use super::{Relative, is_database};
use crate::adapter::claim::Claim;
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role};
use crate::machine::problem::{Found, Problem};

/// How many entries of a home are read.
pub(super) const HOME_ENTRIES_MAX: usize = 100_000;
/// How many databases of a home are read.
pub(super) const DATABASES_MAX: usize = 16;

/// Reads the claims and sketches of one home.
pub(super) fn scan(agent: &'static Relative, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let processes: Vec<&AgentProcess> = look.processes_of(home).collect();
    let matters =
        |process: &&AgentProcess| matches!(process.role, Role::Session | Role::Host | Role::Client);
    if *look.depth == Depth::Live && !processes.iter().any(matters) {
        return Found::default();
    }
    let mut scanning = Scanning {
        agent,
        look,
        home,
        processes,
        runs: None,
        databases: Vec::new(),
        is_all_read: true,
        rows: Vec::new(),
        strayed: BTreeMap::new(),
        claims: Vec::new(),
        real_paths: RealPaths(look.machine.mounts()),
        problems: Vec::new(),
    };
    scanning.read_log();
    scanning.read_databases();
    scanning.find_strayed();
    scanning.claim_by_runs();
    scanning.claim_for_unknown_hosts();
    let sketches = scanning.sketches();
    Found {
        found: AgentScan::of(scanning.claims, sketches),
        problems: scanning.problems,
    }
}

/// What was found of one home so far.
pub(super) struct Scanning<'a> {
    pub(super) agent: &'static Relative,
    pub(super) look: &'a Look<'a>,
    pub(super) home: &'a Home,
    pub(super) processes: Vec<&'a AgentProcess>,
    /// The runs of the log; `None` if there is no log, or no process to match.
    pub(super) runs: Option<Runs>,
    pub(super) databases: Vec<(PathBuf, SessionDb)>,
    /// Every database could be read.
    pub(super) is_all_read: bool,
    pub(super) rows: Vec<Row>,
    /// The terminals that may have moved to sessions outside of the log, with the candidate
    /// sessions.
    pub(super) strayed: BTreeMap<Pid, BTreeSet<SessionId>>,
    pub(super) claims: Vec<Claim>,
    pub(super) real_paths: RealPaths<'a>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Scanning<'a> {
    fn read_log(&mut self) {
        let began = self
            .processes
            .iter()
            .map(|process| process.process.began_at_ms.clone().ok());
        let Some(Some(since_ms)) = began.min() else {
            return;
        };
        // A process with an unknown start matches no run.
        let root = &self.home.root;
        let directory = if is_database(root) {
            root.parent().unwrap_or(root)
        } else {
            root
        };
        let path = directory.join("log").join("opencode.log");
        match log::read(&path, since_ms.saturating_sub(1_000), self.agent) {
            Ok(read) => {
                self.runs = read.map(|log| Runs::new(log, self.look, &self.processes));
            }
            Err(error) => self.problem(&path, error.reason()),
        }
    }

    fn read_databases(&mut self) {
        for path in self.agent.databases_of(&self.home.root, &mut self.problems) {
            let read = SessionDb::read(&path).and_then(|database| {
                let sessions = database.sessions()?;
                Ok((database, sessions))
            });
            match read {
                Ok((database, sessions)) => {
                    for message in sessions.wrong {
                        self.problem(&path, message);
                    }
                    let at = self.databases.len();
                    let rows = sessions.rows.into_iter().map(|row| Row {
                        database: at,
                        ..row
                    });
                    self.rows.extend(rows);
                    self.databases.push((path, database));
                }
                Err(reason) => {
                    self.is_all_read = false;
                    self.problem(&path, reason);
                }
            }
        }
        // A session that was moved to another database is listed once.
        self.rows
            .sort_by(|a, b| a.id.cmp(&b.id).then(b.updated_at_ms.cmp(&a.updated_at_ms)));
        self.rows.dedup_by(|later, first| later.id == first.id);
        self.read_dates();
    }

    /// Reads the dates of the last messages: of all sessions, or of those that a process may
    /// serve.
    fn read_dates(&mut self) {
        let is_every = self.look.depth.is_walk() || self.unknown_hosts().next().is_some();
        let seeking: Vec<&AgentProcess> = self.of_role(Role::Session).collect();
        let log_ends_at_ms = self.runs.as_ref().and_then(|runs| runs.log.ends_at_ms);
        let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            let is_beyond_log = log_ends_at_ms.is_some_and(|end| row.updated_at_ms > Some(end));
            let is_wanted = is_every
                || is_beyond_log
                || self.is_worked_on(row.id.as_str())
                || seeking.iter().any(|process| {
                    self.real_paths.are_beside(process, row) || is_named(process, row)
                });
            if is_wanted {
                wanted.entry(row.database).or_default().push(at);
            }
        }
        for (database, places) in wanted {
            let ids: Vec<&str> = places
                .iter()
                .filter_map(|at| Some(self.rows.get(*at)?.id.as_str()))
                .collect();
            let Some(Ok(dates)) = self
                .databases
                .get(database)
                .map(|(_, database)| database.last_messages(&ids))
            else {
                continue;
            };
            for at in places {
                if let Some(row) = self.rows.get_mut(at) {
                    row.last_message_at_ms = dates.get(row.id.as_str()).copied();
                }
            }
        }
    }

    fn problem(&mut self, path: &Path, message: impl std::fmt::Display) {
        let agent = self.agent.id();
        self.problems.push(Problem::at(&agent, path, message));
    }

    pub(super) fn of_role(
        &self,
        role: Role,
    ) -> impl Iterator<Item = &'a AgentProcess> + use<'a, '_> {
        self.processes
            .iter()
            .copied()
            .filter(move |process| process.role == role)
    }

    /// Some run that was read worked on it.
    fn is_worked_on(&self, session: &str) -> bool {
        let runs = self.runs.as_ref();
        runs.is_some_and(|runs| runs.last_on(session).is_some())
    }

    pub(super) fn unknown_hosts(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a, '_> {
        self.of_role(Role::Host)
            .filter(move |process| !self.is_known(process))
    }

    pub(super) fn row(&self, session: &str) -> Option<&Row> {
        let at = self
            .rows
            .binary_search_by(|row| row.id.as_str().cmp(session))
            .ok()?;
        self.rows.get(at)
    }
}
