//! The projects of a home, and who has them open.
//!
//! Read in the sources of Crush, 2026-08. Each project has a directory for its
//! data, as a rule `.crush` in the project's own or in the nearest one above it
//! within the work tree; `projects.json` of the home lists them. In it:
//! `crush.db`, and `crush.lock`, held with flock(2) by the process that has the
//! database open, with that process's PID, version and start in it. The lock
//! names a process, not a session, and is never removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_process::{Among, FileId, Pid};
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts, read_regular};

use super::process::named_data_dir;
use super::{AGENT, Crush};
use crate::adapter::{AgentProcess, Home, Look, Role, Sketch};
use crate::machine::mounts::Mounts;
use crate::machine::problem::Problem;
use crate::sources::agents::kit::held::who_holds;

/// How long the list of projects may be, in bytes.
const PROJECTS_BYTES_MAX: u64 = 8 << 20;
/// How many projects are looked at.
const PROJECTS_MAX: usize = 10_000;
/// How long a lock's text may be, in bytes. It has some eighty.
const LOCK_BYTES_MAX: u64 = 64 * 1024;
/// How far up a directory for data is looked for.
const ANCESTORS_MAX: usize = 64;
/// The usual name of a directory for data.
const DATA_DIR: &str = ".crush";

/// A project: a data directory, and the facts about it.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) data_dir: PathBuf,
    /// The directory that its sessions work in, if there is only one.
    pub(super) work_dir: Option<PathBuf>,
    /// Crush processes that work in the project, by arguments and directories.
    pub(super) processes: Vec<Pid>,
    pub(super) lock: Lock,
    /// The version of the Crush that opened the project last.
    pub(super) version: Option<String>,
}

/// Who has a project open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lock {
    /// There is no lock: it is of an early release, or such locks are turned off.
    Missing,
    /// The lock or its holders cannot be examined.
    Unreadable,
    /// This process of Crush's holds it.
    Held(Pid, FileFacts),
    /// No Crush process holds it; other processes were not asked.
    NotHeldByOwn(FileFacts),
    /// Another program holds it.
    HeldByOther(Pid, FileFacts),
    /// No process holds it.
    Free {
        is_everyone_asked: bool,
        facts: FileFacts,
    },
}

impl Project {
    /// Its database.
    pub(super) fn database(&self) -> PathBuf {
        self.data_dir.join("crush.db")
    }

    /// Its lock.
    pub(super) fn lock_path(&self) -> PathBuf {
        self.data_dir.join("crush.lock")
    }
}

/// Finds the projects of a home: those that it lists, and those that its
/// processes work in.
pub(super) fn projects(look: &Look<'_>, home: &Home, problems: &mut Vec<Problem>) -> Vec<Project> {
    let mut known: BTreeMap<PathBuf, Known> = BTreeMap::new();
    let mounts = look.machine.mounts();
    for listed in listed(&home.root, problems) {
        if let Err(why) = mounts.touchable(&listed.data_dir) {
            problems.push(Problem::at(&AGENT, &listed.data_dir, why));
            continue;
        }
        let known = known.entry(listed.data_dir).or_default();
        known.work_dirs.push(listed.path);
    }
    for process in look.processes_of(home) {
        if matches!(process.role, Role::Session | Role::Host)
            && let Some(data_dir) = data_dir_of(process, mounts)
        {
            let known = known.entry(data_dir).or_default();
            known.processes.push(process.process.pid);
        }
    }
    let mut projects: Vec<Project> = known
        .into_iter()
        .map(|(data_dir, known)| Project {
            work_dir: work_dir(&data_dir, &known.work_dirs),
            processes: known.processes,
            lock: Lock::Missing,
            version: None,
            data_dir,
        })
        .collect();
    find_holders(look, &mut projects, problems);
    projects
}

/// Sources that name projects.
#[derive(Debug, Default)]
struct Known {
    /// The directories that it is listed for.
    work_dirs: Vec<PathBuf>,
    processes: Vec<Pid>,
}

/// A project in the list of a home.
struct Listed {
    path: PathBuf,
    data_dir: PathBuf,
}

/// The list of projects.
pub(super) fn list_path(home: &Path) -> PathBuf {
    home.join("projects.json")
}

fn listed(home: &Path, problems: &mut Vec<Problem>) -> Vec<Listed> {
    let path = list_path(home);
    let file = match read_regular(&path, PROJECTS_BYTES_MAX, Links::Follow) {
        Ok(file) => file,
        Err(ReadFileError::NotFound { .. }) => return Vec::new(),
        Err(error) => {
            problems.push(Problem::at(&AGENT, &path, error.reason()));
            return Vec::new();
        }
    };
    let list: Value = match serde_json::from_slice(&file.bytes) {
        Ok(list) => list,
        Err(error) => {
            problems.push(Problem::at(&AGENT, &path, error));
            return Vec::new();
        }
    };
    let Some(entries) = list.get("projects").and_then(Value::as_array) else {
        problems.push(Problem::at(&AGENT, &path, "`projects` is not an array"));
        return Vec::new();
    };
    if entries.len() > PROJECTS_MAX {
        let message = format!("more than {PROJECTS_MAX} projects: the rest is left out");
        problems.push(Problem::at(&AGENT, &path, message));
    }
    let absolute = |entry: &Value, key: &str| -> Option<PathBuf> {
        let path = Path::new(entry.get(key)?.as_str()?);
        path.is_absolute().then(|| path.components().collect())
    };
    let parsed = entries.iter().take(PROJECTS_MAX).filter_map(|entry| {
        Some(Listed {
            data_dir: absolute(entry, "data_dir")?,
            path: absolute(entry, "path")?,
        })
    });
    parsed.collect()
}

