//! `whosup wait`

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use whosup_core::reader::{IdQuery, ReadError};
use whosup_live::{SessionFields, Until, Wait, Waited, Waiting, WatchError, Whom};

use crate::app::{App, say};
use crate::cli::name_parser;
use crate::completion;
use crate::exit::ExitStatus;
use crate::since::parse_span;
use crate::text::visible;
use crate::watched::{WatchedArgs, machine_of};

/// How long one step waits if there is no limit.
const WAIT_STEP: Duration = Duration::from_secs(3_600);

const EXAMPLES: &str = "\
Examples:
  whosup wait 0a022b20 --until waiting          Until it needs you
  whosup wait 0a022b20 --until idle --next      Until its next turn ends
  whosup wait 0a022b20 --until exited --timeout 10m
  whosup wait --any --until waiting --cwd .     Any session in this directory
  whosup wait --all --until idle                All that are live now

Exit status: 0 reached, 1 exited before, 2 usage error or failure, 3 unknown and nothing that
runs can change that, 4 no such session, 124 timed out. A state that is reached already
counts, unless --next is given. --liveness and --phase choose sessions by what they are when the
wait begins; --any also waits for those that come to match later.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WaitArgs {
    /// Session ID or unique prefix, such as `0a022b20` or `codex:01a2`
    #[arg(
        value_name = "ID",
        required_unless_present_any = ["any", "every"],
        add = ArgValueCompleter::new(completion::sessions)
    )]
    id: Option<String>,
    /// Home of the agent, where several homes have the session
    #[arg(long, value_name = "DIR", conflicts_with_all = ["any", "every"])]
    home: Option<std::path::PathBuf>,
    /// Wait for any session
    #[arg(long, conflicts_with_all = ["id", "every"])]
    any: bool,
    /// Wait for every session that is there now
    #[arg(long = "all", conflicts_with = "id")]
    every: bool,
    /// What to wait for
    #[arg(
        long,
        value_name = "PHASE",
        value_parser = name_parser(Until::names(), Until::from_name)
    )]
    until: Until,
    /// Give up after this long: `30s`, `10m`
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    timeout: Option<Duration>,
    /// Wait for a change: what is reached already does not count
    #[arg(long)]
    next: bool,
    #[command(flatten)]
    watched: WatchedArgs,
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "expected a number with a unit, such as `30s`".to_owned())
}

/// Waits for sessions.
///
/// # Errors
///
/// If it can't watch sessions or write its output.
pub(crate) fn run(app: &mut App<'_>, arguments: &WaitArgs) -> anyhow::Result<ExitStatus> {
    let until = arguments.timeout.map(|timeout| Instant::now() + timeout);
    if arguments.id.is_some() && !arguments.watched.is_empty() {
        bail!("cannot filter a single session: give `--any` or `--all` with filters");
    }
    let whom = match &arguments.id {
        Some(id) => Whom::One(IdQuery {
            id: id.clone(),
            home: arguments.home.clone(),
        }),
        None if arguments.any => Whom::Any,
        None => Whom::Every,
    };
    let wait = Wait {
        whom,
        until: arguments.until,
        is_next: arguments.next,
        filter: arguments.watched.filter()?,
    };
    let mut waiting = Waiting::begin(machine_of(&app.world)?, wait).map_err(unwrapped)?;
    loop {
        let rest = until.map_or(WAIT_STEP, |until| {
            until.saturating_duration_since(Instant::now())
        });
        if let Some(waited) = waiting.next(rest).map_err(unwrapped)? {
            return show(app, &waited);
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            let until = arguments.until.name();
            say(app.err, &format!("timed out before `{until}`"));
            return Ok(ExitStatus::TimedOut);
        }
    }
}

/// Unwraps an error that other commands report too: same exit status and hints.
fn unwrapped(error: WatchError) -> anyhow::Error {
    match error {
        WatchError::Config(error) | WatchError::Read(ReadError::Config(error)) => error.into(),
        WatchError::Read(ReadError::Id(error)) => error.into(),
        WatchError::Engine(error) => error.into(),
        error => error.into(),
    }
}

fn show(app: &mut App<'_>, waited: &Waited) -> anyhow::Result<ExitStatus> {
    let (sessions, status) = match waited {
        Waited::Reached(sessions) => (sessions.as_slice(), ExitStatus::Done),
        Waited::Exited(session) => (std::slice::from_ref(session), ExitStatus::Exited),
        Waited::Unknown(session) => (std::slice::from_ref(session), ExitStatus::Unknown),
        Waited::NoSession => {
            say(app.err, "there is no session to wait for");
            (&[][..], ExitStatus::NoSuchSession)
        }
    };
    for session in sessions {
        writeln!(app.out, "{}", words(session))?;
    }
    Ok(status)
}

/// What became of a session, in one line.
fn words(session: &SessionFields) -> String {
    let text = |field: &str| session.get(field).and_then(Value::as_str);
    let is_live = text("liveness") == Some("live");
    let what = text("phase").filter(|phase| is_live || *phase == "ended");
    let what = what.or(text("liveness")).unwrap_or("unknown");
    let because = if is_live { None } else { text("reason") };
    let because = text("waiting_for").or(because);
    let because = because.map_or_else(String::new, |because| format!(" ({because})"));
    let directory = text("work_dir").map_or_else(String::new, |its| format!("  {its}"));
    let name = [text("agent"), text("session_id")].map(Option::unwrap_or_default);
    visible(&format!(
        "{} {}  {what}{because}{directory}",
        name[0], name[1]
    ))
}
