//! `whosup pid`

use clap::Args;
use whosup_core::judging::verdict::Liveness;
use whosup_core::process::Process;
use whosup_core::sessions::session::Session;
use whosup_core::views::explain::sentence;

use super::check::status_of;
use crate::app::{App, say};
use crate::exit::ExitStatus;
use crate::id::{IdArgs, find};
use crate::json::reports::{CheckDocument, PidDocument};
use crate::json::write_document;

const EXAMPLES: &str = "\
Examples:
  whosup pid 0a022b20               The process that runs the session
  whosup pid --client codex:01a2    The process that shows it

Exit status: 0 printed, 1 exited, 2 usage error or failure, 3 unknown, 4 no such session.
A live session whose process is not known gives 3. A PID is printed only with status 0.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PidArgs {
    #[command(flatten)]
    id: IdArgs,
    /// Print the process that shows the session: its client, which may have no terminal,
    /// where another process runs it
    #[arg(long)]
    client: bool,
    /// Print one JSON document, also where no PID is known
    #[arg(long)]
    json: bool,
}

/// Prints the PID.
///
/// # Errors
///
/// If the scan or the output failed.
pub(crate) fn run(app: &mut App<'_>, arguments: &PidArgs) -> anyhow::Result<ExitStatus> {
    let session = &find(&app.world, &arguments.id)?;
    if arguments.json {
        return write_json(app, session, arguments.client);
    }
    let name = format!("{} session {}", session.key.agent, session.key.session);
    if session.liveness() != Liveness::Live {
        let answer = session.liveness().name();
        let because = sentence(session.verdict);
        say(app.err, &format!("{name} is {answer}: {because}"));
        return Ok(status_of(session));
    }
    match wanted_process(session, arguments.client) {
        Ok(process) => {
            writeln!(app.out, "{}", process.pid)?;
            if !session.other_live.is_empty() {
                say(app.err, &format!("warning: {}", others(session)));
            }
            Ok(ExitStatus::Done)
        }
        Err(reason) => {
            say(app.err, &format!("{name} is live, but {reason}"));
            Ok(ExitStatus::Unknown)
        }
    }
}

fn write_json(
    app: &mut App<'_>,
    session: &Session,
    is_client_wanted: bool,
) -> anyhow::Result<ExitStatus> {
    let words = sentence(session.verdict).to_string();
    let process = if session.liveness() == Liveness::Live {
        wanted_process(session, is_client_wanted).map(Some)
    } else {
        Ok(None)
    };
    let status = match &process {
        Ok(_) => status_of(session),
        Err(_) => ExitStatus::Unknown,
    };
    let known = process.as_ref().ok().copied().flatten();
    let document = PidDocument {
        session: CheckDocument::of(app.world.machine(), session, words),
        pid: known.map(|process| process.pid.get()),
        start_stamp: known.map(|process| process.stamp.to_string()),
        missing: process.err(),
        other_live: session.other_live_pids().map(|pid| pid.get()).collect(),
    };
    write_document(app.out, &document)?;
    Ok(status)
}

fn wanted_process(session: &Session, is_client_wanted: bool) -> Result<&Process, &'static str> {
    if !is_client_wanted {
        let owner = session.owner.as_deref();
        return owner.ok_or("which process runs it is not known");
    }
    if session.is_client_ambiguous {
        return Err("which of several processes shows it is not known");
    }
    let process = session.terminal_process();
    // A client that is no terminal program, such as an editor, is one all the same.
    let shows = |process: &&Process| session.client.is_some() || process.tty.is_some();
    process
        .filter(shows)
        .ok_or("no process is known to show it in a terminal")
}

fn others(session: &Session) -> String {
    let pids = session.other_live_pids();
    let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
    format!("other live processes claim it as well: {}", pids.join(", "))
}
