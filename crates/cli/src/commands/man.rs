//! `whosup man`

mod page;

use std::fs::{self, File};
use std::io::{self, Write as _};
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
/// If a page can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &ManArgs) -> anyhow::Result<ExitStatus> {
    let Some(directory) = &arguments.directory else {
        let commands = commands();
        if let Some(whosup) = commands.first() {
            app.out.write_all(&page::render(whosup, &commands)?)?;
        }
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

fn write_pages(directory: &Path) -> io::Result<usize> {
    fs::create_dir_all(directory)?;
    let commands = commands();
    for command in &commands {
        let name = format!("{}.1", page::name(command));
        write_page(&directory.join(name), &page::render(command, &commands)?)?;
    }
    Ok(commands.len())
}

/// Writes a page that everybody may read, as a new file: a link that was planted there is
/// removed, not followed.
fn write_page(path: &Path, page: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path)?.write_all(page),
    }
}

/// whosup itself first, then each command that is not hidden, with subcommands.
fn commands() -> Vec<clap::Command> {
    let mut whosup = Cli::command();
    // Passes global options down, and names the pages.
    whosup.build();
    let mut commands = vec![whosup];
    let mut at = 0;
    while let Some(command) = commands.get(at) {
        let below: Vec<clap::Command> = page::visible(command).cloned().collect();
        commands.extend(below);
        at += 1;
    }
    commands
}
