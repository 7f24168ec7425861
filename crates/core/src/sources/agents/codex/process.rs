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
//! The daemon is a child of the TUI that started it, until that ends: its
//! ancestry says nothing about the threads it serves.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::thread_id::is_uuid;
use crate::adapter::{Program, Role};
use crate::sources::agents::kit::told_by_sidecar;

/// How many arguments are looked at for the subcommand.
const ARGUMENTS_MAX: usize = 256;

/// Architectures that release binaries have in their names:
/// `codex-x86_64-unknown-linux-musl`.
const ARCHITECTURES: &[&str] = &["x86_64-", "aarch64-"];

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

/// Options before the subcommand that take the next argument as their value.
const OPTIONS_WITH_VALUE: &[&str] = &[
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
];

/// Subcommands that do their work and never hold a thread.
const AUXILIARY: &[&str] = &[
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
];

/// Subcommands that serve the threads of others.
const HOSTS: &[&str] = &["app-server", "mcp-server", "remote-control"];

/// What `codex app-server` does when a word follows, other than serving.
const APP_SERVER_TOOLS: &[&str] = &[
    "daemon",
    "generate-json-schema",
    "generate-ts",
    "help",
    "proxy",
];

/// What a Codex process was told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task<'a> {
    /// Show a terminal interface: a new thread, or the named one.
    Terminal {
        /// The thread that is resumed.
        resumed: Option<&'a str>,
    },
    /// Show a terminal interface: a fork of a thread, whose own id the
    /// arguments do not tell.
    Forked {
        /// The thread that is forked.
        from: Option<&'a str>,
    },
    /// Run one prompt, or a review, without a terminal interface.
    Headless {
        /// The thread that is resumed.
        resumed: Option<&'a str>,
    },
    /// Serve threads to others.
    Serve {
        /// To programs only, without a person.
        is_headless: bool,
    },
    /// Anything that holds no thread.
    Other,
}

/// Says what a process is to Codex.
pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if is_launcher(program) {
        return Some(Role::Launcher);
    }
    if !is_native(program) {
        return None;
    }
    if program.details.argv.is_err() {
        // One of several things. The one that says least about others:
        // a host keeps every thread that it holds.
        return Some(Role::Host);
    }
    Some(match task(program) {
        Task::Terminal { .. } | Task::Forked { .. } | Task::Headless { .. } => Role::Session,
        Task::Serve { .. } => Role::Host,
        Task::Other => Role::Auxiliary,
    })
}

/// The thread that the arguments say is resumed. A fork's arguments name the
/// thread it was forked from, which it is not.
pub(super) fn resumed<'a>(program: &Program<'a>) -> Option<&'a str> {
    if !is_native(program) {
        return None;
    }
    let word = match task(program) {
        Task::Terminal { resumed } | Task::Headless { resumed } => resumed,
        Task::Forked { .. } | Task::Serve { .. } | Task::Other => None,
    };
    // Anything else is the name of a thread, or a prompt.
    word.filter(|word| is_uuid(word))
}

/// The thread that the arguments say is forked.
pub(super) fn forked<'a>(program: &Program<'a>) -> Option<&'a str> {
    if !is_native(program) {
        return None;
    }
    match task(program) {
        Task::Forked { from } => from.filter(|from| is_uuid(from)),
        _ => None,
    }
}

/// The directory that the arguments say it works in: `--cd DIR`. The process
/// stays where it is.
pub(super) fn named_work_dir(program: &Program<'_>) -> Option<PathBuf> {
    if !is_native(program) {
        return None;
    }
    let named = program.option("--cd").or_else(|| program.option("-C"))?;
    let own = program.details.cwd.as_deref();
    let named = match own {
        Ok(own) => own.join(named),
        Err(_) => PathBuf::from(named),
    };
    if !named.is_absolute() {
        return None;
    }
    let mut path = PathBuf::new();
    for component in named.components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    Some(path)
}

/// Where the daemon listens, below its home. Seen in Codex 0.171.0, 2026-11.
const CONTROL_SOCKET: &str = "app-server-control/app-server-control.sock";

/// Tells whether it runs without a person at a terminal.
pub(super) fn is_headless(program: &Program<'_>) -> bool {
    matches!(
        task(program),
        Task::Headless { .. } | Task::Serve { is_headless: true }
    )
}

