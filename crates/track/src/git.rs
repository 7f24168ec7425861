//! The branch that a directory is on.

use std::path::{Path, PathBuf};

use whosup_core::sidecar::file::{Links, read_regular};

/// How many directories upwards a repository is looked for.
const PARENTS_MAX: usize = 64;
/// How long the files may be that name a branch, in bytes.
const FILE_BYTES_MAX: u64 = 8 * 1024;

/// The branch that is checked out in the repository around `directory`; `None` if
/// there is none, or no branch is.
pub(crate) fn branch_of(directory: &Path) -> Option<String> {
    let repository = directory
        .ancestors()
        .take(PARENTS_MAX)
        .map(|parent| parent.join(".git"))
        .find(|path| path.exists())?;
    let folder = if repository.is_dir() {
        repository
    } else {
        folder_of_worktree(&repository)?
    };
    let head = read(&folder.join("HEAD"))?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

/// A worktree has a file `.git` that names its folder.
fn folder_of_worktree(file: &Path) -> Option<PathBuf> {
    let text = read(file)?;
    let folder = Path::new(text.trim().strip_prefix("gitdir: ")?);
    // `join` with an absolute path is that path.
    Some(file.parent()?.join(folder))
}

fn read(path: &Path) -> Option<String> {
    let file = read_regular(path, FILE_BYTES_MAX, Links::Follow).ok()?;
    String::from_utf8(file.bytes).ok()
}
