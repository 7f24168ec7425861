//! Shell completion of values on this machine: sessions, agents, columns.
//!
//! The script that `whosup completions` prints asks this program for each completion, with a
//! variable of its own that no person sets.

mod behind;

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use whosup_core::reader::Reach;
use whosup_core::sessions::session::Session;

use crate::app::World;
use crate::cli::Cli;
use crate::commands::demo;
use crate::text;

pub(crate) use behind::{command_of_demo, program};

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

/// The ids of the sessions of the default view, with title and directory.
pub(crate) fn sessions() -> Vec<CompletionCandidate> {
    if behind::is_of_demo() {
        // Those of this machine are unknown there.
        return demo::SESSIONS.map(CompletionCandidate::new).into();
    }
    let world = World::here(None);
    let Ok(mut scanned) = world.scan(&Reach::default()) else {
        return Vec::new();
    };
    let is_offered = |session: &Session| session.sketch.parent.is_none();
    // Without titles there are ids.
    world.describe(&mut scanned, is_offered).ok();
    let sessions = scanned.snapshot.sessions.iter();
    let offered = sessions.filter(|session| is_offered(session));
    let candidates = offered.take(SESSIONS_MAX).map(|session| {
        let title = session.title().map(text::one_line).unwrap_or_default();
        let directory = session.work_dir();
        let directory = directory.map(|path| text::path(path, world.home()));
        let parts = [title, directory.unwrap_or_default()];
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let help = parts.collect::<Vec<_>>().join(" · ");
        let help = text::cut(&help, HELP_WIDTH_MAX);
        let candidate = CompletionCandidate::new(session.key.session.as_str());
        candidate.help((!help.is_empty()).then(|| help.into()))
    });
    candidates.collect()
}
