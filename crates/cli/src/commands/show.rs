//! `whosup show`

mod view;

pub(super) use self::view::say_problems;

use clap::Args;
use whosup_core::adapter::Depth;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::reader::{Reach, Single, parent_key, sub_agents_of};
use whosup_core::sessions::session::Session;
use whosup_core::sources::usage::Usage;
use whosup_core::views::wire;

use crate::app::{App, World, say};
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::json::{Answer, MessageDocument, ShowMore, write_document};
use crate::ledger::Ledger;

/// How many messages `--tail` shows at most.
const TAIL_MAX: u16 = 1_000;

const EXAMPLES: &str = "\
Examples:
  whosup show 0a022b20                 Everything known about a session
  whosup show 0a022b20 --tail 5        The same, with the last five messages
  whosup show codex:01a2 --json        A snapshot of this session alone, as JSON

Exit status: 0 shown, 2 usage error or failure, 3 unknown, 4 no such session.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    id: IdArgs,
    /// Include the last N messages
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(TAIL_MAX))
    )]
    tail: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl ShowArgs {
    /// Everything but messages, for people.
    pub(super) fn of(id: IdArgs) -> Self {
        Self {
            id,
            tail: None,
            json: false,
        }
    }
}

/// Writes only the last messages of a session.
///
/// # Errors
///
/// If the scan or the output failed.
pub(super) fn run_messages(
    app: &mut App<'_>,
    id: &IdArgs,
    messages_max: usize,
) -> anyhow::Result<ExitStatus> {
    let session = look(&app.world, id)?.session;
    let found = app.world.reader()?.messages(&session, messages_max);
    view::write_messages(app, &session, Some(&found.found))?;
    say_problems(app.err, &found.problems);
    Ok(ExitStatus::Done)
}

/// Shows one session.
///
/// # Errors
///
/// If the scan or the output failed.
pub(crate) fn run(app: &mut App<'_>, arguments: &ShowArgs) -> anyhow::Result<ExitStatus> {
    let mut shown = look(&app.world, &arguments.id)?;
    shown.measure(app.world.machine());
    let mut ledger = Ledger::of(app.world.machine())?;
    let with_sub_agents = count(&app.world, &mut ledger, &mut shown)?;
    if let Err(error) = ledger.save() {
        say(app.err, &format!("warning: {error}"));
    }
    let messages = match arguments.tail {
        Some(messages_max) => {
            let reader = app.world.reader()?;
            let found = reader.messages(&shown.session, messages_max.into());
            Some(found.take(&mut shown.snapshot.problems))
        }
        None => None,
    };
    if arguments.json {
        let document = Answer {
            snapshot: &wire::snapshot(app.world.machine(), &shown.snapshot),
            more: ShowMore {
                usage_with_sub_agents: with_sub_agents.as_ref().map(wire::usage),
                messages: messages
                    .map(|messages| messages.into_iter().map(MessageDocument::of).collect()),
            },
        };
        write_document(app.out, &document)?;
    } else {
        view::write_session(app, &shown, with_sub_agents.as_ref())?;
        view::write_messages(app, &shown.session, messages.as_deref())?;
        say_problems(app.err, &shown.snapshot.problems);
    }
    Ok(ExitStatus::Done)
}

/// Finds a session and reads its files.
pub(super) fn look(world: &World, id: &IdArgs) -> anyhow::Result<Single> {
    Ok(world.reader()?.single(&id.query())?)
}

/// Counts what the session used, in both copies of it. Returns what it used with its
/// sub-agents, if it has any.
fn count(world: &World, ledger: &mut Ledger, shown: &mut Single) -> anyhow::Result<Option<Usage>> {
    ledger.add_to(world.machine(), &mut shown.session);
    for session in &mut shown.snapshot.sessions {
        session.usage.clone_from(&shown.session.usage);
    }
    let sub_agents = sub_agents(world, &shown.session.key)?;
    shown.sub_agents = sub_agents.len();
    let mut usage = shown.session.usage.clone();
    for mut sub_agent in sub_agents {
        ledger.add_to(world.machine(), &mut sub_agent);
        if let Some(more) = &sub_agent.usage {
            usage.get_or_insert_default().join(more);
        }
    }
    shown.snapshot.problems.append(&mut ledger.problems);
    Ok(usage.filter(|_| shown.sub_agents > 0))
}

/// All sub-agents of a session, also those that no process leads to any more.
fn sub_agents(world: &World, key: &SessionKey) -> anyhow::Result<Vec<Session>> {
    let reach = Reach {
        depth: Depth::All,
        agents: Some([key.agent.clone()].into()),
        ..Reach::default()
    };
    let mut sessions = world.scan(&reach)?.snapshot.sessions;
    let links = sessions.iter();
    let links = links.map(|session| (&session.key, parent_key(session)));
    let below = sub_agents_of(links, &[key.clone()].into());
    sessions.retain(|session| below.contains(&session.key));
    Ok(sessions)
}
