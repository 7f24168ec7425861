//! `whosup run`: gives any program a session.

mod program;
mod terminal;
mod words;

use std::cell::Cell;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus as ProgramStatus};

use anyhow::{Context as _, bail};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use whosup_core::adapter::hook_event::EventKind;
use whosup_core::adapter::phase::WaitingFor;
use whosup_core::machine::{Environment, now_ms};
use whosup_core::process::{Pid, system_backend};
use whosup_core::reader::in_full;
use whosup_core::sidecar::{Agent, AgentId, Owner, Phase, Session, SessionId};
use whosup_core::sources::agents::adapter;
use whosup_core::sources::common_place;
use whosup_core::sources::record::{EndCause, SessionRecord};
use whosup_track::{Store, Supervised};

use self::program::Program;
use super::after_end;
use crate::app::{App, say};
use crate::completion;
use crate::exit::ExitStatus;

/// Added to the signal in the exit status, as shells do.
const SIGNAL_BASE: i32 = 128;

// Runs a program and gives it a session, which is listed like any other.
//
// The program runs in this terminal and gets the signals that are sent to whosup, and its
// exit status becomes that of whosup (128 + N after signal N). While it runs, a sidecar in
// the common place announces it to `whosup list`; when it ends, the cause of the end is
// recorded.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  whosup run -- aider
  whosup run --agent my-agent --id nightly-42 -- ./my-agent --task build
  whosup run --pty -- my-agent     Read the phase from its terminal

Exit status: that of the program; 128 + N after signal N, 127 there is no such program, 126 it
cannot be executed, 2 usage error or failure.")]
pub(crate) struct RunArgs {
    /// Name of the agent [default: the program's name]
    #[arg(long, value_name = "NAME", value_parser = parse_agent)]
    agent: Option<AgentId>,
    /// Session ID [default: a new one]
    #[arg(long, value_name = "ID", value_parser = parse_session)]
    id: Option<SessionId>,
    /// Run it in a new terminal, and read the phase from OSC 7501 and titles
    #[arg(long)]
    pty: bool,
    /// The program, with its arguments
    #[arg(last = true, required = true, value_name = "CMD", add = ArgValueCompleter::new(completion::program))]
    command: Vec<OsString>,
}

fn parse_agent(text: &str) -> Result<AgentId, String> {
    // A sidecar names its agent by the key `NAME_version`, and has a `schema_version`.
    if text == "schema" {
        return Err("no sidecar can announce an agent of this name".to_owned());
    }
    AgentId::parse(text).map_err(|error| error.to_string())
}

fn parse_session(text: &str) -> Result<SessionId, String> {
    SessionId::parse(text).map_err(|error| error.to_string())
}

/// Becomes the program that this process was started to become, in the terminal that was
/// made for it. Returns if it was not started for that, or if that fails.
pub(crate) fn become_program_if_asked() -> Option<ExitCode> {
    terminal::become_program_if_asked()
}

/// Runs the program.
///
/// # Errors
///
/// If it can't be started. A sidecar or record that can't be written is only reported.
pub(crate) fn run(app: &mut App<'_>, arguments: &RunArgs) -> anyhow::Result<ExitStatus> {
    app.world.config_in(&Environment::here())?;
    let name = arguments.command.first().context("no program")?;
    let agent = match &arguments.agent {
        Some(agent) => agent.clone(),
        None => agent_of(Path::new(name))?,
    };
    let session = arguments.id.clone().map_or_else(new_session, Ok)?;
    app.out.flush()?;
    let started = if arguments.pty {
        Program::start_in_terminal(&arguments.command)
    } else {
        Program::start(&arguments.command)
    };
    let program = match started {
        Ok(program) => program,
        Err(error) => {
            let status = not_started(&error);
            say(app.err, &format!("error: {}", in_full(error.as_ref())));
            return Ok(status);
        }
    };
    let announced = Announced::of(program.pid(), &agent, &session, app.err);
    let status = program.wait(|phase| announced.update(phase))?;
    if let Some(ended) = announced.end(status, app.err) {
        after_end::start(app, &Environment::here(), &[ended]);
    }
    Ok(ExitStatus::OfProgram(code(status)))
}

/// The exit status for a program that could not be started, as in shells: 127 if it does
/// not exist, 126 if it can't be executed (POSIX, 2.8.2).
fn not_started(error: &anyhow::Error) -> ExitStatus {
    let cause = error.downcast_ref::<std::io::Error>();
    match cause.map(std::io::Error::kind) {
        Some(std::io::ErrorKind::NotFound) => ExitStatus::OfProgram(127),
        Some(_) => ExitStatus::OfProgram(126),
        None => ExitStatus::Failed,
    }
}

/// The agent name for a program.
fn agent_of(program: &Path) -> anyhow::Result<AgentId> {
    let stem = program.file_stem().and_then(|stem| stem.to_str());
    let name: String = stem
        .unwrap_or_default()
        .to_ascii_lowercase()
        .chars()
        .map(|character| match character {
            'a'..='z' | '0'..='9' => character,
            _ => '-',
        })
        .skip_while(|character| !character.is_ascii_lowercase())
        .take(whosup_core::sidecar::AGENT_ID_BYTES_MAX)
        .collect();
    match parse_agent(&name) {
        Ok(agent) => Ok(agent),
        Err(_) => bail!(
            "cannot derive an agent's name from `{}`: give `--agent NAME`",
            program.display()
        ),
    }
}

