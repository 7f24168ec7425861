//! One home of Droid: its transcripts, and the processes that may have them open.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};

use super::process::PROGRAMS;
use super::transcript::{self, DIALECT, Outline};
use super::{AGENT, sessions_in};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Exclusivity, SessionKey, Subject};
use crate::adapter::phase::Phase;
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role, Sketch, Unclaimed};
use crate::machine::mounts::Mounts;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::folder::is_directory;
use crate::sources::agents::kit::folder::names_in;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::transcript::TranscriptFile;

/// How many folders of projects are looked at.
const FOLDERS_MAX: usize = 20_000;
/// How many entries of one folder are looked at.
const ENTRIES_MAX: usize = 100_000;
/// How much older than its process a file may look, in milliseconds: for rounding.
const ROUNDING_MS: i64 = 250;
/// The folder of asides: forks that are never resumed.
const ASIDES: &str = "btw";

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let processes: Vec<&AgentProcess> = look
        .processes_of(home)
        .filter(|process| process.role == Role::Session)
        .collect();
    let is_anybody_there = !processes.is_empty();
    let mut scanning = Scanning {
        home,
        mounts: look.machine.mounts(),
        root: sessions_in(&home.root),
        placement: look.machine.mounts().placement_of(&home.root),
        folders: processes
            .iter()
            .flat_map(|process| folders_of(process, look.machine.mounts()))
            .collect(),
        named: processes
            .iter()
            .filter_map(|process| PROGRAMS.session(&process.program()))
            .collect(),
        since_ms: processes
            .iter()
            .map(|process| process.process.began_at_ms.clone().unwrap_or(i64::MIN))
            .min(),
        processes,
        sketches: OnePerSession::new(|path| DIALECT.said(path)),
        problems: Vec::new(),
    };
    if look.depth.is_walk() {
        for folder in scanning.all_folders() {
            scanning.add_folder(&folder, look.depth);
        }
    } else if is_anybody_there {
        let folders: Vec<String> = scanning.folders.iter().cloned().collect();
        for folder in &folders {
            scanning.add_folder(folder, look.depth);
        }
        scanning.add_named();
    }
    Found {
        found: scanning.sketches.into_scan(Vec::new()),
        problems: scanning.problems,
    }
}

struct Scanning<'a> {
    home: &'a Home,
    mounts: &'a Mounts,
    root: PathBuf,
    placement: crate::adapter::claim::Placement,
    /// The folders of the directories that its processes work in.
    folders: BTreeSet<String>,
    /// The sessions in the arguments of its processes.
    named: BTreeSet<&'a str>,
    /// When the first of its processes began; `None` if there is none.
    since_ms: Option<i64>,
    processes: Vec<&'a AgentProcess>,
    sketches: OnePerSession,
    problems: Vec<Problem>,
}

/// Returns whether a process may have the session with this transcript: the arguments name
/// the session, or the process works in the directory of the folder.
pub(super) fn may_have(process: &AgentProcess, transcript: &Path, mounts: &Mounts) -> bool {
    let is_named = || {
        let stem = transcript.file_stem().and_then(|stem| stem.to_str());
        stem.is_some() && PROGRAMS.session(&process.program()) == stem
    };
    let is_in_folder = || {
        let folder = transcript.parent().and_then(Path::file_name);
        let folder = folder.and_then(|name| name.to_str());
        folder.is_some_and(|folder| folders_of(process, mounts).iter().any(|own| own == folder))
    };
    is_named() || is_in_folder()
}

/// The directory that a process works in.
fn work_dir_of(process: &AgentProcess) -> Option<PathBuf> {
    let named = PROGRAMS.directory(&process.program());
    named.or_else(|| process.work_dir().map(Path::to_owned))
}

