//! How Cline's processes look.
//!
//! A script for Node, which npm links as `cline`, starts a native executable (Bun
//! inside) that keeps its arguments: `bin/cline` of a package for the platform, or
//! a link to it called `.cline`. The first one starts the hub, which is the same
//! executable with `--cline-hub-daemon`. Seen in Cline CLI 3.0.65, 2026-11.

use std::path::{Path, PathBuf};

use crate::adapter::{Program, Role};

use crate::machine::Environment;
use crate::sources::agents::kit::told_by_sidecar;

/// The names that its processes have as `comm`.
pub(super) const COMMS: &[&str] = &["cline", ".cline", "cline.exe"];
/// The names of its executable.
const EXECUTABLES: &[&str] = &["cline", ".cline", "cline.exe"];

/// What makes the executable a hub.
const HUB_FLAG: &str = "--cline-hub-daemon";
/// What lets an editor talk to it, about as many sessions as that asks for.
const ACP_FLAG: &str = "--acp";

/// Subcommands that serve no session.
const OTHER_COMMANDS: &[&str] = &[
    "auth",
    "config",
    "connect",
    "dashboard",
    "doctor",
    "h",
    "history",
    "hook",
    "hub",
    "kanban",
    "mcp",
    "plugin",
    "schedule",
    "skill",
    "update",
    "version",
];

/// Options that take the next argument as their value.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "--auto-approve",
    "--compaction",
    "--config",
    "--cwd",
    "--data-dir",
    "--hooks-dir",
    "--id",
    "--key",
    "--model",
    "--provider",
    "--retries",
    "--system",
    "--timeout",
    "-P",
    "-c",
    "-k",
    "-m",
    "-s",
    "-t",
];
/// How many arguments are looked at.
const ARGUMENTS_MAX: usize = 256;

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if is_launcher(program) {
        return Some(Role::Launcher);
    }
    if !is_native(program) {
        return None;
    }
    let is_other = || command(program).is_some_and(|word| OTHER_COMMANDS.contains(&word));
    Some(if is_hub(program) || program.has_argument(ACP_FLAG) {
        Role::Host
    } else if is_other() {
        Role::Auxiliary
    } else {
        Role::Session
    })
}

/// It is the hub, and never a terminal.
pub(super) fn is_hub(program: &Program<'_>) -> bool {
    program.has_argument(HUB_FLAG)
}

/// Where the hub listens, by its arguments.
pub(super) fn hub_endpoint(program: &Program<'_>) -> Option<String> {
    let host = program.option("--host")?;
    let port: u16 = program.option("--port")?.parse().ok()?;
    let path = program.option("--pathname").unwrap_or_default();
    Some(told_by_sidecar::without_secrets(&format!(
        "ws://{host}:{port}{path}"
    )))
}

/// The session that the arguments name.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    let named = program.option("--id")?;
    (!named.is_empty() && !named.starts_with('-')).then_some(named)
}

/// The directory that the arguments say it works in: it does not go there itself.
pub(super) fn work_dir(program: &Program<'_>) -> Option<PathBuf> {
    let named = program.option("--cwd").or_else(|| program.option("-c"))?;
    let named = Path::new(named);
    let joined = match program.details.cwd.as_deref() {
        Ok(cwd) => cwd.join(named),
        Err(_) => named.to_owned(),
    };
    joined.is_absolute().then(|| joined.components().collect())
}

/// The data directory that the arguments name: it then sets what its children
/// see, but not the environment that it was started with.
pub(super) fn home(program: &Program<'_>, environment: &Environment) -> Option<PathBuf> {
    let filled = |name| program.option(name).filter(|value| !value.is_empty());
    if let Some(data) = filled("--data-dir") {
        let work_dir = work_dir(program);
        let from_there = work_dir.map(|work_dir| work_dir.join(data));
        let from_here = || environment.resolve(Path::new(data));
        return from_there
            .map(|path| path.components().collect())
            .or_else(from_here);
    }
    let above = environment.resolve(Path::new(filled("--config")?))?;
    let is_moved = environment.variable(super::DATA_VARIABLE).is_some();
    (!is_moved).then(|| above.join("data"))
}

/// The script of the npm package, by its own path or by npm's link to it.
fn is_launcher(program: &Program<'_>) -> bool {
    program.script().is_some_and(|script| {
        let is_linked = [".bin/cline", "bin/cline"]
            .iter()
            .any(|end| script.ends_with(end));
        script.ends_with("cline/bin/cline") || is_linked
    })
}

fn is_native(program: &Program<'_>) -> bool {
    let is_its = |name: &str| EXECUTABLES.contains(&name);
    match program.exe() {
        Some(_) => program.exe_name().is_some_and(is_its),
        // Not ours to look at: what it was started as must do, if the kernel's
        // name for it agrees.
        None => {
            let first = program.argv().first();
            let started_as = first.and_then(|first| Path::new(first).file_name()?.to_str());
            started_as.is_some_and(is_its) && program.comm().is_some_and(is_its)
        }
    }
}

