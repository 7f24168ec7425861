//! `whosup completions`

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use clap_complete_nushell::Nushell;

use crate::app::App;
use crate::completion::{VARIABLE, offered};
use crate::exit::ExitStatus;

const EXAMPLES: &str = "\
Examples:
  whosup completions bash > ~/.local/share/bash-completion/completions/whosup
  whosup completions fish > ~/.config/fish/completions/whosup.fish
  whosup completions zsh > \"${fpath[1]}/_whosup\"
  whosup completions nushell | save -f whosup-completions.nu

The script asks whosup for each completion: sessions are offered with title and directory. That
of nushell is a list of commands and options: `use whosup-completions.nu *`.";

/// The shells that have a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

impl Shell {
    /// The name in clap's list of completers.
    const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Elvish => "elvish",
            Self::Fish => "fish",
            Self::Nushell => "nushell",
            Self::Powershell => "powershell",
            Self::Zsh => "zsh",
        }
    }
}

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
/// If it can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &CompletionsArgs) -> anyhow::Result<ExitStatus> {
    let mut script = Vec::new();
    if arguments.shell == Shell::Nushell {
        clap_complete::generate(Nushell, &mut offered(), "whosup", &mut script);
        app.out.write_all(&script)?;
        return Ok(ExitStatus::Done);
    }
    let shells = Shells::builtins();
    let shell = arguments.shell.name();
    let completer = shells
        .completer(shell)
        .ok_or_else(|| anyhow!("cannot complete for {shell}: no completer is known"))?;
    completer.write_registration(VARIABLE, "whosup", "whosup", "whosup", &mut script)?;
    app.out.write_all(&script)?;
    Ok(ExitStatus::Done)
}
