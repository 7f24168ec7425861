//! How Cline's processes look.
//!
//! A script for Node, which npm links as `cline`, starts a native executable (Bun inside)
//! that keeps its arguments: `bin/cline` of a package for the platform, or a link to it
//! called `.cline`. The first Cline process starts the hub, which is the same executable
//! with `--cline-hub-daemon`. Seen in Cline CLI 3.0.65, 2026-11.

use std::path::{Path, PathBuf};

use crate::adapter::{CommandLine, Form, Is, Named, Program, Role};
use crate::machine::Environment;
use crate::sources::agents::kit::sidecar_facts::without_secrets;

/// The argument that makes the executable a hub.
const HUB_FLAG: &str = "--cline-hub-daemon";

/// Cline's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        (Is::Launcher, &[Form::Script("bin/cline")]),
        (
            Is::ByArguments,
            &[Form::Executable("cline"), Form::Executable(".cline")],
        ),
    ],
    commands_follow_options: true,
    options_with_value: &[
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
    ],
    commands: &[(
        Role::Auxiliary,
        &[
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
        ],
    )],
    // With `--acp` an editor has as many sessions as it asks for.
    options: &[(Role::Host, &[HUB_FLAG, "--acp"])],
    session: &[Named::Option(&["--id"])],
    // The process stays where it is.
    directory: &["--cwd", "-c"],
    ..CommandLine::NONE
};

/// It is the hub, and never a terminal.
pub(super) fn is_hub(program: &Program<'_>) -> bool {
    program.has_argument(HUB_FLAG)
}

/// Where the hub listens, by its arguments.
pub(super) fn hub_endpoint(program: &Program<'_>) -> Option<String> {
    let host = program.option("--host")?;
    let port: u16 = program.option("--port")?.parse().ok()?;
    let path = program.option("--pathname").unwrap_or_default();
    let endpoint = format!("ws://{host}:{port}{path}");
    Some(without_secrets(&endpoint))
}

/// The data directory in the arguments: Cline then sets the variable for its children, but
/// its own start environment lacks it.
pub(super) fn home(program: &Program<'_>, environment: &Environment) -> Option<PathBuf> {
    if let Some(data) = program.option("--data-dir") {
        let from_there = |work_dir: PathBuf| work_dir.join(data).components().collect();
        let from_there = PROGRAMS.directory(program).map(from_there);
        return from_there.or_else(|| environment.resolve(Path::new(data)));
    }
    let above = environment.resolve(Path::new(program.option("--config")?))?;
    let is_moved = environment.variable(super::DATA_VARIABLE).is_some();
    (!is_moved).then(|| above.join("data"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::agents::kit::program_tests::{check_commands, program_of, started_by};

    #[test]
    fn commands() {
        check_commands(
            &PROGRAMS,
            "
            /usr/lib/node_modules/@cline/cli-linux-x64/bin/cline => session
            /usr/lib/node_modules/cline/bin/.cline               => session
            cline --id 17_a                                      => session names 17_a
            cline --id=17_a -c /w/lib                            => session names 17_a in /w/lib
            cline --cwd=lib/ --id                                => session in /w/app/lib
            cline -m hub fix_the_hub                             => session
            cline -- hub                                         => session
            cline --tui -P config                                => session
            cline --cline-hub-daemon --cwd /w --port 25463       => host in /w
            cline --acp                                          => host
            cline auth                                           => auxiliary
            cline -v hub stop                                    => auxiliary
            cline h                                              => auxiliary
            node /usr/lib/node_modules/cline/bin/cline           => launcher
            node /usr/bin/cline                                  => launcher
            node /w/node_modules/.bin/cline                      => launcher
            node /home/dev/cline.js                              => none
            /opt/cline/bin/server                                => none
            ",
        );
        let is_hub = |command| is_hub(&program_of(&started_by(command)));
        assert!(is_hub("cline --cline-hub-daemon") && !is_hub("cline --acp"));
    }

    #[test]
    fn arguments_move_the_data_and_win_over_the_environment() {
        let environment = |variables: &[(&str, &str)]| {
            let variables = variables.iter();
            Environment::new(
                Some(PathBuf::from("/home/dev")),
                Some(PathBuf::from("/w/app")),
                variables.map(|(name, value)| ((*name).to_owned(), (*value).into())),
            )
        };
        let none = &environment(&[]);
        let moved = &environment(&[("CLINE_DATA_DIR", "/data")]);
        for (command, environment, right) in [
            ("cline", none, None),
            ("cline --data-dir /d/", moved, Some("/d")),
            ("cline --data-dir d", none, Some("/w/app/d")),
            ("cline -c /w --data-dir d", none, Some("/w/d")),
            ("cline --config /c", none, Some("/c/data")),
            ("cline --config /c", moved, None),
        ] {
            let found = home(&program_of(&started_by(command)), environment);
            assert_eq!(found, right.map(PathBuf::from), "{command}");
        }
    }
}
