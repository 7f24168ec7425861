//! `whosup conformance`: checks the sidecars that an agent writes.

mod arena;
mod burst;
mod check;
mod follower;
mod report;
mod stage;
mod subject;
#[cfg(target_os = "linux")]
mod watch;

mod checks;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use clap::builder::PossibleValuesParser;

use self::check::{Check, Kit};
use self::checks::CHECKS;
use self::report::{Checked, Report};
use crate::app::{App, say};
use crate::exit::ExitStatus;
use crate::json::write_document;

// Checks the sidecars that an agent writes.
//
// Starts CMD again and again in a temporary home, sends commands to its standard input
// (`start ID`, `switch ID`, `exit`, `crash`), and checks the files that it leaves: fields,
// modes, what a reader sees during fast switches, claims of others, two processes on one
// session, SIGKILL at any point, odd IDs, directories without write permission.
// docs/conformance.md describes the lines and every check.
//
// Exits with 1 if a check failed, and with 2 if CMD can't be started or does not answer.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  whosup conformance -- node my-agent-driver.mjs
  whosup conformance -- python3 driver.py
  whosup conformance --timeout 60 -- ./slow-driver
  whosup conformance --only mode --only refused-ids -- ./my-driver

CMD must be the process that answers, not a shell around it. It runs in a temporary directory;
arguments that name existing files are made absolute.

Exit status: 0 no check failed, 1 a check failed, 2 usage error, or CMD cannot be started or does
not answer.")]
pub(crate) struct ConformanceArgs {
    /// How long to wait for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Make only this check; may be repeated
    #[arg(long, value_name = "CHECK", value_parser = check_ids())]
    only: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// The program to check, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn check_ids() -> PossibleValuesParser {
    PossibleValuesParser::new(CHECKS.iter().map(|check| check.id))
}

/// A word of the program's command line that works from any directory: the name of an
/// existing file becomes absolute.
fn from_anywhere(word: &OsString) -> OsString {
    let path = Path::new(word);
    if path.is_file()
        && let Ok(absolute) = std::path::absolute(path)
    {
        return absolute.into_os_string();
    }
    word.clone()
}

/// Runs the checks and shows how each ended.
///
/// # Errors
///
/// If the program can't be started or does not answer, or the output can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &ConformanceArgs) -> anyhow::Result<ExitStatus> {
    let command: Vec<OsString> = arguments.command.iter().map(from_anywhere).collect();
    let words = command.iter().map(|word| word.display().to_string());
    let words: Vec<String> = words.collect();
    let kit = Kit::new(command, Duration::from_secs(arguments.timeout.max(1)));
    let failed = || format!("cannot check `{}`", words.join(" "));
    kit.greet()
        .map_err(|why| anyhow!(why))
        .with_context(failed)?;
    let mut checks = Vec::new();
    for check in CHECKS.iter().filter(|check| is_asked_for(check, arguments)) {
        let checked = Checked::new(check, (check.run)(&kit));
        if !arguments.json {
            checked.write_line(app.out)?;
        }
        checks.push(checked);
    }
    let report = Report::new(words, checks);
    if arguments.json {
        write_document(app.out, &report)?;
    } else {
        say(app.err, &report.summary());
    }
    Ok(if report.has_failures() {
        ExitStatus::Findings
    } else {
        ExitStatus::Done
    })
}

fn is_asked_for(check: &Check, arguments: &ConformanceArgs) -> bool {
    let only = &arguments.only;
    only.is_empty() || only.iter().any(|id| id == check.id)
}
