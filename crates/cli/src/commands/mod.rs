//! The commands: one file each, and the one table that dispatches them.

pub(crate) mod after_end;
pub(crate) mod agents;
pub(crate) mod attach;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod dismiss;
pub(crate) mod doctor;
pub(crate) mod end;
pub(crate) mod help;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod notify;
pub(crate) mod orphans;
pub(crate) mod pid;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod sweep;
pub(crate) mod top;
pub(crate) mod usage;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod why;

use clap::Subcommand;

use crate::app::App;
use crate::exit::ExitStatus;

/// What to do. Options of a command are flattened in when it is parsed; a doc comment on
/// them would replace the comment here.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// List sessions: live, unknown, and those that died in the last day
    #[command(visible_aliases = ["ls", "ps"])]
    List(list::ListArgs),
    /// Show everything that is known about one session
    Show(show::ShowArgs),
    /// Explain the answer about a session or a process, with the evidence
    Why(why::WhyArgs),
    /// Report through the exit status whether a session is live
    Check(check::CheckArgs),
    /// Print the PID of the process that runs a session
    Pid(pid::PidArgs),
    /// Show sessions live, or print each change as it happens
    Watch(watch::WatchArgs),
    /// Show sessions on the whole screen, with CPU and memory
    Top(top::TopArgs),
    /// Wait until a session waits, is idle, or has exited
    Wait(wait::WaitArgs),
    /// Notify when a session waits, ends its turn, ends or dies
    Notify(notify::NotifyArgs),
    /// Sweep, then summarize activity per directory
    Status(status::StatusArgs),
    /// Sweep, then report problems and how to fix them
    Doctor(doctor::DoctorArgs),
    /// List sessions that died without ending, and how to resume them
    Orphans(orphans::OrphansArgs),
    /// Resume a session with its agent's own command
    Resume(resume::ResumeArgs),
    /// Bring a session's terminal pane to you
    #[command(visible_alias = "go")]
    Attach(attach::AttachArgs),
    /// Type a text into a session's pane
    Send(send::SendArgs),
    /// End the process of a session
    Stop(stop::StopArgs),
    /// Sum up tokens and cost by day, model, project or session
    Usage(usage::UsageArgs),
    /// Hide an exited session from default views
    Dismiss(dismiss::DismissArgs),
    /// Mark a session as ended whose state can no longer be determined
    End(end::EndArgs),
    /// Record one hook event of an agent, read from standard input
    Hook(hook::HookArgs),
    /// Install, remove or inspect agent hooks
    Hooks(hooks::HooksArgs),
    /// End recorded sessions whose process is gone
    Sweep(sweep::SweepArgs),
    /// Serve sessions, their changes and a dashboard over HTTP
    Serve(serve::ServeArgs),
    /// Keep `whosup serve` or `whosup notify` running while you are logged in
    Service(service::ServiceArgs),
    /// Run the configured commands after sessions ended
    #[command(hide = true)]
    AfterEnd(after_end::AfterEndArgs),
    /// List supported agents, the places searched, and what was found
    Agents(agents::AgentsArgs),
    /// Try a command on made-up sessions
    Demo(demo::DemoArgs),
    /// Run a program as a session of its own
    Run(run::RunArgs),
    /// Check the sidecars that an agent writes
    Conformance(conformance::ConformanceArgs),
    /// Print the help of whosup or of a command
    Help(help::HelpArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print or install the manual pages
    Man(man::ManArgs),
}

impl Command {
    /// The default command.
    pub(crate) fn list() -> Self {
        Self::List(list::ListArgs::default())
    }
}

/// Runs one command.
///
/// # Errors
///
/// The error of the command, for [`crate::exit::report`].
pub(crate) fn run_command(app: &mut App<'_>, command: Command) -> anyhow::Result<ExitStatus> {
    match command {
        Command::List(arguments) => list::run(app, &arguments),
        Command::Show(arguments) => show::run(app, &arguments),
        Command::Why(arguments) => why::run(app, &arguments),
        Command::Check(arguments) => check::run(app, &arguments),
        Command::Pid(arguments) => pid::run(app, &arguments),
        Command::Watch(arguments) => watch::run(app, &arguments),
        Command::Top(arguments) => top::run(app, &arguments),
        Command::Wait(arguments) => wait::run(app, &arguments),
        Command::Notify(arguments) => notify::run(app, &arguments),
        Command::Status(arguments) => status::run(app, &arguments),
        Command::Doctor(arguments) => doctor::run(app, &arguments),
        Command::Orphans(arguments) => orphans::run(app, &arguments),
        Command::Resume(arguments) => resume::run(app, &arguments),
        Command::Attach(arguments) => attach::run(app, &arguments),
        Command::Send(arguments) => send::run(app, &arguments),
        Command::Stop(arguments) => stop::run(app, &arguments),
        Command::Usage(arguments) => usage::run(app, &arguments),
        Command::Dismiss(arguments) => dismiss::run(app, &arguments),
        Command::End(arguments) => end::run(app, &arguments),
        Command::Hook(arguments) => Ok(hook::run(app, &arguments)),
        Command::Hooks(arguments) => hooks::run(app, &arguments),
        Command::Sweep(arguments) => sweep::run(app, &arguments),
        Command::Serve(arguments) => serve::run(app, &arguments),
        Command::Service(arguments) => service::run(app, &arguments),
        Command::AfterEnd(arguments) => Ok(after_end::run(app, &arguments)),
        Command::Agents(arguments) => agents::run(app, &arguments),
        Command::Demo(arguments) => demo::run(app, &arguments),
        Command::Run(arguments) => run::run(app, &arguments),
        Command::Conformance(arguments) => conformance::run(app, &arguments),
        Command::Help(arguments) => help::run(&arguments),
        Command::Completions(arguments) => completions::run(app, &arguments),
        Command::Man(arguments) => man::run(app, &arguments),
    }
}
