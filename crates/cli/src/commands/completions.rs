//! `whosup completions`

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::app::App;
use crate::cli::Cli;
use crate::exit::ExitStatus;

const EXAMPLES: &str = "\
Examples:
  whosup completions bash > ~/.local/share/bash-completion/completions/whosup
  whosup completions fish > ~/.config/fish/completions/whosup.fish
  whosup completions zsh > \"${fpath[1]}/_whosup\"";

// What `completions` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
///
/// Whatever kept it from being written.
pub(crate) fn run(app: &mut App<'_>, arguments: &CompletionsArgs) -> anyhow::Result<ExitStatus> {
    // The generator panics when its writer fails, so it gets one that can't.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "whosup", &mut script);
    app.out.write_all(&script)?;
    Ok(ExitStatus::Done)
}
