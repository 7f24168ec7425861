//! Shell completion of values on this machine: sessions, agents, columns.
//!
//! The script that `whosup completions` prints asks this program for each completion, with a
//! variable of its own that no person sets.

mod behind;

use std::ffi::OsStr;

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use whosup_core::reader::Reach;
use whosup_core::sessions::session::Session;

use crate::app::World;
use crate::cli::Cli;
use crate::commands::demo;
use crate::short_id::ShortIds;
use crate::text;

pub(crate) use behind::{command_of_demo, command_of_help, program};

/// The variable that makes this program answer a completion script.
pub(crate) const VARIABLE: &str = "WHOSUP_COMPLETE";
/// How many sessions are offered.
const SESSIONS_MAX: usize = 200;
/// How long a description may be, in columns.
const HELP_WIDTH_MAX: usize = 80;

/// Answers a completion script and exits, if this is such a call.
pub(crate) fn answer_if_asked() {
    CompleteEnv::with_factory(offered).var(VARIABLE).complete();
}

/// The command line without hidden commands, which clap would otherwise offer when no
/// other matches.
pub(crate) fn offered() -> clap::Command {
    let whosup = Cli::command();
    let visible = whosup.get_subcommands().filter(|one| !one.is_hide_set());
    clap::Command::new("whosup")
        .args(whosup.get_arguments().cloned())
        .subcommands(visible.cloned())
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
}

/// The ids of the sessions of the default view that begin with `typed`, with title and
/// directory. An id that several sessions have, and each id after `agent:`, has its agent.
pub(crate) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else {
        return Vec::new();
    };
    let mut offered = if behind::is_of_demo() {
        // Those of this machine are unknown there.
        demo::SESSIONS.map(CompletionCandidate::new).into()
    } else {
        sessions_here(typed.contains(':'))
    };
    offered.retain(|one| {
        let value = one.get_value().as_encoded_bytes();
        value.starts_with(typed.as_bytes())
    });
    offered.truncate(SESSIONS_MAX);
    offered
}

fn sessions_here(with_agents: bool) -> Vec<CompletionCandidate> {
    let world = World::here(None);
    let Ok(mut scanned) = world.scan(&Reach::default()) else {
        return Vec::new();
    };
    let is_offered = |session: &Session| {
        session.sketch.parent.is_none() && is_one_word(session.key.session.as_str())
    };
    // Without titles there are ids.
    world.describe(&mut scanned, is_offered).ok();
    let sessions = &scanned.snapshot.sessions;
    let ids = ShortIds::of(sessions);
    let offered = sessions.iter().filter(|session| is_offered(session));
    let candidates = offered.map(|session| {
        let (agent, id) = (&session.key.agent, &session.key.session);
        let value = match with_agents || ids.is_shared(id) {
            true => format!("{agent}:{id}"),
            false => id.to_string(),
        };
        let help = help(&world, session);
        CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
    });
    candidates.collect()
}

/// Agents make ids up, and not every shell quotes what is completed: `$(…)` in an id would be
/// run as soon as the line is.
fn is_one_word(id: &str) -> bool {
    id.chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Title and directory of a session.
fn help(world: &World, session: &Session) -> String {
    let title = session.title().map(text::one_line).unwrap_or_default();
    let directory = session.work_dir();
    let directory = directory.map(|path| text::path(path, world.home()));
    let parts = [title, directory.unwrap_or_default()];
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let help = parts.collect::<Vec<_>>().join(" · ");
    text::cut(&help, HELP_WIDTH_MAX)
}
