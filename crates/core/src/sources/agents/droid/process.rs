//! How Droid's processes look.
//!
//! One native executable, which keeps its arguments. Its command line was seen
//! in Droid 0.225.2, 2026-11; the rest is read in that executable.

use std::path::{Path, PathBuf};

use crate::adapter::{Program, Role};

/// The name of its executable, and of the link to the script of its package,
/// which starts the executable of the platform.
const NAME: &str = "droid";
/// The names that its processes may have as `comm`.
pub(super) const COMMS: &[&str] = &[NAME];

/// Options before the subcommand that take the next argument as their value.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "--append-system-prompt",
    "--append-system-prompt-file",
    "--auto",
    "--cwd",
    "--fork",
    "--settings",
    "--worktree-dir",
];
/// Options whose value may be left out.
const OPTIONS_WITH_OPTIONAL_VALUE: &[&str] = &["--resume", "--worktree", "-r", "-w"];
/// Options with which it does nothing else.
const OTHER_OPTIONS: &[&str] = &["--help", "--version", "-h", "-v"];
/// Subcommands that serve no session.
const OTHER_COMMANDS: &[&str] = &[
    "computer", "doctor", "find", "help", "mcp", "plugin", "search", "update",
];
/// The option that makes a process the worker of another session.
const WORKER_OPTION: &str = "--calling-session-id";
/// Forms of input and output in which another program talks to a session, on
/// behalf of a person: an editor, the desktop application.
const INTERFACE_FORMS: &[&str] = &["acp", "stream-jsonrpc"];

/// Says what a process is to Droid.
pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if program.runs_script_of("@factory/cli", NAME) {
        return Some(Role::Launcher);
    }
    if !program.executes(NAME) {
        return None;
    }
    if program.details.argv.is_err() {
        // One of several things; a host says least about others.
        return Some(Role::Host);
    }
    if has_option(program, OTHER_OPTIONS) || has_option(program, &[WORKER_OPTION]) {
        return Some(Role::Auxiliary);
    }
    Some(match command(program) {
        Some((_, "daemon")) => Role::Host,
        Some((_, word)) if OTHER_COMMANDS.contains(&word) => Role::Auxiliary,
        _ => Role::Session,
    })
}

/// Tells whether it runs one prompt, with nobody to answer.
pub(super) fn is_headless(program: &Program<'_>) -> bool {
    let is_interface = ["--input-format", "--output-format", "-o"]
        .iter()
        .filter_map(|option| program.option(option))
        .any(|form| INTERFACE_FORMS.contains(&form));
    is_exec(program) && !is_interface
}

/// The session that the arguments name. (`--fork` names the one that it is not.)
pub(super) fn named<'a>(program: &Program<'a>) -> Option<&'a str> {
    if !program.executes(NAME) {
        return None;
    }
    let value = match command(program) {
        Some((_, "exec")) => program
            .option("--session-id")
            .or_else(|| program.option("-s")),
        Some((at, "resume")) => program.argv().get(at + 1)?.to_str(),
        _ => program.option("--resume").or_else(|| program.option("-r")),
    };
    value.filter(|value| !value.is_empty() && !value.starts_with('-'))
}

/// The directory that the arguments say it works in.
pub(super) fn named_work_dir(program: &Program<'_>) -> Option<PathBuf> {
    if !program.executes(NAME) {
        return None;
    }
    let named = Path::new(program.option("--cwd")?);
    named.is_absolute().then(|| named.components().collect())
}

fn is_exec(program: &Program<'_>) -> bool {
    command(program).is_some_and(|(_, word)| word == "exec")
}

/// The subcommand, or what stands in its place, and where it stands.
fn command<'a>(program: &Program<'a>) -> Option<(usize, &'a str)> {
    program.subcommand(|option, next| {
        let is_value = next.is_some_and(|next| !next.starts_with('-'));
        OPTIONS_WITH_VALUE.contains(&option)
            || (OPTIONS_WITH_OPTIONAL_VALUE.contains(&option) && is_value)
    })
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

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    fn droid(arguments: &[&str]) -> RecordedProcess {
        let argv: Vec<&str> = ["droid"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        RecordedProcess::new(7, 1, 0)
            .comm("droid")
            .exe("/home/dev/.local/bin/droid")
            .argv(&argv)
            .cwd("/w/app")
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn the_arguments_say_what_a_process_is() {
        check_role(&droid(&[]), Some(Role::Session));
        check_role(&droid(&["review app.tsx"]), Some(Role::Session));
        check_role(
            &droid(&["--cwd", "daemon", "--auto", "low"]),
            Some(Role::Session),
        );
        check_role(&droid(&["resume"]), Some(Role::Session));
        check_role(&droid(&["exec", "-m", "x", "fix it"]), Some(Role::Session));
        check_role(&droid(&["daemon", "--port", "1"]), Some(Role::Host));
        check_role(
            &droid(&["--settings", "s.json", "update"]),
            Some(Role::Auxiliary),
        );
        check_role(&droid(&["--version"]), Some(Role::Auxiliary));
        let worker = [
            "exec",
            "--input-format",
            "stream-jsonrpc",
            "--calling-session-id",
            "x",
        ];
        check_role(&droid(&worker), Some(Role::Auxiliary));
    }

    #[test]
    fn only_the_executable_and_the_packages_script_are_its_own() {
        let mut foreign = droid(&[]);
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Session));
        check_role(&foreign.clone().comm("bash"), None);
        check_role(&droid(&[]).exe("/usr/bin/android"), None);
        let node = |script: &str| {
            RecordedProcess::new(8, 1, 0)
                .comm("node")
                .exe("/usr/bin/node")
                .argv(&["node", script])
        };
        check_role(
            &node("/home/dev/.npm-global/bin/droid"),
            Some(Role::Launcher),
        );
        check_role(
            &node("/usr/lib/node_modules/@factory/cli/bin/droid"),
            Some(Role::Launcher),
        );
        check_role(&node("/home/dev/droid.js"), None);
    }

    #[test]
    fn the_arguments_name_a_session() {
        let check = |arguments: &[&str], right: Option<&str>| {
            let process = droid(arguments);
            assert_eq!(named(&program_of(&process)), right, "{arguments:?}");
        };
        check(&["-r", "0a02"], Some("0a02"));
        check(&["--resume=0a02", "go on"], Some("0a02"));
        check(&["--resume", "--last"], None);
        check(&["resume", "0a02"], Some("0a02"));
        check(&["resume", "--last"], None);
        check(&["resume"], None);
        check(&["exec", "-s", "0a02", "go on"], Some("0a02"));
        check(&["exec", "-r", "high", "go on"], None);
        check(&["--fork", "0a02"], None);
        check(&["fix it"], None);
    }

    #[test]
    fn the_arguments_tell_a_run_without_a_person_and_the_directory() {
        let headless = |arguments: &[&str]| is_headless(&program_of(&droid(arguments)));
        assert!(headless(&["exec", "fix it"]));
        assert!(headless(&["exec", "-o", "json", "fix it"]));
        assert!(!headless(&["exec", "--output-format", "acp"]));
        assert!(!headless(&["exec", "--input-format=stream-jsonrpc"]));
        assert!(!headless(&["exec it now"]));
        let work_dir = |arguments: &[&str]| named_work_dir(&program_of(&droid(arguments)));
        assert_eq!(
            work_dir(&["--cwd", "/w/lib/"]),
            Some(PathBuf::from("/w/lib"))
        );
        assert_eq!(work_dir(&["--cwd", "lib"]), None);
        assert_eq!(work_dir(&[]), None);
    }
}
