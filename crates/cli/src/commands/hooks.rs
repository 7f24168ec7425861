//! `whosup hooks`

mod status;

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use similar::{ChangeTag, TextDiff};
use whosup_core::adapter::{Adapter, Home};
use whosup_core::machine::problem::Problem;
use whosup_core::reader::in_full;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents::{AGENTS, id_of};
use whosup_core::sources::record::read_records;
use whosup_core::views::wire;
use whosup_track::{
    Change, HookSite, Store, TrackError, installed, make, plan_install, plan_uninstall,
};

use crate::app::{App, say};
use crate::cli::supported_agent_parser;
use crate::exit::ExitStatus;
use crate::json::reports::{Head, HooksDocument};
use crate::json::write_document;
use crate::text;

/// How long to look for the smallest difference; after that any difference will do.
const DIFFERENCE_TIME_MAX: Duration = Duration::from_secs(1);

/// Why there is nothing to do.
const NO_HOME: &str = "No agent that supports hooks is installed here; `whosup agents` lists where \
                       they are searched.";

const EXAMPLES: &str = "\
Examples:
  whosup hooks install                 Name the settings files to be changed, and ask
  whosup hooks install codex --yes     Install for one agent, without asking
  whosup hooks uninstall --dry-run     Show the lines that would be removed
  whosup hooks status                  Which hooks are installed, and the last event received

Everything else in the settings stays as it is: comments, order, other hooks, symbolic links and
modes (a file with several hard links is replaced under one name).
`uninstall` restores the original bytes.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Install hooks in agents' settings
    Install(ChangeArgs),
    /// Remove installed hooks
    Uninstall(ChangeArgs),
    /// Report which hooks are installed
    Status(StatusArgs),
}

#[derive(Debug, Clone, Args)]
struct ChangeArgs {
    /// Agents to change; all that have a home here if omitted
    #[arg(value_name = "AGENT", value_parser = supported_agent_parser())]
    agents: Vec<AgentId>,
    /// Show the changed lines without writing them
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, Clone, Args)]
struct StatusArgs {
    /// Agents to report; all that have a home here if omitted
    #[arg(value_name = "AGENT", value_parser = supported_agent_parser())]
    agents: Vec<AgentId>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Installs hooks, removes them or reports which are installed.
///
/// # Errors
///
/// If settings can't be understood or written, no person can be asked, or the output
/// can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &HooksArgs) -> anyhow::Result<ExitStatus> {
    match &arguments.action {
        Action::Install(arguments) => change(app, arguments, &INSTALL),
        Action::Uninstall(arguments) => change(app, arguments, &UNINSTALL),
        Action::Status(arguments) => status(app, arguments),
    }
}