/// A new session ID, from the date and the PID.
fn new_session() -> anyhow::Result<SessionId> {
    let id = format!("run-{:x}-{:x}", now_ms(), std::process::id());
    Ok(SessionId::parse(&id)?)
}

/// The announcement of the program while it runs.
struct Announced {
    owner: Option<Owner>,
    supervised: Option<Supervised>,
    phase: Cell<Phase>,
}

impl Announced {
    /// Announces the program, as far as possible.
    fn of(pid: Pid, agent: &AgentId, session: &SessionId, err: &mut dyn std::io::Write) -> Self {
        let work_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let establish = || -> anyhow::Result<Owner> {
            let session = Session::new(session.as_str(), &work_dir)?;
            Ok(Owner::establish_for(
                pid,
                Agent::new(agent.as_str())?,
                session,
            )?)
        };
        let record = || -> anyhow::Result<Supervised> {
            let environment = Environment::here();
            let backend = system_backend();
            let files = Store::of(&environment)?.files_of(agent, session);
            let process = backend.probe(pid)?.context("it has ended already")?;
            let home = home_of(&environment, agent);
            let supervised = Supervised::of(&process, &*backend, files, home, work_dir.clone());
            supervised.note_start(now_ms())?;
            Ok(supervised)
        };
        let owner = establish();
        let supervised = record();
        for error in [owner.as_ref().err(), supervised.as_ref().err()]
            .into_iter()
            .flatten()
        {
            say(
                err,
                &format!("whosup: not announced: {}", in_full(error.as_ref())),
            );
        }
        Self {
            owner: owner.ok(),
            supervised: supervised.ok(),
            phase: Cell::new(Phase::Starting),
        }
    }

    /// Announces the phase; a failed write is ignored.
    fn update(&self, phase: Phase) {
        let before = self.phase.replace(phase);
        if before == phase {
            return;
        }
        if let Some(owner) = &self.owner {
            owner.update(phase).ok();
        }
        if let (Some(supervised), Some(event)) = (&self.supervised, event(before, phase)) {
            supervised.note_event(event, now_ms()).ok();
        }
    }

    /// Announces the end and its cause. Returns the record if there is an end to pass on.
    fn end(self, status: ProgramStatus, err: &mut dyn std::io::Write) -> Option<SessionRecord> {
        let noted = self
            .supervised
            .map(|it| it.note_exit(&how(status), cause(status), now_ms()));
        let ended = match noted {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => {
                say(
                    err,
                    &format!("whosup: the end is not recorded: {}", in_full(&error)),
                );
                None
            }
            None => None,
        };
        let released = self.owner.map(|owner| owner.release());
        if let Some(Err(error)) = released {
            say(err, &format!("whosup: {}", in_full(&error)));
        }
        ended
    }
}

/// The event between two phases.
fn event(before: Phase, now: Phase) -> Option<EventKind> {
    match (before, now) {
        // The question was answered, and the turn continues.
        (Phase::Waiting(_), Phase::Working) => Some(EventKind::ToolStarted),
        (_, Phase::Working) => Some(EventKind::TurnStarted),
        (_, Phase::Idle) => Some(EventKind::TurnEnded),
        (_, Phase::Waiting(what)) => {
            WaitingFor::from_name(what.name()).map(EventKind::InputRequested)
        }
        _ => None,
    }
}

/// The home of an agent's sessions in the common place.
fn home_of(environment: &Environment, agent: &AgentId) -> PathBuf {
    let own = adapter(agent).and_then(|adapter| adapter.homes(environment).into_iter().next());
    let common = || common_place::root(environment).map(|root| root.join(agent.as_str()));
    own.or_else(common).unwrap_or_default()
}

/// How a program ended, in words.
fn how(status: ProgramStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("unnamed");
            let core = if status.core_dumped() {
                ", core dumped"
            } else {
                ""
            };
            format!("signal {signal} ({name}{core})")
        }
        (None, None) => "ended".to_owned(),
    }
}

/// How a program ended, as records have it.
fn cause(status: ProgramStatus) -> EndCause {
    let small = |number: i32| u8::try_from(number).ok();
    let signal = || status.signal().and_then(small).map(EndCause::Signal);
    let code = status.code().and_then(small).map(EndCause::ExitCode);
    code.or_else(signal).unwrap_or(EndCause::ProcessGone)
}

/// The exit status for it, as in shells.
fn code(status: ProgramStatus) -> u8 {
    let code = status.code();
    let code = code.or_else(|| Some(SIGNAL_BASE + status.signal()?));
    code.and_then(|code| u8::try_from(code & 0xFF).ok())
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::agent_of;

    #[test]
    fn an_agent_is_named_after_its_program() {
        for (program, name) in [
            ("aider", "aider"),
            ("/usr/bin/My_Agent.py", "my-agent"),
            ("./2nd-agent", "nd-agent"),
            ("gpt4.1", "gpt4"),
        ] {
            assert_eq!(agent_of(Path::new(program)).unwrap().as_str(), name);
        }
        for program in ["/bin/42", "/bin/schema"] {
            let error = agent_of(Path::new(program)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("cannot derive an agent's name from `{program}`: give `--agent NAME`")
            );
        }
    }
}
