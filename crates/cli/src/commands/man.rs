//! `whosup man`

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

use crate::app::{App, say};
use crate::cli::Cli;
use crate::exit::ExitStatus;
use crate::text;

const EXAMPLES: &str = "\
Examples:
  whosup man | man -l -                    Read the page of whosup
  whosup man ~/.local/share/man/man1       Install the pages of all commands";

// What `man` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this directory; without it, print the
    /// page of whosup itself
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints the page, or writes all pages.
///
/// # Errors
///
/// Whatever kept them from being written.
pub(crate) fn run(app: &mut App<'_>, arguments: &ManArgs) -> anyhow::Result<ExitStatus> {
    let Some(directory) = &arguments.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        app.out.write_all(&page)?;
        return Ok(ExitStatus::Done);
    };
    let pages = write_pages(directory)
        .with_context(|| format!("cannot write manual pages to `{}`", directory.display()))?;
    let place = text::path(directory, None);
    say(
        app.err,
        &format!("{} written to {place}", text::count(pages, "page", "pages")),
    );
    Ok(ExitStatus::Done)
}

fn write_pages(directory: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(directory)?;
    let mut whosup = Cli::command();
    // Hands the options of every command down, and names the pages.
    whosup.build();
    let commands = whosup
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let mut pages: Vec<clap::Command> = commands.cloned().collect();
    pages.push(whosup);
    let count = pages.len();
    for page in pages {
        clap_mangen::Man::new(page).generate_to(directory)?;
    }
    Ok(count)
}
