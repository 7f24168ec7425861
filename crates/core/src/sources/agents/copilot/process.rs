//! How Copilot's processes look.
//!
//! ```text
//! node …/bin/copilot                                launcher (npm)
//!   └ …/@github/copilot-linux-x64/copilot           session; its name is `MainThread`
//! ```
//!
//! Seen in Copilot CLI 1.0.102, 2026-11. Installed by other means there is the
//! native executable alone. Earlier versions were a script of Node's. Another
//! program called `copilot` (for Amazon ECS) is no Node program, so its name
//! is not that of Node's main thread.

use std::path::{Path, PathBuf};

use crate::adapter::{AgentProcess, CommandLine, Form, Is, Named, Role};
use crate::sources::agents::kit::uuid::UUID_BYTES;

/// How short the prefix of an id may be that the arguments name.
const ID_PREFIX_CHARS_MIN: usize = 4;

/// Copilot's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        (
            Is::Launcher,
            &[
                Form::Script("@github/copilot/npm-loader.js"),
                Form::Script("bin/copilot"),
            ],
        ),
        (
            Is::ByArguments,
            &[
                Form::Executable("@github/copilot/**/copilot"),
                Form::Executable("@github/copilot-*/**/copilot"),
                Form::NodeExecutable("copilot"),
                // Earlier versions, as installed and as an update brought them.
                Form::Script("@github/copilot/index.js"),
                Form::Script(".copilot/pkg/**/index.js"),
            ],
        ),
    ],
    commands_follow_options: true,
    options_with_value: &[
        "--add-dir",
        "--add-github-mcp-tool",
        "--add-github-mcp-toolset",
        "--additional-mcp-config",
        "--agent",
        "--allow-tool",
        "--allow-url",
        "--attachment",
        "--auto-tier",
        "--available-tools",
        "--context",
        "--deny-tool",
        "--deny-url",
        "--disable-mcp-server",
        "--excluded-tools",
        "--extension-sdk-path",
        "--interactive",
        "--log-dir",
        "--log-level",
        "--max-autopilot-continues",
        "--mode",
        "--model",
        "--name",
        "--output-format",
        "--port",
        "--prefer-version",
        "--prompt",
        "--reasoning-effort",
        "--session-id",
        "--stream",
        "-C",
        "-i",
        "-n",
        "-p",
    ],
    commands: &[(
        Role::Auxiliary,
        &[
            "app",
            "completion",
            "config",
            "help",
            "init",
            "instruction",
            "login",
            "logout",
            "lsp",
            "mcp",
            "memories",
            "plugin",
            "sandbox",
            "sessions",
            "skill",
            "update",
            "version",
            "workflow",
        ],
    )],
    options: &[
        // Another program talks to the process, and has as many sessions as it asks for.
        (Role::Host, &["--acp", "--headless", "--server"]),
        (Role::Auxiliary, &["--help", "--version", "-h", "-v"]),
    ],
    // The name of a session or the number of a task is no id.
    session: &[
        Named::Option(&["--session-id"]),
        Named::Option(&["--resume", "-r"]),
    ],
    id_in: |_, word| {
        let is_hex = |c: char| c.is_ascii_hexdigit() || c == '-';
        let is_long_enough = (ID_PREFIX_CHARS_MIN..=UUID_BYTES).contains(&word.len());
        (is_long_enough && word.chars().all(is_hex)).then_some(word)
    },
    headless: &["--prompt", "-p"],
    ..CommandLine::NONE
};

/// Where a process of `home` keeps its log.
pub(super) fn log_directory(process: &AgentProcess, home: &Path) -> PathBuf {
    let named = process.program().option("--log-dir").map(Path::new);
    match (named, process.work_dir()) {
        (Some(named), _) if named.is_absolute() => named.to_owned(),
        (Some(named), Some(work_dir)) => work_dir.join(named),
        _ => home.join("logs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::NODE_MAIN_THREAD;
    use crate::sources::agents::kit::program_tests::{check_commands, described, started_by};

    #[test]
    fn commands() {
        check_commands(
            &PROGRAMS,
            "
            /n/@github/copilot-linux-x64/copilot                   => session
            /n/@github/copilot/prebuilds/copilot.exe               => session
            /n/@github/copilot/copilot --model gpt-5 -p update     => session headless
            /n/@github/copilot/copilot -i login                    => session
            /n/@github/copilot/copilot -r {id}                     => session names {id}
            /n/@github/copilot/copilot --resume={id}               => session names {id}
            /n/@github/copilot/copilot -r{id}                      => session names {id}
            /n/@github/copilot/copilot --resume=aad07f -r {id}     => session names {id}
            /n/@github/copilot/copilot --session-id aad07f         => session names aad07f
            /n/@github/copilot/copilot --resume=after_clear        => session
            /n/@github/copilot/copilot --resume --yolo             => session
            /n/@github/copilot/copilot --continue                  => session
            /n/@github/copilot/copilot mcp list                    => auxiliary
            /n/@github/copilot/copilot --log-level all update      => auxiliary
            /n/@github/copilot/copilot --version                   => auxiliary
            /n/@github/copilot/copilot --acp                       => host
            node /home/dev/bin/copilot                             => launcher
            node /x/node_modules/.bin/copilot --continue           => launcher
            node /x/node_modules/@github/copilot/npm-loader.js     => launcher
            node /x/node_modules/@github/copilot/index.js          => session
            node /home/dev/.copilot/pkg/universal/0.0.399/index.js => session
            node /home/dev/copilot.js                              => none
            node /home/dev/copilot/index.js                        => none
            /opt/copilot-squad/bin/copilot-squad                   => none
            # For Amazon ECS.
            /usr/local/bin/copilot svc deploy                      => none
            ",
        );
        let native = started_by("/home/dev/.local/bin/copilot").comm(NODE_MAIN_THREAD);
        assert_eq!(described(&PROGRAMS, &native), "session");
    }
}
