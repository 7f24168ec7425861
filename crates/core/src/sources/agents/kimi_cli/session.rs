//! The session directories: `sessions/FOLDER/SESSION/`.

mod directory;
mod folder;
mod search;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use whosup_sidecar::file::{FileFacts, ReadFileError};
use whosup_sidecar::{ReadSidecarError, SessionId, Sidecar, read_sidecar_in};

use super::log::Log;
use super::wire::{self, Dates};
use super::work_dir::{self, FolderKind, folder_of};
use super::{AGENT, logs};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Subject};
use crate::adapter::{AgentProcess, AgentScan, Home, LaunchedIn, Look, Sketch, Unclaimed};
use crate::machine::problem::Found;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::{Scan, may_have_written_since};
use crate::sources::agents::kit::sidecar_facts;

use directory::SessionDir;
pub(super) use directory::below;

/// How many folders are looked at.
const FOLDERS_MAX: usize = 100_000;

/// The name of the transcript in a session's directory.
pub(super) const WIRE: &str = "wire.jsonl";
/// The name of the sidecar there.
pub(super) const SIDECAR: &str = "runtime.json";

/// One home's scan while it grows.
pub(super) struct Reading<'a> {
    scan: Scan<'a>,
    /// The local directories that are known, by their folders.
    work_dirs: HashMap<String, PathBuf>,
    sketches: OnePerSession,
    /// Sessions that have a sidecar which cannot be read.
    unread: BTreeSet<SessionId>,
    /// The log, once it was looked for.
    log: Option<Option<Log>>,
}

/// A sidecar, and the facts of its file.
type ReadSidecar = (Sidecar, FileFacts);

