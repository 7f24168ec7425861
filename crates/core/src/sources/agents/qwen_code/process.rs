//! How qwen-code's processes look.
//!
//! Node runs the script that npm linked as `qwen`, which starts
//! `@qwen-code/qwen-code/cli.js`, which starts itself once more: the last of the
//! three runs the session (with `-p` there are two). All of them are
//! recognized alike; which of them is a launcher shows in who started whom.
//! Seen in qwen-code 0.24.4 on Node 20 and 24, 2026-11.

use std::ffi::OsString;
use std::path::Path;

use crate::adapter::{Program, Role};
use crate::sources::agents::kit::package_path::path_in_package;

/// The runtimes that qwen-code runs on.
const RUNTIMES: &[&str] = &["node", "nodejs", "bun"];

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

/// Where the script is below a directory `qwen-code`: as published, bundled,
/// and in a checkout of its sources.
const SCRIPTS: &[&str] = &[
    "bundle/cli.js",
    "cli-entry.js",
    "cli.js",
    "dist/cli-entry.js",
    "dist/cli.js",
    "dist/index.js",
    "lib/cli-entry.js",
    "lib/cli.js",
    "packages/cli/dist/index.js",
];

/// Subcommands that serve many sessions.
const HOST_COMMANDS: &[&str] = &["channel", "serve"];
/// Subcommands that serve none.
const OTHER_COMMANDS: &[&str] = &[
    "auth",
    "board",
    "extensions",
    "hooks",
    "mcp",
    "review",
    "sandbox",
    "sessions",
    "update",
];
/// Options that let an editor talk to the process, which hosts as many
/// sessions as that asks for.
const ACP_OPTIONS: &[&str] = &["--acp", "--experimental-acp"];

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    let (script, arguments) = script(program)?;
    if !is_qwen_script(script) {
        return None;
    }
    let command = arguments.first().and_then(|first| first.to_str());
    let is_one_of = |words: &[&str]| command.is_some_and(|command| words.contains(&command));
    let is_acp = arguments
        .iter()
        .any(|argument| ACP_OPTIONS.iter().any(|option| argument == option));
    Some(if is_one_of(OTHER_COMMANDS) {
        Role::Auxiliary
    } else if is_one_of(HOST_COMMANDS) || is_acp {
        Role::Host
    } else {
        Role::Session
    })
}

/// The session that the arguments name. `--fork-session` goes on in a new one.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    if program.has_argument("--fork-session") {
        return None;
    }
    ["--session-id", "--resume", "-r"]
        .into_iter()
        .find_map(|option| program.option(option))
        .filter(|value| !value.is_empty() && !value.starts_with('-'))
}

/// Tells whether a process was asked for one answer and publishes nothing.
pub(super) fn is_one_shot(program: &Program<'_>) -> bool {
    program.option("--prompt").is_some() || program.has_argument("-p")
}

/// The prompt in the arguments, if it reaches the transcript as it stands: a
/// command (`/…`) or a file (`@…`) does not.
pub(super) fn plain_prompt<'a>(program: &Program<'a>) -> Option<&'a str> {
    let prompt = program
        .option("--prompt")
        .or_else(|| program.option("-p"))?;
    let is_plain = !prompt.trim().is_empty() && !prompt.contains(['/', '@', '\\']);
    is_plain.then_some(prompt)
}

/// Tells whether the arguments ask for the last session of the directory.
pub(super) fn continues_last(program: &Program<'_>) -> bool {
    program.has_argument("--continue") || program.has_argument("-c")
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
    let stem = name.strip_suffix(".exe").unwrap_or(name);
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !RUNTIMES.contains(&stem) {
        return None;
    }
    let mut at = 1;
    loop {
        let argument = argv.get(at)?;
        let is_option = argument.as_encoded_bytes().starts_with(b"-");
        if !is_option {
            return Some((Path::new(argument), argv.get(at + 1..).unwrap_or_default()));
        }
        let takes_next = NODE_OPTIONS_WITH_VALUE
            .iter()
            .any(|option| argument == option);
        at += if takes_next { 2 } else { 1 };
    }
}