/// Where a host listens that its arguments tell of: a socket's path or a URL.
/// `unix://` alone is the control socket of its home.
pub(super) fn endpoint(program: &Program<'_>, home: &Path) -> Option<String> {
    let listen = program.option("--listen")?;
    match listen.strip_prefix("unix://") {
        Some("") => Some(home.join(CONTROL_SOCKET).to_str()?.to_owned()),
        Some(path) => Some(path.to_owned()),
        // Its own input and output lead nowhere for others.
        None => listen
            .starts_with("ws://")
            .then(|| told_by_sidecar::without_secrets(listen)),
    }
}

/// The `codex` script of the npm package, or its link in a `bin` directory.
fn is_launcher(program: &Program<'_>) -> bool {
    let Some(script) = program.script() else {
        return false;
    };
    if script.ends_with("@openai/codex/bin/codex.js") {
        return true;
    }
    let is_in_bin = script
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|parent| parent == "bin" || parent == ".bin");
    is_in_bin && script.file_name() == Some(OsStr::new("codex"))
}

/// The native executable, doing what its own name says.
fn is_native(program: &Program<'_>) -> bool {
    let started_as = program
        .argv()
        .first()
        .and_then(|first| Path::new(first).file_name()?.to_str());
    let is_native = match program.exe() {
        Some(exe) => exe
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(is_codex),
        // Not ours to look at: what it was started as must do, if the kernel's
        // name for it agrees.
        None => started_as.is_some_and(is_codex) && program.comm().is_some_and(is_codex_comm),
    };
    let is_tool_by_name = started_as.is_some_and(|name| TOOL_NAMES.contains(&name));
    let is_tool_by_flag = program
        .argv()
        .get(1)
        .and_then(|first| first.to_str())
        .is_some_and(|first| first.starts_with(TOOL_FLAG_PREFIX));
    is_native && !is_tool_by_name && !is_tool_by_flag
}

/// `codex`, `codex.exe`, `codex-x86_64-unknown-linux-musl`, …
fn is_codex(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let is_release = |rest: &str| ARCHITECTURES.iter().any(|arch| rest.starts_with(arch));
    name == "codex" || name.strip_prefix("codex-").is_some_and(is_release)
}

/// The same, of a name that the kernel cuts after 15 bytes.
fn is_codex_comm(comm: &str) -> bool {
    comm == "codex" || super::COMMS.contains(&comm)
}

fn task<'a>(program: &Program<'a>) -> Task<'a> {
    let details = program.details;
    let argv = details.argv.as_deref().unwrap_or_default();
    let words: Vec<&str> = argv
        .iter()
        .skip(1)
        .take(ARGUMENTS_MAX)
        .map(|arg| arg.to_str().unwrap_or_default())
        .collect();
    let (subcommand, rest) = first_word(&words);
    match subcommand {
        Some("resume") => Task::Terminal {
            resumed: first_word(rest).0,
        },
        Some("exec" | "e") => Task::Headless {
            resumed: match first_word(rest) {
                (Some("resume"), rest) => first_word(rest).0,
                _ => None,
            },
        },
        Some("review") => Task::Headless { resumed: None },
        Some("app-server") => match first_word(rest).0 {
            Some(word) if APP_SERVER_TOOLS.contains(&word) => Task::Other,
            _ => Task::Serve { is_headless: false },
        },
        Some(word) if HOSTS.contains(&word) => Task::Serve {
            is_headless: word == "mcp-server",
        },
        Some("fork") => Task::Forked {
            from: first_word(rest).0,
        },
        Some(word) if AUXILIARY.contains(&word) => Task::Other,
        // A prompt, or nothing.
        _ => Task::Terminal { resumed: None },
    }
}

/// The first argument that is neither an option nor the value of one, and what
/// follows it. After `--` come prompts only.
fn first_word<'a, 'w>(words: &'w [&'a str]) -> (Option<&'a str>, &'w [&'a str]) {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if *word == "--" {
            break;
        }
        if OPTIONS_WITH_VALUE.contains(word) {
            at += 1;
        } else if !word.starts_with('-') {
            return (Some(word), words.get(at..).unwrap_or_default());
        }
    }
    (None, &[])
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
