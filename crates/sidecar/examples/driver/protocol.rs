//! Executes the commands on standard input, and answers each with a line.

use std::io::{self, BufRead as _, Write as _};

use whosup_sidecar::{Agent, Owner, Phase, Session, WaitingFor, WriteError};

/// Serves standard input until it ends, or until the command `exit` or `crash`.
pub(crate) fn serve() -> io::Result<()> {
    let mut owner = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (command, id) = line.split_once(' ').unwrap_or((&line, ""));
        let done = match command {
            "start" => session(id).and_then(|session| {
                let agent = Agent::new("driver")?.version(env!("CARGO_PKG_VERSION"));
                owner = Some(Owner::establish(agent, session)?);
                Ok(())
            }),
            "switch" => session(id).and_then(|session| with(&owner, |o| o.switch_session(session))),
            "phase" => with(&owner, |owner| owner.update(phase(id))),
            "release" => with(&owner, Owner::release),
            "exit" => return Ok(()),
            // No handler runs, no buffer is written.
            "crash" => std::process::abort(),
            // Of this driver alone: the same process with its program anew.
            "exec" => execute_again()?,
            _ => {
                answer("unsupported")?;
                continue;
            }
        };
        match done {
            Ok(()) => answer("ok")?,
            Err(error) => answer(&format!("error {}", reason(&error)))?,
        }
    }
    Ok(())
}

#[cfg(unix)]
fn execute_again() -> io::Result<Result<(), WriteError>> {
    use std::os::unix::process::CommandExt as _;

    answer("ok")?;
    let mut again = std::process::Command::new(std::env::current_exe()?);
    Err(again.args(std::env::args_os().skip(1)).exec())
}

#[cfg(not(unix))]
fn execute_again() -> io::Result<Result<(), WriteError>> {
    Err(io::ErrorKind::Unsupported.into())
}

fn session(id: &str) -> Result<Session, WriteError> {
    let work_dir = std::env::current_dir().unwrap_or_default();
    Session::new(id, work_dir)
}

fn with(
    owner: &Option<Owner>,
    step: impl FnOnce(&Owner) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    owner.as_ref().map_or(Err(WriteError::Released), step)
}

fn phase(word: &str) -> Phase {
    match word {
        "working" => Phase::Working,
        "waiting" => Phase::Waiting(WaitingFor::Permission),
        "starting" => Phase::Starting,
        _ => Phase::Idle,
    }
}

fn reason(error: &WriteError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default()).replace('\n', " ")
}

fn answer(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
