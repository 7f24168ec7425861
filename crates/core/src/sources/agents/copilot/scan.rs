//! Scans a home: the sessions to look at, and the processes that may use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_process::{FileId, Pid};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, facts};

use super::claims::Shown;
use super::open_sessions::{self, OpenSession, OpenSessions};
use super::process_log::{self, ProcessLog};
use super::session::{self, InUse, SessionDir};
use super::{AGENT, Copilot, process};
use crate::adapter::{AgentProcess, AgentScan, Depth, Description, Home, Look, Role, is_prefix_of};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::held::{Held, file_id, which_write, who_holds};
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::uuid::UUID_BYTES;
use crate::sources::transcript::TranscriptFile;

/// How many sessions of one home are looked at.
const SESSIONS_MAX: usize = 500_000;
/// How many logs of one home are listed.
const LOGS_MAX: usize = 100_000;

/// One home's scan while it grows.
pub(super) struct Scanning<'a> {
    pub(super) scan: Scan<'a>,
    pub(super) open: BTreeMap<SessionId, OpenSession>,
    pub(super) open_path: PathBuf,
    /// The list of the sessions that are open was there and could be read as a whole.
    pub(super) is_open_known: bool,
    pub(super) open_facts: Option<FileFacts>,
    /// The logs of this home's processes.
    pub(super) logs: BTreeMap<Pid, LogFile>,
    pub(super) sessions: BTreeMap<SessionId, SessionDir>,
    pub(super) held: BTreeMap<FileId, Held>,
    /// What the last events of sessions show.
    pub(super) lasts: BTreeMap<SessionId, Description>,
    /// What each process shows.
    pub(super) shown: BTreeMap<Pid, Shown>,
    /// The processes that neither a log nor a lock connects with a session.
    pub(super) unconnected: BTreeSet<Pid>,
}

/// The log of a process.
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) facts: FileFacts,
    pub(super) log: ProcessLog,
}

/// Scans one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning::new(look, home);
    scanning.read_logs();
    let ids = scanning.ids();
    for id in ids {
        scanning.read_session(id);
    }
    scanning.ask_for_holders();
    scanning.search_for_silent_processes();
    scanning.finish()
}