/// The names that the folder of a process's sessions may have: the directory, with
/// hyphens for slashes, or for everything else that is no letter or digit. Read in the
/// program; which of them a release makes was not seen.
fn folders_of(process: &AgentProcess, mounts: &Mounts) -> Vec<String> {
    let real = work_dir_of(process).map(|dir| mounts.real_path(&dir));
    let Some(path) = real.as_deref().and_then(Path::to_str) else {
        return Vec::new();
    };
    let path = path.trim_matches('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let folder = format!("-{}", parts.join("-"));
    let is_kept = |character: char| character.is_ascii_alphanumeric();
    let plain = folder.replace(|character| !is_kept(character), "-");
    if plain == folder {
        vec![folder]
    } else {
        vec![folder, plain]
    }
}

impl Scanning<'_> {
    /// Every folder of projects; the empty name stands for the root, where
    /// early releases put all sessions.
    fn all_folders(&mut self) -> Vec<String> {
        let root = self.root.clone();
        let mut folders = vec![String::new()];
        folders.extend(self.names(&root, FOLDERS_MAX));
        folders.retain(|name| name != ASIDES && is_directory(&self.root.join(name)));
        folders
    }

    fn names(&mut self, directory: &Path, entries_max: usize) -> Vec<String> {
        match names_in(directory, entries_max) {
            Ok(names) => {
                if names.is_cut {
                    let message = format!("more than {entries_max} entries: the rest is left out");
                    self.problems.push(Problem::at(&AGENT, directory, message));
                }
                names.texts().map(str::to_owned).collect()
            }
            Err(error) => {
                let message = format!("cannot list this directory: {error}");
                self.problems.push(Problem::at(&AGENT, directory, message));
                Vec::new()
            }
        }
    }

    fn add_folder(&mut self, folder: &str, depth: &Depth) {
        let directory = self.root.join(folder);
        for name in self.names(&directory, ENTRIES_MAX) {
            let Some(id) = name.strip_suffix(".jsonl") else {
                continue;
            };
            let path = directory.join(&name);
            let facts = match facts(&path, Links::Follow) {
                Ok(facts) => facts,
                Err(ReadFileError::NotFound { .. }) => continue,
                Err(error) => {
                    self.problems
                        .push(Problem::at(&AGENT, &path, error.reason()));
                    continue;
                }
            };
            let may_be_open = self.may_be_open(folder, id, &facts);
            let is_reached =
                || SessionId::parse(id).map_or(depth.is_walk(), |id| depth.reaches(&id));
            if may_be_open || is_reached() {
                self.add(id, &path, may_be_open);
            }
        }
    }

    /// Sessions of other directories that arguments name.
    fn add_named(&mut self) {
        let is_missing = |id: &&&str| {
            let parsed = SessionId::parse(id);
            parsed.is_ok_and(|id| !self.sketches.has(&id))
        };
        let missing: Vec<String> = self
            .named
            .iter()
            .filter(is_missing)
            .map(|id| (*id).to_owned())
            .collect();
        if missing.is_empty() {
            return;
        }
        for folder in self.all_folders() {
            for id in &missing {
                let path = self.root.join(&folder).join(format!("{id}.jsonl"));
                if facts(&path, Links::Follow).is_ok() {
                    self.add(id, &path, true);
                }
            }
        }
    }

    /// A process names the session, or works in its directory and may have written to the
    /// file. (A file that was changed earlier has no later records.)
    fn may_be_open(&self, folder: &str, id: &str, facts: &FileFacts) -> bool {
        let is_since = || {
            let since = self.since_ms.zip(facts.modified_ms);
            since.is_some_and(|(began, modified)| modified >= began.saturating_sub(ROUNDING_MS))
        };
        self.named.contains(id) || (self.folders.contains(folder) && is_since())
    }

    fn add(&mut self, id: &str, path: &Path, may_be_open: bool) {
        // A file with another name is no session.
        let Ok(id) = SessionId::parse(id) else {
            return;
        };
        let mut bad = BadLines::default();
        let read = TranscriptFile::open(path).and_then(|file| transcript::read(&file, &mut bad));
        let outline = match read {
            Ok(read) => read,
            Err(error) => {
                self.problems
                    .push(Problem::at(&AGENT, path, error.reason()));
                return;
            }
        };
        if let Some(message) = bad.message() {
            self.problems.push(Problem::at(&AGENT, path, message));
        }
        let start = &outline.start;
        if start.id.as_deref().is_some_and(|own| own != id.as_str()) {
            let message = "the id in its first line is not that of its name";
            self.problems.push(Problem::at(&AGENT, path, message));
            return;
        }
        let parent = start.parent.as_deref();
        let parent = parent.and_then(|parent| SessionId::parse(parent).ok());
        let mut sketch = Sketch {
            parent: parent.filter(|parent| *parent != id),
            work_dir: start.work_dir.clone(),
            born_at_ms: outline.found.started_at_ms,
            last_record_at_ms: outline.found.last_activity_at_ms,
            perhaps_until_ms: outline.perhaps_until_ms(),
            transcript: Some(path.to_owned()),
            title: start.title.clone().filter(|_| start.is_title_given),
            started_at_ms: outline.found.started_at_ms,
            // Droid refuses a transcript without its first line.
            is_resumable: start.id.is_some(),
            ..Sketch::new(SessionKey {
                agent: AGENT,
                session: id.clone(),
                home: self.home.root.clone(),
            })
        };
        if sketch.parent.is_some() {
            let is_anywhere = |process: &&AgentProcess| folders_of(process, self.mounts).is_empty();
            let may_be_open = may_be_open || self.processes.iter().any(is_anywhere);
            let ended = self.claim_of_ended(&sketch, &outline, may_be_open);
            sketch.may_have_ended = ended.is_none() && outline.missing_end.is_some();
            self.sketches.add_sub_agent(sketch, ended);
            return;
        }
        let mut open_to = Vec::new();
        if may_be_open {
            sketch.unclaimed = Unclaimed::Owner;
            let may_be_its = |process: &&&AgentProcess| may_have(process, path, self.mounts);
            let mut candidates = self.processes.iter().filter(may_be_its);
            sketch.is_headless = Some(
                candidates
                    .clone()
                    .all(|process| PROGRAMS.is_headless(&process.program())),
            );
            open_to.extend(candidates.clone().map(|process| process.process.pid));
            if start.id.is_none() && sketch.work_dir.is_none() {
                // The first line is lost: the folder gives the directory.
                sketch.work_dir = candidates.find_map(|process| work_dir_of(process));
            }
        }
        self.sketches.add(sketch, open_to);
    }

    /// A sub-agent has ended once its last message has ended its turn, or if no running
    /// process can have written to it.
    fn claim_of_ended(
        &self,
        sketch: &Sketch,
        outline: &Outline,
        may_be_open: bool,
    ) -> Option<Claim> {
        let has_ended = outline.found.last_activity_at_ms.is_some()
            && outline.found.phase == Some(Phase::Idle)
            && outline.missing_end.is_none();
        // Without any process it ends together with its parent, whose process may be hidden.
        let says = if !may_be_open && self.since_ms.is_some() {
            "nothing was written to it since a process of this agent began"
        } else if has_ended {
            "its last message has ended its turn"
        } else {
            return None;
        };
        Some(Claim {
            dated_at_ms: outline.found.last_activity_at_ms,
            exclusivity: Exclusivity::Exclusive,
            placement: self.placement,
            ..Claim::new(
                sketch.key.clone(),
                Subject::Released,
                Evidence::new(
                    EvidenceKind::Transcript,
                    sketch.transcript.clone(),
                    says.to_owned(),
                ),
            )
        })
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
