//! `whosup after-end`, an internal command: runs the commands that the configuration
//! names for sessions that have ended, in a process of its own.
//!
//! Neither the hook that reported the end nor the sweep waits for it. The commands of a
//! session run one after the other, each for a bounded time; failures are noted where
//! hooks note theirs.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use whosup_core::machine::{Environment, now_ms};
use whosup_core::reader::in_full;
use whosup_core::sources::record::SessionRecord;
use whosup_core::views::wire;
use whosup_track::note_problem;

use crate::app::App;
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::json::write_document;

/// Set in the environment of those commands, so that a hook within them knows it.
pub(crate) const AFTERMATH: &str = "WHOSUP_AFTER_END";
/// The command's name.
const NAME: &str = "after-end";
/// How many sessions one process gets.
const SESSIONS_MAX: usize = 200;
/// How long one command may take.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);
/// How often to look whether a command has ended.
const STEP: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Args)]
pub(crate) struct AfterEndArgs {
    /// For each session that has ended: its agent and id, and its home
    #[arg(value_names = ["AGENT:ID", "HOME"], num_args = 2.., required = true)]
    sessions: Vec<String>,
}

/// Starts a process that runs the configured commands for these sessions, if there are
/// any, and does not wait for it.
pub(crate) fn start(app: &App<'_>, environment: &Environment, ended: &[SessionRecord]) {
    let sessions: Vec<&SessionRecord> = ended
        .iter()
        .filter(|record| !record.heard.is_aftermath)
        .take(SESSIONS_MAX)
        .collect();
    let commands = app.world.config_in(environment);
    let has_commands = commands.is_ok_and(|config| !config.tracking.on_end.is_empty());
    if sessions.is_empty() || !has_commands {
        return;
    }
    if let Err(error) = spawn(app, &sessions) {
        let message = format!("cannot start what is to be run after an end: {error}");
        note_problem(environment, now_ms(), NAME, &message);
    }
}

fn spawn(app: &App<'_>, sessions: &[&SessionRecord]) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(config) = app.world.config_file() {
        command.arg("--config").arg(config);
    }
    command.arg(NAME);
    for record in sessions {
        command
            .arg(format!("{}:{}", record.agent, record.session))
            .arg(&record.home);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A signal to the starter's group does not end it.
    in_own_group(&mut command).spawn().map(|_: Child| ())
}

/// Runs the configured commands for each session.
pub(crate) fn run(app: &App<'_>, arguments: &AfterEndArgs) -> ExitStatus {
    let environment = Environment::here();
    for pair in arguments.sessions.chunks_exact(2) {
        if let Err(error) = run_for(app, &environment, &pair[0], &pair[1]) {
            note_problem(
                &environment,
                now_ms(),
                NAME,
                &format!("{}: {}", pair[0], in_full(error.as_ref())),
            );
        }
    }
    ExitStatus::Done
}

/// Runs the commands for one session. A failure does not keep the others from running.
fn run_for(app: &App<'_>, environment: &Environment, id: &str, home: &str) -> anyhow::Result<()> {
    let commands = app.world.config_in(environment)?.tracking.on_end;
    let world = app.world.again();
    let id = IdArgs {
        id: id.to_owned(),
        home: Some(home.into()),
    };
    let shown = super::show::look(&world, &id)?;
    let mut document = Vec::new();
    write_document(
        &mut document,
        &wire::snapshot(world.machine(), &shown.snapshot),
    )?;
    for words in &commands {
        if let Err(error) = run_one(words, environment, &document) {
            let command = words.join(" ");
            note_problem(
                environment,
                now_ms(),
                NAME,
                &format!("`{command}`: {}", in_full(error.as_ref())),
            );
        }
    }
    Ok(())
}

/// Runs a program with a document on standard input, for a bounded time.
///
/// # Errors
///
/// If it can't be started, fails or takes too long.
pub(super) fn run_one(
    words: &[String],
    environment: &Environment,
    document: &[u8],
) -> anyhow::Result<()> {
    let [program, arguments @ ..] = words else {
        anyhow::bail!("it is empty");
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(AFTERMATH, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(home) = environment.home().filter(|home| home.is_dir()) {
        command.current_dir(home);
    }
    // It is ended with all that it has started.
    let mut child = in_own_group(&mut command).spawn()?;
    let stdin = child.stdin.take();
    let document = document.to_owned();
    // The command need not read its input, and this write is not waited for.
    let write = move || stdin.map(|mut stdin| stdin.write_all(&document));
    if let Err(error) = std::thread::Builder::new().spawn(write) {
        // Without its input the command would do something else.
        end(&mut child)?;
        anyhow::bail!("cannot write to it: no thread can be started: {error}");
    }
    let until = Instant::now() + COMMAND_TIME_MAX;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until {
            end(&mut child)?;
            anyhow::bail!("it did not end within {} s", COMMAND_TIME_MAX.as_secs());
        }
        std::thread::sleep(STEP);
    };
    if !status.success() {
        anyhow::bail!("{status}");
    }
    Ok(())
}

/// Runs a command in a process group of its own.
fn in_own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Ends our own child, and what it has started in its process group.
fn end(child: &mut Child) -> std::io::Result<()> {
    // Nothing else can have the number of the group: the child has not been reaped.
    #[cfg(unix)]
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    }
    child.kill()?;
    child.wait().map(drop)
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};

    use super::{end, in_own_group};

    #[test]
    fn a_command_is_ended_with_what_it_has_started() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "(echo begun; sleep 600) | (cat; sleep 600)"])
            .stdout(Stdio::piped());
        let mut child = in_own_group(&mut command).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        end(&mut child).unwrap();
        // The output ends when nothing that was started has it open any more.
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
