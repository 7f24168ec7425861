//! One session's directory: `session-state/ID/`.
//!
//! Before it had one (Copilot CLI 0.0.3xx, the end of 2025), a session was a file:
//! `session-state/ID.jsonl` with the events that are in `events.jsonl` now. Taken
//! from public examples of 0.0.348 to 0.0.372, 2026-11.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use whosup_process::{FileId, Pid};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};

use super::scan::Scanning;
use super::workspace::Workspace;
use crate::sources::agents::kit::folder::{names_in, names_or_report};
use crate::sources::agents::kit::held::file_id;
use crate::sources::agents::kit::uuid::UUID_BYTES;

/// How many files of a session's directory are looked at.
const FILES_MAX: usize = 10_000;

/// The transcript's name.
pub(super) const EVENTS: &str = "events.jsonl";
/// The name of the file with directory, branch and name.
pub(super) const WORKSPACE: &str = "workspace.yaml";

/// One session's directory.
#[derive(Debug)]
pub(super) struct SessionDir {
    pub(super) id: SessionId,
    pub(super) workspace: Workspace,
    /// The transcript: it exists from the first prompt on.
    pub(super) events: Option<PathBuf>,
    /// By PID.
    pub(super) locks: Vec<InUse>,
}

/// The files by which a process marks the session as in use: `inuse.PID.lock` and
/// `inuse.PID.hold`, which it holds meanwhile.
#[derive(Debug)]
pub(super) struct InUse {
    /// The process in the file name: a hint, since a PID alone identifies nothing.
    pub(super) pid: Pid,
    pub(super) path: PathBuf,
    pub(super) facts: FileFacts,
    /// It is the file that is held. Without one (in early versions) there is
    /// nothing but the PID.
    pub(super) is_hold: bool,
}

impl InUse {
    /// The file, as descriptors are compared with it.
    pub(super) const fn file(&self) -> FileId {
        file_id(&self.facts)
    }
}

impl SessionDir {
    pub(super) const fn has_events(&self) -> bool {
        self.events.is_some()
    }

    /// Reads the directory at `path`, or the file that an early version had in
    /// its place; `None` if neither is there (any more).
    pub(super) fn read(scanning: &mut Scanning<'_>, id: SessionId, path: PathBuf) -> Option<Self> {
        let listed = names_in(&path, FILES_MAX);
        // A file beside the directories of sessions.
        if matches!(&listed, Err(error) if error.kind() == ErrorKind::NotADirectory) {
            return None;
        }
        let report = |why| scanning.scan.problem(&path, why);
        let names = names_or_report(listed, FILES_MAX, report);
        let has_events = names.texts().any(|name| name == EVENTS);
        let events = match has_events {
            true => Some(path.join(EVENTS)),
            false => early_events(&path, &id),
        };
        if names.names.is_empty() && events.is_none() {
            return None;
        }
        let file = path.join(WORKSPACE);
        let read = Workspace::read(&file).and_then(|workspace| {
            let workspace = workspace.unwrap_or_default();
            match &workspace.id {
                Some(named) if named != id.as_str() => Err(format!(
                    "`id` is `{named}`, and its directory is another one's"
                )),
                _ => Ok(workspace),
            }
        });
        let workspace = read.unwrap_or_else(|message| {
            scanning.scan.problem(&file, message);
            Workspace::default()
        });
        let locks = locks_among(scanning, &path, names.texts());
        Some(Self {
            events,
            id,
            workspace,
            locks,
        })
    }
}

/// The id in the name of a session's directory, or of the file of an early version.
pub(super) fn id_in(name: &str) -> &str {
    let early = name.strip_suffix(".jsonl");
    let early = early.filter(|id| id.len() == UUID_BYTES);
    early.unwrap_or(name)
}

/// The transcript beside where the session's directory would be.
fn early_events(directory: &Path, id: &SessionId) -> Option<PathBuf> {
    if id.as_str().len() != UUID_BYTES {
        return None;
    }
    let path = directory.with_file_name(format!("{id}.jsonl"));
    facts(&path, Links::Follow).ok().map(|_| path)
}

fn locks_among<'n>(
    scanning: &mut Scanning<'_>,
    directory: &Path,
    names: impl Iterator<Item = &'n str>,
) -> Vec<InUse> {
    let mut locks: Vec<InUse> = Vec::new();
    // Sorted as they are, the `.hold` of a PID comes before its `.lock`.
    for name in names.filter(|name| name.starts_with("inuse.")) {
        let path = directory.join(name);
        let Some((pid, is_hold)) = parse_in_use(name) else {
            continue;
        };
        if locks.iter().any(|lock| lock.pid == pid) {
            continue;
        }
        match facts(&path, Links::Refuse) {
            Ok(facts) => locks.push(InUse {
                pid,
                path,
                facts,
                is_hold,
            }),
            // Let go and removed since it was listed.
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => scanning.scan.problem(&path, error.reason()),
        }
    }
    locks
}

/// The PID in `inuse.PID.lock` or `inuse.PID.hold`, and whether it is the latter.
fn parse_in_use(name: &str) -> Option<(Pid, bool)> {
    let (pid, kind) = name.strip_prefix("inuse.")?.split_once('.')?;
    let is_hold = match kind {
        "hold" => true,
        "lock" => false,
        _ => return None,
    };
    let is_plain = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    let pid: i64 = pid.parse().ok().filter(|_| is_plain)?;
    Some((Pid::new(pid).ok()?, is_hold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_early_session_is_its_files_name() {
        let id = "2e9d91dc-763e-4ddb-bdca-157786007701";
        assert_eq!(id_in(id), id);
        assert_eq!(id_in(&format!("{id}.jsonl")), id);
        for other in ["notes.jsonl", "my-session", &format!("{id}.jsonl.bak")] {
            assert_eq!(id_in(other), other);
        }
    }

    #[test]
    fn a_name_tells_a_pid_and_what_is_held() {
        let pid = Pid::new(4711).unwrap();
        assert_eq!(parse_in_use("inuse.4711.lock"), Some((pid, false)));
        assert_eq!(parse_in_use("inuse.4711.hold"), Some((pid, true)));
        for other in [
            "inuse.lock",
            "inuse.0.lock",
            "inuse.+7.lock",
            "inuse.x.hold",
            "inuse.4711.lock.tmp",
            "inuse..hold",
            "inuse.99999999999.lock",
        ] {
            assert_eq!(parse_in_use(other), None, "{other}");
        }
    }
}
