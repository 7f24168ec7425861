//! How Claude Code's processes look.
//!
//! Seen in Claude Code 2.1.197 and 2.1.332, 2026-11: one native process, also when
//! npm installed it, with its arguments in place. Versions before 2 ran on Node
//! and put `claude` over their arguments. In 2.1.332 argument 0 of the parts of
//! `--bg` is `claude bg-pty-host` or `claude bg-spare`, one word with a space.
//!
//! ```text
//! claude                                                            a session
//! claude -p PROMPT                                                  a session, headless
//! claude.exe daemon run --origin transient …                        auxiliary
//! claude.exe --bg-pty-host SOCKET 200 50 -- claude.exe …            auxiliary
//! └ claude.exe --session-id ID PROMPT                               a session, without a terminal
//! claude.exe --bg-spare SOCKET                                      auxiliary, until it is given a session
//! claude attach SHORT                                               a client
//! rg --no-config … (executing claude.exe)                           a tool
//! ```

use std::ffi::OsStr;
use std::path::Path;

use crate::adapter::{CommandLine, Form, Is, Named, Program, Role};
use crate::sources::agents::kit::uuid::is_uuid;

/// Tools that are built into the executable. It starts itself by these names for them.
const TOOL_NAMES: &[&str] = &["bfs", "fd", "find", "grep", "rg", "ugrep"];

/// How long the short name of a background session is at least, in bytes.
const SHORT_BYTES_MIN: usize = 8;

/// Claude Code's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        (
            Is::Launcher,
            &[Form::Script(
                "@anthropic-ai/claude-code*/**/cli-wrapper.cjs",
            )],
        ),
        (
            Is::ByArguments,
            &[
                Form::Executable("claude"),
                // The native installer keeps each version under its number, and so does the
                // program that serves sessions for other machines.
                Form::Executable("claude/versions/#"),
                Form::Executable("remote/ccd-cli/#"),
                Form::Executable("@anthropic-ai/claude-code*/**"),
                Form::CommonTitle("claude"),
                Form::Script("@anthropic-ai/claude-code*/**/cli.js"),
                Form::Script("@anthropic-ai/claude-code*/**/cli.mjs"),
                Form::Script("claude"),
            ],
        ),
    ],
    is_another,
    options_with_value: &["-d", "-n", "-w"],
    // Options may stand before a command; a prompt may too, so that only the very first
    // word counts. `claude --help` lists some, the rest was read in the program.
    commands: &[
        (Role::Client, &["attach"]),
        (
            Role::Auxiliary,
            &[
                "agents",
                "auth",
                "auto-mode",
                "bridge",
                "config",
                "daemon",
                "doctor",
                "gateway",
                "help",
                "install",
                "kill",
                "logs",
                "mcp",
                "migrate-installer",
                "plugin",
                "plugins",
                "project",
                "rc",
                "remote",
                "remote-control",
                "respawn",
                "rm",
                "setup-token",
                "stop",
                "sync",
                "update",
                "upgrade",
                "--bg-pty-host",
                "--bg-spare",
                "--chrome-native-host",
                "--claude-in-chrome-mcp",
                "--computer-use-mcp",
                "--daemon-worker",
                "--help",
                "--preload",
                "--version",
                "-V",
                "-h",
                "-v",
            ],
        ),
    ],
    // `attach` takes the short name of a background session, `--resume` titles too.
    session: &[
        Named::WordAfter("attach"),
        Named::Option(&["--resume", "-r"]),
        Named::Option(&["--session-id"]),
    ],
    id_in: |by, word| match by {
        "attach" => {
            let is_of_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
            let is_short = word.len() >= SHORT_BYTES_MIN && word.bytes().all(is_of_id);
            is_short.then_some(word)
        }
        _ => {
            // `--resume` takes the path of a transcript too.
            let named = word.strip_suffix(".jsonl");
            let named = named.map_or(word, |path| path.rsplit('/').next().unwrap_or(path));
            is_uuid(named).then_some(named)
        }
    },
    forks: &["--fork-session"],
    continues: &["--continue", "-c", "--resume", "-r", "--from-pr"],
    ..CommandLine::NONE
};

/// The executable runs as one of the tools that are built into it (`rg`, `bfs`, `ugrep`),
/// which argument 0 names, or as a part of the desktop application, which has that name too.
fn is_another(program: &Program<'_>) -> bool {
    if program.is_runtime() {
        return false;
    }
    let first = program.argv().first().map(Path::new);
    let is_named_so = first.and_then(file_name).is_none_or(|name| {
        // The kernel too calls a process by the link that it was started by. (A tool's
        // name is in the arguments alone.)
        let is_link = || program.was_executed_as(name) && !TOOL_NAMES.contains(&name);
        name.starts_with("claude") || Some(name) == program.exe_name() || is_link()
    });
    let is_helper = |arg: &OsStr| arg.as_encoded_bytes().starts_with(b"--type=");
    let is_of_another = |exe: &Path| {
        let is_vendored = exe.iter().any(|part| part == "vendor");
        let text = exe.to_str().unwrap_or_default();
        (is_vendored && file_name(exe) != Some("claude"))
            || text.contains(".app/Contents/MacOS")
            || text.contains("claude-desktop")
    };
    !is_named_so
        || program.argv().iter().any(|arg| is_helper(arg))
        || program.exe().is_some_and(is_of_another)
}

/// The process continues a session that the arguments do not name. Until it has found or
/// been given that session, the id in its record is a throw-away id.
pub(super) fn continues_unnamed(program: &Program<'_>) -> bool {
    PROGRAMS.continues(program)
        && PROGRAMS.session(program).is_none()
        && !PROGRAMS.has(program, &["--session-id"])
}

/// The name of a file or folder, if it is UTF-8.
pub(super) fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
