//! `whosup why`

mod process;

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use clap_complete::engine::ArgValueCompleter;
use whosup_core::process::Pid;
use whosup_core::views::explain::{Explanation, explain};
use whosup_core::views::wire;

use super::show;
use crate::app::App;
use crate::completion;
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::json::{Answer, WhyMore, write_document};
use crate::text;

const EXAMPLES: &str = "\
Examples:
  whosup why 0a022b20         The verdict on a session, with the evidence
  whosup why --pid 4711       Which session a process serves, or why none is known

Exit status: 0 explained, 2 usage error or failure, 3 unknown, 4 no such session; with --pid: 0 it
serves a session, 3 unknown, 4 it serves none.";

#[derive(Debug, Clone, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("subject").args(["id", "pid"]).required(true)
)]
pub(crate) struct WhyArgs {
    /// Session ID or unique prefix, such as `0a022b20` or `codex:01a2`
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::sessions))]
    id: Option<String>,
    /// Home of the agent, where several homes have the session
    #[arg(long, value_name = "DIR", conflicts_with = "pid")]
    home: Option<PathBuf>,
    /// Explain a process instead of a session
    #[arg(long, value_name = "N", value_parser = parse_pid)]
    pid: Option<Pid>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl WhyArgs {
    /// About a session.
    pub(super) fn of_session(id: &IdArgs) -> Self {
        Self {
            id: Some(id.id.clone()),
            home: id.home.clone(),
            pid: None,
            json: false,
        }
    }

    /// About a process.
    pub(super) const fn of_process(pid: Pid) -> Self {
        Self {
            id: None,
            home: None,
            pid: Some(pid),
            json: false,
        }
    }
}

fn parse_pid(text: &str) -> Result<Pid, String> {
    let number: i64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    Pid::new(number).map_err(|error| error.to_string())
}

/// Explains a session or a process.
///
/// # Errors
///
/// If the scan or the output failed.
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
    let explanation = explain(&shown.session, app.world.home());
    if arguments.json {
        let document = Answer {
            snapshot: &wire::snapshot(app.world.machine(), &shown.snapshot),
            more: WhyMore {
                pid: None,
                explanation: explanation.into_lines(),
            },
        };
        write_document(app.out, &document)?;
    } else {
        write_explanation(app, &explanation)?;
    }
    Ok(ExitStatus::Done)
}

/// Writes the answer, and the evidence as a list.
fn write_explanation(app: &mut App<'_>, explanation: &Explanation) -> std::io::Result<()> {
    write_sentences(app, &explanation.answer)?;
    if !explanation.evidence.is_empty() {
        writeln!(app.out, "\nEvidence:")?;
    }
    for piece in &explanation.evidence {
        writeln!(app.out, "  {}", text::visible(piece))?;
    }
    Ok(())
}

/// Writes one sentence per line.
fn write_sentences(app: &mut App<'_>, sentences: &[String]) -> std::io::Result<()> {
    for sentence in sentences {
        writeln!(app.out, "{}", text::visible(sentence))?;
    }
    Ok(())
}
