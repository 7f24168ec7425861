//! The folders of a runtime directory that hold the sessions of one project
//! each: `projects/ENCODED/chats/`.

mod name;
mod seeker;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Directory, Links, ReadFileError, facts};

use self::name::{chats_in, chats_of, session_of, transcript_path};
pub(super) use self::name::{sidecar_name, transcript_name};
use super::home::Runtime;
use super::reading::Reading;
use super::settled::is_settled;
use super::sidecar::{self, Keep};
use super::{process, registry, transcript};
use crate::adapter::claim::EvidenceKind;
use crate::adapter::{AgentProcess, Role, Unclaimed};
use crate::sources::agents::kit::folder::{Entry, Names, entries_in, folders_in};
use crate::sources::transcript::{TranscriptError, TranscriptFile};

/// How much older than every process a sidecar must be to be passed over, in
/// milliseconds: clocks are set.
const BEGAN_SLACK_MS: i64 = 3_600_000;
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
    sidecars: Vec<Listed>,
    transcripts: Vec<SessionId>,
}

/// A sidecar in a listing.
struct Listed {
    name: String,
    /// The listing shows a regular file.
    is_file: bool,
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
    pub(super) fn walk(&mut self, records: &[registry::Record]) {
        let is_all = self.reading.look().depth.is_walk();
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
            for project in self.projects(runtime) {
                let chats = self.read_all(runtime, &chats_of(&project), None);
                for session in &chats.transcripts {
                    self.sketch_birth(runtime, &chats.directory, session);
                }
            }
        }
    }

    /// The sidecar and the transcript of every registered session.
    fn look_up_records(&mut self, records: &[registry::Record]) {
        for runtime in self.runtimes {
            for record in records {
                let chats = chats_in(runtime, &record.work_dir);
                let name = sidecar_name(&record.session);
                let folder = self.folders.entry(chats.clone()).or_default();
                if folder.read.insert(name.clone()) {
                    sidecar::read(self.reading, &chats.join(name), Keep::All(runtime));
                }
                self.find_transcript(&chats, &record.session);
            }
        }
    }

    /// The transcript of a session in this folder, if it is there.
    fn find_transcript(&mut self, chats: &Path, session: &SessionId) {
        let path = transcript_path(chats, session);
        match facts(&path, Links::Follow) {
            Ok(_) => {
                self.set_transcript(session, path);
            }
            // There is none before the first prompt.
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => self.reading.problem(&path, error.reason()),
        }
    }

    /// Reads the folders of the directories in which processes work or registered sessions,
    /// except for settled processes.
    fn walk_work_dirs(&mut self, records: &[registry::Record]) {
        let (look, home) = (self.reading.look(), self.reading.home());
        let servers = || look.processes_of(home).filter(|process| is_server(process));
        // A process writes its sidecar after it began.
        let began = servers().map(|process| process.process.began_at_ms.clone().ok());
        let oldest = began.min().flatten().map(|began| began - BEGAN_SLACK_MS);
        for runtime in self.runtimes {
            let folders_of = |process: &AgentProcess| {
                let is_own = |record: &&registry::Record| record.pid == process.process.pid;
                let registered = records
                    .iter()
                    .filter(is_own)
                    .map(|one| one.work_dir.as_path());
                let work_dirs = process.work_dirs().chain(registered);
                work_dirs
                    .map(|work_dir| chats_in(runtime, work_dir))
                    .collect::<BTreeSet<PathBuf>>()
            };
            let mut users_of: BTreeMap<PathBuf, usize> = BTreeMap::new();
            for process in look.processes.iter().filter(|process| is_server(process)) {
                for chats in folders_of(process) {
                    *users_of.entry(chats).or_default() += 1;
                }
            }
            let mut unsettled = BTreeSet::new();
            for process in servers() {
                let folders = folders_of(process);
                let is_alone = folders.iter().all(|chats| users_of.get(chats) == Some(&1));
                let of_it = |record: &&registry::Record| record.pid == process.process.pid;
                let mut its_records = records.iter().filter(of_it);
                let is_settled = match (its_records.next(), its_records.next()) {
                    (Some(record), None) => {
                        let chats = chats_in(runtime, &record.work_dir);
                        is_alone && is_settled(self.reading, process, record, &chats)
                    }
                    _ => false,
                };
                if !is_settled {
                    unsettled.extend(folders);
                }
            }
            for chats in unsettled {
                self.read_all(runtime, &chats, oldest);
            }
        }
    }

    /// A terminal interface of this home without a sidecar so far may have a sidecar in a
    /// folder that nothing names: a wider search looks for its PID.
    ///
    /// A record does not replace that search: qwen-code removes the sidecar of a session
    /// that it leaves, and gives up on a record that it cannot rewrite.
    fn search_for_silent_processes(&mut self, records: &[registry::Record]) {
        let (look, reading) = (self.reading.look(), &*self.reading);
        let writes_no_sidecar = |process: &AgentProcess| {
            let of_it = |record: &&registry::Record| record.pid == process.process.pid;
            process::PROGRAMS.is_headless(&process.program())
                || (reading.is_named_by(EvidenceKind::Registry, &process.process)
                    && !records
                        .iter()
                        .filter(of_it)
                        .any(registry::Record::is_of_terminal))
        };
        let silent: Vec<Pid> = look
            .processes_of(reading.home())
            .filter(|process| matches!(process.role, Role::Session | Role::Host))
            .filter(|process| !reading.is_named_by(EvidenceKind::Sidecar, &process.process))
            .filter(|process| !writes_no_sidecar(process))
            .map(|process| process.process.pid)
            .collect();
        if silent.is_empty() {
            return;
        }
        for runtime in self.runtimes {
            for project in self.projects(runtime) {
                let chats = chats_of(&project);
                for name in self.unread(&chats) {
                    let path = chats.join(&name);
                    sidecar::read(self.reading, &path, Keep::Naming(runtime, &silent));
                    let session = name.strip_suffix(sidecar::SUFFIX);
                    let session = session.and_then(|session| SessionId::parse(session).ok());
                    if let Some(session) = session.filter(|session| self.reading.is_known(session))
                    {
                        self.find_transcript(&chats, &session);
                    }
                }
            }
        }
    }

    fn transcript_problem(&mut self, path: &Path, error: &TranscriptError) {
        let is_gone = matches!(error, TranscriptError::File(ReadFileError::NotFound { .. }));
        if !is_gone {
            self.reading.problem(path, error.reason());
        }
    }

    fn sketch_birth(&mut self, runtime: &Runtime, chats: &Path, session: &SessionId) {
        if !self.is_ours(runtime, session) {
            return;
        }
        let path = transcript_path(chats, session);
        let birth = TranscriptFile::open(&path).and_then(|file| transcript::read_birth(&file));
        let birth = match birth {
            Ok(birth) => birth,
            Err(error) => {
                self.transcript_problem(&path, &error);
                return;
            }
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
        let is_unclaimed_ours = runtime.is_for(self.reading.home(), None, self.reading.look());
        self.reading.is_known(session) || (is_unclaimed_ours && !self.reading.is_elsewhere(session))
    }

    /// Sets the transcript of a session, unless a better one is known, and returns whether
    /// it was set. Of two files in two folders, the file in the folder of a process that
    /// claims the session wins, which is all that the default depth reads; then a file with
    /// messages; then the file written last.
    fn set_transcript(&mut self, session: &SessionId, path: PathBuf) -> bool {
        let known = self.reading.sketch(session).transcript.take();
        let other = known.filter(|known| *known != path);
        let is_better_known = other
            .as_deref()
            .is_some_and(|known| self.worth(session, known) >= self.worth(session, &path));
        let better = other.filter(|_| is_better_known);
        self.reading.sketch(session).transcript = better.or(Some(path));
        !is_better_known
    }

    /// The rank of a transcript among the transcripts of a session.
    fn worth(&self, session: &SessionId, transcript: &Path) -> (bool, bool, Option<i64>) {
        let chats = transcript.parent();
        let is_its = |runtime: &Runtime, work_dir: &Path| {
            Some(chats_in(runtime, work_dir).as_path()) == chats
        };
        let is_open = self.reading.open_work_dirs(session).any(|work_dir| {
            self.runtimes
                .iter()
                .any(|runtime| is_its(runtime, work_dir))
        });
        let facts = facts(transcript, Links::Follow).ok();
        let written_ms = facts.and_then(|facts| facts.modified_ms);
        (is_open, transcript::may_have_words(transcript), written_ms)
    }

    /// Reads every sidecar of a folder, and notes the transcripts of known sessions. With
    /// `since_ms`, sidecars that were last written before are skipped: no running process
    /// can have written them. If the clock was set by more than [`BEGAN_SLACK_MS`] and a
    /// running process did, its record or the wider search finds them.
    fn read_all(&mut self, runtime: &Runtime, chats: &Path, since_ms: Option<i64>) -> Chats {
        let chats = self.list(chats);
        // A folder that cannot be opened is read file by file, each with its problem.
        let opened = (!chats.sidecars.is_empty())
            .then(|| Directory::open(&chats.directory).ok())
            .flatten();
        let since = opened.as_ref().zip(since_ms);
        let folder = self.folders.entry(chats.directory.clone()).or_default();
        folder.is_listed = true;
        for Listed { name, is_file } in &chats.sidecars {
            let is_older = since.is_some_and(|(opened, since_ms)| {
                let written = opened.facts(name.as_ref(), Links::Refuse).ok();
                written
                    .filter(|facts| facts.is_file)
                    .and_then(|facts| facts.modified_ms)
                    .is_some_and(|modified| modified < since_ms)
            });
            if folder.read.contains(name) {
                // A record led to it.
            } else if is_older {
                folder.passed_over.insert(name.clone());
            } else {
                let keep = Keep::All(runtime);
                match &opened {
                    Some(opened) => {
                        sidecar::read_in(self.reading, opened, name.as_ref(), *is_file, keep);
                    }
                    None => sidecar::read(self.reading, &chats.directory.join(name), keep),
                }
            }
        }
        for session in &chats.transcripts {
            if self.reading.is_known(session) {
                self.set_transcript(session, transcript_path(&chats.directory, session));
            }
        }
        chats
    }

    /// Reads the skipped files in a folder after all: they may rule out that a process
    /// serves a session.
    fn read_passed_over(&mut self, runtime: &Runtime, chats: &Path) {
        let folder = self.folders.entry(chats.to_owned()).or_default();
        for name in std::mem::take(&mut folder.passed_over) {
            sidecar::read(self.reading, &chats.join(name), Keep::All(runtime));
        }
    }

    /// The sidecars of a folder that have not been read.
    fn unread(&mut self, chats: &Path) -> Vec<String> {
        if let Some(folder) = self.folders.get(chats)
            && folder.is_listed
        {
            return folder.passed_over.iter().cloned().collect();
        }
        let sidecars = self.list(chats).sidecars.into_iter();
        let mut sidecars: Vec<String> = sidecars.map(|one| one.name).collect();
        if let Some(folder) = self.folders.get(chats) {
            sidecars.retain(|name| !folder.read.contains(name));
        }
        sidecars
    }

    fn projects(&mut self, runtime: &Runtime) -> Vec<PathBuf> {
        let directory = runtime.path.join("projects");
        let names = self.list_or_report(&directory, PROJECTS_MAX, folders_in);
        names.into_iter().map(|name| directory.join(name)).collect()
    }

    fn list(&mut self, directory: &Path) -> Chats {
        let listed = self.list_or_report(directory, CHATS_MAX, entries_in);
        let mut chats = Chats {
            directory: directory.to_owned(),
            sidecars: Vec::new(),
            transcripts: Vec::new(),
        };
        for Entry { name, is_file } in listed {
            if let Some(session) = session_of(&name) {
                chats.transcripts.push(session);
            } else if let Ok(name) = name.into_string()
                && name.ends_with(sidecar::SUFFIX)
            {
                chats.sidecars.push(Listed { name, is_file });
            }
        }
        chats
    }

    /// Lists a directory and reports why entries are missing.
    fn list_or_report<N>(
        &mut self,
        directory: &Path,
        entries_max: usize,
        list: impl FnOnce(&Path, usize) -> io::Result<Names<N>>,
    ) -> Vec<N> {
        match list(directory, entries_max) {
            Ok(listed) => {
                if listed.is_cut {
                    let message = format!("it has more than {entries_max} entries");
                    self.reading.problem(directory, message);
                }
                listed.names
            }
            Err(error) => {
                self.reading.problem(directory, error);
                Vec::new()
            }
        }
    }
}

/// Returns whether a process may serve sessions; launchers do not.
fn is_server(process: &AgentProcess) -> bool {
    matches!(process.role, Role::Session | Role::Host)
}
