//! How Crush's processes look.
//!
//! One native executable, which keeps its arguments. Read in the sources of
//! Crush, 2026-08.

use std::path::{Component, Path, PathBuf};

use crate::adapter::{Program, Role};

/// The name of its executable, and of the link to the script of its package,
/// which starts the executable that it fetched.
const NAME: &str = "crush";
/// The names that its processes may have as `comm`.
pub(super) const COMMS: &[&str] = &[NAME];

/// Options that take the next argument as their value.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "--channels",
    "--cwd",
    "--data-dir",
    "--host",
    "--model",
    "--session",
    "--small-model",
    "-D",
    "-H",
    "-c",
    "-m",
    "-s",
];
/// Options with which it does nothing else.
const OTHER_OPTIONS: &[&str] = &["--help", "--version", "-h", "-v"];

/// Says what a process is to Crush.
pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if program.runs_script_of("@charmland/crush", NAME) {
        return Some(Role::Launcher);
    }
    if !program.executes(NAME) {
        return None;
    }
    if program.details.argv.is_err() {
        // One of several things; a host says least about others.
        return Some(Role::Host);
    }
    let mut arguments = program.argv().iter().skip(1);
    if arguments.any(|argument| OTHER_OPTIONS.iter().any(|other| argument == other)) {
        return Some(Role::Auxiliary);
    }
    Some(match command(program) {
        None | Some("run" | "r") => Role::Session,
        Some("server") => Role::Host,
        Some(_) => Role::Auxiliary,
    })
}

/// Tells whether it runs one prompt, without a terminal interface.
pub(super) fn is_headless(program: &Program<'_>) -> bool {
    matches!(command(program), Some("run" | "r"))
}

/// The session that the arguments name: a whole id, or its short form.
pub(super) fn named<'a>(program: &Program<'a>) -> Option<&'a str> {
    if !program.executes(NAME) {
        return None;
    }
    let value = program
        .option("--session")
        .or_else(|| program.option("-s"))?;
    (!value.is_empty() && !value.starts_with('-')).then_some(value)
}

/// The directory for a project's data that the arguments name.
pub(super) fn named_data_dir(program: &Program<'_>) -> Option<PathBuf> {
    let value = program
        .option("--data-dir")
        .or_else(|| program.option("-D"))
        .filter(|value| !value.is_empty())?;
    let path = match program.details.cwd.as_deref() {
        Ok(cwd) => cwd.join(value),
        Err(_) => PathBuf::from(value),
    };
    path.is_absolute().then(|| without_parents(&path))
}

/// A path without `.` and `..`, as Crush keeps it.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn command<'a>(program: &Program<'a>) -> Option<&'a str> {
    let found = program.subcommand(|option, _| OPTIONS_WITH_VALUE.contains(&option));
    found.map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    fn crush(arguments: &[&str]) -> RecordedProcess {
        let argv: Vec<&str> = ["crush"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        RecordedProcess::new(7, 1, 0)
            .comm("crush")
            .exe("/usr/local/bin/crush")
            .argv(&argv)
            .cwd("/w/app")
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn the_subcommand_says_what_a_process_is() {
        check_role(&crush(&[]), Some(Role::Session));
        check_role(&crush(&["--yolo", "-D", "run"]), Some(Role::Session));
        check_role(&crush(&["--session=x"]), Some(Role::Session));
        check_role(&crush(&["-c", "/w", "run", "hello"]), Some(Role::Session));
        check_role(
            &crush(&["--debug", "server", "-H", "unix:///s"]),
            Some(Role::Host),
        );
        check_role(&crush(&["logs", "--follow"]), Some(Role::Auxiliary));
        check_role(&crush(&["--version"]), Some(Role::Auxiliary));
        assert!(is_headless(&program_of(&crush(&["-D", "x", "r", "hello"]))));
        assert!(!is_headless(&program_of(&crush(&["-D", "run"]))));
    }

    #[test]
    fn only_the_executable_and_the_packages_script_are_its_own() {
        let mut foreign = crush(&[]);
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Session));
        foreign.details.argv = Err(Absent::PermissionDenied);
        check_role(&foreign, None);
        check_role(&crush(&[]).exe("/usr/bin/pngcrush"), None);
        let node = |script: &str| {
            let argv = ["node", script];
            RecordedProcess::new(8, 1, 0)
                .comm("node")
                .exe("/usr/bin/node")
                .argv(&argv)
        };
        check_role(
            &node("/home/dev/.npm-global/bin/crush"),
            Some(Role::Launcher),
        );
        check_role(
            &node("/usr/lib/node_modules/@charmland/crush/run.js"),
            Some(Role::Launcher),
        );
        check_role(&node("/home/dev/crush.js"), None);
        check_role(&node("/home/dev/crush"), None);
    }

    #[test]
    fn the_arguments_name_a_session_and_a_directory_for_data() {
        let check = |arguments: &[&str], session: Option<&str>, data: Option<&str>| {
            let process = crush(arguments);
            assert_eq!(named(&program_of(&process)), session, "{arguments:?}");
            let data = data.map(PathBuf::from);
            assert_eq!(named_data_dir(&program_of(&process)), data, "{arguments:?}");
        };
        check(&["-s", "9f430e0"], Some("9f430e0"), None);
        check(&["run", "--session=x", "hello"], Some("x"), None);
        check(&["-s", "--yolo", "-D", "data/"], None, Some("/w/app/data"));
        check(&["--data-dir=/d/./x"], None, Some("/d/x"));
        check(&["-D", "../x/y/.."], None, Some("/w/x"));
        check(&[], None, None);
    }
}
