//! Runs the commands of pane hosts, each bounded in time.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus as CommandStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
#[cfg(unix)]
use rustix::io::retry_on_intr;
#[cfg(unix)]
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use whosup_core::adapter::Invocation;
use whosup_core::sources::panes::Input;

use crate::shell::{line, quoted};
use crate::text::visible;

/// How long one command may take.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How often to look whether a command has ended.
const STEP: Duration = Duration::from_millis(2);
/// How much of an error message is shown, in bytes.
const COMPLAINT_BYTES_MAX: u64 = 4 << 10;

/// Variables that multiplexers set in their panes: with these they refuse to run inside
/// each other, or take their own pane for the target.
const OF_MULTIPLEXERS: &[&str] = &[
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "ZELLIJ",
    "ZELLIJ_SESSION_NAME",
    "ZELLIJ_PANE_ID",
];

/// Runs a command to its end.
///
/// # Errors
///
/// If it cannot be run, does not end in time, or fails.
pub(crate) fn run(input: &Input) -> anyhow::Result<()> {
    let mut command = command(&input.invocation)?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let shown = program(&input.invocation);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    let stdin = child.stdin.take();
    let text = input.stdin.clone().into_bytes();
    // A command that does not read its input must not block this program.
    std::thread::spawn(move || {
        // The exit status reports a failure.
        stdin.map(|mut stdin| stdin.write_all(&text).ok())
    });
    let Some(status) = wait(&mut child)? else {
        bail!("`{shown}` did not end within {} s", TIME_MAX.as_secs());
    };
    if !status.success() {
        let mut message = String::new();
        if let Some(stderr) = child.stderr.take() {
            // Without the message, the exit status is reported.
            stderr
                .take(COMPLAINT_BYTES_MAX)
                .read_to_string(&mut message)
                .ok();
        }
        bail!("`{shown}` failed ({status}): {}", visible(message.trim()));
    }
    Ok(())
}

/// Waits until the command has ended; kills it if it takes too long.
fn wait(child: &mut Child) -> anyhow::Result<Option<CommandStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > TIME_MAX {
            child.kill()?;
            return Ok(None);
        }
        std::thread::sleep(STEP);
    }
}

/// Runs a command that takes over the terminal until the person leaves.
///
/// # Errors
///
/// If it cannot be run, or fails. Its own exit status is not passed on: other programs
/// don't know what ours mean.
pub(crate) fn take_over(invocation: &Invocation) -> anyhow::Result<()> {
    let mut command = command(invocation)?;
    for name in unset(invocation) {
        command.env_remove(name);
    }
    let shown = program(invocation);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    #[cfg(unix)]
    stop_with(&child)?;
    let status = child.wait()?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Returns once a child has ended. Whenever it stops itself, as tmux does for
/// `suspend-client`, this program stops too, so that the shell gets the terminal. The shell
/// continues both.
#[cfg(unix)]
fn stop_with(child: &Child) -> anyhow::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.context("no PID")?;
    let (ended, stopped) = (WaitIdOptions::EXITED, WaitIdOptions::STOPPED);
    // The exit is left to the code that reaps it.
    let either = ended | stopped | WaitIdOptions::NOWAIT;
    let is_stopped = || -> anyhow::Result<bool> {
        let news = retry_on_intr(|| waitid(WaitId::Pid(pid), either))?;
        Ok(news.is_some_and(|news| news.stopped()))
    };
    while is_stopped()? {
        waitid(WaitId::Pid(pid), stopped | WaitIdOptions::NOHANG)?;
        kill_process(getpid(), Signal::TSTP)?;
    }
    Ok(())
}

fn command(invocation: &Invocation) -> anyhow::Result<Command> {
    let (program, arguments) = invocation
        .argv
        .split_first()
        .context("there is no command")?;
    let mut command = Command::new(program);
    let variables = invocation.environment.iter();
    command
        .args(arguments)
        .envs(variables.map(|(name, value)| (name, value)));
    if let Some(directory) = &invocation.directory {
        command.current_dir(directory);
    }
    Ok(command)
}

fn program(invocation: &Invocation) -> &str {
    invocation.argv.first().map_or("", String::as_str)
}

/// The variables to remove from a command that takes over the terminal.
fn unset(invocation: &Invocation) -> impl Iterator<Item = &'static str> {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    let is_own = |name: &&str| invocation.environment.iter().any(|(own, _)| own == name);
    let names = OF_MULTIPLEXERS.iter().copied();
    names.filter(move |name| is_set(name) && !is_own(name))
}

/// A command for a shell.
pub(crate) fn shell_line(invocation: &Invocation, takes_over: bool) -> String {
    let variables: Vec<(&str, String)> = invocation
        .environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_string_lossy().into_owned()))
        .collect();
    let directory = invocation.directory.as_deref();
    let directory = directory.map(|directory| directory.to_string_lossy());
    let mut words: Vec<&str> = Vec::new();
    if takes_over {
        words.extend(unset(invocation).flat_map(|name| ["-u", name]));
        if !words.is_empty() {
            words.insert(0, "env");
        }
    }
    let (prefix, rest) = (words, invocation.argv.iter().map(String::as_str));
    line(
        prefix.into_iter().chain(rest),
        directory.as_deref(),
        variables
            .iter()
            .map(|(name, value)| (*name, value.as_str())),
        quoted,
    )
}
