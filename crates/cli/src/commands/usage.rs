//! `whosup usage`

mod output;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Span;
use jiff::tz::TimeZone;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::adapter::{Depth, Sketch};
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::problem::Problem;
use whosup_core::reader::Reach;
use whosup_core::reader::real_directory;
use whosup_core::sessions::session::Session;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents::AGENTS;
use whosup_core::sources::usage::Tally;
use whosup_core::views::limits::account_limits;
use whosup_core::views::usage::{By, UsageQuery, UsageTable, Used};

use self::output::Answer;
use crate::app::{App, World, say};
use crate::cli::{agent_parser, name_parser};
use crate::commands::agents::say_unknown_agents;
use crate::commands::show::say_problems;
use crate::exit::ExitStatus;
use crate::json::write_document;
use crate::ledger::Ledger;
use crate::since::Since;

const EXAMPLES: &str = "\
Examples:
  whosup usage                          Tokens and cost of the last seven days, by day
  whosup usage --by model --since 30d   By model, of the last 30 days
  whosup usage --by day,model --json    Two groupings at once, as JSON
  whosup usage --by session --cwd .     The sessions of this directory

The first run reads every transcript. What was counted is kept in `~/.cache/whosup/usage`, and later
runs read only what was appended. A cost that an agent recorded counts; other costs come from the
table of prices that is shipped, and from your own in `~/.config/whosup/prices.toml`. A model
without a price has no cost, and is named.";

/// The default of `--since`.
const SINCE_WORDS: &str = "7d";
/// The same as a number of days.
const SINCE_DAYS: i64 = 7;
/// How often the progress is shown, and how long the work takes before it is.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UsageArgs {
    /// Count since this instant: `2h`, `7d`, `yesterday`, `2026-11-28`
    #[arg(long, value_name = "WHEN", default_value = SINCE_WORDS)]
    since: Since,
    /// Group by these, the first one first
    #[arg(
        long,
        value_name = "BY",
        value_delimiter = ',',
        default_value = "day",
        value_parser = name_parser(By::ALL.map(By::name), By::from_name)
    )]
    by: Vec<By>,
    /// Only sessions of these agents
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = agent_parser())]
    agent: Vec<AgentId>,
    /// Only what was used in this directory or below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Use days in UTC instead of local time
    #[arg(long)]
    utc: bool,
    /// Include agent homes that only other processes use
    #[arg(long)]
    all_homes: bool,
}

impl UsageArgs {
    /// The arguments for a client without a terminal.
    pub(crate) fn of(
        since: Option<Since>,
        by: Vec<By>,
        agent: Vec<AgentId>,
        cwd: Option<PathBuf>,
    ) -> Self {
        Self {
            since: since.unwrap_or_else(|| Since::Ago(Span::new().days(SINCE_DAYS))),
            by: if by.is_empty() { vec![By::Day] } else { by },
            agent,
            cwd,
            json: true,
            csv: false,
            utc: false,
            all_homes: false,
        }
    }
}

/// A session or sub-agent whose tokens are counted.
struct Counted {
    /// The session that it belongs to.
    session: SessionKey,
    sketch: Box<Sketch>,
    last_at_ms: Option<i64>,
    /// How long it was live, in milliseconds.
    live_ms: Option<u64>,
}

/// Sums up what sessions used.
///
/// # Errors
///
/// If the configuration or the prices can't be understood, a directory that is asked for
/// does not exist, or the output can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &UsageArgs) -> anyhow::Result<ExitStatus> {
    say_unknown_agents(app, &arguments.agent);
    arguments.cwd.as_deref().map(real_directory).transpose()?;
    let answer = sum_up(&app.world, arguments, Progress::OnTerminal)?;
    if let Some(error) = &answer.unsaved {
        say(app.err, &format!("warning: {error}"));
    }
    if arguments.json {
        write_document(app.out, &answer.document())?;
    } else if arguments.csv {
        answer.write_csv(app)?;
    } else {
        answer.write_table(app)?;
        say_problems(app.err, &answer.problems);
    }
    Ok(ExitStatus::Done)
}

/// Where progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// On the terminal, if there is one.
    OnTerminal,
    /// No progress is shown.
    Silent,
}

