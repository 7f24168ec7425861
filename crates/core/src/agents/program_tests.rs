//! Programs that tests run under an agent's name.

use std::path::Path;
use std::process::Command;

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