/// The first argument that is neither an option nor the value of one: a
/// subcommand, or a prompt.
fn command<'a>(program: &Program<'a>) -> Option<&'a str> {
    let mut args = program.argv().iter().skip(1).take(ARGUMENTS_MAX);
    while let Some(arg) = args.next() {
        let arg = arg.to_str().unwrap_or_default();
        // After this come prompts only.
        if arg == "--" {
            return None;
        }
        if OPTIONS_WITH_VALUE.contains(&arg) {
            args.next();
        } else if !arg.starts_with('-') {
            return Some(arg);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    const EXE: &str = "/usr/lib/node_modules/@cline/cli-linux-x64/bin/cline";

    fn cline(args: &[&str]) -> RecordedProcess {
        let argv: Vec<&str> = std::iter::once(EXE).chain(args.iter().copied()).collect();
        let mut made = RecordedProcess::new(7, 1, 0)
            .comm("cline")
            .exe(EXE)
            .argv(&argv);
        made.details.cwd = Ok(PathBuf::from("/home/dev/app"));
        made
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn a_hub_is_no_terminal_and_a_prompt_no_subcommand() {
        for args in [
            &[][..],
            &["--id", "1795813652966_5ypul"],
            &["-m", "hub", "fix the hub"],
            &["--", "hub"],
            &["--tui", "-P", "config"],
        ] {
            check_role(&cline(args), Some(Role::Session));
        }
        let hub = [
            "--cline-hub-daemon",
            "--cwd",
            "/home/dev/app",
            "--port",
            "25463",
        ];
        check_role(&cline(&hub), Some(Role::Host));
        assert!(is_hub(&program_of(&cline(&hub))));
        check_role(&cline(&["--acp"]), Some(Role::Host));
        assert!(!is_hub(&program_of(&cline(&["--acp"]))));
        for args in [&["auth"][..], &["-v", "hub", "stop"], &["h"]] {
            check_role(&cline(args), Some(Role::Auxiliary));
        }
    }

    #[test]
    fn the_script_above_is_a_launcher_and_other_programs_are_none() {
        for script in [
            "/usr/lib/node_modules/cline/bin/cline",
            "/usr/bin/cline",
            "/w/node_modules/.bin/cline",
        ] {
            let node = cline(&[]).exe("/usr/bin/node").argv(&["node", script]);
            check_role(&node, Some(Role::Launcher));
        }
        let node = cline(&[]).exe("/usr/bin/node");
        check_role(&node.argv(&["node", "/home/dev/cline.js"]), None);
        check_role(
            &cline(&[]).exe("/usr/lib/node_modules/cline/bin/.cline"),
            Some(Role::Session),
        );
        check_role(&cline(&[]).exe("/opt/cline/bin/server"), None);
        let mut foreign = cline(&[]);
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Session));
        check_role(&foreign.comm("prog"), None);
    }

    #[test]
    fn arguments_name_a_session_and_a_directory() {
        let named = |args: &[&str]| session_named_by(&program_of(&cline(args))).map(str::to_owned);
        assert_eq!(named(&["--id", "17_a"]).as_deref(), Some("17_a"));
        assert_eq!(named(&["--id=17_a"]).as_deref(), Some("17_a"));
        assert_eq!(named(&["--id"]), None);
        let work_dir = |args: &[&str]| work_dir(&program_of(&cline(args)));
        assert_eq!(work_dir(&["-c", "/w/lib"]), Some(PathBuf::from("/w/lib")));
        assert_eq!(
            work_dir(&["--cwd=lib/"]),
            Some(PathBuf::from("/home/dev/app/lib"))
        );
        assert_eq!(work_dir(&[]), None);
    }

    #[test]
    fn arguments_move_the_data_and_win_over_the_environment() {
        let environment = |variables: &[(&str, &str)]| {
            let variables = variables.iter();
            Environment::new(
                Some(PathBuf::from("/home/dev")),
                Some(PathBuf::from("/home/dev/app")),
                variables.map(|(name, value)| ((*name).to_owned(), (*value).into())),
            )
        };
        let none = environment(&[]);
        let home =
            |args: &[&str], environment: &Environment| home(&program_of(&cline(args)), environment);
        assert_eq!(home(&[], &none), None);
        let moved = environment(&[("CLINE_DATA_DIR", "/data")]);
        assert_eq!(home(&["--data-dir", "/d/"], &moved), Some("/d".into()));
        assert_eq!(
            home(&["--data-dir", "d"], &none),
            Some("/home/dev/app/d".into())
        );
        assert_eq!(
            home(&["-c", "/w", "--data-dir", "d"], &none),
            Some("/w/d".into())
        );
        assert_eq!(home(&["--config", "/c"], &none), Some("/c/data".into()));
        assert_eq!(home(&["--config", "/c"], &moved), None);
    }
}