/// Sums up what sessions used, for this command and for the server.
///
/// # Errors
///
/// If the configuration or the prices can't be understood.
pub(crate) fn sum_up(
    world: &World,
    arguments: &UsageArgs,
    progress: Progress,
) -> anyhow::Result<Answer> {
    let machine = world.machine();
    let now_ms = machine.now_ms();
    let zone = if arguments.utc {
        TimeZone::UTC
    } else {
        world.zone().clone()
    };
    let since_ms = arguments.since.at_ms(now_ms, &zone);
    let mounts = machine.mounts();
    let below = match &arguments.cwd {
        Some(path) => {
            mounts.rely_on(path);
            Some(mounts.real_path(&std::path::absolute(path)?))
        }
        None => None,
    };
    let is_below = below
        .as_deref()
        .map(|below| move |path: &Path| mounts.real_path(path).starts_with(below));
    let mut ledger = Ledger::of(machine)?;
    let (found, mut problems) = find(world, arguments)?;
    let tallies = count(&mut ledger, world, &found, since_ms, progress);
    let unsaved = ledger.save().err();
    problems.append(&mut ledger.problems);
    let day = |at_ms: i64| day_of(at_ms, &zone);
    let query = UsageQuery {
        by: &arguments.by,
        since_ms: Some(since_ms),
        is_below: is_below.as_ref().map(|is_below| is_below as _),
        prices: &ledger.prices,
        day: &day,
        now_ms,
    };
    let mut table = UsageTable::default();
    for (counted, tally) in found.iter().zip(&tallies) {
        let Some(tally) = tally else { continue };
        let used = Used {
            session: &counted.session,
            work_dir: counted.sketch.work_dir.as_deref(),
            last_at_ms: counted.last_at_ms,
            tally,
            cpu_ms: counted.sketch.cpu_at_least_ms,
            live_ms: counted.live_ms,
        };
        table.add(&query, &used);
    }
    let used = found
        .iter()
        .map(|counted| (&*counted.sketch, counted.last_at_ms));
    Ok(Answer {
        limits: account_limits(machine, used),
        by: arguments.by.clone(),
        since_ms,
        now_ms,
        zone,
        table,
        prices: ledger.prices,
        problems,
        unsaved,
    })
}

/// Every session on disk that the arguments ask for.
fn find(world: &World, arguments: &UsageArgs) -> anyhow::Result<(Vec<Counted>, Vec<Problem>)> {
    let reach = Reach {
        depth: Depth::All,
        agents: (!arguments.agent.is_empty()).then(|| arguments.agent.iter().cloned().collect()),
        ..Reach::default()
    };
    let own = (!arguments.all_homes)
        .then(|| own_homes(world))
        .transpose()?;
    let now_ms = world.machine().now_ms();
    let mut found = Vec::new();
    let mut take = |session: Session| {
        let is_own = own
            .as_ref()
            .is_none_or(|own| own.contains(&*session.key.home));
        if is_own && session.adapter.is_some() {
            let is_live = session.liveness() == Liveness::Live;
            let live = session.sketch.live;
            found.push(Counted {
                live_ms: live.map(|live| live.until(now_ms, is_live)),
                last_at_ms: session.last_activity_at_ms(),
                session: session.key,
                sketch: session.sketch,
            });
        }
    };
    let scanned = world
        .reader()?
        .scan_each(&reach, &mut |session, _| take(session));
    let rest = scanned.snapshot;
    rest.sessions.into_iter().for_each(take);
    let parents: BTreeMap<SessionKey, SessionKey> = found.iter().filter_map(parent).collect();
    for counted in &mut found {
        // Sub-agents may have sub-agents, and may claim each other as parents.
        for _ in 0..parents.len() {
            match parents.get(&counted.session) {
                Some(parent) => counted.session = parent.clone(),
                None => break,
            }
        }
    }
    // Problems of panes do not affect the counts.
    let mut problems = rest.problems;
    problems.retain(|problem| problem.agent.is_some());
    Ok((found, problems))
}

fn parent(counted: &Counted) -> Option<(SessionKey, SessionKey)> {
    let session = counted.sketch.parent.clone()?;
    let key = counted.session.clone();
    let parent = SessionKey {
        session,
        ..key.clone()
    };
    Some((key, parent))
}

/// The homes from the user's environment and configuration.
fn own_homes(world: &World) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut own = BTreeSet::new();
    for adapter in AGENTS {
        let homes = world.homes_of(*adapter, &[])?;
        own.extend(homes.into_iter().map(|home| home.root.to_path_buf()));
    }
    Ok(own)
}

fn count(
    ledger: &mut Ledger,
    world: &World,
    found: &[Counted],
    since_ms: i64,
    progress: Progress,
) -> Vec<Option<Tally>> {
    let sketches: Vec<&Sketch> = found.iter().map(|counted| &*counted.sketch).collect();
    let is_shown = progress == Progress::OnTerminal && io::stderr().is_terminal();
    let shown = Mutex::new((Instant::now(), false));
    let counted = |done: usize, all: usize| {
        let Ok(mut shown) = shown.try_lock() else {
            return;
        };
        if is_shown && shown.0.elapsed() >= PROGRESS_EVERY {
            *shown = (Instant::now(), true);
            // A failed write of the progress is ignored.
            write!(io::stderr(), "\rcounting: {done} of {all} transcripts").ok();
        }
    };
    let tallies = ledger.count(world.machine(), &sketches, Some(since_ms), &counted);
    if shown.into_inner().is_ok_and(|(_, was_shown)| was_shown) {
        write!(io::stderr(), "\r{:60}\r", "").ok();
    }
    tallies
}

/// The day of an instant, `2026-11-28`.
fn day_of(at_ms: i64, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => zone.to_datetime(at).date().to_string(),
        Err(_) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, offset};

    use super::day_of;

    #[test]
    fn a_day_is_that_of_the_zone() {
        // 2026-11-27T20:45:00Z
        let at_ms = 1_795_812_300_000;
        let east = TimeZone::fixed(offset(5));
        assert_eq!(day_of(at_ms, &TimeZone::UTC), "2026-11-27");
        assert_eq!(day_of(at_ms, &east), "2026-11-28");
        assert_eq!(day_of(i64::MAX, &east), "unknown");
    }
}
