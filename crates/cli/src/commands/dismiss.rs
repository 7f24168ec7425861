//! `whosup dismiss`

use clap::Args;
use whosup_core::judging::verdict::Liveness;
use whosup_track::{bring_back, dismiss};

use crate::app::App;
use crate::exit::ExitStatus;
use crate::id::{IdArgs, find};
use crate::text;

const EXAMPLES: &str = "\
Examples:
  whosup dismiss 0a022b20           Hide an exited session, or an unknown one that you know is gone
  whosup dismiss --undo 0a022b20    Show it again

`whosup list --all` still shows a hidden session. New activity brings it back everywhere. Only
whosup's own files are written.
Exit status: 0 done, 2 the session is live or the command failed, 3 it may be live, 4 no such session.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DismissArgs {
    #[command(flatten)]
    pub(super) id: IdArgs,
    /// Show it again in default views
    #[arg(long)]
    pub(super) undo: bool,
}

/// Hides a session from default views, or shows it again.
///
/// # Errors
///
/// If the session is not found or is live, or its record can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &DismissArgs) -> anyhow::Result<ExitStatus> {
    let session = &find(&app.world, &arguments.id)?;
    let id = text::visible(session.key.session.as_str());
    let name = format!("{} session {id}", session.key.agent);
    let environment = app.world.machine().environment();
    if arguments.undo {
        let words = if bring_back(environment, &session.key)? {
            "is back"
        } else {
            "was not dismissed"
        };
        writeln!(app.out, "{name} {words}")?;
        return Ok(ExitStatus::Done);
    }
    if session.may_be_dismissed() {
        dismiss(environment, &session.key, app.world.machine().now_ms())?;
        writeln!(app.out, "{name} is dismissed")?;
        return Ok(ExitStatus::Done);
    }
    let status = match session.liveness() {
        Liveness::Unknown => ExitStatus::Unknown,
        Liveness::Live | Liveness::Exited => ExitStatus::Failed,
    };
    let answer = session.liveness().name();
    let reason = session.verdict.reason();
    crate::app::say(
        app.err,
        &format!("error: cannot dismiss {name}: it is {answer} ({reason})"),
    );
    Ok(status)
}
