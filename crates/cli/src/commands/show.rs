//! `whosup show`

mod view;

use clap::Args;
use whosup_core::agents::{self, Message};
use whosup_core::problem::Problem;
use whosup_core::session::{Session, Snapshot};
use whosup_core::wire;

use crate::app::{App, World};
use crate::exit::ExitStatus;
use crate::filter::sub_agents_of;
use crate::id::{Found, IdArgs, find};
use crate::json::{Answer, MessageDocument, ShowMore, write_document};

/// How many messages `--tail` shows at most.
const TAIL_MAX: u16 = 1_000;

const EXAMPLES: &str = "\
Examples:
  whosup show 0a022b20                 All that is known of it
  whosup show 0a022b20 --tail 5        And its last five messages
  whosup show codex:01a2 --json        For a program: a snapshot of this session alone";

/// What `show` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    id: IdArgs,
    /// The last N messages too
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(TAIL_MAX))
    )]
    tail: Option<u16>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows one session.
///
/// # Errors
///
/// Whatever kept it from answering.
pub(crate) fn run(app: &mut App<'_>, arguments: &ShowArgs) -> anyhow::Result<ExitStatus> {
    let mut shown = look(&app.world, &arguments.id)?;
    let messages = match arguments.tail {
        Some(messages_max) => {
            let its = shown.session();
            let (messages, problems) = read_messages(&app.world, its, messages_max.into());
            shown.snapshot.problems.extend(problems);
            Some(messages)
        }
        None => None,
    };
    if arguments.json {
        let document = Answer {
            snapshot: &wire::snapshot(app.world.machine(), &shown.snapshot),
            more: ShowMore {
                messages: messages
                    .map(|messages| messages.into_iter().map(MessageDocument::of).collect()),
            },
        };
        write_document(app.out, &document)?;
    } else {
        view::write_session(app, &shown)?;
        view::write_messages(app, shown.session(), messages.as_deref())?;
        view::say_problems(app.err, &shown.snapshot.problems);
    }
    Ok(ExitStatus::Done)
}

/// One session, alone in a snapshot, with what its own files tell.
pub(super) struct Shown {
    /// The snapshot: this session, and no process without one.
    pub(super) snapshot: Snapshot,
    /// How many sub-agents it has.
    pub(super) sub_agents: usize,
    session: Session,
}

impl Shown {
    /// The session.
    pub(super) fn session(&self) -> &Session {
        &self.session
    }
}

/// Finds a session and reads its files.
pub(super) fn look(world: &World, id: &IdArgs) -> anyhow::Result<Shown> {
    let found = find(world, id)?;
    let key = found.session().key.clone();
    let Found { mut scanned, .. } = found;
    world.describe(&mut scanned, |session| session.key == key)?;
    let sub_agents = sub_agents_of(&scanned.snapshot.sessions, &[key.clone()].into());
    let mut snapshot = scanned.snapshot;
    snapshot.sessions.retain(|session| session.key == key);
    snapshot.unattributed.clear();
    snapshot.problems.retain(|problem| {
        problem
            .agent
            .as_ref()
            .is_none_or(|agent| *agent == key.agent)
    });
    let session = snapshot.sessions.first().cloned();
    Ok(Shown {
        // The key was taken from this very list.
        session: session.ok_or_else(|| anyhow::anyhow!("cannot find `{}` again", key.session))?,
        sub_agents: sub_agents.len(),
        snapshot,
    })
}

fn read_messages(
    world: &World,
    session: &Session,
    messages_max: usize,
) -> (Vec<Message>, Vec<Problem>) {
    let mut problems = Vec::new();
    let Some(adapter) = agents::adapter(&session.key.agent) else {
        return (Vec::new(), problems);
    };
    let mut sketch = session.sketch.clone();
    if let Some(transcript) = &session.description.transcript {
        sketch.transcript = Some(transcript.clone());
    }
    let found = adapter.messages(world.machine(), &sketch, messages_max);
    (found.take(&mut problems), problems)
}
