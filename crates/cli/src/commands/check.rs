//! `whosup check`

use clap::Args;
use whosup_core::judging::verdict::Liveness;
use whosup_core::sessions::session::Session;
use whosup_core::views::explain::sentence;

use crate::app::App;
use crate::exit::{self, ExitStatus};
use crate::id::{IdArgs, find};
use crate::json::reports::CheckDocument;
use crate::json::write_document;

const EXAMPLES: &str = "\
Examples:
  whosup check 0a022b20 && echo live
  whosup check --quiet codex:01a2; case $? in 1) echo exited;; 3) echo unknown;; esac

Exit status: 0 live, 1 exited, 2 usage error or failure, 3 unknown, 4 no such session.
Only 1 means that the session has exited; 3 and 4 do not.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    id: IdArgs,
    /// Print nothing; the exit status is the answer
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

/// Answers through the exit status.
///
/// # Errors
///
/// If the scan or the output failed.
pub(crate) fn run(app: &mut App<'_>, arguments: &CheckArgs) -> anyhow::Result<ExitStatus> {
    let session = match find(&app.world, &arguments.id) {
        Ok(session) => session,
        Err(error) if arguments.quiet => return quiet_status(error),
        Err(error) => return Err(error),
    };
    if arguments.json {
        let words = sentence(session.verdict).to_string();
        let document = CheckDocument::of(app.world.machine(), &session, words);
        write_document(app.out, &document)?;
    } else if !arguments.quiet {
        let answer = session.liveness().name();
        let reason = session.verdict.reason();
        writeln!(
            app.out,
            "{answer} ({reason}): {}",
            sentence(session.verdict)
        )?;
    }
    Ok(status_of(&session))
}

/// The exit status for a session.
pub(crate) fn status_of(session: &Session) -> ExitStatus {
    match session.liveness() {
        Liveness::Live => ExitStatus::Done,
        Liveness::Exited => ExitStatus::Exited,
        Liveness::Unknown => ExitStatus::Unknown,
    }
}

/// A missing session, or one that may be missing, is an answer too.
fn quiet_status(error: anyhow::Error) -> anyhow::Result<ExitStatus> {
    match exit::status(&error) {
        ExitStatus::Failed => Err(error),
        status => Ok(status),
    }
}