impl<'a> Scanning<'a> {
    fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        let mut scan = Scan::new(AGENT, look, home);
        let open_path = home.root.join(open_sessions::NAME);
        let found = OpenSessions::read(&open_path);
        for problem in &found.problems {
            scan.problem(&open_path, problem);
        }
        let open = found.sessions.into_iter();
        Self {
            scan,
            open: open.map(|one| (one.id.clone(), one)).collect(),
            open_path,
            is_open_known: found.facts.is_some() && found.problems.is_empty(),
            open_facts: found.facts,
            logs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            held: BTreeMap::new(),
            lasts: BTreeMap::new(),
            shown: BTreeMap::new(),
            unconnected: BTreeSet::new(),
        }
    }

    /// The processes of this home that serve sessions, or may come to.
    pub(super) fn servers(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        let processes = self.scan.processes();
        processes.filter(|process| matches!(process.role, Role::Session | Role::Host))
    }

    fn sessions_directory(&self) -> PathBuf {
        self.scan.home.root.join("session-state")
    }

    /// The log of each process of this home that it has open for writing.
    fn read_logs(&mut self) {
        let mut found: Vec<(Pid, PathBuf, FileFacts)> = Vec::new();
        let mut by_directory: BTreeMap<PathBuf, Vec<&AgentProcess>> = BTreeMap::new();
        for process in self.servers() {
            let directory = process::log_directory(process, &self.scan.home.root);
            by_directory.entry(directory).or_default().push(process);
        }
        for (directory, processes) in by_directory {
            if let Err(why) = self.scan.look.machine.mounts().touchable(&directory) {
                self.scan.problem(&directory, why);
                continue;
            }
            let names = self.scan.names(&directory, LOGS_MAX);
            for name in names.texts() {
                let Some(pid) = process_log::process_in(name) else {
                    continue;
                };
                // An earlier process may have had the same PID. The process that has it open
                // now decides, not a date, which changes with the clock.
                let is_its = processes.iter().any(|process| process.process.pid == pid);
                let path = directory.join(name);
                if is_its && let Ok(facts) = facts(&path, Links::Refuse) {
                    found.push((pid, path, facts));
                }
            }
        }
        let files = found.iter().map(|(_, _, facts)| file_id(facts));
        let files: Vec<FileId> = files.collect();
        let written = which_write(self.scan.look, &files).unwrap_or_else(|error| {
            self.scan.problems.push(Problem::of(&AGENT, error));
            BTreeMap::new()
        });
        for (pid, path, facts) in found {
            let held = written.get(&file_id(&facts));
            if !held.is_some_and(|held| held.by.contains(&pid)) {
                continue;
            }
            match TranscriptFile::open(&path).and_then(|log| ProcessLog::read(&log)) {
                Ok(log) => {
                    self.logs.insert(pid, LogFile { path, facts, log });
                }
                Err(error) => self.scan.problem(&path, error.reason()),
            }
        }
    }

    /// The sessions to look at: those that were open in a terminal, that a log
    /// or arguments name; or all of them.
    fn ids(&mut self) -> BTreeSet<SessionId> {
        let opened = self.logs.values().flat_map(|file| &file.log.opened);
        let mut ids: BTreeSet<SessionId> = self.open.keys().chain(opened).cloned().collect();
        let named = self.servers().filter_map(AgentProcess::named_session);
        let (whole, prefixes): (Vec<&str>, Vec<&str>) =
            named.partition(|named| named.len() == UUID_BYTES);
        let whole = whole.into_iter().map(str::to_ascii_lowercase);
        ids.extend(whole.flat_map(|id| SessionId::parse(&id)));
        if self.scan.look.depth.is_walk() || !prefixes.is_empty() {
            let names = self.scan.names(&self.sessions_directory(), SESSIONS_MAX);
            let names = names.texts().map(session::id_in);
            for name in names.filter(|name| !name.starts_with('.')) {
                let Ok(id) = SessionId::parse(name) else {
                    continue;
                };
                let is_named = prefixes.iter().any(|prefix| is_prefix_of(prefix, &id));
                if is_named || self.scan.look.depth.reaches(&id) {
                    ids.insert(id);
                }
            }
        }
        ids
    }

    fn read_session(&mut self, id: SessionId) {
        let path = self.sessions_directory().join(id.as_str());
        if let Some(session) = SessionDir::read(self, id.clone(), path) {
            self.sessions.insert(id, session);
        }
    }

    fn ask_for_holders(&mut self) {
        let locks = self.sessions.values().flat_map(|session| &session.locks);
        let files: Vec<FileId> = locks
            .filter(|lock| lock.is_hold && !self.held.contains_key(&lock.file()))
            .map(InUse::file)
            .collect();
        match who_holds(self.scan.look, &Copilot, &files) {
            Ok(held) => self.held.extend(held),
            Err(error) => self.scan.problems.push(Problem::of(&AGENT, error)),
        }
    }

    /// A process may have no known session so far (no terminal, and nothing in its log), or
    /// may hold more sessions than are known because the list of open sessions cannot be
    /// read. Its PID is in the name of a lock: a wider search finds that.
    fn search_for_silent_processes(&mut self) {
        let servers = self.servers().map(|server| server.process.pid);
        let silent = servers.filter(|pid| !self.is_open_known || !self.is_connected(*pid));
        let silent: Vec<Pid> = silent.collect();
        if silent.is_empty() || *self.scan.look.depth == Depth::All {
            return;
        }
        let directory = self.sessions_directory();
        let names = self.scan.names(&directory, SESSIONS_MAX);
        for name in names.texts() {
            let path = directory.join(name);
            let is_its = silent.iter().any(|pid| {
                ["hold", "lock"].iter().any(|kind| {
                    facts(&path.join(format!("inuse.{pid}.{kind}")), Links::Refuse).is_ok()
                })
            });
            if is_its && let Ok(id) = SessionId::parse(name) {
                self.read_session(id);
            }
        }
        self.ask_for_holders();
    }

    /// Returns whether a log or a lock names the session of a process.
    pub(super) fn is_connected(&self, pid: Pid) -> bool {
        let file = self.logs.get(&pid);
        let mut sessions = self.sessions.values();
        file.is_some_and(|file| file.log.foreground.is_some())
            || sessions.any(|session| self.held_by(session, pid).is_some())
    }

    /// Who holds a lock.
    pub(super) fn holders_of(&self, lock: &InUse) -> &[Pid] {
        let held = self.held.get(&lock.file()).filter(|_| lock.is_hold);
        held.map(|held| held.by.as_slice()).unwrap_or_default()
    }
}
