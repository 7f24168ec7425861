//! Programs that tests run under an agent's name, and recorded ones.

use std::path::Path;
use std::process::Command;

use whosup_process::RecordedProcess;

use crate::adapter::{Program, Role};

/// A recorded process as adapters are shown it.
pub(crate) const fn program_of(process: &RecordedProcess) -> Program<'_> {
    Program {
        process: &process.process,
        details: &process.details,
    }
}

/// Fails unless an adapter takes a process for what it is.
#[track_caller]
pub(crate) fn check_recognized(
    recognize: fn(&Program<'_>) -> Option<Role>,
    process: &RecordedProcess,
    right: Option<Role>,
) {
    let argv = &process.details.argv;
    assert_eq!(recognize(&program_of(process)), right, "{argv:?}");
}

/// Copies a program by a process of its own.
///
/// Where this process writes it, another test's child that is forked meanwhile
/// holds it open for writing, and it can't be executed (`ETXTBSY`).
#[expect(clippy::disallowed_methods, reason = "a test makes its own programs")]
pub(crate) fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let status = Command::new("cp")
        .arg(from.as_ref())
        .arg(to.as_ref())
        .status();
    assert!(status.unwrap().success());
}
