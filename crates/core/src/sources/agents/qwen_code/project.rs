//! The folders of a runtime directory that hold the sessions of one project
//! each: `projects/ENCODED/chats/`.

mod name;
mod seeker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::file::{Directory, Links, facts};
use whosup_sidecar::{SessionId, read_sidecar, read_sidecar_in};

use self::name::{chats_in, chats_of, session_of, sidecar_name, transcript_path};
use super::home::Runtime;
use super::reading::Reading;
use super::registry::Record;
use super::{process, sidecar, transcript};
use crate::adapter::claim::EvidenceKind;
use crate::adapter::{AgentProcess, Role, Unclaimed};
use crate::sources::agents::kit::scan::may_have_written_since;
use crate::sources::transcript::TranscriptFile;

/// How many projects of a runtime directory are looked at.
const PROJECTS_MAX: usize = 100_000;
/// How many files of one project are looked at.
const CHATS_MAX: usize = 200_000;

/// Walks the project folders that a scan of this depth needs.
pub(super) struct Projects<'a, 'r> {
    reading: &'r mut Reading<'a>,
    runtimes: &'r [Runtime],
    /// The `chats` folders that something was read in.
    folders: BTreeMap<PathBuf, Folder>,
}

/// The files that were read in one `chats` folder.
#[derive(Default)]
struct Folder {
    /// It was listed.
    is_listed: bool,
    /// The sidecars that were read because a record names their session.
    read: BTreeSet<String>,
    /// The sidecars that were too old to be read.
    passed_over: BTreeSet<String>,
}

/// The files of one project that are of interest.
struct Chats {
    directory: PathBuf,
    sidecars: Vec<String>,
    transcripts: Vec<SessionId>,
}

impl<'a, 'r> Projects<'a, 'r> {
    pub(super) const fn new(reading: &'r mut Reading<'a>, runtimes: &'r [Runtime]) -> Self {
        Self {
            reading,
            runtimes,
            folders: BTreeMap::new(),
        }
    }

    /// Reads what processes and registry records name, or everything.
    pub(super) fn walk(&mut self, records: &[Record]) {
        let is_all = self.reading.scan.look.depth.is_walk();
        if is_all {
            self.walk_all();
        } else {
            self.look_up_records(records);
            self.walk_work_dirs(records);
            self.search_for_silent_processes(records);
        }
        self.sketch_for_seekers(is_all);
    }

    fn walk_all(&mut self) {
        for runtime in self.runtimes {
            for chats in self.all_chats(runtime) {
                let chats = self.read_all(runtime, &chats, None);
                for session in &chats.transcripts {
                    self.sketch_birth(runtime, &chats.directory, session);
                }
            }
        }
    }

    /// The sidecar and the transcript of every registered session.
    fn look_up_records(&mut self, records: &[Record]) {
        for runtime in self.runtimes {
            for record in records {
                let chats = chats_in(runtime, &record.work_dir);
                let name = sidecar_name(&record.session);
                let folder = self.folders.entry(chats.clone()).or_default();
                if folder.read.insert(name.clone()) {
                    self.read_sidecar(runtime, chats.join(name), None);
                }
                self.find_transcript(&chats, &record.session);
            }
        }
    }

    /// The transcript of a session in this folder, if it is there.
    fn find_transcript(&mut self, chats: &Path, session: &SessionId) {
        let path = transcript_path(chats, session);
        let facts = facts(&path, Links::Follow);
        // There is none before the first prompt.
        if self.reading.scan.read_or_report(&path, facts).is_some() {
            self.set_transcript(session, path);
        }
    }

    /// Reads the folders of the directories in which processes work or registered sessions.
    fn walk_work_dirs(&mut self, records: &[Record]) {
        let servers: Vec<_> = self.reading.scan.processes().filter(is_server).collect();
        let oldest = may_have_written_since(servers.iter().copied());
        for runtime in self.runtimes {
            let folders_of = |process: &&AgentProcess| {
                let registered = records_of(records, process);
                let registered = registered.map(|record| record.work_dir.as_path());
                let work_dirs = process.work_dirs().chain(registered);
                let folders = work_dirs.map(|work_dir| chats_in(runtime, work_dir));
                folders.collect::<Vec<_>>()
            };
            let folders: BTreeSet<PathBuf> = servers.iter().flat_map(folders_of).collect();
            for chats in folders {
                self.read_all(runtime, &chats, oldest);
            }
        }
    }

