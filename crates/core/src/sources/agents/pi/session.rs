//! The sessions of one home, each a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;

use super::AGENT;
use super::session_dir::{folder_of, moved_to};
use super::transcript::{self, Header, Outline};
use crate::adapter::claim::CLOCK_SLACK_MS;
use crate::adapter::{AgentProcess, AgentScan, Home, Look, Sketch, Unclaimed};
use crate::machine::problem::Found;
use crate::sources::agents::kit::folder::is_modified_since;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::transcript::{TranscriptError, TranscriptFile};

/// How many folders are looked at.
const FOLDERS_MAX: usize = 100_000;
/// How many sessions of one folder are looked at.
const SESSIONS_MAX: usize = 100_000;
/// How a session's file ends.
const SUFFIX: &str = ".jsonl";

/// One home's scan while it grows.
pub(super) struct Reading<'a> {
    scan: Scan<'a>,
    sessions: Vec<(SessionId, SessionFile)>,
}

/// A session, as recorded in its file.
struct SessionFile {
    path: PathBuf,
    /// Where its directory really is, if there are processes to compare it with.
    real_dir: Option<PathBuf>,
    header: Header,
    outline: Outline,
}

impl SessionFile {
    fn work_dir(&self) -> Option<&Path> {
        self.header.work_dir.as_deref().map(Path::new)
    }

    const fn born_at_ms(&self) -> Option<i64> {
        self.header.born_at_ms
    }

    fn last_at_ms(&self) -> Option<i64> {
        self.outline.last_at_ms.or(self.born_at_ms())
    }

    /// The latest possible date of use.
    fn latest_ms(&self) -> Option<i64> {
        self.last_at_ms().max(self.outline.perhaps_until_ms)
    }
}

