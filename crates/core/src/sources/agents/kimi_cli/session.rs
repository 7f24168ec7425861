//! The session directories: `sessions/FOLDER/SESSION/`.

mod directory;
mod folder;
mod search;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::file::ReadFileError;
use whosup_sidecar::{ReadSidecarError, SessionId, SidecarPid, read_sidecar_in};

use super::history::History;
use super::log::Log;
use super::logs;
use super::untouched::BEGAN_SLACK_MS;
use super::work_dir::{FolderKind, folder_of};
use super::{AGENT, process, sidecar, wire, work_dir};
use crate::adapter::claim::{CLOCK_SLACK_MS, Claim, SessionKey};
use crate::adapter::phase::PhaseFact;
use crate::adapter::{AgentProcess, AgentScan, Home, Look, Role, Sketch, Unclaimed};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::sidecar_facts;
use crate::sources::trust::trust_of;

use directory::SessionDir;
pub(super) use directory::{Dates, below};

/// How many folders are looked at.
const FOLDERS_MAX: usize = 100_000;

/// The name of the transcript in a session's directory.
pub(super) const WIRE: &str = "wire.jsonl";
/// The name of the sidecar there.
pub(super) const SIDECAR: &str = "runtime.json";

/// One home's scan while it grows.
pub(super) struct Reading<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    /// The local directories that are known, by their folders.
    work_dirs: HashMap<String, PathBuf>,
    claims: Vec<Box<Claim>>,
    sketches: OnePerSession,
    /// Sessions that have a sidecar which cannot be read.
    unread: BTreeSet<SessionId>,
    /// The log, once it was looked for.
    log: Option<Option<Log>>,
    problems: Vec<Problem>,
}

/// What the sidecar of a session shows besides its claim.
struct FromSidecar {
    /// The process that it names; `None` if that has released the session.
    pid: Option<Pid>,
    work_dir: PathBuf,
    agent_version: Option<String>,
    endpoint: Option<String>,
    facts: Vec<PhaseFact>,
}

/// Which sidecars make claims.
#[derive(Clone, Copy)]
enum Keep<'a> {
    All,
    Naming(&'a [Pid]),
}

