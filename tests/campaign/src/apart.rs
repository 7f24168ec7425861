//! A PID namespace of its own for each world: what runs elsewhere on the machine
//! is no part of it, PIDs can be chosen, and everything ends with it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Options of unshare(1).
const OPTIONS: &[&str] = &[
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--mount",
    "--mount-proc",
];

/// The options with which a namespace can be made here, or none.
pub(crate) fn options() -> Option<Vec<&'static str>> {
    let user: &[&str] = &["--user", "--map-root-user"];
    [&[][..], user].into_iter().find_map(|more| {
        let options = [OPTIONS, more].concat();
        let mut command = Command::new("unshare");
        command.args(&options).args(["--", "/bin/true"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
            .status()
            .is_ok_and(|status| status.success())
            .then_some(options)
    })
}

/// Runs this program in one. A shell is the first process there, which collects
/// what others leave.
pub(crate) fn command(options: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new("unshare");
    command
        .args(options)
        .args(["--", "/bin/sh", "-c", "\"$0\" \"$@\"; exit $?"])
        .arg(std::env::current_exe()?);
    Ok(command)
}

/// A file system in memory for this namespace alone.
pub(crate) fn mount_memory(at: &Path) -> anyhow::Result<()> {
    let flags = rustix::mount::MountFlags::empty();
    Ok(rustix::mount::mount(
        "tmpfs",
        at,
        "tmpfs",
        flags,
        c"mode=0755",
    )?)
}
