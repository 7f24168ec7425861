//! `whosup orphans`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use whosup_core::adapter::Depth;
use whosup_core::adapter::phase::Phase;
use whosup_core::reader::real_directory;
use whosup_core::sessions::session::{Session, Snapshot};
use whosup_core::sidecar::AgentId;
use whosup_core::sources::record::{EndCause, StoredRecord, read_records, records_root};
use whosup_core::views::wire;

use crate::app::{App, World};
use crate::cli::agent_parser;
use crate::commands::agents::say_unknown_agents;
use crate::directory::gone_to_resume_in;
use crate::exit::ExitStatus;
use crate::json::write_document;
use crate::shell::{line, readable};
use crate::short_id::ShortIds;
use crate::since::Since;
use crate::text;
use whosup_core::reader::Reach;

const EXAMPLES: &str = "\
Examples:
  whosup orphans                Sessions that died without ending, and how to resume them
  whosup orphans --since 1d     Those of the last 24 hours
  whosup orphans --cwd .        Those of this directory
  whosup resume 0a022b20        Resume one of them
  whosup dismiss 0a022b20       Hide one of them

An orphan is a session whose process is gone without a recorded end: after a crash, a kill, a
closed terminal or a reboot. Sessions that a sweep has ended since are included.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OrphansArgs {
    /// Only sessions of these agents
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = agent_parser())]
    agent: Vec<AgentId>,
    /// Only sessions in this directory or below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Only sessions active since: `2h`, `3 days`, `yesterday`, `2026-11-28T10:00`
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// Include dismissed sessions
    #[arg(long, short)]
    all: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Lists sessions that exited without ending, each with the command that resumes it.
///
/// # Errors
///
/// If the configuration can't be understood, or the output can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &OrphansArgs) -> anyhow::Result<ExitStatus> {
    say_unknown_agents(app, &arguments.agent);
    let (mut snapshot, ids) = orphans(&app.world, arguments)?;
    let last = |session: &Session| session.last_heard_of_ms().unwrap_or(0);
    snapshot
        .sessions
        .sort_by_key(|session| std::cmp::Reverse(last(session)));
    if arguments.json {
        write_document(app.out, &wire::snapshot(app.world.machine(), &snapshot))?;
        return Ok(ExitStatus::Done);
    }
    for session in &snapshot.sessions {
        write_orphan(app, session, &ids)?;
    }
    if snapshot.sessions.is_empty() {
        writeln!(app.out, "no session died without an end")?;
    }
    Ok(ExitStatus::Done)
}

/// Scans everything on disk only if there is a record of a session that a sweep has
/// ended: no other source leads to that session.
fn orphans(world: &World, arguments: &OrphansArgs) -> anyhow::Result<(Snapshot, ShortIds)> {
    let below = arguments.cwd.as_deref().map(real_directory).transpose()?;
    let agents = agents_of_swept(world);
    let mut scanned = world.scan(&Reach::default())?;
    if !agents.is_empty() {
        let reach = Reach {
            depth: Depth::All,
            agents: Some(agents.clone()),
            ..Reach::default()
        };
        let all = world.scan(&reach)?.snapshot;
        let sessions = &mut scanned.snapshot.sessions;
        sessions.retain(|session| !agents.contains(&session.key.agent));
        sessions.extend(all.sessions);
        scanned.snapshot.problems.extend(all.problems);
    }
    let ids = ShortIds::of(&scanned.snapshot.sessions);
    let since_ms = arguments
        .since
        .map(|since| since.at_ms(world.machine().now_ms(), world.zone()));
    let is_asked_for =
        |agent: &AgentId| arguments.agent.is_empty() || arguments.agent.contains(agent);
    scanned.snapshot.sessions.retain(|session| {
        let is_recent = since_ms.is_none_or(|since| session.last_heard_of_ms() >= Some(since));
        is_asked_for(&session.key.agent)
            && session.is_orphan()
            && is_recent
            && (arguments.all || !session.is_dismissed)
    });
    scanned.snapshot.unattributed.clear();
    world.describe(&mut scanned, |_| true)?;
    if let Some(below) = below {
        let mounts = world.machine().mounts();
        let lies_below = |path: &Path| mounts.real_path(path).starts_with(&below);
        let sessions = &mut scanned.snapshot.sessions;
        sessions.retain(|session| session.work_dir().is_some_and(lies_below));
    }
    Ok((scanned.snapshot, ids))
}

/// The agents of sessions that a sweep has ended, though they announced no end.
fn agents_of_swept(world: &World) -> BTreeSet<AgentId> {
    let Some(root) = records_root(world.machine()) else {
        return BTreeSet::new();
    };
    let has_died = |stored: &StoredRecord| {
        let cause = stored.record.heard.end_cause;
        stored.record.phase == Phase::Ended && cause.is_some_and(EndCause::is_death)
    };
    let records = read_records(&root, |_| true).found;
    let swept = records.into_iter().filter(has_died);
    swept.map(|stored| stored.record.agent).collect()
}

fn write_orphan(app: &mut App<'_>, session: &Session, ids: &ShortIds) -> anyhow::Result<()> {
    let home = app.world.home();
    let now_ms = app.world.machine().now_ms();
    let age = session
        .last_heard_of_ms()
        .map_or_else(|| "-".to_owned(), |at_ms| text::age(now_ms, at_ms));
    let title = session.title().map(text::one_line).unwrap_or_default();
    let during = match session.phase_at_exit() {
        Some(Phase::Working | Phase::Waiting) => ", in a turn",
        Some(Phase::Idle | Phase::Starting) => ", idle",
        Some(Phase::Ended) | None => "",
    };
    let dismissed = if session.is_dismissed {
        "dismissed  "
    } else {
        ""
    };
    let head = format!(
        "{} {}  {age}  {}{during}  {dismissed}{title}",
        session.key.agent,
        text::visible(ids.get(&session.key.session)),
        session.verdict.reason(),
    );
    writeln!(app.out, "{}", head.trim_end())?;
    let how = match session.invocation() {
        Some(invocation) => {
            let directory = session.work_dir().map(std::path::Path::to_string_lossy);
            let variables: Vec<(&str, String)> = invocation
                .environment
                .iter()
                .map(|(name, value)| (name.as_str(), value.to_string_lossy().into_owned()))
                .collect();
            line(
                invocation.argv.iter().map(String::as_str),
                directory.as_deref(),
                variables
                    .iter()
                    .map(|(name, value)| (*name, value.as_str())),
                |word| readable(word, home),
            )
        }
        None if !session.sketch.is_resumable => "(it has no messages to resume)".to_owned(),
        None => "(no command is known that resumes it)".to_owned(),
    };
    writeln!(app.out, "  {how}")?;
    if let Some(gone) = gone_to_resume_in(app.world.machine(), session) {
        let gone = text::path(&gone, home);
        writeln!(app.out, "  (the directory `{gone}` is no longer there)")?;
    }
    Ok(())
}
