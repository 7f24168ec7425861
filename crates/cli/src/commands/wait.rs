//! `whosup wait`

mod until;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::views::wire::{self, WireSession};
use whosup_live::{Change, Engine, Filter, Message, Received, Rows};

use self::until::{Outcome, Until};
use crate::app::{App, World, say};
use crate::cli::name_parser;
use crate::exit::ExitStatus;
use crate::id::{IdArgs, find};
use crate::since::parse_span;
use crate::text::visible;
use crate::watched::{WatchedArgs, machine_of};

/// How long it waits at once where nobody limits it.
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
counts, unless --next is given.";

// What `wait` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WaitArgs {
    /// Session ID or unique prefix, such as `0a022b20` or `codex:01a2`
    #[arg(value_name = "ID", required_unless_present_any = ["any", "every"])]
    id: Option<String>,
    /// Home of the agent, where several homes have the session
    #[arg(long, value_name = "DIR")]
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

/// Whom it waits for.
enum Whom {
    One(SessionKey),
    Any,
    Every(Vec<SessionKey>),
}

/// What it knows of the sessions.
struct Known {
    /// The sessions that it has heard of, as they are now.
    sessions: BTreeMap<SessionKey, Map<String, Value>>,
    /// As they were at the beginning, where that does not count.
    first: BTreeMap<SessionKey, Map<String, Value>>,
    unattributed: Vec<Value>,
}

/// Waits.
///
/// # Errors
///
/// Whatever kept it from waiting.
pub(crate) fn run(app: &mut App<'_>, arguments: &WaitArgs) -> anyhow::Result<ExitStatus> {
    let until = arguments.timeout.map(|timeout| Instant::now() + timeout);
    if arguments.id.is_some() && !arguments.watched.is_empty() {
        bail!("cannot filter a single session: give `--any` or `--all` with filters");
    }
    let filter = arguments.watched.filter()?;
    let mut known = Known {
        sessions: BTreeMap::new(),
        first: BTreeMap::new(),
        unattributed: Vec::new(),
    };
    let one = arguments
        .id
        .as_ref()
        .map(|id| find_one(&app.world, arguments, id, &mut known));
    let one = one.transpose()?;
    let engine = Engine::start(machine_of(&app.world))?;
    // Whoever waits for one phase has to hear of the others too.
    let filter = Filter {
        phases: [].into(),
        liveness: [].into(),
        ..filter
    };
    let mut changes = engine.subscribe(filter, None);
    let mut whom = one.map(Whom::One);
    loop {
        let rest = until.map_or(WAIT_STEP, |until| {
            until.saturating_duration_since(Instant::now())
        });
        match changes.next(rest) {
            Received::Message(message) => {
                known.take(&message);
                let one = arguments
                    .id
                    .as_ref()
                    .filter(|_| !Known::is_in(&message, whom.as_ref()));
                if let Some(id) = one {
                    // It may have exited since it was found, and is not watched then.
                    find_one(&app.world.again(), arguments, id, &mut known)?;
                }
            }
            Received::Nothing if until.is_some_and(|until| until <= Instant::now()) => {
                return Ok(timed_out(app, arguments));
            }
            Received::Nothing => continue,
            Received::Over(why) => bail!("cannot wait any longer: {why}"),
        }
        let whom = whom.get_or_insert_with(|| known.begin(arguments));
        if let Some(status) = known.judge(app, arguments, whom)? {
            return Ok(status);
        }
        if arguments.next && known.first.is_empty() {
            known.first.clone_from(&known.sessions);
        }
    }
}

fn find_one(
    world: &World,
    arguments: &WaitArgs,
    id: &str,
    known: &mut Known,
) -> anyhow::Result<SessionKey> {
    let wanted = IdArgs {
        id: id.to_owned(),
        home: arguments.home.clone(),
    };
    let session = find(world, &wanted)?;
    let wire: WireSession = wire::session(world.machine(), &session);
    if let Value::Object(fields) = json!(wire) {
        known.sessions.insert(session.key.clone(), fields);
    }
    Ok(session.key)
}

fn timed_out(app: &mut App<'_>, arguments: &WaitArgs) -> ExitStatus {
    let until = arguments.until.name();
    say(app.err, &format!("timed out before `{until}`"));
    ExitStatus::TimedOut
}