    /// A terminal interface of this home without a sidecar so far may have a sidecar in a
    /// folder that nothing names: a wider search looks for its PID.
    ///
    /// A record does not replace that search: qwen-code removes the sidecar of a session
    /// that it leaves, and gives up on a record that it cannot rewrite.
    fn search_for_silent_processes(&mut self, records: &[Record]) {
        let scan = &self.reading.scan;
        let is_named_by = |process: &AgentProcess, kind: EvidenceKind| {
            let mut claims = scan.claims_of(&process.process);
            claims.any(|claim| claim.evidence.kind == kind)
        };
        let writes_no_sidecar = |process: &AgentProcess| {
            process::PROGRAMS.is_headless(&process.program())
                || (is_named_by(process, EvidenceKind::Registry)
                    && !records_of(records, process).any(Record::is_of_terminal))
        };
        let silent = scan.processes().filter(is_server).filter(|process| {
            !is_named_by(process, EvidenceKind::Sidecar) && !writes_no_sidecar(process)
        });
        let silent: Vec<Pid> = silent.map(|process| process.process.pid).collect();
        if silent.is_empty() {
            return;
        }
        for runtime in self.runtimes {
            for chats in self.all_chats(runtime) {
                for name in self.unread(&chats) {
                    self.read_sidecar(runtime, chats.join(&name), Some(&silent));
                    let session = name.strip_suffix(sidecar::SUFFIX).map(SessionId::parse);
                    if let Some(Ok(session)) = session
                        && self.reading.is_known(&session)
                    {
                        self.find_transcript(&chats, &session);
                    }
                }
            }
        }
    }

    fn sketch_birth(&mut self, runtime: &Runtime, chats: &Path, session: &SessionId) {
        if !self.is_ours(runtime, session) {
            return;
        }
        let path = transcript_path(chats, session);
        let birth = TranscriptFile::open(&path).and_then(|file| transcript::read_birth(&file));
        let Some(birth) = self.reading.scan.read_or_report(&path, birth) else {
            return;
        };
        let known = self.reading.sketch(session).transcript.clone();
        let is_in_place_of_another = known.is_some_and(|known| known != path);
        let is_its = self.set_transcript(session, path);
        let sketch = self.reading.sketch(session);
        sketch.unclaimed = Unclaimed::Owner;
        if is_its {
            sketch.born_at_ms = birth.born_at_ms;
            let recorded = sketch.work_dir.take();
            sketch.work_dir = match is_in_place_of_another {
                true => birth.work_dir.or(recorded),
                false => recorded.or(birth.work_dir),
            };
        }
    }

    /// A session without a process belongs to one of the homes that share a runtime
    /// directory, so that it is found once.
    fn is_ours(&self, runtime: &Runtime, session: &SessionId) -> bool {
        let is_elsewhere = self.reading.elsewhere.contains(session);
        self.reading.is_known(session)
            || (!is_elsewhere && runtime.is_for(&self.reading.scan, None))
    }

    /// Sets the transcript of a session, unless a better one is known, and returns whether
    /// it was set. Of two files in two folders, the file in the folder of a process that
    /// claims the session wins, which is all that the default depth reads; then a file with
    /// messages; then the file written last.
    fn set_transcript(&mut self, session: &SessionId, path: PathBuf) -> bool {
        let known = self.reading.sketch(session).transcript.take();
        let other = known.filter(|known| *known != path);
        let better = other.filter(|known| self.worth(session, known) >= self.worth(session, &path));
        let is_set = better.is_none();
        self.reading.sketch(session).transcript = better.or(Some(path));
        is_set
    }

    /// The rank of a transcript among the transcripts of a session.
    fn worth(&self, session: &SessionId, transcript: &Path) -> (bool, bool, Option<i64>) {
        let chats = transcript.parent();
        let is_open = self.reading.open_work_dirs(session).any(|work_dir| {
            let mut own = self.runtimes.iter().map(|one| chats_in(one, work_dir));
            own.any(|own| Some(own.as_path()) == chats)
        });
        let facts = facts(transcript, Links::Follow).ok();
        let written_ms = facts.and_then(|facts| facts.modified_ms);
        (is_open, transcript::may_have_words(transcript), written_ms)
    }

