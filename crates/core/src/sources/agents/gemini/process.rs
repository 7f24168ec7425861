//! How Gemini CLI's processes look.
//!
//! ```text
//! node …/bin/gemini [args]                                   launcher
//!   └ node --max-old-space-size=N …/bin/gemini [args]        session
//! ```
//!
//! The script always starts itself again, and gives Node more memory and itself
//! a variable that keeps it from doing so once more. Both processes are
//! recognized alike; which is the launcher shows in that variable, also once the
//! launcher has outlived what it started. (Inside of a sandbox, which has a
//! variable of its own, there is no launcher.) They never change their
//! arguments or titles. Seen in Gemini CLI 0.61.0, 2026-11.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::adapter::{Program, Role};
use crate::sources::agents::kit::package_path::path_in_package;

/// What the process that serves a session has set, and its launcher has not.
pub(super) const VARIABLES_OF_LAUNCHED: &[&str] = &["GEMINI_CLI_NO_RELAUNCH", "SANDBOX"];

/// How many arguments are looked at.
const ARGUMENTS_MAX: usize = 256;

/// Options of Node that take the next argument as their value.
const NODE_OPTIONS_WITH_VALUE: &[&str] = &[
    "-C",
    "--conditions",
    "--env-file",
    "--experimental-loader",
    "--import",
    "--loader",
    "-r",
    "--require",
];

/// Where the script is below a directory `gemini-cli`: as published, and in a
/// checkout of its sources.
const SCRIPTS: &[&str] = &[
    "bundle/gemini.js",
    "dist/index.js",
    "packages/cli/dist/index.js",
];

/// Subcommands that serve no session.
const OTHER_COMMANDS: &[&str] = &[
    "extension",
    "extensions",
    "gemma",
    "hook",
    "hooks",
    "mcp",
    "skill",
    "skills",
];

/// Options that make it answer one question and end.
const OTHER_OPTIONS: &[&str] = &[
    "--delete-session",
    "--help",
    "--list-extensions",
    "--list-sessions",
    "--version",
    "-h",
    "-l",
    "-v",
];

/// Options that let an editor talk to the process, which hosts as many
/// sessions as that asks for.
const ACP_OPTIONS: &[&str] = &["--acp", "--experimental-acp"];

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    let (script, arguments) = script(program)?;
    if !is_gemini_script(script) {
        return None;
    }
    let command = arguments.first().and_then(|first| first.to_str());
    let has = |options: &[&str]| {
        let mut arguments = arguments.iter().take(ARGUMENTS_MAX);
        arguments.any(|argument| options.iter().any(|option| argument == option))
    };
    let is_other = command.is_some_and(|command| OTHER_COMMANDS.contains(&command));
    Some(if is_other || has(OTHER_OPTIONS) {
        Role::Auxiliary
    } else if has(ACP_OPTIONS) {
        Role::Host
    } else {
        Role::Session
    })
}

/// The session that the arguments name by its id. `latest` and numbers mean
/// one, but do not name it.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    if let Some(id) = program.option("--session-id") {
        return Some(id.trim()).filter(|id| is_id(id));
    }
    resumed(program).filter(|value| is_id(value) && *value != "latest" && !is_number(value))
}

/// Tells whether it answers one prompt without a person at a terminal.
pub(super) fn is_one_shot(program: &Program<'_>) -> bool {
    program.has_argument("-p") || program.option("--prompt").is_some()
}

fn resumed<'a>(program: &Program<'a>) -> Option<&'a str> {
    ["--resume", "-r"]
        .into_iter()
        .find_map(|option| program.option(option))
        .map(str::trim)
        .filter(|value| !value.is_empty() && !value.starts_with('-'))
}

fn is_id(value: &str) -> bool {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !value.is_empty() && !value.starts_with('-') && value.chars().all(is_of_id)
}

fn is_number(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_digit())
}

/// The script that a runtime runs, and the arguments behind it.
fn script<'a>(program: &Program<'a>) -> Option<(&'a Path, &'a [OsString])> {
    let argv = program.details.argv.as_deref().ok()?;
    let runtime = match &program.details.exe {
        Ok(exe) => exe.as_path(),
        // Another user's process: its arguments have to do.
        Err(_) => Path::new(argv.first()?),
    };
    let name = runtime.file_name()?.to_str()?;
    if !crate::adapter::is_runtime_name(name) {
        return None;
    }
    let mut at = 1;
    while at < ARGUMENTS_MAX {
        let argument = argv.get(at)?;
        if !argument.as_encoded_bytes().starts_with(b"-") {
            return Some((Path::new(argument), argv.get(at + 1..).unwrap_or_default()));
        }
        let takes_next = NODE_OPTIONS_WITH_VALUE
            .iter()
            .any(|option| argument == option);
        at += if takes_next { 2 } else { 1 };
    }
    None
}

