//! `whosup` reports which coding-agent session is live, in which process and
//! terminal pane, what it is doing, and what became of the others.

mod app;
mod cell;
mod cli;
mod colour;
mod column;
mod commands;
mod completion;
mod condition;
mod config;
mod directory;
mod exit;
mod id;
mod json;
mod ledger;
mod pane_command;
mod pose;
mod shell;
mod short_id;
mod since;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod verbose;
mod watched;

use std::io::{BufWriter, IsTerminal as _};
use std::process::ExitCode;
use std::time::Instant;

use app::{App, Face, World};
use cli::Cli;
use commands::Command;
use exit::ExitStatus;

fn main() -> ExitCode {
    if let Some(code) = pose::run_if_posing() {
        return code;
    }
    if let Some(code) = commands::run::become_program_if_asked() {
        return code;
    }
    completion::answer_if_asked();
    let status = match cli::parse(std::env::args_os()) {
        Ok(cli) => run(cli),
        // An agent takes a status for an answer.
        Err(error) if error.use_stderr() && commands::hook::is_asked_for() => {
            commands::hook::note_usage(&error)
        }
        Err(error) => exit::report_usage(error),
    };
    ExitCode::from(status.code())
}

/// How much output is held before it is written, in bytes: a pipe's usual capacity
/// (pipe(7)).
const OUTPUT_BYTES: usize = 64 << 10;

fn run(cli: Cli) -> ExitStatus {
    if cli.globals.verbose {
        verbose::follow();
    }
    let began = Instant::now();
    let stdout = std::io::stdout();
    let is_terminal = stdout.is_terminal();
    let face = Face {
        is_coloured: colour::is_wanted(cli.globals.color, is_terminal, |name| {
            std::env::var_os(name)
        }),
        width: is_terminal
            .then(|| terminal_size::terminal_size_of(&stdout))
            .flatten()
            .map(|(width, _)| usize::from(width.0)),
    };
    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, stdout.lock());
    // Not locked: other threads write there too while a look is followed.
    let mut err = std::io::stderr();
    let mut app = App {
        world: World::here(cli.globals.config),
        out: &mut out,
        err: &mut err,
        face,
        is_verbose: cli.globals.verbose,
    };
    let command = cli.command.unwrap_or_else(Command::list);
    let result = commands::run_command(&mut app, command)
        .and_then(|status| Ok(app.out.flush().map(|()| status)?));
    verbose::end(began);
    match result {
        Ok(status) => status,
        Err(error) => {
            // What was answered before it failed still counts.
            let written = app.out.flush();
            exit::report(&error, app.err).unless_pipe_closed(&written)
        }
    }
}
