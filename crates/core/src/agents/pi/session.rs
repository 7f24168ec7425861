//! The sessions of one home, each a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::ReadFileError;

use super::session_dir::{folder_of, moved_to};
use super::transcript::{self, Header, Outline, Prompts};
use super::{AGENT, process};
use crate::agents::folder::{Names, list_folders_or_tell, list_or_tell};
use crate::agents::launch::{Newborn, match_launches};
use crate::agents::terminal_use::{
    is_begun_by_hand, was_begun_elsewhere, was_hardly_shown_here, was_hardly_typed_here,
};
use crate::agents::{AgentProcess, AgentScan, Depth, Home, Look, PairingRule, Role, Sketch};
use crate::claim::{CLOCK_SLACK_MS, Claim, SessionKey};
use crate::problem::{Found, Problem};
use crate::transcript::{TranscriptError, TranscriptFile};

/// How many folders are looked at.
const FOLDERS_MAX: usize = 100_000;
/// How many sessions of one folder are looked at.
const SESSIONS_MAX: usize = 100_000;
/// How long after its start a process has made its session: 0.5 s where the
/// machine had nothing else to do, 3.5 s where it had much.
const LAUNCH_MS_MAX: i64 = 5_000;
/// How much older than its process a session may look, for rounding.
const LAUNCH_SLACK_MS: i64 = 250;
/// How a session's file ends.
const SUFFIX: &str = ".jsonl";

/// One home's scan while it grows.
pub(super) struct Reading<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    sessions: BTreeMap<SessionId, Told>,
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

/// A process and the session that it was launched with.
struct Launch<'a> {
    process: &'a AgentProcess,
    session: SessionId,
    /// The last record of that session.
    last_at_ms: Option<i64>,
}