impl<'a> Reading<'a> {
    pub(super) const fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            scan: Scan::new(AGENT, look, home),
            sessions: Vec::new(),
        }
    }

    /// Reads the folders in which processes work, or all folders.
    pub(super) fn walk(&mut self) {
        let sessions = self.scan.home.root.join("sessions");
        let work_dirs = self
            .scan
            .seekers()
            .flat_map(AgentProcess::work_dirs)
            .filter_map(folder_of);
        let mut folders: BTreeSet<PathBuf> =
            work_dirs.map(|folder| sessions.join(folder)).collect();
        folders.extend(moved_to(self.scan.look, self.scan.home));
        for folder in &folders {
            self.read_folder(folder, None);
        }
        // A folder's name does not show for certain which directory it is of.
        let since_ms = self.scan.look.displaced_since(self.scan.home);
        let is_walk = self.scan.look.depth.is_walk();
        if is_walk || since_ms.is_some() {
            let names = self.scan.folders(&sessions, FOLDERS_MAX);
            for folder in names.names.iter().map(|name| sessions.join(name)) {
                if !folders.contains(&folder) {
                    self.read_folder(&folder, since_ms.filter(|_| !is_walk));
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Found<AgentScan> {
        let mut sketches = OnePerSession::new(|path| transcript::DIALECT.said(path));
        for (id, session) in &self.sessions {
            let seekers = self
                .scan
                .seekers()
                .filter(|seeker| fits(seeker, id, session));
            let seekers: Vec<&AgentProcess> = seekers.collect();
            let is_walk = self.scan.look.depth.is_walk();
            let since_ms = self.displaced_since(session);
            if seekers.is_empty() && !is_walk && since_ms.is_none() {
                continue;
            }
            let mut sketch = self.sketch(id, session);
            // It may be taken up since, too.
            let is_older =
                session.born_at_ms() < since_ms.map(|since| since.saturating_sub(CLOCK_SLACK_MS));
            sketch.matters_only_if_shown = seekers.is_empty() && !is_walk && is_older;
            if !seekers.is_empty() {
                let read = TranscriptFile::open(&session.path);
                let read = read.and_then(|file| transcript::prompts(&file));
                let prompts = self.scan.read_or_report(&session.path, read);
                let prompts = prompts.unwrap_or_default();
                let is_run = |process: &&AgentProcess| process.process.tty.is_none();
                if session.outline.is_prompted_at_birth && seekers.iter().all(is_run) {
                    sketch.is_headless = Some(true);
                }
                sketch.prompted_at_ms = prompts.last_typed_at_ms;
                let name = prompts.name.as_deref();
                sketch.terminal_title = name.and_then(|name| terminal_title(name, session));
            }
            sketches.add(sketch, seekers.iter().map(|process| process.process.pid));
        }
        self.scan.finish(sketches)
    }

    /// Reads the sessions of a folder, or those that were written since then.
    fn read_folder(&mut self, folder: &Path, since_ms: Option<i64>) {
        let is_passed_over = |path: &Path| {
            let since_ms = since_ms.map(|since_ms| since_ms.saturating_sub(CLOCK_SLACK_MS));
            since_ms.is_some_and(|since_ms| !is_modified_since(path, since_ms))
        };
        if is_passed_over(folder) {
            return;
        }
        let names = self.scan.names(folder, SESSIONS_MAX);
        for name in &names.names {
            let path = folder.join(name);
            let is_session = name.as_encoded_bytes().ends_with(SUFFIX.as_bytes());
            if is_session && !is_passed_over(&path) {
                self.read_session(&path);
            }
        }
    }

    /// Since when processes run that may have used the session in its directory, under a
    /// former name of that.
    fn displaced_since(&self, session: &SessionFile) -> Option<i64> {
        let (look, home) = (self.scan.look, self.scan.home);
        look.displaced_from(home, session.work_dir())
    }

    fn read_session(&mut self, path: &Path) {
        let read = self.read_session_file(path);
        // There is none if it was removed since the list was made.
        match self.scan.read_or_report(path, read) {
            Some(Some(session)) => match SessionId::parse(&session.header.id) {
                Ok(id) => self.sessions.push((id, session)),
                Err(error) => self.scan.problem(path, error),
            },
            // A file with another name is no session.
            Some(None) if transcript::has_session_name(path) => {
                let message = "its first line is not that of a session";
                self.scan.problem(path, message);
            }
            _ => {}
        }
    }

    /// Reads one session file. The last date is read only if a process may serve the
    /// session.
    fn read_session_file(&self, path: &Path) -> Result<Option<SessionFile>, TranscriptError> {
        let file = TranscriptFile::open(path)?;
        let header = match transcript::header(&file)? {
            Some(header) => Some(header),
            None => self.header_by_place(&file)?,
        };
        let Some(header) = header else {
            return Ok(None);
        };
        let has_seekers = self.scan.seekers().next().is_some();
        let work_dir = header.work_dir.as_deref().map(Path::new);
        let real_dir = work_dir.filter(|_| has_seekers);
        let mut session = SessionFile {
            path: path.to_owned(),
            real_dir: real_dir.map(|dir| self.scan.look.machine.mounts().real_path(dir)),
            header,
            outline: Outline::default(),
        };
        let mut seekers = self.scan.seekers();
        if seekers.any(|seeker| is_beside(seeker, &session))
            || self.displaced_since(&session).is_some()
        {
            session.outline = transcript::outline(&file, &session.header)?;
        }
        Ok(Some(session))
    }

    /// The header of a file that has lost the first line, from its name. If a process that
    /// works there may have written to the file, the directory is that process's.
    fn header_by_place(&self, file: &TranscriptFile) -> Result<Option<Header>, TranscriptError> {
        let folder = file.path().parent();
        // Where sessions of all directories lie together, it may be of any.
        let is_of_one_directory = folder.and_then(Path::parent).is_some_and(|sessions| {
            sessions.parent() == Some(&self.scan.home.root) && sessions.ends_with("sessions")
        });
        let folder = folder.and_then(Path::file_name);
        let may_have_written = |seeker: &&AgentProcess| {
            let modified_ms = file.facts().modified_ms;
            modified_ms.and_then(|at| seeker.had_begun_at(at)) != Some(false)
        };
        let is_in_folder = |seeker: &&AgentProcess| {
            let mut folders = seeker.work_dirs().filter_map(folder_of);
            folders.any(|own| Some(own.as_str()) == folder.and_then(|name| name.to_str()))
        };
        let mut may_be_its = self
            .scan
            .seekers()
            .filter(|seeker| !is_of_one_directory || is_in_folder(seeker));
        let writer = may_be_its.find(may_have_written);
        let work_dir = writer.and_then(|seeker| seeker.work_dir());
        let work_dir = work_dir.filter(|_| is_of_one_directory);
        transcript::header_by_name(file, work_dir, writer.is_some())
    }

    fn sketch(&self, id: &SessionId, session: &SessionFile) -> Sketch {
        let mut sketch = Sketch::new(self.scan.key(id));
        sketch.unclaimed = Unclaimed::Owner;
        sketch.work_dir = session.work_dir().map(Path::to_owned);
        sketch.born_at_ms = session.born_at_ms();
        sketch.last_record_at_ms = session.outline.last_at_ms;
        sketch.perhaps_until_ms = session.outline.perhaps_until_ms;
        sketch.transcript = Some(session.path.clone());
        // The header has the date of the launch, or of `/new`.
        sketch.launched_at_ms.extend(session.born_at_ms());
        sketch
    }
}

/// The terminal title of a session with a name.
fn terminal_title(name: &str, session: &SessionFile) -> Option<String> {
    let directory = session.work_dir()?.file_name()?.to_str()?;
    Some(format!("π - {name} - {directory}"))
}

/// The session may belong to this process: the arguments name the session, or it was born or
/// used in the process's directory after the process began.
fn fits(seeker: &AgentProcess, id: &SessionId, session: &SessionFile) -> bool {
    let dates = [session.born_at_ms(), session.latest_ms()];
    seeker.names(id) || (is_beside(seeker, session) && seeker.had_begun_at_one_of(dates))
}

/// Both work in one directory, which may have several names.
fn is_beside(seeker: &AgentProcess, session: &SessionFile) -> bool {
    if session.header.is_anywhere {
        return true;
    }
    let named = [session.work_dir(), session.real_dir.as_deref()];
    seeker.work_dirs().any(|own| named.contains(&Some(own)))
}
