//! Checks whether a session's directory still exists.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use whosup_core::machine::Machine;
use whosup_core::machine::mounts::Mounts;
use whosup_core::sessions::session::Session;

/// Whether `directory` is known to be gone. A directory on a mount that may never answer, or
/// behind a link to one, is not looked at; false if the look fails.
pub(crate) fn is_gone(mounts: &Mounts, directory: &Path) -> bool {
    let Ok(directory) = mounts.touchable(directory) else {
        return false;
    };
    match std::fs::metadata(directory) {
        Ok(there) => !there.is_dir(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The directory that a session would be resumed in, if it is gone.
pub(crate) fn gone_to_resume_in(machine: &Machine, session: &Session) -> Option<PathBuf> {
    let directory = session.invocation()?.directory;
    let directory = directory.or_else(|| session.work_dir().map(Path::to_owned))?;
    is_gone(machine.mounts(), &directory).then_some(directory)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_a_link_to_a_mount_that_may_hang_is_not_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("net/gone", root.join("link")).unwrap();
        let mounts = format!(
            "27 1 254:0 / / rw - ext4 /dev/vda rw\n30 27 0:30 / {}/net rw - fuse.sshfs x rw\n",
            root.display()
        );
        let mounts = Mounts::parse(mounts.as_bytes());
        assert!(!is_gone(&mounts, &root.join("link")));
        assert!(!is_gone(&mounts, &root.join("net/gone")));
        assert!(!is_gone(&mounts, &root));
        assert!(is_gone(&mounts, &root.join("gone")));
    }
}
