//! Whether a session that was not found may be behind something that could not be read.

use std::ffi::OsStr;
use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::file::{Links, OpenFile};

use crate::machine::Machine;
use crate::machine::problem::Problem;
use crate::sessions::session::Session;
use crate::sources::agents::kit::folder::LEFT_OUT;

/// How many characters of an ID a path has by chance at most.
const CHANCE_CHARACTERS: usize = 7;
/// What the names of databases have that hold sessions. (Those of Codex, `.sqlite`, have
/// nothing that its transcripts lack.)
const DATABASE: &str = ".db";

/// Whether the problem may hide a session whose ID begins with `beginning`. `sessions` are all
/// that were found.
///
/// A file of one session hides no other one. Of which session a file is that can be read and
/// not understood, its name says: the ID, or the PID of the process that serves it. A database
/// has sessions of any ID, and so has a directory with more names than are read.
pub(super) fn hides(
    problem: &Problem,
    beginning: &str,
    sessions: &[Session],
    machine: &Machine,
) -> bool {
    let Some(path) = &problem.path else {
        return problem.agent.is_some();
    };
    if machine.mounts().touchable(path).is_err() {
        return true;
    }
    #[expect(clippy::disallowed_methods, reason = "checked before")]
    let found = std::fs::metadata(path);
    match found {
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        Ok(metadata) if metadata.is_dir() => {
            problem.message.ends_with(LEFT_OUT) || list(path).is_err()
        }
        Ok(metadata) if metadata.is_file() => {
            let may_be_its = || is_of_session(path, beginning) || is_of_running(path, machine);
            OpenFile::open(path, Links::Follow).is_err()
                || is_database(path)
                || (may_be_its() && !is_understood(path, sessions))
        }
        Ok(_) => true,
    }
}

/// A session was found by this file: only a part of it is wrong.
fn is_understood(path: &Path, sessions: &[Session]) -> bool {
    let mut evidence = sessions.iter().flat_map(|session| &session.evidence);
    evidence.any(|one| one.evidence.path.as_deref() == Some(path))
}

#[expect(clippy::disallowed_methods, reason = "checked before")]
fn list(path: &Path) -> std::io::Result<std::fs::ReadDir> {
    std::fs::read_dir(path)
}

fn is_database(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.contains(DATABASE)
}

fn is_of_session(path: &Path, beginning: &str) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_long = beginning.len() > CHANCE_CHARACTERS;
    name.starts_with(beginning) || (is_long && path.to_string_lossy().contains(beginning))
}

/// It is named after a process that runs, as records are that agents keep of theirs.
fn is_of_running(path: &Path, machine: &Machine) -> bool {
    let stem = path.file_stem().and_then(OsStr::to_str);
    let pid = stem.and_then(|stem| stem.parse().ok());
    let pid = pid.and_then(|pid: i64| Pid::new(pid).ok());
    pid.is_some_and(|pid| machine.table().seen(pid).is_some())
}