impl<'a> Reading<'a> {
    pub(super) fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        let mut reading = Self {
            look,
            home,
            work_dirs: HashMap::new(),
            claims: Vec::new(),
            sketches: OnePerSession::new(|path| wire::DIALECT.said(path)),
            unread: BTreeSet::new(),
            log: None,
            problems: Vec::new(),
        };
        if look.depth.is_walk() {
            match work_dir::read(&home.root) {
                Ok(work_dirs) => reading.work_dirs = work_dirs,
                Err(error) => reading.problem(&home.root.join("kimi.json"), error),
            }
        }
        // The kernel shows the directory of a process without the list.
        for process in look.processes_of(home) {
            for path in process.work_dirs() {
                if let Some(folder) = folder_of(path) {
                    reading.work_dirs.insert(folder, path.to_owned());
                }
            }
        }
        reading
    }

    /// Reads the folders in which processes work, or all folders.
    pub(super) fn walk(&mut self) {
        let seekers_of = self.seekers_of();
        let is_all = self.look.depth.is_walk();
        let folders = if is_all {
            self.names(&self.sessions(), FOLDERS_MAX)
                .texts()
                .map(str::to_owned)
                .collect()
        } else {
            let mut folders: Vec<String> = seekers_of.keys().cloned().collect();
            folders.sort_unstable();
            folders
        };
        let mut partly_read = Vec::new();
        for folder in &folders {
            let seekers = seekers_of.get(folder).map(Vec::as_slice);
            let seekers = seekers.unwrap_or_default();
            match FolderKind::of(folder) {
                // One after the other: there may be many sessions in each.
                Some(FolderKind::Local) if is_all => {
                    let folder = self.read_folder(folder, seekers);
                    self.date_folder(folder, is_all);
                }
                Some(FolderKind::Local) => partly_read.push(self.read_named(folder, seekers)),
                Some(FolderKind::Remote) => self.sketch_remote(folder),
                // Something else, which some release may have put here.
                None => {}
            }
        }
        if !is_all {
            if !self.are_all_accounted_for() {
                for folder in &mut partly_read {
                    self.read_touched(folder);
                }
            }
            let mut silent = Vec::new();
            for folder in partly_read {
                silent.extend(self.date_folder(folder, is_all));
            }
            self.search_for(&silent, &folders);
        }
    }

    pub(super) fn finish(self) -> Found<AgentScan> {
        Found {
            found: self.sketches.into_scan(self.claims),
            problems: self.problems,
        }
    }

    fn sessions(&self) -> PathBuf {
        self.home.root.join("sessions")
    }

    fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    /// The processes that may serve a session, by the folder of their directory.
    fn seekers_of(&self) -> HashMap<String, Vec<&'a AgentProcess>> {
        let mut seekers: HashMap<String, Vec<_>> = HashMap::new();
        for process in self.look.processes_of(self.home) {
            if process.role == Role::Session {
                for folder in process.work_dirs().filter_map(folder_of) {
                    seekers.entry(folder).or_default().push(process);
                }
            }
        }
        seekers
    }

    /// The log lines that may concern a process, if any log can be read.
    fn log(&mut self) -> Option<Log> {
        if self.log.is_none() {
            let processes = self.look.processes_of(self.home);
            let began = processes.map(|process| process.process.began_at_ms.clone().ok());
            // `None`, if one of them is of unknown age.
            let since = began.min().flatten();
            let since = since.map(|began| began.saturating_sub(BEGAN_SLACK_MS));
            let folder = self.home.root.join(logs::FOLDER);
            let read = logs::read(&folder, since, &mut |path, message| {
                self.problem(path, message)
            });
            self.log = Some(read);
        }
        self.log.clone().flatten()
    }

    /// The log's events for the sessions of one folder.
    fn history(&mut self, born: impl IntoIterator<Item = (SessionId, Option<i64>)>) -> History {
        let log = self.log().unwrap_or_default();
        let processes = self.look.processes_of(self.home);
        let sessions = processes.filter(|process| process.role == Role::Session);
        let began = sessions.filter_map(|process| process.process.began_at_ms.clone().ok());
        History::new(log, born, began.collect())
    }

    /// Sessions that work on another machine: their directory does not identify a process
    /// here, and a PID in their sidecar may belong to that machine.
    fn sketch_remote(&mut self, folder: &str) {
        for session in self.sessions_in(folder) {
            let mut sketch = Sketch::new(self.key(&session.id));
            sketch.born_at_ms = self.unless_ahead(session.made_at_ms);
            (sketch.transcript, _) = session.transcript();
            self.sketches.add(sketch, []);
        }
    }

    /// What the file system remembers, unless that lies ahead: then its clock was
    /// wrong, and no file is to blame.
    fn unless_ahead(&self, made_at_ms: Option<i64>) -> Option<i64> {
        made_at_ms.filter(|made_at_ms| *made_at_ms <= self.look.machine.now_ms())
    }

    /// What the directory of a session shows, and its sidecar, if it has one.
    fn sketch(
        &mut self,
        folder: &str,
        session: &SessionDir,
        sidecar: Option<FromSidecar>,
        dates: Dates,
    ) -> Sketch {
        let made_at_ms = self.unless_ahead(session.made_at_ms);
        let mut sketch = Sketch::new(self.key(&session.id));
        if let Some(recorded) = sidecar {
            sketch.work_dir = Some(recorded.work_dir);
            sketch.agent_version = recorded.agent_version;
            sketch.endpoint = recorded.endpoint;
            sketch.facts = recorded.facts;
        }
        sketch.unclaimed = Unclaimed::Owner;
        sketch.born_at_ms = if dates.born_at_ms == session.made_at_ms {
            made_at_ms
        } else {
            dates.born_at_ms
        };
        sketch.last_record_at_ms = dates.last_record_at_ms;
        sketch.perhaps_until_ms = dates.perhaps_until_ms;
        (sketch.transcript, sketch.lacks_transcript) = session.transcript();
        if let Some(work_dir) = self.work_dirs.get(folder) {
            sketch.work_dir = Some(work_dir.clone());
        }
        let mut processes = self.look.processes_of(self.home);
        // The sidecar may name any process, even a process that an older sidecar names.
        if self.unread.contains(&session.id)
            && processes.any(|process| process.role == Role::Session)
        {
            let path = session.path().join(SIDECAR);
            let placement = self.look.machine.mounts().placement_of(&path);
            let key = self.key(&session.id);
            self.claims
                .push(Box::new(sidecar::unread_claim(key, path, placement)));
        }
        sketch
    }

    fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    /// Reads the sidecar of a session, if there is one. The `runtime.json` of
    /// background tasks lie deeper.
    fn read_sidecar(&mut self, session: &SessionDir, keep: Keep<'_>) -> Option<FromSidecar> {
        let name = session.below_folder(SIDECAR);
        let path = || session.folder.path_of(name.as_ref());
        let (mut sidecar, facts) = match read_sidecar_in(&session.folder, name.as_ref()) {
            Ok(read) => read,
            Err(ReadSidecarError::File(ReadFileError::NotFound { .. })) => return None,
            Err(error) => {
                self.problem(&path(), error.reason());
                // No kimi-cli wrote what is no regular file.
                if !matches!(
                    error,
                    ReadSidecarError::File(ReadFileError::NotRegular { .. })
                ) {
                    self.unread.insert(session.id.clone());
                }
                return None;
            }
        };
        if sidecar.session_id != session.id {
            let message = format!(
                "`session_id` is `{}`, and its directory is another one's",
                sidecar.session_id
            );
            self.problem(&path(), message);
            return None;
        }
        let pid = match sidecar.pid {
            SidecarPid::Process(pid) => Some(pid),
            SidecarPid::Released => None,
        };
        let is_wanted = match keep {
            Keep::All => true,
            Keep::Naming(pids) => pid.is_some_and(|pid| pids.contains(&pid)),
        };
        if !is_wanted {
            return None;
        }
        let key = self.key(&session.id);
        let phase = sidecar_facts::phase(&sidecar, &facts, self.look.machine);
        let found = FromSidecar {
            pid,
            work_dir: sidecar.work_dir.clone(),
            agent_version: sidecar.agent_version.take(),
            endpoint: sidecar_facts::endpoint(&sidecar),
            facts: phase.into_iter().collect(),
        };
        let path = path();
        let source = sidecar::Source {
            trust: trust_of(&facts, self.home, self.look.machine),
            placement: self.look.machine.mounts().placement_of_file(&path, &facts),
            modified_at_ms: facts.modified_ms,
            path,
        };
        self.claims
            .push(Box::new(sidecar::claim(key, sidecar, source)));
        Some(found)
    }
}

/// The session may belong to this process: the arguments name the session, or it was born or
/// used after the process began.
fn fits(seeker: &AgentProcess, session: &SessionId, dates: Dates) -> bool {
    let named = process::PROGRAMS.session(&seeker.program());
    let is_named = named.is_some_and(|named| session.as_str().starts_with(named));
    let is_of_its_time = seeker.process.began_at_ms.as_ref().is_ok_and(|began| {
        let since = began.saturating_sub(CLOCK_SLACK_MS);
        let latest = dates.last_record_at_ms.max(dates.perhaps_until_ms);
        let dates = [dates.born_at_ms, latest];
        dates.into_iter().flatten().any(|at| at >= since)
    });
    is_named || is_of_its_time
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files, now")]
#[path = "session_tests.rs"]
mod tests;
