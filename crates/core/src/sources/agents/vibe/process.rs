//! How Vibe's processes look.
//!
//! Seen in mistral-vibe 3.0.2, 2026-11, below a shell in a terminal:
//!
//! ```text
//! …/vibe/_bin/vibe-rs …                 interface: the terminal and the arguments
//! └ python …/bin/vibe-app-server        runs the session, holds its lease
//! ```
//!
//! The `vibe` script only executes `vibe-rs`. The server keeps its arguments
//! while it imports its modules, some seconds, and then puts `vibe-app-server`
//! over them and its environment. Its terminal is that of the interface, which
//! is its parent.

use std::path::Path;

use crate::adapter::{Program, Role, is_runtime_name};

/// The names that its processes may have as `comm`.
pub(super) const COMMS: &[&str] = &["vibe-rs", "vibe-app-server", "vibe", "vibe-acp"];

/// The interface's executable.
const INTERFACE: &str = "vibe-rs";
/// What the server puts over its arguments, and the name of its script.
const SERVER: &str = "vibe-app-server";
/// The scripts that serve sessions.
const SERVERS: &[&str] = &[SERVER, "vibe-acp"];
/// The script that executes the interface.
const SCRIPT: &str = "vibe";
/// A server's executable does something else when this is its first argument.
const HELPER_FLAG: &str = "--internal-posix-pty-helper";
/// Words in the first place with which the interface shows no session.
const OTHER_COMMANDS: &[&str] = &["help", "mcp", "update"];
/// Options with which it shows none.
const OTHER_OPTIONS: &[&str] = &[
    "--check-upgrade",
    "--help",
    "--setup",
    "--version",
    "-h",
    "-v",
];
/// Options with which it runs one prompt and exits.
const HEADLESS_OPTIONS: &[&str] = &["--prompt", "--prompt-file", "-p"];

/// Says what a process is to Vibe.
pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if is_interface(program) {
        return Some(interface_role(program));
    }
    if let Some(title) = program.title() {
        // An unreadable executable (another user's process) leaves the title.
        let may_be_its = match program.exe_name() {
            Some(name) => is_python(name) || SERVERS.contains(&name),
            None => program.exe().is_none(),
        };
        return (title == SERVER && may_be_its).then_some(Role::Host);
    }
    let name = match program.exe_name() {
        // Packed with its Python.
        Some(name) if SERVERS.contains(&name) => name,
        Some(name) if is_python(name) => program.script()?.file_name()?.to_str()?,
        _ => return None,
    };
    if SERVERS.contains(&name) {
        let is_helper = program.has_argument(HELPER_FLAG);
        return Some(if is_helper {
            Role::Auxiliary
        } else {
            Role::Host
        });
    }
    let is_installed = || {
        let parent = program.script().and_then(Path::parent);
        parent
            .and_then(Path::file_name)
            .is_some_and(|parent| parent == "bin")
    };
    (name == SCRIPT && is_installed()).then_some(Role::Launcher)
}

/// Tells whether an interface was told to run one prompt.
pub(super) fn is_headless(program: &Program<'_>) -> bool {
    has_option(program, HEADLESS_OPTIONS)
}

/// The session that the interface was told to resume: its id, or the
/// beginning of one.
pub(super) fn resumed<'a>(program: &Program<'a>) -> Option<&'a str> {
    if !is_interface(program) {
        return None;
    }
    let value = program.option("--resume")?;
    (!value.is_empty() && !value.starts_with('-')).then_some(value)
}

/// Tells whether the interface was told to go on with a session, whichever
/// that is: it begins another one first, and leaves it for that.
pub(super) fn takes_up(program: &Program<'_>) -> bool {
    has_option(program, &["--resume", "--continue", "-c"])
}

/// An option in the arguments, with its value behind `=` or without.
fn has_option(program: &Program<'_>, names: &[&str]) -> bool {
    program.argv().iter().skip(1).any(|argument| {
        let Some(argument) = argument.to_str() else {
            return false;
        };
        let name = argument.split_once('=').map_or(argument, |(name, _)| name);
        names.contains(&name)
    })
}

fn interface_role(program: &Program<'_>) -> Role {
    let first = program.argv().get(1).and_then(|first| first.to_str());
    if first.is_some_and(|first| OTHER_COMMANDS.contains(&first))
        || has_option(program, OTHER_OPTIONS)
    {
        Role::Auxiliary
    } else if is_headless(program) {
        Role::Launcher
    } else {
        Role::Client
    }
}

