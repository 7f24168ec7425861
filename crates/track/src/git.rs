//! The branch that a directory is on.

use std::path::{Path, PathBuf};

use whosup_core::machine::mounts::Mounts;
use whosup_core::sidecar::file::{Links, read_regular};

/// How many directories upwards a repository is looked for.
const PARENTS_MAX: usize = 64;
/// How long the files may be that name a branch, in bytes.
const FILE_BYTES_MAX: u64 = 8 * 1024;

/// The branch that is checked out in the repository around `directory`; `None` if
/// there is none, or no branch is, or one of its files can't be touched without the risk
/// of waiting for ever.
pub(crate) fn branch_of(directory: &Path, mounts: &Mounts) -> Option<String> {
    for parent in directory.ancestors().take(PARENTS_MAX) {
        let repository = mounts.touchable(&parent.join(".git")).ok()?;
        if !repository.exists() {
            continue;
        }
        let folder = if repository.is_dir() {
            repository.as_path().to_owned()
        } else {
            folder_of_worktree(repository.as_path(), mounts)?
        };
        return branch_in(&folder.join("HEAD"), mounts);
    }
    None
}

fn branch_in(head: &Path, mounts: &Mounts) -> Option<String> {
    let head = read(head, mounts)?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

/// A worktree has a file `.git` that names its folder.
fn folder_of_worktree(file: &Path, mounts: &Mounts) -> Option<PathBuf> {
    let text = read(file, mounts)?;
    let folder = Path::new(text.trim().strip_prefix("gitdir: ")?);
    // `join` with an absolute path is that path.
    Some(file.parent()?.join(folder))
}

fn read(path: &Path, mounts: &Mounts) -> Option<String> {
    mounts.touchable(path).ok()?;
    let file = read_regular(path, FILE_BYTES_MAX, Links::Follow).ok()?;
    String::from_utf8(file.bytes).ok()
}
