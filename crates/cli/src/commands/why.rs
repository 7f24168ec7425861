//! `whosup why`

mod process;

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use whosup_core::process::Pid;
use whosup_core::views::explain::explain;
use whosup_core::views::wire;

use super::show;
use crate::app::App;
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::json::{Answer, WhyMore, write_document};
use crate::text;

const EXAMPLES: &str = "\
Examples:
  whosup why 0a022b20         Why it is shown as it is: what was claimed, and what was seen
  whosup why --pid 4711       Which session this process serves, or why none is known

Exit status: 0 explained; of --pid: 0 it serves a session, 3 unknown, 4 it serves none.";

// What `why` is asked for.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("subject").args(["id", "pid"]).required(true)
)]
pub(crate) struct WhyArgs {
    /// The session: its id or a beginning of it that no other has, such as
    /// `0a022b20` or `codex:01a2`
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The agent's home that the session is in, where several have it
    #[arg(long, value_name = "DIR", conflicts_with = "pid")]
    home: Option<PathBuf>,
    /// Explains a process instead of a session
    #[arg(long, value_name = "N", value_parser = parse_pid)]
    pid: Option<Pid>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
}

fn parse_pid(text: &str) -> Result<Pid, String> {
    let number: i64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    Pid::new(number).map_err(|error| error.to_string())
}

/// Explains.
///
/// # Errors
///
/// Whatever kept it from answering.
pub(crate) fn run(app: &mut App<'_>, arguments: &WhyArgs) -> anyhow::Result<ExitStatus> {
    if let Some(pid) = arguments.pid {
        return process::run(app, pid, arguments.json);
    }
    let Some(id) = &arguments.id else {
        anyhow::bail!("cannot explain: neither a session id nor `--pid` is given");
    };
    let id = IdArgs {
        id: id.clone(),
        home: arguments.home.clone(),
    };
    let shown = show::look(&app.world, &id)?;
    let explanation = explain(&shown.session);
    if arguments.json {
        let document = Answer {
            snapshot: &wire::snapshot(app.world.machine(), &shown.snapshot),
            more: WhyMore {
                pid: None,
                explanation,
            },
        };
        write_document(app.out, &document)?;
    } else {
        write_sentences(app, &explanation)?;
    }
    Ok(ExitStatus::Done)
}

/// One sentence a line.
fn write_sentences(app: &mut App<'_>, sentences: &[String]) -> std::io::Result<()> {
    for sentence in sentences {
        writeln!(app.out, "{}", text::visible(sentence))?;
    }
    Ok(())
}
