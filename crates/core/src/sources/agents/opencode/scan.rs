//! One home: its databases, the runs of its log, and what they claim.

use std::path::PathBuf;

use super::database::SessionDb;
use super::fit::{RealPaths, is_named, is_since};
use super::run::Runs;
use super::session::Row;
use super::{Relative, directory_of, log};
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role};
use crate::machine::problem::Found;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::unlogged::Strayed;

/// How many entries of a home are read.
pub(super) const HOME_ENTRIES_MAX: usize = 100_000;
/// How many databases of a home are read.
pub(super) const DATABASES_MAX: usize = 16;

/// Reads the claims and sketches of one home.
pub(super) fn scan(agent: &'static Relative, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let matters =
        |process: &AgentProcess| matches!(process.role, Role::Session | Role::Host | Role::Client);
    if *look.depth == Depth::Live && !look.processes_of(home).any(matters) {
        return Found::default();
    }
    let mut scan = Scan::new(agent.id(), look, home);
    let mut scanning = Scanning {
        agent,
        runs: read_runs(&mut scan, agent),
        scan,
        databases: Vec::new(),
        is_all_read: true,
        rows: Vec::new(),
        strayed: Strayed::default(),
        real_paths: RealPaths(look.machine.mounts()),
    };
    scanning.read_databases();
    scanning.find_strayed();
    scanning.claim_all();
    let sketches = scanning.sketches();
    scanning.scan.finish_with(sketches)
}

/// What was found of one home so far.
pub(super) struct Scanning<'a> {
    pub(super) agent: &'static Relative,
    pub(super) scan: Scan<'a>,
    /// The runs of the log; `None` if there is no log, or no process to match.
    pub(super) runs: Option<Runs>,
    pub(super) databases: Vec<(PathBuf, SessionDb)>,
    /// Every database could be read.
    pub(super) is_all_read: bool,
    pub(super) rows: Vec<Row>,
    pub(super) strayed: Strayed,
    pub(super) real_paths: RealPaths<'a>,
}

/// When the first process of a home began; `None` if that is not known of all.
pub(super) fn first_began_at_ms(scan: &Scan<'_>) -> Option<i64> {
    let began = scan.look.processes_of(scan.home);
    let began = began.map(|process| process.process.began_ms());
    began.min().flatten()
}

fn read_runs(scan: &mut Scan<'_>, agent: &Relative) -> Option<Runs> {
    // A process with an unknown start matches no run.
    let since_ms = first_began_at_ms(scan)?.saturating_sub(1_000);
    let path = directory_of(&scan.home.root).join("log/opencode.log");
    match log::read(&path, since_ms, agent) {
        Ok(log) => log.map(|log| Runs::new(log, scan)),
        Err(error) => {
            scan.problem(&path, error.reason());
            None
        }
    }
}

impl<'a> Scanning<'a> {
    pub(super) fn processes(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        self.scan.look.processes_of(self.scan.home)
    }

    fn read_databases(&mut self) {
        let problems = &mut self.scan.problems;
        for path in self.agent.databases_of(&self.scan.home.root, problems) {
            let read = SessionDb::read(&path).and_then(|db| Ok((db.sessions()?, db)));
            match read {
                Ok((sessions, database)) => {
                    for message in sessions.wrong {
                        self.scan.problem(&path, message);
                    }
                    for mut row in sessions.rows {
                        row.database = self.databases.len();
                        self.rows.push(row);
                    }
                    self.databases.push((path, database));
                }
                Err(reason) => {
                    self.is_all_read = false;
                    self.scan.problem(&path, reason);
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
        let mut rows = std::mem::take(&mut self.rows);
        let hosts = || self.scan.of_role(Role::Host);
        let is_every = self.scan.look.depth.is_walk() || hosts().any(|host| !self.is_known(host));
        let hosts_began = hosts().filter_map(|host| host.process.began_at_ms.clone().ok());
        let hosts_began_ms = hosts_began.min();
        let runs = self.runs.as_ref();
        let is_wanted = |row: &Row| {
            let is_of_host = hosts_began_ms.is_some_and(|began| row.updated_at_ms >= Some(began));
            let is_worked_on = || runs.is_some_and(|runs| runs.last_on(row.id.as_str()).is_some());
            let may_serve =
                |its: &AgentProcess| self.real_paths.are_beside(its, row) || is_named(its, row);
            let mut terminals = self.scan.of_role(Role::Session);
            let mut clients = self.scan.of_role(Role::Client);
            let mut is_shown = || clients.any(|client| is_named(client, row));
            is_every || is_of_host || is_worked_on() || terminals.any(may_serve) || is_shown()
        };
        for (at, (_, database)) in self.databases.iter().enumerate() {
            let its = rows.iter_mut().filter(|row| row.database == at);
            let mut wanted: Vec<&mut Row> = its.filter(|row| is_wanted(row)).collect();
            let ids: Vec<&str> = wanted.iter().map(|row| row.id.as_str()).collect();
            let dates = database.last_messages(&ids).unwrap_or_default();
            for row in &mut wanted {
                row.last_message_at_ms = dates.get(row.id.as_str()).copied();
            }
        }
        self.rows = rows;
    }

    /// The session was used in the directory of a process since that began.
    pub(super) fn was_used_beside(&self, process: &AgentProcess, row: &Row) -> bool {
        is_since(process, row) && self.real_paths.are_beside(process, row)
    }

    pub(super) fn row(&self, session: &str) -> Option<&Row> {
        let by_id = |row: &Row| row.id.as_str().cmp(session);
        let at = self.rows.binary_search_by(by_id).ok()?;
        self.rows.get(at)
    }
}
