//! `whosup hooks`

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use similar::{ChangeTag, TextDiff};
use whosup_core::adapter::{Adapter, Home};
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents::{AGENTS, id_of};
use whosup_core::sources::record::read_records;
use whosup_track::{
    Change, HookSite, Store, TrackError, installed, make, plan_install, plan_uninstall,
};

use crate::app::{App, say};
use crate::cli::supported_agent_parser;
use crate::exit::ExitStatus;
use crate::text;

/// How long the smallest difference is looked for; after that any will do.
const DIFFERENCE_TIME_MAX: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  whosup hooks install                 Show the changes to each settings file, and ask
  whosup hooks install codex --yes     Install for one agent, without asking
  whosup hooks uninstall --dry-run     Show what would be removed
  whosup hooks status                  Which hooks are installed, and the last event received

Everything else in the settings stays as it is: comments, order, other hooks, links and modes.
`uninstall` restores the original bytes.";

// What `hooks` is asked for.
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

/// Which settings, and how.
#[derive(Debug, Clone, Args)]
struct ChangeArgs {
    /// Agents to change; all that have a home here if omitted
    #[arg(value_name = "AGENT", value_parser = supported_agent_parser())]
    agents: Vec<AgentId>,
    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Which settings.
#[derive(Debug, Clone, Args)]
struct StatusArgs {
    /// Agents to change; all that have a home here if omitted
    #[arg(value_name = "AGENT", value_parser = supported_agent_parser())]
    agents: Vec<AgentId>,
}

/// Sets hooks, takes them out or tells what is set.
///
/// # Errors
///
/// If settings can't be understood or written, nobody is there to be asked, or
/// nobody takes the output.
pub(crate) fn run(app: &mut App<'_>, arguments: &HooksArgs) -> anyhow::Result<ExitStatus> {
    match &arguments.action {
        Action::Install(arguments) => change(app, arguments, plan_install),
        Action::Uninstall(arguments) => change(app, arguments, plan_uninstall),
        Action::Status(arguments) => status(app, &arguments.agents),
    }
}

type Plan = fn(&HookSite<'_>, &Store) -> Result<Option<Change>, TrackError>;

fn change(app: &mut App<'_>, arguments: &ChangeArgs, plan: Plan) -> anyhow::Result<ExitStatus> {
    let store = Store::of(app.world.machine().environment())?;
    let program = std::env::current_exe()?;
    let mut changes = Vec::new();
    let mut failed = false;
    for (adapter, home) in homes(app, &arguments.agents)? {
        let site = HookSite {
            adapter,
            home: &home.root,
            environment: app.world.machine().environment(),
            program: &program,
        };
        match plan(&site, &store) {
            // Several homes may share their settings.
            Ok(Some(change)) if changes.iter().any(|one: &Change| one.path == change.path) => {}
            Ok(planned) => changes.extend(planned),
            Err(error) => {
                failed = true;
                say_error(app, &error);
            }
        }
    }
    for change in &changes {
        show(app, change)?;
    }
    let end = if failed {
        ExitStatus::Failed
    } else {
        ExitStatus::Done
    };
    if changes.is_empty() {
        writeln!(app.out, "nothing to change")?;
        return Ok(end);
    }
    if arguments.dry_run || !(arguments.yes || is_agreed(app)?) {
        writeln!(app.out, "nothing was changed")?;
        return Ok(end);
    }
    let mut end = end;
    for change in &changes {
        if let Err(error) = make(change) {
            end = ExitStatus::Failed;
            say_error(app, &error);
            continue;
        }
        writeln!(app.out, "changed {}", shown(app, &change.path))?;
        if change.must_be_trusted {
            let words = "its hooks run once you trust them: start it, and look at what it asks";
            writeln!(app.out, "{}: {words}", change.agent)?;
        }
    }
    Ok(end)
}

/// The agents that are meant, in each of their homes. An agent that nobody named
/// and that has no home here is left out.
fn homes(app: &App<'_>, agents: &[AgentId]) -> anyhow::Result<Vec<(&'static dyn Adapter, Home)>> {
    let mut found = Vec::new();
    for adapter in AGENTS.iter().copied().filter(|one| one.hooks().is_some()) {
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
    if let Some(agent) = agents.iter().find(|agent| {
        whosup_core::sources::agents::adapter(agent)
            .is_some_and(|adapter| adapter.hooks().is_none())
    }) {
        anyhow::bail!("cannot set hooks of {agent}: it has none, or they are not known");
    }
    Ok(found)
}

/// Shows the lines that come and go.
fn show(app: &mut App<'_>, change: &Change) -> anyhow::Result<()> {
    let before = change.before.as_deref().unwrap_or_default();
    let after = change.after.as_deref().unwrap_or_default();
    writeln!(app.out, "{}: {}", change.agent, shown(app, &change.path))?;
    let difference = TextDiff::configure()
        .timeout(DIFFERENCE_TIME_MAX)
        .diff_lines(before, after);
    for line in difference.iter_all_changes() {
        if line.tag() != ChangeTag::Equal {
            let text = line.value().trim_end_matches(['\n', '\r']);
            writeln!(app.out, "{} {}", line.tag(), text::visible(text))?;
        }
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

fn status(app: &mut App<'_>, agents: &[AgentId]) -> anyhow::Result<ExitStatus> {
    let store = Store::of(app.world.machine().environment())?;
    let program = std::env::current_exe()?;
    let read = read_records(store.root(), |_| true);
    let (records, is_all_read) = (read.found, read.problems.is_empty());
    let homes = homes(app, agents)?;
    if homes.is_empty() {
        say(
            app.err,
            "No agent that has hooks has a home here; `whosup agents` shows where they would be.",
        );
    }
    let mut end = ExitStatus::Done;
    for (adapter, home) in homes {
        let agent = id_of(adapter);
        let site = HookSite {
            adapter,
            home: &home.root,
            environment: app.world.machine().environment(),
            program: &program,
        };
        let set = match installed(&site, &store) {
            Ok(set) => set,
            Err(error) => {
                let error = error.to_string();
                say(app.err, &format!("error: {}", text::visible(&error)));
                end = ExitStatus::Failed;
                continue;
            }
        };
        let words = match (set.present.len(), set.missing.len()) {
            (0, _) => match set.programs.first() {
                Some(program) => format!("installed for {}", text::visible(program)),
                None => "not installed".to_owned(),
            },
            (_, 0) => "installed".to_owned(),
            (_, _) => format!("installed in part: {} are missing", set.missing.join(", ")),
        };
        let heard = records
            .iter()
            .filter(|stored| stored.record.agent == agent && *stored.record.home == *home.root)
            .map(|stored| stored.record.last_event_at_ms)
            .max();
        let heard = match heard {
            Some(at_ms) => match text::age(app.world.machine().now_ms(), at_ms).as_str() {
                "now" => "last heard just now".to_owned(),
                age => format!("last heard {age} ago"),
            },
            None if is_all_read => "never heard".to_owned(),
            // It may be in what could not be read: `doctor` tells what that is.
            None => "not known whether ever heard".to_owned(),
        };
        let is_set = !set.programs.is_empty();
        let trusted = match (set.trusted.filter(|_| is_set), set.present.len()) {
            (None, _) => "",
            (Some(0), _) => ", not trusted in the agent",
            (Some(trusted), all) if trusted < all => ", trusted in part in the agent",
            (Some(_), _) => ", trusted",
        };
        writeln!(
            app.out,
            "{agent}: {words}{trusted}, {heard} ({})",
            shown(app, &set.path)
        )?;
    }
    Ok(end)
}

fn say_error(app: &mut App<'_>, error: &TrackError) {
    let words = text::visible(&error.to_string());
    say(app.err, &format!("error: {words}"));
}

fn shown(app: &App<'_>, path: &Path) -> String {
    text::path(path, app.world.home())
}