/// The messages of installing or removing.
struct Work {
    plan: fn(&HookSite<'_>, &Store) -> Result<Option<Change>, TrackError>,
    /// For an agent that needs no change.
    unchanged: &'static str,
    /// For an agent that was changed.
    changed: &'static str,
}

const INSTALL: Work = Work {
    plan: plan_install,
    unchanged: "already installed",
    changed: "installed",
};
const UNINSTALL: Work = Work {
    plan: plan_uninstall,
    unchanged: "not installed",
    changed: "removed",
};

fn change(app: &mut App<'_>, arguments: &ChangeArgs, work: &Work) -> anyhow::Result<ExitStatus> {
    let store = Store::of(app.world.machine().environment())?;
    let program = std::env::current_exe()?;
    let mut changes: Vec<Change> = Vec::new();
    let unsupported = unsupported(&arguments.agents);
    say_problems(app, &unsupported);
    let mut end = status_after(&unsupported);
    for (adapter, home) in homes(app, &arguments.agents)? {
        let site = HookSite {
            adapter,
            home: &home.root,
            environment: app.world.machine().environment(),
            program: &program,
        };
        match (work.plan)(&site, &store) {
            // Several homes may share one settings file.
            Ok(Some(change)) if changes.iter().any(|one| one.path == change.path) => {}
            Ok(Some(change)) => changes.push(change),
            Ok(None) => {
                let home = shown(app, &home.root);
                let name = adapter.profile().name;
                writeln!(app.out, "{name}: {} ({home})", work.unchanged)?;
            }
            Err(error) => {
                end = ExitStatus::Failed;
                say_error(app, &error);
            }
        }
    }
    let asks = !(arguments.dry_run || arguments.yes);
    for change in &changes {
        if asks || arguments.dry_run || app.is_verbose {
            show(app, change, arguments.dry_run || app.is_verbose)?;
        }
    }
    if changes.is_empty() {
        return Ok(end);
    }
    if arguments.dry_run || (asks && !is_agreed(app)?) {
        writeln!(app.out, "nothing was changed")?;
        return Ok(end);
    }
    for change in &changes {
        if let Err(error) = make(change) {
            end = ExitStatus::Failed;
            say_error(app, &error);
            continue;
        }
        let place = shown(app, &change.path);
        let trust = if change.must_be_trusted {
            "; start it, and trust the hooks that it asks about"
        } else {
            ""
        };
        let agent = change.agent;
        writeln!(app.out, "{agent}: {} ({place}){trust}", work.changed)?;
    }
    Ok(end)
}

/// The agents that are meant, each with all of its homes. An agent that was not named
/// on the command line and has no home here is left out.
fn homes(
    app: &mut App<'_>,
    agents: &[AgentId],
) -> anyhow::Result<Vec<(&'static dyn Adapter, Home)>> {
    let mut found = Vec::new();
    for adapter in AGENTS
        .iter()
        .copied()
        .filter(|one| one.profile().hooks.is_some())
    {
        let is_named = agents.contains(&id_of(adapter));
        if !agents.is_empty() && !is_named {
            continue;
        }
        for home in app.world.homes_of(adapter, &[])? {
            if is_named || home.root.is_dir() {
                found.push((adapter, home));
            }
        }
    }
    if found.is_empty() && agents.is_empty() {
        say(app.err, NO_HOME);
    }
    Ok(found)
}

/// A problem for each agent that was named and has no hooks.
fn unsupported(agents: &[AgentId]) -> Vec<Problem> {
    let has_hooks = |agent: &&AgentId| {
        whosup_core::sources::agents::adapter(agent)
            .is_some_and(|adapter| adapter.profile().hooks.is_some())
    };
    let unsupported = agents.iter().filter(|agent| !has_hooks(agent));
    let problem = |agent: &AgentId| Problem {
        agent: Some(agent.clone()),
        path: None,
        message: format!("{agent} supports no hooks, or whosup does not know them"),
    };
    unsupported.map(problem).collect()
}

const fn status_after(problems: &[Problem]) -> ExitStatus {
    if problems.is_empty() {
        ExitStatus::Done
    } else {
        ExitStatus::Failed
    }
}

fn say_problems(app: &mut App<'_>, problems: &[Problem]) {
    for problem in problems {
        let words = text::visible(&problem.message);
        say(app.err, &format!("error: {words}"));
    }
}

/// Shows how many lines are added and removed, or all of them.
fn show(app: &mut App<'_>, change: &Change, has_lines: bool) -> anyhow::Result<()> {
    let before = change.before.as_deref().unwrap_or_default();
    let after = change.after.as_deref().unwrap_or_default();
    let difference = TextDiff::configure()
        .timeout(DIFFERENCE_TIME_MAX)
        .diff_lines(before, after);
    let changes = || difference.iter_all_changes();
    let number = |tag| changes().filter(|line| line.tag() == tag).count();
    let (added, removed) = (number(ChangeTag::Insert), number(ChangeTag::Delete));
    let place = shown(app, &change.path);
    let agent = change.agent;
    writeln!(
        app.out,
        "{agent}: {place}, {added} lines added, {removed} removed"
    )?;
    for line in changes().filter(|line| has_lines && line.tag() != ChangeTag::Equal) {
        let text = line.value().trim_end_matches(['\n', '\r']);
        writeln!(app.out, "{} {}", line.tag(), text::visible(text))?;
    }
    Ok(())
}

fn is_agreed(app: &mut App<'_>) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        anyhow::bail!("cannot ask: standard input is no terminal; give `--yes` or `--dry-run`");
    }
    app.out.flush()?;
    write!(app.err, "Change these files? [y/N] ")?;
    app.err.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn status(app: &mut App<'_>, arguments: &StatusArgs) -> anyhow::Result<ExitStatus> {
    let store = Store::of(app.world.machine().environment())?;
    let program = std::env::current_exe()?;
    let read = read_records(store.root(), |_| true);
    let mut problems = unsupported(&arguments.agents);
    let mut rows = Vec::new();
    for (adapter, home) in homes(app, &arguments.agents)? {
        let agent = id_of(adapter);
        let site = HookSite {
            adapter,
            home: &home.root,
            environment: app.world.machine().environment(),
            program: &program,
        };
        let records = read.found.iter().map(|stored| &stored.record);
        let of_home = records.filter(|record| record.agent == agent && *record.home == *home.root);
        let heard_at_ms = of_home.map(|record| record.last_event_at_ms).max();
        match installed(&site, &store) {
            Ok(set) => rows.push((
                home,
                status::HomeStatus {
                    agent,
                    set,
                    heard_at_ms,
                },
            )),
            Err(error) => problems.push(Problem {
                agent: Some(agent),
                path: error.path().map(Path::to_owned),
                message: in_full(&error),
            }),
        }
    }
    let is_all_read = read.problems.is_empty();
    let end = status_after(&problems);
    if arguments.json {
        let machine = app.world.machine();
        problems.extend(read.problems);
        let hooks = rows
            .iter()
            .map(|(home, row)| row.document(home, is_all_read));
        let document = HooksDocument {
            head: Head::of(machine),
            hooks: hooks.collect(),
            problems: problems.iter().map(wire::problem).collect(),
        };
        write_document(app.out, &document)?;
        return Ok(end);
    }
    say_problems(app, &problems);
    let now_ms = app.world.machine().now_ms();
    for (_, row) in &rows {
        let words = row.words(now_ms, is_all_read);
        let place = shown(app, &row.set.path);
        writeln!(app.out, "{}: {words} ({place})", row.agent)?;
    }
    Ok(end)
}

fn say_error(app: &mut App<'_>, error: &TrackError) {
    let words = text::visible(&in_full(error));
    say(app.err, &format!("error: {words}"));
}

fn shown(app: &App<'_>, path: &Path) -> String {
    text::path(path, app.world.home())
}
