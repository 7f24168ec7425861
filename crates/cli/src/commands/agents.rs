//! `whosup agents`

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use similar::get_close_matches;
use whosup_core::adapter::{Adapter, Home, Role};
use whosup_core::judging::verdict::Liveness;
use whosup_core::sessions::scan::Scanned;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents::{AGENTS, adapter, id_of};
use whosup_core::sources::common_place::has_agent;
use whosup_core::views::wire;

use crate::app::{App, World, say};
use crate::exit::ExitStatus;
use crate::json::{AgentDocument, AgentsDocument, HomeDocument, ProcessDocument, write_document};
use crate::text;
use whosup_core::reader::Reach;

const EXAMPLES: &str = "\
Examples:
  whosup agents            Supported agents, the places searched, what was found
  whosup agents --json     The same as JSON";

/// The least similarity of a suggested name, from 0 to 1.
const SIMILARITY_MIN: f32 = 0.5;

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AgentsArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Reports which of these agents are unknown: not supported, and without a published
/// session.
pub(crate) fn say_unknown_agents(app: &mut App<'_>, agents: &[AgentId]) {
    for agent in agents {
        if adapter(agent).is_some() || has_agent(app.world.machine().environment(), agent) {
            continue;
        }
        let known: Vec<&str> = AGENTS.iter().map(|adapter| adapter.profile().id).collect();
        let near = get_close_matches(agent.as_str(), &known, 1, SIMILARITY_MIN);
        let near = near.first().map(|near| format!("; did you mean `{near}`?"));
        let words = format!(
            "hint: `{agent}` is not a supported agent, and has not published a session yet{}",
            near.as_deref()
                .unwrap_or("; `whosup agents` lists the supported ones")
        );
        say(app.err, &words);
    }
}

/// An agent with its homes and processes.
struct AgentFound<'a> {
    adapter: &'static dyn Adapter,
    homes: Vec<Home>,
    processes: Vec<&'a whosup_core::adapter::AgentProcess>,
    live_sessions: usize,
    unattributed: usize,
}

/// Lists the agents.
///
/// # Errors
///
/// If the scan or the output failed.
pub(crate) fn run(app: &mut App<'_>, arguments: &AgentsArgs) -> anyhow::Result<ExitStatus> {
    let scanned = app.world.scan(&Reach::default())?;
    let found = AGENTS
        .iter()
        .map(|adapter| find(&app.world, &scanned, *adapter))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if arguments.json {
        let problems = wire::snapshot(app.world.machine(), &scanned.snapshot).problems;
        let document = AgentsDocument {
            schema_version: wire::SCHEMA_VERSION,
            agents: found.iter().map(document).collect(),
            problems,
        };
        write_document(app.out, &document)?;
    } else {
        for (at, agent) in found.iter().enumerate() {
            if at > 0 {
                writeln!(app.out)?;
            }
            write_agent(app.out, app.world.home(), agent)?;
        }
    }
    Ok(ExitStatus::Done)
}

fn find<'a>(
    world: &World,
    scanned: &'a Scanned<'_>,
    adapter: &'static dyn Adapter,
) -> anyhow::Result<AgentFound<'a>> {
    let id = id_of(adapter);
    let live = scanned.snapshot.sessions.iter().filter(|session| {
        session.key.agent == id
            && session.liveness() == Liveness::Live
            && session.sketch.parent.is_none()
    });
    let unattributed = scanned.snapshot.unattributed.iter();
    Ok(AgentFound {
        adapter,
        homes: world.homes_of(adapter, scanned.processes())?,
        processes: scanned
            .processes()
            .iter()
            .filter(|process| process.agent == id)
            .collect(),
        live_sessions: live.count(),
        unattributed: unattributed.filter(|one| one.process.agent == id).count(),
    })
}

fn document(found: &AgentFound<'_>) -> AgentDocument {
    let profile = found.adapter.profile();
    AgentDocument {
        id: profile.id,
        name: profile.name,
        detection: profile.detection,
        checked_against: profile.checked_against,
        home_variables: profile.home_variables,
        homes: found
            .homes
            .iter()
            .map(|home| HomeDocument {
                path: home.root.to_string_lossy().into_owned(),
                exists: home.root.try_exists().ok(),
                is_default: home.is_default,
            })
            .collect(),
        processes: found
            .processes
            .iter()
            .map(|process| ProcessDocument {
                pid: process.process.pid.get(),
                role: role_name(process.role),
            })
            .collect(),
        live_sessions: found.live_sessions,
        unattributed: found.unattributed,
    }
}

fn write_agent(
    out: &mut dyn Write,
    user_home: Option<&Path>,
    found: &AgentFound<'_>,
) -> io::Result<()> {
    let profile = found.adapter.profile();
    writeln!(out, "{} ({})", profile.name, profile.id)?;
    writeln!(out, "  found by   {}", profile.detection)?;
    for (at, home) in found.homes.iter().enumerate() {
        let name = if at == 0 { "looked at" } else { "" };
        writeln!(out, "  {name:9}  {}", place(&home.root, user_home))?;
    }
    writeln!(out, "  moved by   {}", profile.home_variables.join(", "))?;
    let processes = text::count(found.processes.len(), "process", "processes");
    let sessions = text::count(found.live_sessions, "live session", "live sessions");
    let open = match found.unattributed {
        0 => String::new(),
        number => format!(", {number} without a known session"),
    };
    writeln!(out, "  found      {processes}, {sessions}{open}")?;
    writeln!(out, "  checked    against {}", profile.checked_against)
}

/// A home for people, and whether it exists.
pub(crate) fn place(root: &Path, user_home: Option<&Path>) -> String {
    let there = match root.try_exists() {
        Ok(true) => "",
        Ok(false) => " (not there)",
        Err(_) => " (can't be looked at)",
    };
    format!("{}{there}", text::path(root, user_home))
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Session => "session",
        Role::Client => "client",
        Role::Host => "host",
        Role::Launcher => "launcher",
        Role::Auxiliary => "auxiliary",
    }
}