impl<'a> Reading<'a> {
    pub(super) fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        let mut reading = Self {
            scan: Scan::new(AGENT, look, home),
            work_dirs: HashMap::new(),
            sketches: OnePerSession::new(|path| wire::DIALECT.said(path)),
            unread: BTreeSet::new(),
            log: None,
        };
        if look.depth.is_walk() || look.displaced_since(home).is_some() {
            reading.work_dirs = reading.listed_work_dirs();
        }
        // The kernel shows the directory of a process without the list.
        for path in look.processes_of(home).flat_map(AgentProcess::work_dirs) {
            let folder = folder_of(path).map(|folder| (folder, path.to_owned()));
            reading.work_dirs.extend(folder);
        }
        reading
    }

    /// Reads the folders in which processes work, or all folders.
    pub(super) fn walk(&mut self) {
        let mut seekers_of = self.scan.seekers_by(folder_of);
        for folder in self.gone_folders() {
            let own = seekers_of.entry(folder).or_default();
            let displaced = self.scan.seekers().filter(|seeker| {
                let is_own = own.iter().any(|own| own.process.pid == seeker.process.pid);
                seeker.launched_in == LaunchedIn::NotKnown && !is_own
            });
            own.extend(displaced.collect::<Vec<_>>());
        }
        let is_all = self.scan.look.depth.is_walk();
        let folders: Vec<String> = if is_all {
            let names = self.scan.names(&self.sessions(), FOLDERS_MAX);
            names.texts().map(str::to_owned).collect()
        } else {
            seekers_of.keys().cloned().collect()
        };
        let mut partly_read = Vec::new();
        for folder in &folders {
            let seekers = seekers_of.get(folder).map_or(&[][..], Vec::as_slice);
            match FolderKind::of(folder) {
                // One after the other: there may be many sessions in each.
                Some(FolderKind::Local) if is_all => {
                    let folder = self.read_folder(folder, seekers);
                    self.date_folder(folder);
                }
                Some(FolderKind::Local) => partly_read.push(self.read_named(folder, seekers)),
                Some(FolderKind::Remote) => self.sketch_remote(folder),
                // Something else, which some release may have put here.
                None => {}
            }
        }
        if is_all {
            return;
        }
        if !self.are_all_accounted_for() {
            for folder in &mut partly_read {
                self.read_touched(folder);
            }
        }
        let mut silent = Vec::new();
        for folder in partly_read {
            silent.extend(self.date_folder(folder));
        }
        self.search_for(&silent, &folders);
    }

    pub(super) fn finish(self) -> Found<AgentScan> {
        self.scan.finish(self.sketches)
    }

    fn sessions(&self) -> PathBuf {
        self.scan.home.root.join("sessions")
    }

    /// The local directories that `kimi.json` lists, by their folders.
    fn listed_work_dirs(&mut self) -> HashMap<String, PathBuf> {
        let home = &self.scan.home.root;
        work_dir::read(home).unwrap_or_else(|error| {
            self.scan.problem(&home.join("kimi.json"), error);
            HashMap::new()
        })
    }

    /// The folders of directories that are gone: a process of which nothing shows where it was
    /// started may have been started in one of them.
    fn gone_folders(&self) -> Vec<String> {
        let look = self.scan.look;
        let Some(since_ms) = look.displaced_since(self.scan.home) else {
            return Vec::new();
        };
        let work_dirs = self.work_dirs.iter();
        let gone = work_dirs.filter(|(_, path)| look.is_gone_since(path, since_ms));
        gone.map(|(folder, _)| folder.clone()).collect()
    }

    /// The log lines that may concern a process, if any log can be read.
    fn log(&mut self) -> Option<Log> {
        let log = self.log.get_or_insert_with(|| {
            let since_ms = may_have_written_since(self.scan.processes());
            let folder = self.scan.home.root.join(logs::FOLDER);
            logs::read(&folder, since_ms, &mut |path, message| {
                self.scan.problem(path, message);
            })
        });
        log.clone()
    }

    /// Sessions that work on another machine: their directory does not identify a process
    /// here, and a PID in their sidecar may belong to that machine.
    fn sketch_remote(&mut self, folder: &str) {
        for session in self.sessions_in(folder) {
            let mut sketch = Sketch::new(self.scan.key(&session.id));
            sketch.born_at_ms = self.unless_ahead(session.made_at_ms);
            (sketch.transcript, _) = session.transcript();
            self.sketches.add(sketch, []);
        }
    }

    /// What the file system remembers, unless that lies ahead: then its clock was
    /// wrong, and no file is to blame.
    fn unless_ahead(&self, made_at_ms: Option<i64>) -> Option<i64> {
        made_at_ms.filter(|made_at_ms| *made_at_ms <= self.scan.look.machine.now_ms())
    }

    /// What the directory of a session shows, and its sidecar, if it has one.
    fn sketch(
        &mut self,
        folder: &str,
        session: &SessionDir,
        sidecar: Option<ReadSidecar>,
        dates: Dates,
    ) -> Sketch {
        let mut sketch = Sketch::new(self.scan.key(&session.id));
        if let Some((sidecar, facts)) = sidecar {
            let phase = sidecar_facts::phase(&sidecar, &facts, self.scan.look.machine);
            sketch.facts.extend(phase);
            sketch.endpoint = sidecar_facts::endpoint(&sidecar);
            sketch.work_dir = Some(sidecar.work_dir);
            sketch.agent_version = sidecar.agent_version;
        }
        sketch.unclaimed = Unclaimed::Owner;
        sketch.born_at_ms = if dates.born_at_ms == session.made_at_ms {
            self.unless_ahead(session.made_at_ms)
        } else {
            dates.born_at_ms
        };
        sketch.last_record_at_ms = dates.last_record_at_ms;
        sketch.perhaps_until_ms = dates.perhaps_until_ms;
        (sketch.transcript, sketch.lacks_transcript) = session.transcript();
        if let Some(work_dir) = self.work_dirs.get(folder) {
            sketch.work_dir = Some(work_dir.clone());
        }
        // The sidecar may name any process, even a process that an older sidecar names.
        if self.unread.contains(&session.id) && self.scan.seekers().next().is_some() {
            let path = session.path().join(SIDECAR);
            let placement = self.scan.look.machine.mounts().placement_of(&path);
            let evidence = Evidence::new(EvidenceKind::Sidecar, path, "it can't be read");
            self.scan.claim(Claim {
                placement,
                ..Claim::new(sketch.key.clone(), Subject::Unreadable, evidence)
            });
        }
        sketch
    }

    /// Reads the sidecar of a session, if there is one, and claims what it says. If processes
    /// are searched for, a sidecar counts only if it names one of them. The `runtime.json` of
    /// background tasks lie deeper.
    fn read_sidecar(
        &mut self,
        session: &SessionDir,
        searched_for: Option<&[&AgentProcess]>,
    ) -> Option<ReadSidecar> {
        let name = session.below_folder(SIDECAR);
        let path = || session.folder.path_of(name.as_ref());
        let (sidecar, facts) = match read_sidecar_in(&session.folder, name.as_ref()) {
            Ok(read) => read,
            Err(ReadSidecarError::File(ReadFileError::NotFound { .. })) => return None,
            Err(error) => {
                self.scan.problem(&path(), error.reason());
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
            let other = &sidecar.session_id;
            let message = format!("`session_id` is `{other}`, and its directory is another one's");
            self.scan.problem(&path(), message);
            return None;
        }
        let is_named =
            |process: &&AgentProcess| sidecar_facts::pid(&sidecar) == Some(process.process.pid);
        if searched_for.is_some_and(|processes| !processes.iter().any(is_named)) {
            return None;
        }
        // Not an exclusive claim: a headless run of the same session overwrites the sidecar
        // of the shell that still serves it, and exits.
        let claim = sidecar_facts::claim(&self.scan, sidecar.clone(), path(), &facts);
        self.scan.claim(claim);
        Some((sidecar, facts))
    }
}

/// The session may belong to this process: the arguments name the session, or it was born or
/// used after the process began.
fn fits(seeker: &AgentProcess, session: &SessionId, dates: Dates) -> bool {
    let latest = dates.last_record_at_ms.max(dates.perhaps_until_ms);
    seeker.names(session) || seeker.had_begun_at_one_of([dates.born_at_ms, latest])
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files, now")]
#[path = "session_tests.rs"]
mod tests;
