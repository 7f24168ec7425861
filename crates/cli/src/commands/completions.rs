//! `whosup completions`

use anyhow::anyhow;
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::app::App;
use crate::completion::VARIABLE;
use crate::exit::ExitStatus;

const EXAMPLES: &str = "\
Examples:
  whosup completions bash > ~/.local/share/bash-completion/completions/whosup
  whosup completions fish > ~/.config/fish/completions/whosup.fish
  whosup completions zsh > \"${fpath[1]}/_whosup\"

The script asks whosup for each completion: sessions are offered with title and directory.";

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
    let shells = Shells::builtins();
    let shell = arguments.shell.to_string();
    let completer = shells
        .completer(&shell)
        .ok_or_else(|| anyhow!("cannot complete for {shell}: it is not known"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "whosup", "whosup", "whosup", &mut script)?;
    app.out.write_all(&script)?;
    Ok(ExitStatus::Done)
}