/// The data directory of a session, if Crush would not find it from where the
/// session works: it looks for `.crush` there and above.
pub(super) fn data_dir_that_needs_naming(sketch: &Sketch) -> Option<&Path> {
    let data_dir = sketch.transcript.as_deref()?.parent()?;
    let is_above = || {
        let work_dir = sketch.work_dir.as_deref()?;
        Some(work_dir.starts_with(data_dir.parent()?))
    };
    let is_found = data_dir.ends_with(DATA_DIR) && is_above() == Some(true);
    (!is_found).then_some(data_dir)
}

/// The directories for data that a home lists.
pub(super) fn listed_data_dirs(home: &Path) -> Vec<PathBuf> {
    let listed = listed(home, &mut Vec::new());
    let mut data_dirs: Vec<PathBuf> = listed.into_iter().map(|one| one.data_dir).collect();
    data_dirs.sort();
    data_dirs.dedup();
    data_dirs
}

/// The directory that the sessions of a project work in: the listed directory, or, if the
/// data are in their usual place, the directory that contains them. Of several listed
/// directories none is chosen.
fn work_dir(data_dir: &Path, listed: &[PathBuf]) -> Option<PathBuf> {
    match listed {
        [only] => Some(only.clone()),
        [] if data_dir.file_name().is_some_and(|name| name == DATA_DIR) => {
            data_dir.parent().map(Path::to_owned)
        }
        _ => None,
    }
}

/// The data directory of a process, by arguments and working directory.
fn data_dir_of(process: &AgentProcess, mounts: &Mounts) -> Option<PathBuf> {
    if let Some(named) = named_data_dir(&process.program()) {
        return mounts.touchable(&named).is_ok().then_some(named);
    }
    let work_dir = process.work_dir()?;
    for directory in work_dir.ancestors().take(ANCESTORS_MAX) {
        let data_dir = directory.join(DATA_DIR);
        if mounts.touchable(&data_dir).ok()?.is_dir() {
            return Some(data_dir);
        }
        // The work tree ends here.
        if mounts.touchable(&directory.join(".git")).ok()?.exists() {
            return None;
        }
    }
    None
}

/// Finds the holders of each project. If only live sessions are wanted, only Crush processes
/// are asked.
fn find_holders(look: &Look<'_>, projects: &mut [Project], problems: &mut Vec<Problem>) {
    for project in projects.iter_mut() {
        let path = project.lock_path();
        match facts(&path, Links::Refuse) {
            Ok(facts) => project.lock = Lock::NotHeldByOwn(facts),
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => {
                problems.push(Problem::at(&AGENT, &path, error.reason()));
                project.lock = Lock::Unreadable;
            }
        }
    }
    let files: Vec<FileId> = projects.iter().filter_map(Project::file).collect();
    let answer = if look.depth.is_walk() {
        ask_everybody(look, &files, projects)
    } else {
        ask_own(look, &files, projects)
    };
    if let Err(error) = answer {
        problems.push(Problem::of(&AGENT, error));
        for project in projects
            .iter_mut()
            .filter(|project| project.file().is_some())
        {
            project.lock = Lock::Unreadable;
        }
    }
    for project in projects.iter_mut() {
        if matches!(project.lock, Lock::Held(..)) {
            project.version = version_in(&project.lock_path());
        }
    }
}

impl Project {
    fn file(&self) -> Option<FileId> {
        let Lock::NotHeldByOwn(facts) = &self.lock else {
            return None;
        };
        Some(FileId {
            device: facts.device,
            inode: facts.inode,
        })
    }

    fn facts(&self) -> Option<FileFacts> {
        match &self.lock {
            Lock::NotHeldByOwn(facts) => Some(*facts),
            _ => None,
        }
    }
}

fn ask_own(
    look: &Look<'_>,
    files: &[FileId],
    projects: &mut [Project],
) -> Result<(), whosup_process::ProbeError> {
    let own: Vec<Pid> = look
        .processes
        .iter()
        .map(|process| process.process.pid)
        .collect();
    if own.is_empty() || files.is_empty() {
        return Ok(());
    }
    let holders = look.machine.table().holders(files, Among::These(&own))?;
    for project in projects {
        if let (Some(file), Some(facts)) = (project.file(), project.facts())
            && let Some(holder) = holders.of(file).find(|holder| !holder.locks.is_empty())
        {
            project.lock = Lock::Held(holder.pid, facts);
        }
    }
    Ok(())
}

fn ask_everybody(
    look: &Look<'_>,
    files: &[FileId],
    projects: &mut [Project],
) -> Result<(), whosup_process::ProbeError> {
    let held = who_holds(look, &Crush, files)?;
    for project in projects {
        let (Some(file), Some(facts)) = (project.file(), project.facts()) else {
            continue;
        };
        let found = held.get(&file).cloned().unwrap_or_default();
        let is_own = |pid: Pid| {
            look.processes
                .iter()
                .any(|process| process.process.pid == pid)
        };
        project.lock = match found.by.first() {
            Some(pid) if is_own(*pid) => Lock::Held(*pid, facts),
            Some(pid) => Lock::HeldByOther(*pid, facts),
            None => Lock::Free {
                is_everyone_asked: found.is_everyone_asked,
                facts,
            },
        };
    }
    Ok(())
}

/// The version that the holder of a lock wrote into it.
fn version_in(path: &Path) -> Option<String> {
    let file = read_regular(path, LOCK_BYTES_MAX, Links::Refuse).ok()?;
    let content: Value = serde_json::from_slice(&file.bytes).ok()?;
    let version = content.get("version")?.as_str()?.trim();
    let version = version.strip_prefix('v').unwrap_or(version);
    (!version.is_empty()).then(|| version.to_owned())
}
