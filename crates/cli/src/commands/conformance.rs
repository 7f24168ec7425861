//! `whosup conformance`: checks what an agent's sidecars are worth.

mod arena;
mod burst;
mod check;
mod follower;
mod subject;

mod checks;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use self::check::{Kit, Outcome};
use self::checks::CHECKS;
use crate::app::{App, say};
use crate::exit::ExitStatus;
use crate::text::visible;

/// How wide the names of checks get, in columns.
const NAME_WIDTH: usize = 52;

// Checks the sidecars that an agent writes.
//
// Starts CMD, over and over, in a temporary home of its own, tells it on
// standard input what to do (`start ID`, `switch ID`, `exit`, `crash`), and
// looks at the files that it leaves: fields, modes, what a reader sees while it
// switches as fast as it can, two processes on one session, SIGKILL at any
// point, odd ids, directories that may not be written. docs/conformance.md
// describes the lines and every check.
//
// Exits with 1 if a check failed.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  whosup conformance -- node my-agent-driver.mjs
  whosup conformance -- python3 driver.py
  whosup conformance --timeout 60 -- ./slow-driver

CMD must be the process that answers, not a shell around it. It runs in a temporary directory;
arguments that name existing files are made absolute.")]
pub(crate) struct ConformanceArgs {
    /// How long to wait for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// The program to check, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A word of the program's command line that means the same in another
/// directory: the name of a file that is there becomes absolute.
fn from_anywhere(word: &OsString) -> OsString {
    let path = Path::new(word);
    if path.is_file()
        && let Ok(absolute) = std::path::absolute(path)
    {
        return absolute.into_os_string();
    }
    word.clone()
}

/// Runs every check and shows the table.
///
/// # Errors
///
/// If there is no place for a temporary home, or nobody takes the output.
pub(crate) fn run(app: &mut App<'_>, arguments: &ConformanceArgs) -> anyhow::Result<ExitStatus> {
    let kit = Kit::new(
        arguments.command.iter().map(from_anywhere).collect(),
        Duration::from_secs(arguments.timeout.max(1)),
    );
    let (mut failed, mut skipped) = (0, 0);
    for check in CHECKS {
        let outcome = (check.run)(&kit);
        let (word, why) = match &outcome {
            Ok(Outcome::Passed) => ("passed", None),
            Ok(Outcome::Noted(note)) => ("passed", Some(note)),
            Ok(Outcome::Skipped(why)) => {
                skipped += 1;
                ("skipped", Some(why))
            }
            Err(why) => {
                failed += 1;
                ("FAILED", Some(why))
            }
        };
        let name = check.name;
        write!(app.out, "{name:NAME_WIDTH$}  {word}")?;
        match why {
            Some(why) => writeln!(app.out, ": {}", visible(why))?,
            None => writeln!(app.out)?,
        }
        app.out.flush()?;
    }
    let passed = CHECKS.len() - failed - skipped;
    say(
        app.err,
        &format!("{passed} passed, {failed} failed, {skipped} skipped"),
    );
    Ok(if failed == 0 {
        ExitStatus::Done
    } else {
        ExitStatus::Findings
    })
}
