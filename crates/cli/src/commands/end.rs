//! `whosup end`

use clap::Args;
use whosup_core::judging::verdict::Liveness;
use whosup_track::{Ended, Store, end_by_hand};

use super::after_end;
use crate::app::App;
use crate::exit::ExitStatus;
use crate::id::{IdArgs, find};

const EXAMPLES: &str = "\
Examples:
  whosup end 0a022b20        Mark a session as ended whose state can no longer be determined

Only whosup's own record is written: no process is stopped and no agent's file is touched. Live
sessions are refused, and those that no hook has reported: `whosup dismiss` hides these. A session
that its agent resumes becomes live again.
Exit status: 0 done, 2 refused or failed, 3 unknown, 4 no such session.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EndArgs {
    #[command(flatten)]
    pub(super) id: IdArgs,
}

/// Ends the record of a session by hand.
///
/// # Errors
///
/// If the session is not found, is live, or has no record.
pub(crate) fn run(app: &mut App<'_>, arguments: &EndArgs) -> anyhow::Result<ExitStatus> {
    let session = &find(&app.world, &arguments.id)?;
    let name = format!("{} session {}", session.key.agent, session.key.session);
    if session.liveness() == Liveness::Live {
        anyhow::bail!(
            "cannot end {name}: it is live ({})",
            session.verdict.reason()
        );
    }
    let store = Store::of(app.world.machine().environment())?;
    let files = store.files_of(&session.key.agent, &session.key.session);
    let words = match end_by_hand(&files, app.world.machine().now_ms())? {
        Some(Ended::Now(record)) => {
            after_end::start(app, app.world.machine().environment(), &[*record]);
            "has ended now"
        }
        Some(Ended::Noted) => "has ended now",
        Some(Ended::Already) => "had ended before",
        Some(Ended::GoesOn) => {
            anyhow::bail!("cannot end {name}: an event of it came in just now")
        }
        None => anyhow::bail!(
            "cannot end {name}: no hook has reported it, so there is no record; `whosup dismiss` \
             hides it until there is new activity"
        ),
    };
    writeln!(app.out, "{name} {words}")?;
    Ok(ExitStatus::Done)
}
