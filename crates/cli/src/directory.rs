//! Checks whether a session's directory still exists.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use whosup_core::adapter::claim::Placement;
use whosup_core::machine::Machine;
use whosup_core::sessions::session::Session;

/// Whether `directory` is known to be gone. A directory on a network file system is not
/// looked at, since the server may never answer; false if the look fails.
pub(crate) fn is_gone(machine: &Machine, directory: &Path) -> bool {
    if machine.mounts().placement_of(directory) == Placement::SharedByMachines {
        return false;
    }
    match std::fs::metadata(directory) {
        Ok(there) => !there.is_dir(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The directory that a session would be resumed in, if it is gone.
pub(crate) fn gone_to_resume_in(machine: &Machine, session: &Session) -> Option<PathBuf> {
    let directory = session.invocation()?.directory;
    let directory = directory.or_else(|| session.work_dir().map(Path::to_owned))?;
    is_gone(machine, &directory).then_some(directory)
}
