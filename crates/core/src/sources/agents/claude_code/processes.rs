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

use crate::adapter::{Program, Role};

/// Names of the native executable: as npm installs it, and as everybody else does.
const EXECUTABLES: &[&str] = &["claude", "claude.exe"];

/// Tools that are built into the executable. It starts itself by these names for them.
const TOOL_NAMES: &[&str] = &["bfs", "fd", "find", "grep", "rg", "ugrep"];

/// Runtimes that have run it as a script.
const RUNTIMES: &[&str] = &["node", "nodejs", "bun", "deno"];

/// The npm package, as a part of a path.
const PACKAGE: &str = "/@anthropic-ai/claude-code";

/// What a Node process of it puts over its arguments.
const TITLE: &str = "claude";

/// First arguments that start something of its own that is no session.
const AUXILIARY_OPTIONS: &[&str] = &[
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
];

/// Commands that run no session: `claude --help` lists some, the rest was read
/// in the program.
const AUXILIARY_COMMANDS: &[&str] = &[
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
];

/// The command that shows a background session.
const ATTACH: &str = "attach";

/// How long the short name of a background session is at least, in bytes.
const SHORT_BYTES_MIN: usize = 8;

/// Says what a process is to Claude Code.
pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if is_native(program) {
        return Some(role(program.argv().get(1..).unwrap_or_default()));
    }
    if program.is_runtime() && is_js_runtime(program) {
        return recognize_script(program);
    }
    None
}

/// An executable of Claude Code that runs as itself, not as one of the tools
/// that are built into it (`rg`, `bfs`, `ugrep`: told apart by argument 0).
fn is_native(program: &Program<'_>) -> bool {
    let argument_0 = program
        .argv()
        .first()
        .and_then(|arg| file_name(Path::new(arg)));
    let is_named_so = argument_0.is_none_or(|name| {
        name.starts_with("claude") || Some(name) == program.exe_name() || is_link(program, name)
    });
    let Some(exe) = program.exe() else {
        // Another user's process: its name and its argument must agree.
        return program.comm() == Some(TITLE) && argument_0 == Some(TITLE);
    };
    is_named_so && is_executable(exe) && !is_desktop_application(program)
}

/// It was started by a link of this name: the kernel calls it so too. (A tool's name is
/// in the arguments alone.)
fn is_link(program: &Program<'_>, name: &str) -> bool {
    program.was_executed_as(name) && !TOOL_NAMES.contains(&name)
}

fn is_executable(exe: &Path) -> bool {
    let Some(name) = file_name(exe) else {
        return false;
    };
    EXECUTABLES.contains(&name) || is_versioned(exe, name) || is_in_package(exe)
}

/// The native installer keeps each version under its number:
/// `~/.local/share/claude/versions/2.1.197`. So does what serves sessions for other
/// machines: `~/.claude/remote/ccd-cli/2.1.197`.
fn is_versioned(exe: &Path, name: &str) -> bool {
    let above = |levels: usize| exe.ancestors().nth(levels).and_then(file_name);
    let folders = (above(2), above(1));
    is_version(name)
        && matches!(
            folders,
            (Some("claude"), Some("versions")) | (Some("remote"), Some("ccd-cli"))
        )
}

/// `2.1.197`, `2.2.0-beta.1`
pub(super) fn is_version(name: &str) -> bool {
    let mut numbers = name.split('-').next().unwrap_or_default().split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numbers.clone().count() == 3 && numbers.all(is_number)
}

fn is_in_package(exe: &Path) -> bool {
    let is_tool = exe.components().any(|part| part.as_os_str() == "vendor");
    exe.to_str().is_some_and(|exe| exe.contains(PACKAGE)) && !is_tool
}

/// The desktop application has that name too; its helpers say what they are.
fn is_desktop_application(program: &Program<'_>) -> bool {
    let is_helper = |arg: &OsStr| arg.as_encoded_bytes().starts_with(b"--type=");
    program.argv().iter().any(|arg| is_helper(arg))
        || program.exe().and_then(Path::to_str).is_some_and(|exe| {
            exe.contains(".app/Contents/MacOS") || exe.contains("claude-desktop")
        })
}

fn is_js_runtime(program: &Program<'_>) -> bool {
    let name = program.exe_name().unwrap_or_default();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNTIMES.contains(&stem)
}

fn recognize_script(program: &Program<'_>) -> Option<Role> {
    if program.title() == Some(TITLE) {
        return Some(Role::Session);
    }
    let script = program.script()?;
    let at = program
        .argv()
        .iter()
        .position(|arg| Path::new(arg) == script)?;
    let args = program
        .argv()
        .get(at.saturating_add(1)..)
        .unwrap_or_default();
    let is_in_package = script.to_str().is_some_and(|path| path.contains(PACKAGE));
    match file_name(script)? {
        "cli-wrapper.cjs" if is_in_package => Some(Role::Launcher),
        "cli.js" | "cli.mjs" if is_in_package => Some(role(args)),
        "claude" => Some(role(args)),
        _ => None,
    }
}

/// What a process with these arguments is. Options may stand before a command;
/// a prompt may too, so that only the very first word counts as one.
fn role(args: &[impl AsRef<OsStr>]) -> Role {
    let first = args.first().and_then(|arg| arg.as_ref().to_str());
    match first {
        Some(ATTACH) => Role::Client,
        Some(word) if AUXILIARY_COMMANDS.contains(&word) => Role::Auxiliary,
        Some(word) if AUXILIARY_OPTIONS.contains(&word) => Role::Auxiliary,
        _ => Role::Session,
    }
}

/// The session that a process's arguments name: the whole id, or the short one
/// of a background session. `--resume` takes titles too, and `--fork-session`
/// makes the id it names the one of the parent.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    match recognize(program)? {
        Role::Client => {
            let args = program.argv().iter().filter_map(|arg| arg.to_str());
            let short = args.skip_while(|arg| *arg != ATTACH).nth(1)?;
            let is_short = short.len() >= SHORT_BYTES_MIN
                && short
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
            is_short.then_some(short)
        }
        Role::Session if program.has_argument("--fork-session") => None,
        Role::Session => resumed_by(program),
        Role::Host | Role::Launcher | Role::Auxiliary => None,
    }
}

/// The session that a process's options name by its whole id; a fork's parent.
pub(super) fn resumed_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    ["--resume", "-r", "--session-id"]
        .into_iter()
        .find_map(|name| program.option(name))
        .filter(|id| is_session_id(id))
}

/// It continues a session and does not say which: until it has found or been
/// told that, the id in its record is a throw-away one.
pub(super) fn continues_unnamed(program: &Program<'_>) -> bool {
    let words = ["--continue", "-c", "--resume", "-r", "--from-pr"];
    let is_said = program.argv().iter().skip(1).any(|arg| {
        let Some(arg) = arg.to_str() else {
            return false;
        };
        words.contains(&arg) || arg.starts_with("--resume=") || arg.starts_with("--from-pr=")
    });
    is_said && session_named_by(program).is_none() && !program.has_argument("--session-id")
}

/// Ids are UUIDs in lower case.
pub(super) fn is_session_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
