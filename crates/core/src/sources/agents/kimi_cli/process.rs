//! How kimi-cli's processes look.
//!
//! A Python process that puts `Kimi Code` over its arguments and blanks its
//! environment within a second of its start; before that its arguments show.
//! Seen in kimi-cli 1.50.0, 2026-11.

use std::ffi::OsString;
use std::path::Path;

use crate::adapter::{Program, Role};

/// What it puts over its arguments.
const TITLE: &str = "Kimi Code";
/// What a process of its web interface does that serves one session.
const WEB_WORKER_TITLE: &str = "kimi-code-worker";
/// What a process does that runs background commands.
const BACKGROUND_WORKER_TITLE: &str = "kimi-code-bg-worker";

/// The names that its processes may have as `comm`.
pub(super) const COMMS: &[&str] = &[
    TITLE,
    WEB_WORKER_TITLE,
    BACKGROUND_WORKER_TITLE,
    "kimi",
    "kimi-cli",
    "kimi-exe",
];

/// Executables of its own, where it was packed with its Python.
const OWN_EXECUTABLES: &[&str] = &["kimi", "kimi-cli", "kimi-exe"];
/// The scripts that its package installs.
const SCRIPTS: &[&str] = &["kimi", "kimi-cli"];
/// The modules that `python -m` starts it by.
const MODULES: &[&str] = &["kimi_cli", "kimi_cli.cli", "kimi_cli.__main__"];
/// Options of Python that take the next argument as their value.
const PYTHON_OPTIONS_WITH_VALUE: &[&str] = &["-W", "-X"];
/// Subcommands that serve many sessions.
const HOST_COMMANDS: &[&str] = &["acp", "web"];
/// Subcommands that serve none.
const OTHER_COMMANDS: &[&str] = &[
    "export", "info", "login", "logout", "mcp", "plugin", "term", "vis",
];

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if let Some(title) = program.title() {
        // An unreadable executable (another user's process) leaves the title.
        let may_be_its = match program.exe_name() {
            Some(name) => is_python(name) || OWN_EXECUTABLES.contains(&name),
            None => program.exe().is_none(),
        };
        return role_by_title(title).filter(|_| may_be_its);
    }
    let arguments = arguments(program)?;
    let command = arguments.first().and_then(|first| first.to_str());
    let is_one_of = |words: &[&str]| command.is_some_and(|command| words.contains(&command));
    Some(
        if is_one_of(HOST_COMMANDS) || program.has_argument("--acp") {
            Role::Host
        } else if is_one_of(OTHER_COMMANDS) {
            Role::Auxiliary
        } else {
            Role::Session
        },
    )
}

/// The session that the arguments name, while they show.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    arguments(program)?;
    ["--session", "--resume", "-S", "-r"]
        .into_iter()
        .find_map(|option| program.option(option))
        .filter(|value| !value.is_empty() && !value.starts_with('-'))
}

fn role_by_title(title: &str) -> Option<Role> {
    match title {
        // A web server or an ACP server shows the same and can't be told apart.
        TITLE | WEB_WORKER_TITLE => Some(Role::Session),
        BACKGROUND_WORKER_TITLE => Some(Role::Auxiliary),
        _ => None,
    }
}

/// What stands behind its script or module in the arguments of a Python.
fn arguments<'a>(program: &Program<'a>) -> Option<&'a [OsString]> {
    let argv = program.argv();
    let runtime = match program.exe() {
        Some(exe) => exe,
        None => Path::new(argv.first()?),
    };
    if !runtime.file_name()?.to_str().is_some_and(is_python) {
        return None;
    }
    let mut at = 1;
    loop {
        let argument = argv.get(at)?;
        if argument == "-m" {
            let module = argv.get(at + 1)?;
            let is_its = MODULES.iter().any(|its| module == its);
            return is_its.then(|| argv.get(at + 2..).unwrap_or_default());
        }
        if argument == "-c" {
            return None;
        }
        if !argument.as_encoded_bytes().starts_with(b"-") {
            let name = Path::new(argument).file_name()?.to_str()?;
            return SCRIPTS
                .contains(&name)
                .then(|| argv.get(at + 1..).unwrap_or_default());
        }
        let takes_next = PYTHON_OPTIONS_WITH_VALUE
            .iter()
            .any(|option| argument == option);
        at += if takes_next { 2 } else { 1 };
    }
}

fn is_python(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python"
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    fn python(argv: &[&str]) -> RecordedProcess {
        RecordedProcess::new(7, 1, 0)
            .exe("/usr/bin/python3.13")
            .argv(argv)
    }

    fn titled(title: &str) -> RecordedProcess {
        python(&[]).title(title).comm(title)
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn a_python_with_its_title_is_recognized() {
        check_role(&titled("Kimi Code"), Some(Role::Session));
        check_role(&titled("kimi-code-worker"), Some(Role::Session));
        check_role(&titled("kimi-code-bg-worker"), Some(Role::Auxiliary));
        check_role(
            &titled("Kimi Code").exe("/opt/kimi/kimi-exe"),
            Some(Role::Session),
        );
        let mut foreign = titled("Kimi Code");
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Session));
    }

    #[test]
    fn a_title_or_a_name_alone_is_not() {
        check_role(&titled("Kimi Code").exe("/usr/bin/node"), None);
        check_role(&titled("kimi-code"), None);
        check_role(&titled("vibe-app-server"), None);
        check_role(&python(&["python3", "server.py"]).comm("Kimi Code"), None);
        check_role(
            &python(&["kimi"]).exe("/usr/local/bin/kimi").comm("kimi"),
            None,
        );
    }

    #[test]
    fn its_arguments_do_until_the_title_covers_them() {
        for argv in [
            &["python3", "/home/dev/.local/bin/kimi"][..],
            &[
                "/home/dev/.local/share/uv/tools/kimi-cli/bin/python",
                "/home/dev/.local/bin/kimi",
                "--yolo",
            ],
            &["python", "-u", "-X", "dev", "/venv/bin/kimi-cli"],
            &["python3.13", "-m", "kimi_cli"],
            &["python3.13", "-m", "kimi_cli.cli", "--print"],
        ] {
            check_role(&python(argv), Some(Role::Session));
        }
        check_role(
            &python(&["python3", "/venv/bin/kimi", "web"]),
            Some(Role::Host),
        );
        check_role(
            &python(&["python3", "-m", "kimi_cli.cli", "acp"]),
            Some(Role::Host),
        );
        check_role(
            &python(&["python3", "/venv/bin/kimi", "export"]),
            Some(Role::Auxiliary),
        );
        for argv in [
            &["python3", "/home/dev/kimi.py"][..],
            &["python3", "-c", "print()", "/venv/bin/kimi"],
            &["python3", "-m", "http.server", "kimi"],
            &["python3"],
        ] {
            check_role(&python(argv), None);
        }
        check_role(
            &python(&["node", "/usr/bin/kimi"]).exe("/usr/bin/node"),
            None,
        );
    }

    #[test]
    fn its_arguments_name_a_session() {
        let check = |argv: &[&str], right: Option<&str>| {
            let process = python(argv);
            let program = program_of(&process);
            assert_eq!(session_named_by(&program), right, "{argv:?}");
        };
        check(
            &["python3", "/venv/bin/kimi", "--session", "s-1"],
            Some("s-1"),
        );
        check(&["python3", "/venv/bin/kimi", "--resume=s-1"], Some("s-1"));
        check(&["python3", "/venv/bin/kimi", "-r", "--yolo"], None);
        check(&["python3", "/venv/bin/other", "--session", "s-1"], None);
    }
}