    /// Reads every sidecar of a folder, and notes the transcripts of known sessions. With
    /// `since_ms`, sidecars that were last written before are skipped: no running process
    /// can have written them. If the clock was set by more than the slack in that date, and
    /// a running process did, its record or the wider search finds them.
    fn read_all(&mut self, runtime: &Runtime, chats: &Path, since_ms: Option<i64>) -> Chats {
        let chats = self.list(chats);
        let folder = self.folders.entry(chats.directory.clone()).or_default();
        folder.is_listed = true;
        if !chats.sidecars.is_empty() {
            match Directory::open(&chats.directory) {
                Ok(opened) => self.read_sidecars(runtime, &opened, &chats, since_ms),
                Err(error) => self.reading.scan.problem(&chats.directory, error),
            }
        }
        for session in &chats.transcripts {
            if self.reading.is_known(session) {
                self.set_transcript(session, transcript_path(&chats.directory, session));
            }
        }
        chats
    }

    fn read_sidecars(
        &mut self,
        runtime: &Runtime,
        opened: &Directory,
        chats: &Chats,
        since_ms: Option<i64>,
    ) {
        let folder = self.folders.entry(chats.directory.clone()).or_default();
        for name in &chats.sidecars {
            let is_older = since_ms.is_some_and(|since_ms| {
                let facts = opened.facts(name.as_ref(), Links::Refuse).ok();
                let facts = facts.filter(|facts| facts.is_file);
                let written_ms = facts.and_then(|facts| facts.modified_ms);
                written_ms.is_some_and(|written_ms| written_ms < since_ms)
            });
            if folder.read.contains(name) {
                // A record led to it.
            } else if is_older {
                folder.passed_over.insert(name.clone());
            } else {
                let path = chats.directory.join(name);
                let read = read_sidecar_in(opened, name.as_ref());
                sidecar::take(self.reading, runtime, path, read, None);
            }
        }
    }

    /// Reads the skipped files in a folder after all: they may rule out that a process
    /// serves a session.
    fn read_passed_over(&mut self, runtime: &Runtime, chats: &Path) {
        let folder = self.folders.entry(chats.to_owned()).or_default();
        for name in std::mem::take(&mut folder.passed_over) {
            self.read_sidecar(runtime, chats.join(name), None);
        }
    }

    fn read_sidecar(&mut self, runtime: &Runtime, path: PathBuf, searched_for: Option<&[Pid]>) {
        let read = read_sidecar(&path);
        sidecar::take(self.reading, runtime, path, read, searched_for);
    }

    /// The sidecars of a folder that have not been read.
    fn unread(&mut self, chats: &Path) -> Vec<String> {
        if let Some(folder) = self.folders.get(chats)
            && folder.is_listed
        {
            return folder.passed_over.iter().cloned().collect();
        }
        let mut sidecars = self.list(chats).sidecars;
        if let Some(folder) = self.folders.get(chats) {
            sidecars.retain(|name| !folder.read.contains(name));
        }
        sidecars
    }

    /// The folders of the sessions of all projects.
    fn all_chats(&mut self, runtime: &Runtime) -> Vec<PathBuf> {
        let directory = runtime.path.join("projects");
        let projects = self.reading.scan.folders(&directory, PROJECTS_MAX).names;
        let chats = projects.iter().map(|name| chats_of(&directory.join(name)));
        chats.collect()
    }

    fn list(&mut self, directory: &Path) -> Chats {
        let listed = self.reading.scan.names(directory, CHATS_MAX);
        let mut chats = Chats {
            directory: directory.to_owned(),
            sidecars: Vec::new(),
            transcripts: Vec::new(),
        };
        for name in listed.texts() {
            if let Some(session) = session_of(name) {
                chats.transcripts.push(session);
            } else if name.ends_with(sidecar::SUFFIX) {
                chats.sidecars.push(name.to_owned());
            }
        }
        chats
    }
}

/// The records of a process.
fn records_of<'r>(
    records: &'r [Record],
    process: &AgentProcess,
) -> impl Iterator<Item = &'r Record> + use<'r> {
    let pid = process.process.pid;
    records.iter().filter(move |record| record.pid == pid)
}

/// Returns whether a process may serve sessions; launchers do not.
fn is_server(process: &&AgentProcess) -> bool {
    matches!(process.role, Role::Session | Role::Host)
}
