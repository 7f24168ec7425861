//! The sessions of one home, each a file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;
use whosup_sidecar::file::ReadFileError;

use super::session_dir::{folder_of, moved_to};
use super::transcript::{self, Header, Outline, Prompts};
use super::{AGENT, process};
use crate::adapter::claim::{CLOCK_SLACK_MS, SessionKey};
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role, Sketch, Unclaimed};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::{Names, list_folders_or_tell, list_or_tell};
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::transcript::{TranscriptError, TranscriptFile};

/// How many folders are looked at.
const FOLDERS_MAX: usize = 100_000;
/// How many sessions of one folder are looked at.
const SESSIONS_MAX: usize = 100_000;
/// How a session's file ends.
const SUFFIX: &str = ".jsonl";

/// One home's scan while it grows.
pub(super) struct Reading<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    sessions: Vec<(SessionId, Told)>,
    problems: Vec<Problem>,
}

/// One session, as its file tells.
struct Told {
    path: PathBuf,
    work_dir: Option<PathBuf>,
    /// Where that really is, if there are processes to compare it with.
    real_dir: Option<PathBuf>,
    header: Header,
    outline: Outline,
}

impl Told {
    const fn born_at_ms(&self) -> Option<i64> {
        self.header.born_at_ms
    }

    fn last_at_ms(&self) -> Option<i64> {
        self.outline.last_at_ms.or(self.born_at_ms())
    }

    /// Until when it may have gone on, where its end is missing.
    fn perhaps_until_ms(&self) -> Option<i64> {
        self.outline.missing_end.map(|end| end.until_ms)
    }

    /// The latest that it can have gone on.
    fn latest_ms(&self) -> Option<i64> {
        self.last_at_ms().max(self.perhaps_until_ms())
    }
}

impl<'a> Reading<'a> {
    pub(super) const fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            look,
            home,
            sessions: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reads what the processes lead to, or everything.
    pub(super) fn walk(&mut self) {
        let sessions = self.home.root.join("sessions");
        let work_dirs = self
            .seekers()
            .flat_map(AgentProcess::work_dirs)
            .filter_map(folder_of);
        let mut folders: BTreeSet<PathBuf> =
            work_dirs.map(|folder| sessions.join(folder)).collect();
        if self.look.depth.is_walk() {
            let names = list_folders_or_tell(&sessions, FOLDERS_MAX, |told| {
                self.problem(&sessions, told);
            });
            folders.extend(names.names.iter().map(|name| sessions.join(name)));
        }
        folders.extend(moved_to(self.look, self.home));
        for folder in &folders {
            self.read_folder(folder);
        }
    }

    pub(super) fn finish(mut self) -> Found<AgentScan> {
        let mut sketches = OnePerSession::new(|path| transcript::DIALECT.said(path));
        let mut problems = Vec::new();
        for (id, told) in &self.sessions {
            let seekers = self.seekers().filter(|seeker| fits(seeker, id, told));
            let seekers: Vec<&AgentProcess> = seekers.collect();
            if seekers.is_empty() && *self.look.depth == Depth::Live {
                continue;
            }
            let mut sketch = self.sketch(id, told);
            if !seekers.is_empty() {
                let read = TranscriptFile::open(&told.path)
                    .and_then(|file| transcript::prompts(&file))
                    .unwrap_or_else(|error| {
                        problems.push(Problem::at(&AGENT, &told.path, error.reason()));
                        Prompts::default()
                    });
                add_prompts(&mut sketch, told, read, &seekers);
            }
            sketches.add(sketch, seekers.iter().map(|its| its.process.pid));
        }
        self.problems.extend(problems);
        Found {
            found: sketches.into_scan(Vec::new()),
            problems: self.problems,
        }
    }

    /// The processes that may serve a session.
    fn seekers(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        let processes = self.look.processes_of(self.home);
        processes.filter(|process| process.role == Role::Session)
    }

    fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    fn names(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_or_tell(directory, entries_max, |told| self.problem(directory, told))
    }