fn is_qwen_script(script: &Path) -> bool {
    if script.file_name().is_some_and(|name| name == "qwen") {
        return true;
    }
    path_in_package(script, "qwen-code").is_some_and(|below| SCRIPTS.contains(&below.as_str()))
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
    fn every_process_of_the_chain_is_recognized() {
        let cli = "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js";
        for argv in [
            &["node", "/home/dev/node_modules/.bin/qwen"][..],
            &["node", "/usr/local/bin/qwen", "--resume", "s-1"],
            &["/usr/bin/node", "--expose-gc", cli],
            &["/usr/bin/node", "--expose-gc", cli, "-p", "hello"],
            &["node", "-r", "/x/hook.js", cli],
            &[
                "node",
                "/home/dev/.qwen/updates/npm/0f/versions/0.24.5/node_modules/@qwen-code/qwen-code/cli.js",
            ],
            &["node", "/home/dev/src/qwen-code/packages/cli/dist/index.js"],
        ] {
            check_role(&node(argv), Some(Role::Session));
        }
        check_role(
            &node(&["node", "/usr/bin/qwen"]).exe("/opt/node24/bin/node24"),
            Some(Role::Session),
        );
        check_role(
            &node(&["bun", "/usr/bin/qwen"]).exe("/usr/bin/bun"),
            Some(Role::Session),
        );
    }

    #[test]
    fn commands_and_editors_make_it_something_else() {
        check_role(&node(&["node", "/usr/bin/qwen", "serve"]), Some(Role::Host));
        check_role(&node(&["node", "/usr/bin/qwen", "--acp"]), Some(Role::Host));
        check_role(
            &node(&["node", "/usr/bin/qwen", "mcp", "list"]),
            Some(Role::Auxiliary),
        );
    }

    #[test]
    fn another_program_is_not_recognized() {
        for argv in [
            &["node", "/home/dev/my/qwen.js"][..],
            &["node", "/home/dev/qwen-code/server.js"],
            &[
                "node",
                "/home/dev/src/qwen-code/node_modules/tsx/dist/cli.js",
            ],
            &[
                "node",
                "/usr/lib/node_modules/@qwen-code/qwen-code/fzfWorker.js",
            ],
            &["node", "--test", "/home/dev/qwen-agent/cli.js"],
            &["node"],
            &["node", "--expose-gc"],
            &[],
        ] {
            check_role(&node(argv), None);
        }
        check_role(
            &node(&["python3", "/usr/bin/qwen"]).exe("/usr/bin/python3.13"),
            None,
        );
        check_role(&node(&["git", "/usr/bin/qwen"]).exe("/usr/bin/git"), None);
        check_role(
            &node(&["qwen"]).exe("/usr/local/bin/qwen").comm("qwen"),
            None,
        );
    }

    #[test]
    fn an_unreadable_executable_leaves_the_arguments_to_go_by() {
        let mut process = node(&["/usr/bin/node", "/usr/bin/qwen"]);
        process.details.exe = Err(Absent::PermissionDenied);
        check_role(&process, Some(Role::Session));
        process.details.argv = Err(Absent::PermissionDenied);
        check_role(&process, None);
    }

    #[test]
    fn only_a_plain_prompt_is_looked_for_in_transcripts() {
        let check = |argv: &[&str], right: Option<&str>| {
            let process = node(argv);
            let program = program_of(&process);
            assert_eq!(plain_prompt(&program), right, "{argv:?}");
        };
        check(
            &["node", "/usr/bin/qwen", "-p", "count them"],
            Some("count them"),
        );
        check(
            &["node", "/usr/bin/qwen", "--prompt=count them"],
            Some("count them"),
        );
        check(&["node", "/usr/bin/qwen", "-p", "/review"], None);
        check(&["node", "/usr/bin/qwen", "-p", "see @notes"], None);
        check(&["node", "/usr/bin/qwen", "-p", " "], None);
        check(&["node", "/usr/bin/qwen"], None);
    }

    #[test]
    fn arguments_name_a_session_unless_it_is_forked() {
        let check = |argv: &[&str], right: Option<&str>| {
            let process = node(argv);
            let program = program_of(&process);
            assert_eq!(session_named_by(&program), right, "{argv:?}");
        };
        check(&["node", "/usr/bin/qwen", "--resume", "s-1"], Some("s-1"));
        check(&["node", "/usr/bin/qwen", "--resume=s-1"], Some("s-1"));
        check(
            &["node", "/usr/bin/qwen", "-p", "x", "--session-id", "s-2"],
            Some("s-2"),
        );
        check(&["node", "/usr/bin/qwen", "--resume", "--yolo"], None);
        check(
            &["node", "/usr/bin/qwen", "--resume", "s-1", "--fork-session"],
            None,
        );
        check(&["node", "/usr/bin/qwen"], None);
    }
}
