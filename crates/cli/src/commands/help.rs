//! `whosup help`

use std::ffi::OsString;
use std::iter::once;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::{self, Cli};
use crate::completion::command_of_help;
use crate::exit::{ExitStatus, report_usage};

const EXAMPLES: &str = "\
Examples:
  whosup help                  The same as `whosup --help`
  whosup help list             The same as `whosup list --help`
  whosup help hooks install    Help of a command of a command";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HelpArgs {
    /// The command, with the command of that command; whosup itself if omitted
    #[arg(value_name = "COMMAND", add = ArgValueCompleter::new(command_of_help))]
    words: Vec<String>,
}

/// Prints what `--help` prints.
///
/// # Errors
///
/// None: a command that does not exist is reported as a usage error.
pub(crate) fn run(arguments: &HelpArgs) -> anyhow::Result<ExitStatus> {
    let words = once("whosup").chain(arguments.words.iter().map(String::as_str));
    let line = words.chain(once("--help")).map(OsString::from);
    // The parser reports an unknown command and suggests others, but ignores words that
    // follow a command without commands of its own.
    let error = extra_word(&arguments.words).or_else(|| cli::parse(line).err());
    Ok(error.map_or(ExitStatus::Done, report_usage))
}

/// A usage error about the first word that follows a command without commands.
fn extra_word(words: &[String]) -> Option<clap::Error> {
    let mut whosup = Cli::command();
    whosup.build();
    let mut command = &mut whosup;
    for word in words {
        if !command.has_subcommands() {
            let message = format!("`{}` has no command `{word}`", command.get_name());
            return Some(command.error(ErrorKind::InvalidSubcommand, message));
        }
        command = command.find_subcommand_mut(word)?;
    }
    None
}
