//! Scans a home: the sessions to look at, and the processes that may use them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use whosup_process::{FileId, Pid};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, facts};

use super::open_sessions::{self, OpenSession, OpenSessions};
use super::process_log::{self, ProcessLog};
use super::session::{self, SessionDir};
use super::{AGENT, Copilot, process};
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::{Names, list_or_report};
use crate::sources::agents::kit::held::{Held, which_write, who_holds};
use crate::sources::transcript::TranscriptFile;

/// How many sessions of one home are looked at.
const SESSIONS_MAX: usize = 500_000;
/// How many logs of one home are listed.
const LOGS_MAX: usize = 100_000;

/// One home's scan while it grows.
pub(super) struct Scanning<'a> {
    pub(super) look: &'a Look<'a>,
    pub(super) home: &'a Home,
    pub(super) open: BTreeMap<SessionId, OpenSession>,
    pub(super) open_path: PathBuf,
    /// The list of the sessions that are open was there and could be read as a whole.
    pub(super) is_open_known: bool,
    pub(super) open_facts: Option<FileFacts>,
    /// The facts in the logs of this home's processes, and of these files.
    pub(super) logs: BTreeMap<Pid, (PathBuf, FileFacts, ProcessLog)>,
    pub(super) sessions: BTreeMap<SessionId, SessionDir>,
    pub(super) held: BTreeMap<FileId, Held>,
    pub(super) problems: Vec<Problem>,
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
        let open_path = home.root.join(open_sessions::NAME);
        let OpenSessions {
            sessions,
            facts,
            problems,
        } = OpenSessions::read(&open_path);
        let mut scanning = Self {
            look,
            home,
            open: sessions
                .into_iter()
                .map(|one| (one.id.clone(), one))
                .collect(),
            open_path: open_path.clone(),
            is_open_known: facts.is_some() && problems.is_empty(),
            open_facts: facts,
            logs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            held: BTreeMap::new(),
            problems: Vec::new(),
        };
        for problem in problems {
            scanning.problem(&open_path, problem);
        }
        scanning
    }

    pub(super) fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    /// The processes of this home that serve sessions, or may come to.
    pub(super) fn servers(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        self.look
            .processes_of(self.home)
            .filter(|process| matches!(process.role, Role::Session | Role::Host))
    }

    fn sessions_directory(&self) -> PathBuf {
        self.home.root.join("session-state")
    }

    /// The log of each process of this home that it has open for writing.
    fn read_logs(&mut self) {
        let mut found: Vec<(Pid, PathBuf, FileFacts)> = Vec::new();
        let mut by_directory: BTreeMap<PathBuf, Vec<&AgentProcess>> = BTreeMap::new();
        for process in self.servers() {
            let directory = process::log_directory(process, &self.home.root);
            by_directory.entry(directory).or_default().push(process);
        }
        for (directory, processes) in by_directory {
            if let Err(why) = self.look.machine.mounts().touchable(&directory) {
                self.problems.push(Problem::at(&AGENT, &directory, why));
                continue;
            }
            let names = self.names(&directory, LOGS_MAX);
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
        let file_of = |facts: &FileFacts| FileId {
            device: facts.device,
            inode: facts.inode,
        };
        let files: Vec<FileId> = found.iter().map(|(_, _, facts)| file_of(facts)).collect();
        let written = match which_write(self.look, &files) {
            Ok(written) => written,
            Err(error) => {
                self.problems.push(Problem::of(&AGENT, error));
                return;
            }
        };
        for (pid, path, facts) in found {
            if !written
                .get(&file_of(&facts))
                .is_some_and(|held| held.by.contains(&pid))
            {
                continue;
            }
            match TranscriptFile::open(&path).and_then(|log| ProcessLog::read(&log)) {
                Ok(log) => {
                    self.logs.insert(pid, (path, facts, log));
                }
                Err(error) => self.problem(&path, error.reason()),
            }
        }
    }

    /// The sessions to look at: those that were open in a terminal, that a log
    /// or arguments name; or all of them.
    fn ids(&mut self) -> BTreeSet<SessionId> {
        let opened = self.logs.values().flat_map(|(_, _, log)| &log.opened);
        let mut ids: BTreeSet<SessionId> = self.open.keys().chain(opened).cloned().collect();
        let mut prefixes = Vec::new();
        for server in self.servers() {
            match process::PROGRAMS.session(&server.program()) {
                Some(named) if named.len() == process::ID_CHARS => {
                    ids.extend(SessionId::parse(named));
                }
                Some(prefix) => prefixes.push(prefix),
                None => {}
            }
        }
        let is_walk = self.look.depth.is_walk();
        if is_walk || !prefixes.is_empty() {
            let directory = self.sessions_directory();
            let names = self.names(&directory, SESSIONS_MAX);
            let names = names.texts().map(session::id_in);
            for name in names.filter(|name| !name.starts_with('.')) {
                let is_named = prefixes.iter().any(|prefix| name.starts_with(prefix));
                match SessionId::parse(name) {
                    Ok(id) if is_named || self.look.depth.reaches(&id) => {
                        ids.insert(id);
                    }
                    _ => {}
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
            .map(super::session::InUse::file)
            .collect();
        match who_holds(self.look, &Copilot, &files) {
            Ok(held) => self.held.extend(held),
            Err(error) => self.problems.push(Problem::of(&AGENT, error)),
        }
    }

    /// A process may have no known session so far (no terminal, and nothing in its log), or
    /// may hold more sessions than are known because the list of open sessions cannot be
    /// read. Its PID is in the name of a lock: a wider search finds that.
    fn search_for_silent_processes(&mut self) {
        let silent: Vec<Pid> = self
            .servers()
            .map(|server| server.process.pid)
            .filter(|pid| !self.is_connected(*pid) || !self.is_open_known)
            .collect();
        if silent.is_empty() || *self.look.depth == Depth::All {
            return;
        }
        let directory = self.sessions_directory();
        let names = self.names(&directory, SESSIONS_MAX);
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
        let is_in_log = self
            .logs
            .get(&pid)
            .is_some_and(|(_, _, log)| log.in_front().is_some());
        is_in_log || self.sessions_held_by(pid).next().is_some()
    }

    /// The sessions that a process holds.
    pub(super) fn sessions_held_by(&self, pid: Pid) -> impl Iterator<Item = &SessionDir> {
        self.sessions.values().filter(move |session| {
            session
                .locks
                .iter()
                .any(|lock| self.holders_of(lock).contains(&pid))
        })
    }

    /// Who holds a lock.
    pub(super) fn holders_of(&self, lock: &super::session::InUse) -> &[Pid] {
        let held = self.held.get(&lock.file()).filter(|_| lock.is_hold);
        held.map(|held| held.by.as_slice()).unwrap_or_default()
    }

    fn names(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_or_report(directory, entries_max, |message| {
            self.problem(directory, message)
        })
    }
}
