//! Whether an agent ends because its terminal was closed.
//!
//! Some agents report their end then as they do on a clean exit: Claude Code (reason
//! `other`, as on SIGTERM), qwen-code and Copilot, 2026-11. The kernel shows the
//! difference while the hook runs: a process that was hung up has no controlling terminal
//! any more, and the one that it has open is no longer there.

use std::path::Path;

use whosup_core::process::Backend;
use whosup_core::sources::record::RecordedOwner;

/// The directory of pseudo-terminals on Linux, and the suffix of a path that is gone.
const TERMINALS: &str = "/dev/pts/";
const GONE: &str = " (deleted)";

/// Whether the terminal of this process was closed. `false` where that cannot be seen.
pub(crate) fn was_closed(backend: &dyn Backend, owner: &RecordedOwner) -> bool {
    let found = backend.probe(owner.pid).ok().flatten();
    let Some(process) = found.filter(|process| owner.stamp.as_ref() == Some(&process.stamp)) else {
        return false;
    };
    let is_one_of_many = owner.is_shared || owner.is_unrecognized;
    !is_one_of_many
        && process.tty.is_none()
        && backend
            .open_files(&process)
            .is_ok_and(|files| files.iter().any(|file| is_gone(&file.path)))
}

fn is_gone(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|path| path.starts_with(TERMINALS) && path.ends_with(GONE))
}
