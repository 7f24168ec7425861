//! One session's directory: `session-state/ID/`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use whosup_process::{FileId, Pid};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};

use super::scan::Scanning;
use super::workspace::Workspace;
use crate::agents::folder::names_in;

/// How many files of a session's directory are looked at.
const FILES_MAX: usize = 10_000;

/// The transcript's name.
pub(super) const EVENTS: &str = "events.jsonl";
/// The name of what tells directory, branch and name.
pub(super) const WORKSPACE: &str = "workspace.yaml";

/// One session's directory.
#[derive(Debug)]
pub(super) struct SessionDir {
    pub(super) id: SessionId,
    pub(super) path: PathBuf,
    pub(super) workspace: Workspace,
    /// There is a transcript: somebody has said something.
    pub(super) has_events: bool,
    /// By PID.
    pub(super) locks: Vec<InUse>,
}

/// The files by which a process says that it uses the session: `inuse.PID.lock`
/// and, held while it does, `inuse.PID.hold`.
#[derive(Debug)]
pub(super) struct InUse {
    /// The process, as the names tell: a hint, for a PID means nothing by itself.
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
        FileId {
            device: self.facts.device,
            inode: self.facts.inode,
        }
    }
}

impl SessionDir {
    pub(super) fn events(&self) -> PathBuf {
        self.path.join(EVENTS)
    }

    /// Reads the directory at `path`; `None` if it is not there (any more).
    pub(super) fn read(scanning: &mut Scanning<'_>, id: SessionId, path: PathBuf) -> Option<Self> {
        let names = match names_in(&path, FILES_MAX) {
            Ok(names) => names,
            // A file beside the directories of sessions.
            Err(error) if error.kind() == ErrorKind::NotADirectory => return None,
            Err(error) => {
                scanning.problem(&path, error);
                return None;
            }
        };
        if names.names.is_empty() {
            return None;
        }
        let file = path.join(WORKSPACE);
        let mut workspace = match Workspace::read(&file) {
            Ok(workspace) => workspace.unwrap_or_default(),
            Err(message) => {
                scanning.problem(&file, message);
                Workspace::default()
            }
        };
        if let Some(named) = workspace
            .id
            .as_deref()
            .filter(|named| *named != id.as_str())
        {
            scanning.problem(
                &file,
                format!("`id` is `{named}`, and its directory is another one's"),
            );
            workspace = Workspace::default();
        }
        let locks = locks_among(scanning, &path, names.texts());
        Some(Self {
            has_events: names.texts().any(|name| name == EVENTS),
            id,
            workspace,
            locks,
            path,
        })
    }
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
            Err(error) => scanning.problem(&path, error.reason()),
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
