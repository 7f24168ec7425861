//! How Codex's processes look.
//!
//! Seen in Codex 0.171.0, 2026-11, below a shell in a terminal:
//!
//! ```text
//! node …/node_modules/.bin/codex                          launcher
//! └ …/@openai/codex-linux-x64/vendor/TRIPLE/bin/codex     TUI
//!   └ ~/.codex/packages/app-server-daemon/releases/VERSION-TRIPLE/bin/codex
//!       app-server --listen unix:// … --managed-daemon    host, a Unix session of its own
//!   └ … app-server daemon pid-update-loop                 auxiliary
//! ```
//!
//! The daemon is a child of the TUI that started it, until that exits: the daemon's
//! ancestors show nothing about the threads that it serves.

use std::path::Path;

use crate::adapter::{CommandLine, Form, Is, Named, Program, Role};
use crate::sources::agents::kit::sidecar_facts;
use crate::sources::agents::kit::uuid::is_uuid;

/// Names under which the same executable does something else: Codex puts links
/// by these names on the `PATH` of its tools (`~/.codex/tmp/arg0…`).
const TOOL_NAMES: &[&str] = &[
    "apply_patch",
    "applypatch",
    "codex-execve-wrapper",
    "codex-linux-sandbox",
];

/// A first argument that makes the executable one of its tools.
const TOOL_FLAG_PREFIX: &str = "--codex-run-as-";

/// Codex's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        (
            Is::Launcher,
            &[
                Form::Script("@openai/codex/bin/codex.js"),
                Form::Script("bin/codex"),
            ],
        ),
        (
            Is::ByArguments,
            &[
                Form::Executable("codex"),
                // Release binaries have the platform in their names.
                Form::Executable("codex-x86_64-*"),
                Form::Executable("codex-aarch64-*"),
            ],
        ),
    ],
    is_another: is_tool,
    commands_follow_options: true,
    options_with_value: &[
        "--add-dir",
        "--ask-for-approval",
        "--cd",
        "--color",
        "--config",
        "--disable",
        "--enable",
        "--image",
        "--listen",
        "--local-provider",
        "--model",
        "--output-last-message",
        "--output-schema",
        "--profile",
        "--remote",
        "--remote-auth-token-env",
        "--sandbox",
        "-C",
        "-a",
        "-c",
        "-i",
        "-m",
        "-o",
        "-p",
        "-s",
    ],
    commands: &[
        (
            Role::Auxiliary,
            &[
                "a",
                "app",
                "apply",
                "archive",
                "cloud",
                "cloud-tasks",
                "completion",
                "debug",
                "delete",
                "doctor",
                "exec-server",
                "execpolicy",
                "features",
                "help",
                "login",
                "logout",
                "mcp",
                "migrate-rollouts",
                "plugin",
                "queue",
                "responses-api-proxy",
                "sandbox",
                "stdio-to-uds",
                "unarchive",
                "update",
                "app-server daemon",
                "app-server generate-json-schema",
                "app-server generate-ts",
                "app-server help",
                "app-server proxy",
            ],
        ),
        (Role::Host, &["app-server", "mcp-server", "remote-control"]),
    ],
    // Anything but an id is the name of a thread, or a prompt.
    session: &[
        Named::WordAfter("resume"),
        Named::WordAfter("exec resume"),
        Named::WordAfter("e resume"),
        Named::WordAfter("fork"),
    ],
    id_in: |_, word| is_uuid(word).then_some(word),
    forks: &["fork"],
    headless: &["e", "exec", "mcp-server", "review"],
    // The process stays where it is.
    directory: &["--cd", "-C"],
    ..CommandLine::NONE
};

/// Where the daemon listens, below its home. Seen in Codex 0.171.0, 2026-11.
const CONTROL_SOCKET: &str = "app-server-control/app-server-control.sock";

/// The address in the arguments at which a host listens: a socket path or a URL. `unix://`
/// alone is the control socket of the home.
pub(super) fn endpoint(program: &Program<'_>, home: &Path) -> Option<String> {
    let listen = program.option("--listen")?;
    match listen.strip_prefix("unix://") {
        Some("") => Some(home.join(CONTROL_SOCKET).to_str()?.to_owned()),
        Some(path) => Some(path.to_owned()),
        // The server's own standard input and output are no address for others.
        None => listen
            .starts_with("ws://")
            .then(|| sidecar_facts::without_secrets(listen)),
    }
}

/// One of the tools in the executable.
fn is_tool(program: &Program<'_>) -> bool {
    let mut arguments = program.argv().iter();
    let started_as = arguments.next().map(Path::new);
    let started_as = started_as.and_then(|path| path.file_name()?.to_str());
    let first = arguments.next().and_then(|first| first.to_str());
    started_as.is_some_and(|name| TOOL_NAMES.contains(&name))
        || first.is_some_and(|first| first.starts_with(TOOL_FLAG_PREFIX))
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
