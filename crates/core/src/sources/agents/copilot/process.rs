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

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::adapter::{AgentProcess, Program, Role};

/// How many arguments are looked at.
const ARGUMENTS_MAX: usize = 256;

/// What Node calls its main thread, since version 24.
const NODE_MAIN_THREAD: &str = "MainThread";

/// Options that take the next argument as their value.
const OPTIONS_WITH_VALUE: &[&str] = &[
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
];

/// Subcommands that do their work and never serve a session.
const AUXILIARY: &[&str] = &[
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
];

/// Options that make it answer one question and end.
const AUXILIARY_OPTIONS: &[&str] = &["--help", "--version", "-h", "-v"];

/// Options that let another program talk to the process, which hosts as many
/// sessions as that asks for.
const HOST_OPTIONS: &[&str] = &["--acp", "--headless", "--server"];

/// How long an id is: a UUID.
pub(super) const ID_CHARS: usize = 36;
/// How short the beginning of an id may be that the arguments name.
const ID_PREFIX_CHARS_MIN: usize = 4;

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    let role = match script(program) {
        Some(Script::Loader) => return Some(Role::Launcher),
        Some(Script::Agent) => Role::Session,
        None if is_native(program) => Role::Session,
        None => return None,
    };
    let has = |options: &[&str]| options.iter().any(|option| program.has_argument(option));
    if has(HOST_OPTIONS) {
        return Some(Role::Host);
    }
    let is_auxiliary =
        has(AUXILIARY_OPTIONS) || subcommand(program).is_some_and(|word| AUXILIARY.contains(&word));
    Some(if is_auxiliary { Role::Auxiliary } else { role })
}

/// The session that the arguments name: an id or the beginning of one. A name
/// or a task's number leads to a session as well, but is none.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    ["--session-id", "--resume", "-r"]
        .into_iter()
        .find_map(|option| program.option(option))
        .filter(|value| is_id_or_prefix(value))
}

/// Tells whether it runs one prompt without a person at a terminal.
pub(super) fn is_headless(program: &Program<'_>) -> bool {
    program.has_argument("-p") || program.option("--prompt").is_some()
}

/// Where a process of `home` keeps its log.
pub(super) fn log_directory(process: &AgentProcess, home: &Path) -> PathBuf {
    let named = process.program().option("--log-dir").map(Path::new);
    match (named, process.work_dir()) {
        (Some(named), _) if named.is_absolute() => named.to_owned(),
        (Some(named), Some(work_dir)) => work_dir.join(named),
        _ => home.join("logs"),
    }
}

fn is_id_or_prefix(value: &str) -> bool {
    let is_hex = |c: char| c.is_ascii_hexdigit() || c == '-';
    value.len() >= ID_PREFIX_CHARS_MIN && value.len() <= ID_CHARS && value.chars().all(is_hex)
}

/// What a script of Copilot's does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Starts the native executable.
    Loader,
    /// Is the agent, in versions before there was one.
    Agent,
}

/// The script of Copilot's that a language runtime runs.
fn script(program: &Program<'_>) -> Option<Script> {
    let script = runtime_script(program)?;
    let parent = script.parent().and_then(Path::file_name);
    if script.ends_with("@github/copilot/npm-loader.js") {
        return Some(Script::Loader);
    }
    let is_in_bin = parent == Some(OsStr::new("bin")) || parent == Some(OsStr::new(".bin"));
    if is_in_bin && script.file_name() == Some(OsStr::new("copilot")) {
        return Some(Script::Loader);
    }
    // `~/.copilot/pkg/universal/0.0.399/index.js` is what an update brought.
    let is_update = names(script)
        .windows(2)
        .any(|pair| matches!(pair, [".copilot", "pkg"]));
    let is_index = script.file_name() == Some(OsStr::new("index.js"));
    (is_index && (is_update || script.ends_with("@github/copilot/index.js")))
        .then_some(Script::Agent)
}

/// The script of a runtime whose executable may be unreadable.
fn runtime_script<'a>(program: &Program<'a>) -> Option<&'a Path> {
    let argv: &'a [OsString] = program.details.argv.as_deref().ok()?;
    let runtime = match &program.details.exe {
        Ok(exe) => exe.as_path(),
        Err(_) => Path::new(argv.first()?),
    };
    let name = runtime.file_name()?.to_str()?;
    if !crate::adapter::is_runtime_name(name) {
        return None;
    }
    argv.iter()
        .skip(1)
        .take(ARGUMENTS_MAX)
        .map(Path::new)
        .find(|arg| !arg.as_os_str().as_encoded_bytes().starts_with(b"-"))
}

/// The native executable: of the npm package by its path, else by its name and
/// by being a Node program.
fn is_native(program: &Program<'_>) -> bool {
    // Not ours to look at: what it was started as must do.
    let started_as = || program.argv().first().map(Path::new);
    let Some(exe) = program.exe().or_else(started_as) else {
        return false;
    };
    let is_called_copilot = exe.file_name() == Some(OsStr::new("copilot"))
        || exe.file_name() == Some(OsStr::new("copilot.exe"));
    let is_in_package = || {
        names(exe).windows(2).any(|pair| {
            let [scope, package] = pair else { return false };
            *scope == "@github" && (*package == "copilot" || package.starts_with("copilot-"))
        })
    };
    is_called_copilot && (program.comm() == Some(NODE_MAIN_THREAD) || is_in_package())
}

fn names(path: &Path) -> Vec<&str> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect()
}

/// The first argument that is neither an option nor the value of one.
fn subcommand<'a>(program: &Program<'a>) -> Option<&'a str> {
    let mut arguments = program.argv().iter().skip(1).take(ARGUMENTS_MAX);
    if program.is_runtime() {
        // Its script is none.
        arguments.find(|arg| !arg.as_encoded_bytes().starts_with(b"-"))?;
    }
    while let Some(argument) = arguments.next() {
        let argument = argument.to_str()?;
        if OPTIONS_WITH_VALUE.contains(&argument) {
            arguments.next();
        } else if !argument.starts_with('-') {
            return Some(argument);
        }
    }
    None
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
