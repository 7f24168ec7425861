//! The commands: one file each, and the one table that dispatches them.

pub(crate) mod after_end;
pub(crate) mod agents;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod dismiss;
pub(crate) mod doctor;
pub(crate) mod end;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod orphans;
pub(crate) mod pid;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod sweep;
pub(crate) mod why;

use clap::Subcommand;

use crate::app::App;
use crate::exit::ExitStatus;

/// What to do. The options of a command are put together once it is asked for; then a doc
/// comment on them would stand in the place of the one here.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Lists sessions: live, unknown, and orphans of the last day
    List(list::ListArgs),
    /// Shows all that is known of one session
    Show(show::ShowArgs),
    /// Explains the answer about a session or a process, with its evidence
    Why(why::WhyArgs),
    /// Tells by its exit status whether a session is live
    Check(check::CheckArgs),
    /// Prints the PID of the process that runs a session
    Pid(pid::PidArgs),
    /// Sweeps, and tells in short what goes on in which directory
    Status(status::StatusArgs),
    /// Sweeps, and tells what is wrong and what to do about it
    Doctor(doctor::DoctorArgs),
    /// Lists what exited without ending, and how to go on with it
    Orphans(orphans::OrphansArgs),
    /// Goes on with a session by its agent's own command
    Resume(resume::ResumeArgs),
    /// Keeps a session that has exited out of default views
    Dismiss(dismiss::DismissArgs),
    /// Ends the record of a session by hand
    End(end::EndArgs),
    /// Records one event of an agent's hook, read from standard input
    Hook(hook::HookArgs),
    /// Sets hooks in agents' settings, takes them out, or tells what is set
    Hooks(hooks::HooksArgs),
    /// Ends the recorded sessions whose process is gone
    Sweep(sweep::SweepArgs),
    /// Runs what is to be run after the end of sessions
    #[command(hide = true)]
    AfterEnd(after_end::AfterEndArgs),
    /// Lists the supported agents, where they are looked for and what was found
    Agents(agents::AgentsArgs),
    /// Shows a command at work on made-up sessions
    Demo(demo::DemoArgs),
    /// Runs a program and gives it a session, which is listed as any other
    Run(run::RunArgs),
    /// Checks the sidecars that an agent writes
    Conformance(conformance::ConformanceArgs),
    /// Prints a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Prints or writes the manual pages
    Man(man::ManArgs),
}

impl Command {
    /// What is done when nothing is asked for.
    pub(crate) fn list() -> Self {
        Self::List(list::ListArgs::default())
    }
}

/// Runs one command.
///
/// # Errors
///
/// Whatever kept it from answering, for [`crate::exit::report`].
pub(crate) fn run_command(app: &mut App<'_>, command: Command) -> anyhow::Result<ExitStatus> {
    match command {
        Command::List(arguments) => list::run(app, &arguments),
        Command::Show(arguments) => show::run(app, &arguments),
        Command::Why(arguments) => why::run(app, &arguments),
        Command::Check(arguments) => check::run(app, &arguments),
        Command::Pid(arguments) => pid::run(app, &arguments),
        Command::Status(arguments) => status::run(app, &arguments),
        Command::Doctor(arguments) => doctor::run(app, &arguments),
        Command::Orphans(arguments) => orphans::run(app, &arguments),
        Command::Resume(arguments) => resume::run(app, &arguments),
        Command::Dismiss(arguments) => dismiss::run(app, &arguments),
        Command::End(arguments) => end::run(app, &arguments),
        Command::Hook(arguments) => Ok(hook::run(app, &arguments)),
        Command::Hooks(arguments) => hooks::run(app, &arguments),
        Command::Sweep(arguments) => sweep::run(app, &arguments),
        Command::AfterEnd(arguments) => Ok(after_end::run(app, &arguments)),
        Command::Agents(arguments) => agents::run(app, &arguments),
        Command::Demo(arguments) => demo::run(app, &arguments),
        Command::Run(arguments) => run::run(app, &arguments),
        Command::Conformance(arguments) => conformance::run(app, &arguments),
        Command::Completions(arguments) => completions::run(app, &arguments),
        Command::Man(arguments) => man::run(app, &arguments),
    }
}
