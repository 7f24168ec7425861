//! How Kimi Code's processes look.
//!
//! A Node process that puts `kimi-code` over its arguments first thing; its
//! environment stays. The native build is one executable. Seen in Kimi Code
//! 2.1.0, 2026-11; the native build was only read of.

use std::ffi::OsString;
use std::path::Path;

use crate::adapter::{Program, Role};

/// What it puts over its arguments.
const TITLE: &str = "kimi-code";

/// The names that its processes may have as `comm`.
pub(super) const COMMS: &[&str] = &[TITLE, "kimi"];

/// Executables of its own, where it was packed with its Node.
const OWN_EXECUTABLES: &[&str] = &["kimi", "kimi.exe", "kimi-code"];
/// What a script's path has in it, however it was installed.
const PACKAGE: &[&str] = &["@moonshot-ai", "kimi-code"];
/// The commands that its package installs.
const COMMANDS: &[&str] = &["kimi", "kimi-code"];
/// Directories that commands are installed to.
const COMMAND_FOLDERS: &[&str] = &["bin", ".bin"];
/// Subcommands that serve many sessions.
const HOST_COMMANDS: &[&str] = &["acp", "web", "rc", "remote", "server"];
/// Subcommands that serve none.
const OTHER_COMMANDS: &[&str] = &[
    "__plugin_run_node",
    "__update_download",
    "doctor",
    "export",
    "fork",
    "install-app",
    "install-desktop",
    "login",
    "migrate",
    "provider",
    "session",
    "update",
    "upgrade",
    "vis",
];

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if let Some(title) = program.title() {
        // An unreadable executable (another user's process) leaves the title.
        let may_be_its = match program.exe_name() {
            Some(name) => is_node(name) || OWN_EXECUTABLES.contains(&name),
            None => program.exe().is_none(),
        };
        // A server shows the same and can't be told apart.
        return (title == TITLE && may_be_its).then_some(Role::Session);
    }
    let arguments = arguments(program)?;
    let command = arguments.first().and_then(|first| first.to_str());
    let is_one_of = |words: &[&str]| command.is_some_and(|command| words.contains(&command));
    Some(if is_one_of(HOST_COMMANDS) {
        Role::Host
    } else if is_one_of(OTHER_COMMANDS) {
        Role::Auxiliary
    } else {
        Role::Session
    })
}

/// The session that the arguments name, while they show.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    arguments(program)?;
    ["--session", "--resume", "-S", "-r"]
        .into_iter()
        .find_map(|option| program.option(option))
        .filter(|value| !value.is_empty() && !value.starts_with('-'))
}

/// What stands behind its script in the arguments of a Node.
fn arguments<'a>(program: &Program<'a>) -> Option<&'a [OsString]> {
    if !program.exe_name().is_none_or(is_node) {
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

/// `node_modules/@moonshot-ai/kimi-code/dist/main.mjs`, or the command that
/// leads there.
fn is_its_script(script: &Path) -> bool {
    let names: Vec<&str> = script
        .components()
        .filter_map(|component| component.as_os_str().to_str())
        .collect();
    if names.windows(PACKAGE.len()).any(|part| part == PACKAGE) {
        return true;
    }
    let [.., folder, name] = names.as_slice() else {
        return false;
    };
    COMMANDS.contains(name) && COMMAND_FOLDERS.contains(folder)
}

fn is_node(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(stem, "node" | "nodejs")
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
        check_role(&node(&[]).title("kimi-code"), Some(Role::Session));
        let native = node(&[]).exe("/home/dev/.kimi-code/bin/kimi");
        check_role(&native.title("kimi-code"), Some(Role::Session));
        let mut foreign = node(&[]).title("kimi-code");
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Session));
    }

    #[test]
    fn a_title_or_a_name_alone_is_not() {
        check_role(
            &node(&[]).title("kimi-code").exe("/usr/bin/python3.13"),
            None,
        );
        check_role(&node(&[]).title("Kimi Code"), None);
        check_role(&node(&["node", "server.js"]).comm("kimi-code"), None);
    }

    #[test]
    fn its_arguments_do_until_the_title_covers_them() {
        for argv in [
            &["node", "/usr/local/bin/kimi"][..],
            &["node", "/w/node_modules/.bin/kimi", "--continue"],
            &[
                "node",
                "/w/node_modules/@moonshot-ai/kimi-code/dist/main.mjs",
            ],
        ] {
            check_role(&node(argv), Some(Role::Session));
        }
        check_role(
            &node(&["node", "/usr/local/bin/kimi", "web"]),
            Some(Role::Host),
        );
        check_role(
            &node(&["node", "/usr/local/bin/kimi", "login"]),
            Some(Role::Auxiliary),
        );
        for argv in [
            &["node", "/home/dev/kimi"][..],
            &["node", "/home/dev/kimi-code/main.js"],
            &["node"],
        ] {
            check_role(&node(argv), None);
        }
        let python = node(&["python3", "/usr/local/bin/kimi"]).exe("/usr/bin/python3.13");
        check_role(&python, None);
    }

    #[test]
    fn its_arguments_name_a_session() {
        let check = |argv: &[&str], right: Option<&str>| {
            let process = node(argv);
            let program = program_of(&process);
            assert_eq!(session_named_by(&program), right, "{argv:?}");
        };
        check(
            &["node", "/usr/bin/kimi", "-S", "session_1"],
            Some("session_1"),
        );
        check(
            &["node", "/usr/bin/kimi", "--resume=session_1"],
            Some("session_1"),
        );
        check(&["node", "/usr/bin/kimi", "-r", "--yolo"], None);
        check(&["node", "/usr/bin/other", "-S", "session_1"], None);
    }
}