/// The link in a directory for executables, or the file that it leads to.
fn is_gemini_script(script: &Path) -> bool {
    let parent = script.parent().and_then(Path::file_name);
    let is_in_bin = parent == Some(OsStr::new("bin")) || parent == Some(OsStr::new(".bin"));
    if is_in_bin && script.file_name() == Some(OsStr::new("gemini")) {
        return true;
    }
    path_in_package(script, "gemini-cli").is_some_and(|below| SCRIPTS.contains(&below.as_str()))
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

    fn gemini(argv: &[&str]) -> RecordedProcess {
        let argv: Vec<&str> = ["node", "/home/dev/bin/gemini"]
            .iter()
            .chain(argv)
            .copied()
            .collect();
        node(&argv)
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[track_caller]
    fn check(tell: fn(&Program<'_>) -> bool, argv: &[&str], right: bool) {
        let process = gemini(argv);
        let program = program_of(&process);
        assert_eq!(tell(&program), right, "{argv:?}");
    }

    #[track_caller]
    fn check_named(argv: &[&str], right: Option<&str>) {
        let process = gemini(argv);
        let program = program_of(&process);
        assert_eq!(session_named_by(&program), right, "{argv:?}");
    }

    #[test]
    fn both_processes_of_the_chain_are_recognized() {
        for argv in [
            &[
                "node",
                "/x/node_modules/.bin/gemini",
                "--model",
                "gemini-2.5-pro",
            ][..],
            &[
                "/usr/bin/node",
                "--max-old-space-size=12052",
                "/usr/local/bin/gemini",
            ],
            &[
                "node",
                "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js",
            ],
            &[
                "node",
                "/usr/lib/node_modules/@google/gemini-cli/dist/index.js",
                "-p",
                "mcp",
            ],
            &[
                "node",
                "-r",
                "/x/hook.js",
                "/home/dev/src/gemini-cli/bundle/gemini.js",
            ],
        ] {
            check_role(&node(argv), Some(Role::Session));
        }
        check_role(
            &gemini(&[]).exe("/opt/node24/bin/node24"),
            Some(Role::Session),
        );
    }

    #[test]
    fn commands_and_editors_make_it_something_else() {
        check_role(&gemini(&["mcp", "list"]), Some(Role::Auxiliary));
        check_role(&gemini(&["--list-sessions"]), Some(Role::Auxiliary));
        check_role(&gemini(&["--acp"]), Some(Role::Host));
        check_role(
            &gemini(&["--model", "x", "--experimental-acp"]),
            Some(Role::Host),
        );
    }

    #[test]
    fn another_program_is_not_recognized() {
        for argv in [
            &["node", "/home/dev/gemini.js"][..],
            &["node", "/home/dev/gemini"],
            &["node", "/home/dev/gemini-cli/server.js"],
            &[
                "node",
                "/home/dev/gemini-cli/node_modules/tsx/dist/index.js",
            ],
            &["node", "--test", "/home/dev/gemini-agent/bundle/gemini.js"],
            &["node"],
            &[],
        ] {
            check_role(&node(argv), None);
        }
        check_role(&gemini(&[]).exe("/usr/bin/vim"), None);
        check_role(
            &node(&["gemini"])
                .exe("/usr/local/bin/gemini")
                .comm("gemini"),
            None,
        );
    }

    #[test]
    fn an_unreadable_executable_leaves_the_arguments_to_go_by() {
        let mut process = gemini(&[]);
        process.details.exe = Err(Absent::PermissionDenied);
        check_role(&process, Some(Role::Session));
        process.details.argv = Err(Absent::PermissionDenied);
        check_role(&process, None);
    }

    const ID: &str = "5db42c53-9d0b-4b4b-9da6-852ee5727e85";

    #[test]
    fn only_an_id_names_a_session() {
        check_named(&["--session-id", ID], Some(ID));
        check_named(&["--session-id", "2026"], Some("2026"));
        check_named(&["-r", ID], Some(ID));
        check_named(&["--resume=5db42c53-9d0b-4b4b-9da6-852ee5727e85"], Some(ID));
        for argv in [
            &["--resume", "latest"][..],
            &["--resume", "3"],
            &["--resume"],
            &["--resume", "--yolo"],
            &["--resume", "../../x"],
            &[],
        ] {
            check_named(argv, None);
        }
    }

    #[test]
    fn a_run_with_a_prompt_answers_that_alone() {
        check(is_one_shot, &["-p", "fix it"], true);
        check(is_one_shot, &["--prompt=fix it"], true);
        check(is_one_shot, &["-i", "fix it"], false);
    }
}