impl<'a> Reading<'a> {
    pub(super) const fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            look,
            home,
            sessions: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Reads what the processes lead to, or everything.
    pub(super) fn walk(&mut self) {
        let sessions = self.home.root.join("sessions");
        let work_dirs = self
            .seekers()
            .filter_map(|seeker| folder_of(seeker.work_dir()?));
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
        let launched = self.launched();
        let mut sketches = Vec::new();
        let mut problems = Vec::new();
        for (id, told) in &self.sessions {
            let may_be_served = self.seekers().any(|seeker| fits(seeker, id, told));
            let mut sketch = self.sketch(id, told);
            if may_be_served {
                let read = TranscriptFile::open(&told.path)
                    .and_then(|file| transcript::prompts(&file))
                    .unwrap_or_else(|error| {
                        problems.push(Problem::at(&AGENT, &told.path, error.reason()));
                        Prompts::default()
                    });
                self.tell_apart(&mut sketch, told, read, &launched);
            } else if *self.look.depth == Depth::Live {
                continue;
            }
            sketches.push(sketch);
        }
        self.problems.extend(problems);
        Found {
            found: AgentScan::of([] as [Claim; 0], sketches),
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
        // Of two files with one id, the one that has words, and then the one that
        // went on.
        let is_older = self.sessions.get(&id).is_some_and(|other| {
            let rank = |one: &Told| {
                let said = transcript::said(&one.path);
                (said.is_some(), one.last_at_ms().max(said.flatten()))
            };
            rank(other) > rank(&told)
        });
        if !is_older {
            self.sessions.insert(id, told);
        }
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
            real_dir: real_dir.and_then(|dir| dir.canonicalize().ok()),
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
            let its = seeker.work_dir().and_then(folder_of);
            its.is_some() && its.as_deref() == folder.and_then(|name| name.to_str())
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

    /// The processes that were launched with a session.
    fn launched(&self) -> Vec<Launch<'a>> {
        let newborn = |told: &Told| {
            let launched = self.seekers().filter(|seeker| is_launch(seeker, told));
            Newborn {
                born_at_ms: told.born_at_ms().unwrap_or_default(),
                just_begun: launched.map(|seeker| seeker.process.pid).collect(),
                is_perhaps_of_others: self
                    .seekers()
                    .any(|seeker| !is_launch(seeker, told) && is_there_at_birth(seeker, told)),
            }
        };
        let newborn: Vec<Newborn> = self.sessions.values().map(newborn).collect();
        let launches = match_launches(&newborn);
        let sessions = self.sessions.iter().enumerate();
        sessions
            .filter_map(|(at, (id, told))| {
                let pid = *launches.get(&at)?;
                let process = self.seekers().find(|seeker| seeker.process.pid == pid)?;
                Some(Launch {
                    process,
                    session: id.clone(),
                    last_at_ms: told.last_at_ms(),
                })
            })
            .collect()
    }

    fn sketch(&self, id: &SessionId, told: &Told) -> Sketch {
        let mut sketch = Sketch::new(SessionKey {
            agent: AGENT,
            session: id.clone(),
            home: self.home.root.clone(),
        });
        sketch.pairing = PairingRule::Owner;
        sketch.work_dir.clone_from(&told.work_dir);
        sketch.born_at_ms = told.born_at_ms();
        sketch.last_record_at_ms = told.outline.last_at_ms;
        sketch.perhaps_until_ms = told.perhaps_until_ms();
        sketch.transcript = Some(told.path.clone());
        sketch
    }

    /// Adds what tells more closely which of the processes that fit has it.
    fn tell_apart(
        &self,
        sketch: &mut Sketch,
        told: &Told,
        prompts: Prompts,
        launched: &[Launch<'_>],
    ) {
        let id = sketch.key.session.clone();
        let its = launched.iter().find(|launch| launch.session == id);
        let is_prompted_at_birth = told.outline.is_prompted_at_birth;
        sketch.is_first_of_a_process = its.is_some() || is_prompted_at_birth;
        let is_run = |its: &Launch<'_>| its.process.process.tty.is_none();
        if is_prompted_at_birth && its.is_some_and(is_run) {
            sketch.is_headless = Some(true);
        }
        if let Some(its) = its {
            sketch.possible_owners = Some(BTreeSet::from([its.process.process.pid]));
        } else {
            sketch.possible_owners = self.without_those_elsewhere(&id, told, launched);
            if told.header.is_lost && sketch.possible_owners.is_none() {
                sketch.possible_owners = Some(self.pids(|seeker| fits(seeker, &id, told)));
            }
        }
        sketch.doubtful_owners = self.pids(|seeker| {
            let is_launch = its.is_some_and(|its| its.process.process.pid == seeker.process.pid);
            fits(seeker, &id, told) && self.is_doubtful(seeker, told, &prompts, is_launch)
        });
        sketch.terminal_title = prompts.name.and_then(|name| terminal_title(&name, told));
    }

    /// The processes that fit a session, where some that do can't be in it: they
    /// were in the session that they were launched with after its last record, or
    /// it was begun in another terminal. `None` if all
    /// that fit may be in it.
    fn without_those_elsewhere(
        &self,
        id: &SessionId,
        told: &Told,
        launched: &[Launch<'_>],
    ) -> Option<BTreeSet<Pid>> {
        let is_elsewhere = |seeker: &AgentProcess| {
            let is_in_its_first = launched.iter().any(|its| {
                its.process.process.pid == seeker.process.pid && its.last_at_ms >= told.latest_ms()
            });
            is_in_its_first
                || was_begun_elsewhere(seeker, told.born_at_ms(), told.outline.last_at_ms)
        };
        let fitting = self.pids(|seeker| fits(seeker, id, told));
        let left = self.pids(|seeker| fits(seeker, id, told) && !is_elsewhere(seeker));
        (left.len() < fitting.len()).then_some(left)
    }

    /// A process that has ended explains the session as well as this one does.
    fn is_doubtful(
        &self,
        seeker: &AgentProcess,
        told: &Told,
        prompts: &Prompts,
        is_launch: bool,
    ) -> bool {
        let is_lost = told.header.is_lost || told.outline.missing_end.is_some();
        if is_lost && !is_launch {
            // It may be a run's, or have been prompted elsewhere.
            return true;
        }
        let is_like_a_run = told.outline.is_prompted_at_birth && prompts.may_be_one;
        if is_like_a_run {
            return !is_launch;
        }
        let is_typed_elsewhere = match prompts.last_typed_at_ms {
            Some(at_ms) => was_hardly_typed_here(seeker, at_ms),
            // Something was typed further back than is read, who knows where.
            None => !prompts.are_all,
        };
        let is_elsewhere = is_typed_elsewhere
            || told
                .outline
                .last_at_ms
                .is_some_and(|at_ms| was_hardly_shown_here(seeker, at_ms));
        // By `/new`; but from where?
        let is_without_forerunner = !is_launch
            && told.born_at_ms().is_some_and(|born| {
                let is_before = |other: &Told| other.born_at_ms().is_some_and(|at| at < born);
                let mut others = self.sessions.iter();
                is_begun_by_hand(seeker, born)
                    && !others.any(|(id, other)| is_before(other) && fits(seeker, id, other))
            });
        is_elsewhere || is_without_forerunner
    }

    fn pids(&self, is_wanted: impl Fn(&AgentProcess) -> bool) -> BTreeSet<Pid> {
        let wanted = self.seekers().filter(|seeker| is_wanted(seeker));
        wanted.map(|seeker| seeker.process.pid).collect()
    }
}

/// What a terminal shows that is in a session with a name.
fn terminal_title(name: &str, told: &Told) -> Option<String> {
    let directory = told.work_dir.as_deref()?.file_name()?.to_str()?;
    Some(format!("π - {name} - {directory}"))
}

/// The session was born when this process had just begun in its directory.
fn is_launch(seeker: &AgentProcess, told: &Told) -> bool {
    let (Ok(began), Some(born)) = (&seeker.process.began_at_ms, told.born_at_ms()) else {
        return false;
    };
    let took_ms = born.saturating_sub(*began);
    is_beside(seeker, told) && (-LAUNCH_SLACK_MS..=LAUNCH_MS_MAX).contains(&took_ms)
}

/// The process was there when the session was born, in its directory.
fn is_there_at_birth(seeker: &AgentProcess, told: &Told) -> bool {
    let began = seeker.process.began_at_ms.as_ref();
    let is_before =
        |born: i64| began.map_or(true, |began| *began <= born.saturating_add(LAUNCH_SLACK_MS));
    is_beside(seeker, told) && told.born_at_ms().is_none_or(is_before)
}

/// The session may be this process's: its arguments name it, or it was born or
/// went on in its directory after the process began.
fn fits(seeker: &AgentProcess, id: &SessionId, told: &Told) -> bool {
    let named = process::session_named_by(&seeker.program());
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
    let its = seeker.work_dir();
    if told.header.is_lost && told.work_dir.is_none() {
        return true;
    }
    its.is_some() && (its == told.work_dir.as_deref() || its == told.real_dir.as_deref())
}