    fn read_folder(&mut self, folder: &Path) {
        let names = self.names(folder, SESSIONS_MAX);
        for name in &names.names {
            if name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
                self.read_session(&folder.join(name));
            }
        }
    }

    fn read_session(&mut self, path: &Path) {
        let told = match self.read_told(path) {
            Ok(Some(told)) => told,
            Ok(None) => {
                // What is called otherwise is no session of its own.
                if transcript::is_named_like_one(path) {
                    self.problem(path, "its first line is not that of a session");
                }
                return;
            }
            // It was removed since the list was made.
            Err(TranscriptError::File(ReadFileError::NotFound { .. })) => return,
            Err(error) => {
                self.problem(path, error.reason());
                return;
            }
        };
        let id = match SessionId::parse(&told.header.id) {
            Ok(id) => id,
            Err(error) => {
                self.problem(path, error);
                return;
            }
        };
        self.sessions.push((id, told));
    }

    /// Reads one session: how it went on too, where somebody may serve it.
    fn read_told(&self, path: &Path) -> Result<Option<Told>, TranscriptError> {
        let file = TranscriptFile::open(path)?;
        let header = match transcript::header(&file)? {
            Some(header) => Some(header),
            None => self.header_by_place(&file)?,
        };
        let Some(header) = header else {
            return Ok(None);
        };
        let work_dir = header.work_dir.as_deref().map(PathBuf::from);
        let has_seekers = self.seekers().next().is_some();
        let real_dir = work_dir.as_deref().filter(|_| has_seekers);
        let mut told = Told {
            path: path.to_owned(),
            real_dir: real_dir.map(|dir| self.look.machine.mounts().real_path(dir)),
            work_dir,
            header,
            outline: Outline::default(),
        };
        if self.seekers().any(|seeker| is_beside(seeker, &told)) {
            told.outline = transcript::outline(&file, &told.header)?;
        }
        Ok(Some(told))
    }

    /// What the name and the folder of a file tell that has lost its first line, where a
    /// process works that may have written to it.
    fn header_by_place(&self, file: &TranscriptFile) -> Result<Option<Header>, TranscriptError> {
        let folder = file.path().parent();
        // Where sessions of all directories lie together, it may be of any.
        let is_of_one_directory = folder.and_then(Path::parent).is_some_and(|sessions| {
            sessions.parent() == Some(&self.home.root) && sessions.ends_with("sessions")
        });
        let folder = folder.and_then(Path::file_name);
        let may_have_written = |seeker: &&AgentProcess| {
            let began = seeker.process.began_at_ms.as_ref().ok();
            let since = began.zip(file.facts().modified_ms);
            since.is_none_or(|(began, at)| at >= began.saturating_sub(CLOCK_SLACK_MS))
        };
        let is_in_folder = |seeker: &&AgentProcess| {
            let mut its = seeker.work_dirs().filter_map(folder_of);
            its.any(|its| Some(its.as_str()) == folder.and_then(|name| name.to_str()))
        };
        let mut may_be_its = self
            .seekers()
            .filter(|seeker| !is_of_one_directory || is_in_folder(seeker));
        match may_be_its.find(may_have_written) {
            Some(seeker) => {
                let work_dir = seeker.work_dir().filter(|_| is_of_one_directory);
                transcript::header_by_name(file, work_dir)
            }
            None => Ok(None),
        }
    }

    fn sketch(&self, id: &SessionId, told: &Told) -> Sketch {
        let mut sketch = Sketch::new(SessionKey {
            agent: AGENT,
            session: id.clone(),
            home: self.home.root.clone(),
        });
        sketch.unclaimed = Unclaimed::Owner;
        sketch.work_dir.clone_from(&told.work_dir);
        sketch.born_at_ms = told.born_at_ms();
        sketch.last_record_at_ms = told.outline.last_at_ms;
        sketch.perhaps_until_ms = told.perhaps_until_ms();
        sketch.transcript = Some(told.path.clone());
        // Its header has the time of the launch, or of `/new`.
        sketch.launched_at_ms.extend(told.born_at_ms());
        sketch
    }
}

/// Adds what its prompts show.
fn add_prompts(sketch: &mut Sketch, told: &Told, prompts: Prompts, seekers: &[&AgentProcess]) {
    let is_run = |its: &&AgentProcess| its.process.tty.is_none();
    if told.outline.is_prompted_at_birth && seekers.iter().all(is_run) {
        sketch.is_headless = Some(true);
    }
    sketch.prompted_at_ms = prompts.last_typed_at_ms;
    sketch.terminal_title = prompts.name.and_then(|name| terminal_title(&name, told));
}

/// What a terminal shows that is in a session with a name.
fn terminal_title(name: &str, told: &Told) -> Option<String> {
    let directory = told.work_dir.as_deref()?.file_name()?.to_str()?;
    Some(format!("π - {name} - {directory}"))
}

/// The session may be this process's: its arguments name it, or it was born or
/// went on in its directory after the process began.
fn fits(seeker: &AgentProcess, id: &SessionId, told: &Told) -> bool {
    let named = process::PROGRAMS.session(&seeker.program());
    let is_named = named.is_some_and(|named| id.as_str().starts_with(named));
    let is_of_its_time = seeker.process.began_at_ms.as_ref().is_ok_and(|began| {
        let since = began.saturating_sub(CLOCK_SLACK_MS);
        let dates = [told.born_at_ms(), told.latest_ms()];
        dates.into_iter().flatten().any(|at| at >= since)
    });
    is_named || (is_beside(seeker, told) && is_of_its_time)
}

/// Both work in one directory, which may have several names.
fn is_beside(seeker: &AgentProcess, told: &Told) -> bool {
    if told.header.is_lost && told.work_dir.is_none() {
        return true;
    }
    let named = [told.work_dir.as_deref(), told.real_dir.as_deref()];
    seeker.work_dirs().any(|own| named.contains(&Some(own)))
}
