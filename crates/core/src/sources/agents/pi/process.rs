//! How pi's processes look.
//!
//! A Node process that puts `pi` over its arguments as soon as its modules are
//! loaded; its environment stays. Seen in pi 0.73.1, 2026-11. The build that is
//! one executable is not recognized: another program is called `pi` as well.

use std::ffi::OsString;
use std::path::Path;

use crate::adapter::{Program, Role};

/// What it puts over its arguments.
const TITLE: &str = "pi";

/// The names that its processes may have as `comm`.
pub(super) const COMMS: &[&str] = &[TITLE];

/// The folder of its package, and the script in it that is run.
const PACKAGE: &str = "pi-coding-agent";
const PACKAGE_SCRIPT: &str = "cli.js";
/// The command that its package installs.
const COMMAND: &str = "pi";
/// Directories that commands are installed to.
const COMMAND_FOLDERS: &[&str] = &["bin", ".bin"];
/// Runtimes that it runs on.
const RUNTIMES: &[&str] = &["node", "nodejs", "bun"];
/// Subcommands, none of which serves a session.
const OTHER_COMMANDS: &[&str] = &["config", "install", "list", "remove", "uninstall", "update"];

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if let Some(title) = program.title() {
        // An unreadable executable (another user's process) may be any `pi`.
        let is_its = title == TITLE && program.exe_name().is_some_and(is_its_runtime);
        return is_its.then_some(Role::Session);
    }
    let arguments = arguments(program)?;
    let command = arguments.first().and_then(|first| first.to_str());
    let is_other = command.is_some_and(|command| OTHER_COMMANDS.contains(&command));
    Some(if is_other {
        Role::Auxiliary
    } else {
        Role::Session
    })
}

/// The session that the arguments name, while they show: the beginning of its
/// id. A path is left alone.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    arguments(program)?;
    let named = program.option("--session")?;
    let is_path = named.contains(['/', '\\']) || named.ends_with(".jsonl");
    (!named.is_empty() && !named.starts_with('-') && !is_path).then_some(named)
}

/// What stands behind its script in the arguments of its runtime.
fn arguments<'a>(program: &Program<'a>) -> Option<&'a [OsString]> {
    if !program.exe_name().is_some_and(is_its_runtime) {
        return None;
    }
    let script = program.script()?;
    if !is_its_script(script) {
        return None;
    }
    let argv = program.argv();
    let at = argv
        .iter()
        .position(|argument| Path::new(argument) == script)?;
    argv.get(at + 1..)
}

/// `…/pi-coding-agent/dist/cli.js`, or the command that leads there.
fn is_its_script(script: &Path) -> bool {
    let names: Vec<&str> = script
        .components()
        .filter_map(|component| component.as_os_str().to_str())
        .collect();
    let [folders @ .., name] = names.as_slice() else {
        return false;
    };
    let is_command = *name == COMMAND
        && folders
            .last()
            .is_some_and(|last| COMMAND_FOLDERS.contains(last));
    is_command || (*name == PACKAGE_SCRIPT && folders.contains(&PACKAGE))
}

fn is_its_runtime(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNTIMES.contains(&stem)
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    fn node(argv: &[&str]) -> RecordedProcess {
        RecordedProcess::new(7, 1, 0)
            .exe("/usr/bin/node")
            .argv(argv)
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn a_node_with_its_title_is_recognized() {
        check_role(&node(&[]).title("pi").comm("pi"), Some(Role::Session));
    }

    #[test]
    fn a_title_or_a_name_alone_is_not() {
        check_role(&node(&[]).title("pi").exe("/usr/bin/python3.13"), None);
        check_role(&node(&["pi", "1000"]).exe("/usr/bin/pi").comm("pi"), None);
        check_role(&node(&[]).title("pip"), None);
        check_role(&node(&["node", "server.js"]).comm("pi"), None);
        let mut foreign = node(&[]).title("pi");
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, None);
    }

    #[test]
    fn its_arguments_do_until_the_title_covers_them() {
        for argv in [
            &["node", "/usr/local/bin/pi"][..],
            &["node", "/w/node_modules/.bin/pi", "--print", "x"],
            &[
                "node",
                "/w/node_modules/@mariozechner/pi-coding-agent/dist/cli.js",
            ],
        ] {
            check_role(&node(argv), Some(Role::Session));
        }
        check_role(
            &node(&["node", "/usr/local/bin/pi", "list"]),
            Some(Role::Auxiliary),
        );
        for argv in [
            &["node", "/home/dev/pi"][..],
            &["node", "/home/dev/dist/cli.js"],
            &["node", "/usr/local/bin/pip"],
            &["node"],
        ] {
            check_role(&node(argv), None);
        }
    }

    #[test]
    fn its_arguments_name_a_session_and_a_path_is_none() {
        let check = |argv: &[&str], right: Option<&str>| {
            let process = node(argv);
            let program = program_of(&process);
            assert_eq!(session_named_by(&program), right, "{argv:?}");
        };
        check(&["node", "/usr/bin/pi", "--session", "01a2"], Some("01a2"));
        check(&["node", "/usr/bin/pi", "--session", "/w/x.jsonl"], None);
        check(&["node", "/usr/bin/pi", "-c"], None);
        check(&["node", "/usr/bin/other", "--session", "01a2"], None);
    }
}
