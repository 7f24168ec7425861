//! One home of Droid: its transcripts, and the processes that may have them open.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};

use super::AGENT;
use super::process::PROGRAMS;
use super::transcript::{self, DIALECT, Outline};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind};
use crate::adapter::phase::Phase;
use crate::adapter::{AgentProcess, AgentScan, Home, Look, Sketch, Unclaimed};
use crate::machine::mounts::Mounts;
use crate::machine::problem::Found;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::Scan;
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
    let scan = Scan::new(AGENT, look, home);
    let mounts = look.machine.mounts();
    let folders = scan
        .seekers()
        .flat_map(|process| folders_of(process, mounts));
    let named = scan.seekers().filter_map(AgentProcess::named_session);
    let began = scan.seekers().map(|process| process.process.began_ms());
    let mut scanning = Scanning {
        root: home.root.join("sessions"),
        folders: folders.collect(),
        named: named.collect(),
        since_ms: began.map(|began| began.unwrap_or(i64::MIN)).min(),
        scan,
        sketches: OnePerSession::new(|path| DIALECT.said(path)),
    };
    if look.depth.is_walk() {
        for folder in scanning.all_folders() {
            scanning.add_folder(&folder);
        }
    } else {
        for folder in &scanning.folders.clone() {
            scanning.add_folder(folder);
        }
    }
    scanning.add_named();
    scanning.scan.finish(scanning.sketches)
}

struct Scanning<'a> {
    scan: Scan<'a>,
    root: PathBuf,
    /// The folders of the directories that its processes work in.
    folders: BTreeSet<String>,
    /// The sessions in the arguments of its processes.
    named: BTreeSet<&'a str>,
    /// When the first of its processes began; `None` if there is none.
    since_ms: Option<i64>,
    sketches: OnePerSession,
}

/// Returns whether a process may have the session with this transcript: the arguments name
/// the session, or the process works in the directory of the folder.
fn may_have(process: &AgentProcess, transcript: &Path, mounts: &Mounts) -> bool {
    let stem = transcript.file_stem().and_then(|stem| stem.to_str());
    let folder = transcript.parent().and_then(Path::file_name);
    let is_named = stem.is_some() && process.named_session() == stem;
    let mut folders = folders_of(process, mounts).into_iter();
    is_named || folders.any(|own| Some(own.as_ref()) == folder)
}

/// The names that the folder of a process's sessions may have: the directory, with
/// hyphens for slashes, or for everything else that is no letter or digit. Read in the
/// program; which of them a release makes was not seen.
fn folders_of(process: &AgentProcess, mounts: &Mounts) -> Vec<String> {
    let work_dirs = process.named_or_own_dirs().into_iter();
    let names = work_dirs.filter_map(|directory| {
        let path = mounts.real_path(&directory);
        let path = path.to_str()?.trim_matches('/');
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let folder = format!("-{}", parts.join("-"));
        let is_kept = |character: char| character.is_ascii_alphanumeric();
        let plain = folder.replace(|character| !is_kept(character), "-");
        Some([folder, plain])
    });
    let mut folders: Vec<String> = names.flatten().collect();
    folders.dedup();
    folders
}

impl Scanning<'_> {
    /// Every folder of projects; the empty name stands for the root, where
    /// early releases put all sessions.
    fn all_folders(&mut self) -> Vec<String> {
        let names = self.scan.folders(&self.root, FOLDERS_MAX);
        let names = names.texts().filter(|name| *name != ASIDES);
        let folders = std::iter::once("").chain(names);
        folders.map(str::to_owned).collect()
    }

    fn add_folder(&mut self, folder: &str) {
        let directory = self.root.join(folder);
        for name in self.scan.names(&directory, ENTRIES_MAX).texts() {
            let Some(id) = name.strip_suffix(".jsonl") else {
                continue;
            };
            let path = directory.join(name);
            let facts = match facts(&path, Links::Follow) {
                Ok(facts) => facts,
                Err(ReadFileError::NotFound { .. }) => continue,
                Err(error) => {
                    self.scan.problem(&path, error.reason());
                    continue;
                }
            };
            let may_be_open = self.may_be_open(folder, id, &facts);
            let depth = self.scan.look.depth;
            let is_reached =
                || SessionId::parse(id).map_or(depth.is_walk(), |id| depth.reaches(&id));
            if may_be_open || is_reached() {
                self.add(id, &path, may_be_open);
            }
        }
    }

    /// Sessions of other directories that arguments name.
    fn add_named(&mut self) {
        let is_missing = |id: &&str| SessionId::parse(id).is_ok_and(|id| !self.sketches.has(&id));
        let missing: Vec<&str> = self.named.iter().copied().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        for folder in self.all_folders() {
            for id in &missing {
                let path = self.root.join(&folder).join(format!("{id}.jsonl"));
                match facts(&path, Links::Follow) {
                    Ok(_) => self.add(id, &path, true),
                    Err(ReadFileError::NotFound { .. }) => {}
                    Err(error) => self.scan.problem(&path, error.reason()),
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
            Err(error) => return self.scan.problem(path, error.reason()),
        };
        if let Some(message) = bad.message() {
            self.scan.problem(path, message);
        }
        let start = &outline.start;
        if start.id.as_deref().is_some_and(|own| own != id.as_str()) {
            let message = "the id in its first line is not that of its name";
            return self.scan.problem(path, message);
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
            ..Sketch::new(self.scan.key(&id))
        };
        let mounts = self.scan.look.machine.mounts();
        if sketch.parent.is_some() {
            let is_anywhere = |process: &AgentProcess| folders_of(process, mounts).is_empty();
            let may_be_open = may_be_open || self.scan.seekers().any(is_anywhere);
            let ended = self.claim_of_ended(&sketch, &outline, may_be_open);
            sketch.may_have_ended = ended.is_none() && outline.missing_end.is_some();
            self.sketches.add_sub_agent(sketch, ended);
            return;
        }
        let may_be_its = |process: &&AgentProcess| may_be_open && may_have(process, path, mounts);
        let candidates: Vec<&AgentProcess> = self.scan.seekers().filter(may_be_its).collect();
        if may_be_open {
            sketch.unclaimed = Unclaimed::Owner;
            let mut programs = candidates.iter().map(|process| process.program());
            sketch.is_headless = Some(programs.all(|program| PROGRAMS.is_headless(&program)));
            if start.id.is_none() && sketch.work_dir.is_none() {
                // The first line is lost: the folder gives the directory.
                let mut named = candidates.iter().map(|process| process.named_or_own_dir());
                sketch.work_dir = named.find_map(|named| named);
            }
        }
        let open_to = candidates.iter().map(|process| process.process.pid);
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
        let evidence = Evidence::new(EvidenceKind::Transcript, sketch.transcript.clone(), says);
        let (session, at_ms) = (&sketch.key.session, outline.found.last_activity_at_ms);
        Some(self.scan.ended(session, evidence, None, at_ms))
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