impl Known {
    /// Whether a message shows the session, or says nothing of those that it does not show.
    fn is_in(message: &Message, whom: Option<&Whom>) -> bool {
        match (message, whom) {
            (Message::Snapshot { rows, .. }, Some(Whom::One(key))) => {
                rows.sessions.contains_key(key)
            }
            _ => true,
        }
    }

    fn take(&mut self, message: &Message) {
        match message {
            Message::Snapshot { rows, .. } => self.take_all(rows),
            Message::Change(place) => match place.change() {
                Change::Added { key, row }
                | Change::Changed {
                    key, after: row, ..
                }
                | Change::Removed { key, row, .. } => {
                    self.sessions.insert(key.clone(), row.session.clone());
                }
                Change::Unattributed { after, .. } => self.unattributed.clone_from(after),
                Change::Problems { .. } => {}
            },
        }
    }

    fn take_all(&mut self, rows: &Rows) {
        let sessions = rows.sessions.iter();
        let sessions = sessions.map(|(key, row)| (key.clone(), row.session.clone()));
        self.sessions.extend(sessions);
        self.unattributed.clone_from(&rows.unattributed);
    }

    /// Whom it waits for, by what there is at the beginning.
    fn begin(&self, arguments: &WaitArgs) -> Whom {
        if arguments.any {
            return Whom::Any;
        }
        let sessions = self.sessions.iter();
        let wanted = sessions.filter(|(_, session)| {
            let has = |names: Vec<&str>, field: &str| {
                names.is_empty()
                    || session[field]
                        .as_str()
                        .is_some_and(|is| names.contains(&is))
            };
            let watched = &arguments.watched;
            let liveness = watched.liveness.iter().map(|one| one.name()).collect();
            let phases = watched.phase.iter().map(|one| one.name()).collect();
            has(liveness, "liveness")
                && has(phases, "phase")
                && session["parent_session_id"].is_null()
                && session["liveness"] != "exited"
        });
        Whom::Every(wanted.map(|(key, _)| key.clone()).collect())
    }

    /// Says what came of it, if it is over.
    fn judge(
        &self,
        app: &mut App<'_>,
        arguments: &WaitArgs,
        whom: &Whom,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let (keys, is_any): (Vec<&SessionKey>, bool) = match whom {
            Whom::One(key) => (vec![key], false),
            Whom::Every(keys) if keys.is_empty() => {
                say(app.err, "there is no session to wait for");
                return Ok(Some(ExitStatus::NoSuchSession));
            }
            Whom::Every(keys) => (keys.iter().collect(), false),
            Whom::Any => (self.sessions.keys().collect(), true),
        };
        let outcomes = keys.iter().filter_map(|key| {
            let session = self.sessions.get(*key)?;
            Some((session, self.outcome(arguments, key, session)))
        });
        let outcomes: Vec<_> = outcomes.collect();
        let reached = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == Outcome::Reached);
        let reached: Vec<_> = reached.map(|(session, _)| *session).collect();
        if is_any && let Some(session) = reached.first() {
            writeln!(app.out, "{}", words(session))?;
            return Ok(Some(ExitStatus::Done));
        }
        if is_any {
            return Ok(None);
        }
        if reached.len() == keys.len() {
            for session in reached {
                writeln!(app.out, "{}", words(session))?;
            }
            return Ok(Some(ExitStatus::Done));
        }
        for (session, outcome) in outcomes {
            let status = match outcome {
                Outcome::Reached | Outcome::NotYet => continue,
                Outcome::Exited => ExitStatus::Exited,
                Outcome::Unknown => ExitStatus::Unknown,
            };
            writeln!(app.out, "{}", words(session))?;
            return Ok(Some(status));
        }
        Ok(None)
    }

    fn outcome(
        &self,
        arguments: &WaitArgs,
        key: &SessionKey,
        session: &Map<String, Value>,
    ) -> Outcome {
        let outcome = arguments.until.judge(session, &self.unattributed);
        let is_first = || match self.first.get(key) {
            Some(first) => until::is_same_phase(first, session),
            // Everything is as at the beginning, or this one has come since.
            None => self.first.is_empty(),
        };
        if outcome == Outcome::Reached && arguments.next && is_first() {
            return Outcome::NotYet;
        }
        outcome
    }
}

/// What became of a session, in one line.
fn words(session: &Map<String, Value>) -> String {
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
