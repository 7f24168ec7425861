//! Holds `whosup` against random worlds with known truth.
//!
//! Each world is a process of this program in a PID namespace of its own. It
//! starts real processes that pose as agents, takes random steps, and after each
//! one compares what `whosup` says with what somebody would say who had watched.
//! `docs/truth.md` has what is run, what is true, and what is not counted.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose report is its output"
)]

mod actor;
mod agents;
mod apart;
mod chance;
mod looks;
mod options;
mod pose;
mod report;
mod run;
mod steps;
mod truth;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

/// The name of this program when it doesn't pose.
const NAME: &str = "whosup-campaign";

fn main() -> ExitCode {
    let is_posing = std::env::current_exe().is_ok_and(|path| !path.ends_with(NAME));
    if is_posing {
        return match pose::pose() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let options = options::Options::parse();
    match run::run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
