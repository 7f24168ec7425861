//! The projects of a home, and who has them open.
//!
//! Read in the sources of Crush, 2026-08. Each project has a directory for its
//! data, as a rule `.crush` in the project's own or in the nearest one above it
//! within the work tree; `projects.json` of the home lists them. In it:
//! `crush.db`, and `crush.lock`, held with flock(2) by the process that has the
//! database open, with that process's PID, version and start in it. The lock
//! names a process, not a session, and is never removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_process::{FileId, Pid};
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts, read_regular};
use whosup_sidecar::parse_json;

use super::process::named_data_dir;
use super::{AGENT, Crush};
use crate::adapter::{AgentProcess, Home, Look, Role, Sketch};
use crate::machine::mounts::Mounts;
use crate::machine::problem::Problem;
use crate::sources::agents::kit::document::parse_document;
use crate::sources::agents::kit::held::{file_id, which_lock, who_holds};
use crate::sources::agents::kit::reading::{found_or_problem, read_if_there};

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
    /// Size, dates and owner of the lock, if it can be examined.
    pub(super) lock_facts: Option<FileFacts>,
    /// The version of the Crush that opened the project last.
    pub(super) version: Option<String>,
}

/// Who has a project open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// There is no lock: it is of an early release, or such locks are turned off.
    Missing,
    /// The lock or its holders cannot be examined.
    Unreadable,
    /// This process of Crush's holds it.
    Held(Pid),
    /// No Crush process holds it; other processes were not asked.
    NotHeldByOwn,
    /// Another program holds it.
    HeldByOther(Pid),
    /// No process holds it.
    Free { is_everyone_asked: bool },
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
    for (data_dir, work_dir) in listed(&home.root, problems) {
        match mounts.touchable(&data_dir) {
            Ok(_) => known.entry(data_dir).or_default().work_dirs.push(work_dir),
            Err(why) => problems.push(Problem::at(&AGENT, &data_dir, why)),
        }
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
            lock_facts: None,
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

/// The projects that a home lists: the data directory of each, and the directory that it is
/// listed for.
fn listed(home: &Path, problems: &mut Vec<Problem>) -> Vec<(PathBuf, PathBuf)> {
    let path = home.join("projects.json");
    let problem = |message| Problem::at(&AGENT, &path, message);
    let entries = found_or_problem(entries_in(&path).map_err(problem)).take(problems);
    if entries.len() > PROJECTS_MAX {
        let message = format!("more than {PROJECTS_MAX} projects: the rest is left out");
        problems.push(problem(message));
    }
    let mut found = Vec::new();
    for entry in entries.iter().take(PROJECTS_MAX) {
        match absolute(entry, "data_dir").and_then(|dir| Ok((dir, absolute(entry, "path")?))) {
            Ok(project) => found.push(project),
            Err(message) => problems.push(problem(message)),
        }
    }
    found
}

fn absolute(entry: &Value, key: &str) -> Result<PathBuf, String> {
    let path = entry.get(key).and_then(Value::as_str).map(Path::new);
    let path = path.filter(|path| path.is_absolute());
    let path = path.ok_or_else(|| format!("`{key}` of a project is not an absolute path"))?;
    Ok(path.components().collect())
}

/// The entries of the list of projects; none if there is no list.
fn entries_in(path: &Path) -> Result<Vec<Value>, String> {
    let Some(file) = read_if_there(path, PROJECTS_BYTES_MAX, Links::Follow)? else {
        return Ok(Vec::new());
    };
    let mut list: Value = parse_document(&file.bytes)?;
    match list.get_mut("projects").map(Value::take) {
        Some(Value::Array(entries)) => Ok(entries),
        _ => Err("`projects` is not an array".to_owned()),
    }
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
    let data_dirs: BTreeSet<PathBuf> = listed.into_iter().map(|(data_dir, _)| data_dir).collect();
    data_dirs.into_iter().collect()
}

/// The directory that the sessions of a project work in: the listed directory, or, if the
/// data are in their usual place, the directory that contains them. Of several listed
/// directories none is chosen.
fn work_dir(data_dir: &Path, listed: &[PathBuf]) -> Option<PathBuf> {
    match listed {
        [only] => Some(only.clone()),
        [] if data_dir.ends_with(DATA_DIR) => data_dir.parent().map(Path::to_owned),
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
    for project in &mut *projects {
        let path = project.lock_path();
        match facts(&path, Links::Refuse) {
            Ok(facts) => project.lock_facts = Some(facts),
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => {
                problems.push(Problem::at(&AGENT, &path, error.reason()));
                project.lock = Lock::Unreadable;
            }
        }
    }
    let files = projects
        .iter()
        .filter_map(|project| project.lock_facts.as_ref());
    let files: Vec<FileId> = files.map(file_id).collect();
    let is_walk = look.depth.is_walk();
    let held = if is_walk {
        who_holds(look, &Crush, &files)
    } else {
        which_lock(look, &files)
    };
    let is_own = |pid: Pid| look.processes.iter().any(|own| own.process.pid == pid);
    for project in projects {
        let Some(file) = project.lock_facts.as_ref().map(file_id) else {
            continue;
        };
        let Ok(held) = &held else {
            project.lock = Lock::Unreadable;
            project.lock_facts = None;
            continue;
        };
        let held = held.get(&file).cloned().unwrap_or_default();
        project.lock = match held.by.first() {
            Some(pid) if is_own(*pid) => Lock::Held(*pid),
            Some(pid) => Lock::HeldByOther(*pid),
            None if is_walk => Lock::Free {
                is_everyone_asked: held.is_everyone_asked,
            },
            None => Lock::NotHeldByOwn,
        };
        if matches!(project.lock, Lock::Held(_)) {
            project.version = version_in(&project.lock_path());
        }
    }
    problems.extend(held.err().map(|error| Problem::of(&AGENT, error)));
}

/// The version that the holder of a lock wrote into it.
fn version_in(path: &Path) -> Option<String> {
    let file = read_regular(path, LOCK_BYTES_MAX, Links::Refuse).ok()?;
    let content: Value = parse_json(&file.bytes).ok()?;
    let version = content.get("version")?.as_str()?.trim();
    let version = version.strip_prefix('v').unwrap_or(version);
    (!version.is_empty()).then(|| version.to_owned())
}