fn is_interface(program: &Program<'_>) -> bool {
    match program.exe() {
        Some(_) => program.exe_name() == Some(INTERFACE),
        // Not ours to look at: what it was started as must do, if the kernel's
        // name for it agrees.
        None => {
            let started_as = program
                .argv()
                .first()
                .map(Path::new)
                .and_then(Path::file_name);
            started_as.is_some_and(|name| name == INTERFACE) && program.comm() == Some(INTERFACE)
        }
    }
}

fn is_python(name: &str) -> bool {
    is_runtime_name(name) && name.starts_with("python")
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    const RS: &str = "/home/dev/.local/lib/python3.13/site-packages/vibe/_bin/vibe-rs";

    fn interface(arguments: &[&str]) -> RecordedProcess {
        let argv: Vec<&str> = [RS].into_iter().chain(arguments.iter().copied()).collect();
        RecordedProcess::new(7, 1, 0)
            .comm("vibe-rs")
            .exe(RS)
            .argv(&argv)
    }

    fn python(argv: &[&str]) -> RecordedProcess {
        RecordedProcess::new(8, 1, 0)
            .comm("python3.13")
            .exe("/usr/bin/python3.13")
            .argv(argv)
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn the_interface_shows_a_session_or_runs_one_prompt() {
        check_role(&interface(&[]), Some(Role::Client));
        check_role(
            &interface(&["--trust", "fix -p, please"]),
            Some(Role::Client),
        );
        check_role(&interface(&["--resume", "f49b6460"]), Some(Role::Client));
        check_role(&interface(&["-p", "hello"]), Some(Role::Launcher));
        check_role(&interface(&["--prompt-file=p.txt"]), Some(Role::Launcher));
        check_role(&interface(&["mcp", "list"]), Some(Role::Auxiliary));
        check_role(&interface(&["--setup"]), Some(Role::Auxiliary));
        let mut foreign = interface(&[]);
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Client));
        let other_name = foreign.comm("bash");
        check_role(&other_name, None);
        check_role(&interface(&[]).exe("/usr/bin/vim"), None);
    }

    #[test]
    fn the_server_is_known_by_its_title_and_before_that_by_its_script() {
        check_role(&python(&[]).title("vibe-app-server"), Some(Role::Host));
        check_role(
            &python(&["python3", "/venv/bin/vibe-app-server"]),
            Some(Role::Host),
        );
        check_role(
            &python(&["python3", "/venv/bin/vibe-acp"]),
            Some(Role::Host),
        );
        let packed = python(&["/opt/vibe/vibe-app-server"]).exe("/opt/vibe/vibe-app-server");
        check_role(&packed, Some(Role::Host));
        let helper = ["python3", "/venv/bin/vibe-app-server", HELPER_FLAG];
        check_role(&python(&helper), Some(Role::Auxiliary));
        check_role(
            &python(&[]).title("vibe-app-server").exe("/usr/bin/node"),
            None,
        );
        check_role(&python(&[]).title("vibe"), None);
    }

    #[test]
    fn the_script_that_executes_the_interface_is_a_launcher() {
        check_role(
            &python(&["python3", "/venv/bin/vibe", "--trust"]),
            Some(Role::Launcher),
        );
        check_role(&python(&["python3", "/home/dev/vibe"]), None);
        check_role(&python(&["python3", "vibe.py"]), None);
        check_role(
            &python(&["node", "/venv/bin/vibe"]).exe("/usr/bin/node"),
            None,
        );
    }

    #[test]
    fn the_arguments_name_a_session_or_say_that_some_is_taken_up() {
        let check = |arguments: &[&str], named: Option<&str>, takes: bool| {
            let process = interface(arguments);
            assert_eq!(resumed(&program_of(&process)), named, "{arguments:?}");
            assert_eq!(takes_up(&program_of(&process)), takes, "{arguments:?}");
        };
        check(&["--resume", "f49b6460"], Some("f49b6460"), true);
        check(&["--resume=f49b6460", "--trust"], Some("f49b6460"), true);
        check(&["--resume", "--trust"], None, true);
        check(&["-c"], None, true);
        check(&["--trust"], None, false);
        let server = python(&["python3", "/venv/bin/vibe-app-server", "--resume", "x"]);
        assert_eq!(resumed(&program_of(&server)), None);
    }
}
