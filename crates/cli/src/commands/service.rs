//! `whosup service`: writes the file for the system's service manager. Without `--now` it
//! starts and stops nothing.

mod unit;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand, ValueEnum};
use whosup_track::ServiceFile;

use self::unit::Keeper;
use crate::app::{App, say};
use crate::exit::ExitStatus;
use crate::shell;
use crate::text;

const EXAMPLES: &str = "\
Examples:
  whosup service install notify         Write the service, and print how to start it
  whosup service install serve --now    Write it, and start it now and at each login
  whosup service status                 Which services are installed
  whosup service uninstall notify --now Stop it, and remove it

The service is a unit of systemd in ~/.config/systemd/user, and an agent of launchd in
~/Library/LaunchAgents on macOS. It runs `whosup serve` or `whosup notify` without options: those of
`notify` stand in config.toml. A file that whosup did not write is neither replaced nor removed.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Write the file of a service
    Install(ChangeArgs),
    /// Remove the file of a service
    Uninstall(ChangeArgs),
    /// Report which services are installed
    Status,
}

#[derive(Debug, Clone, Args)]
struct ChangeArgs {
    /// The command that the service runs
    service: Service,
    /// Start the service, or stop it before it is removed
    #[arg(long)]
    now: bool,
}

/// The services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Service {
    Serve,
    Notify,
}

impl Service {
    const ALL: [Self; 2] = [Self::Serve, Self::Notify];

    /// The command.
    const fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Notify => "notify",
        }
    }
}

/// Installs or removes a service, or reports which are installed.
///
/// # Errors
///
/// If files or the service manager fail.
pub(crate) fn run(app: &mut App<'_>, arguments: &ServiceArgs) -> anyhow::Result<ExitStatus> {
    let keeper = Keeper::here()?;
    match &arguments.action {
        Action::Install(change) => install(app, keeper, change)?,
        Action::Uninstall(change) => uninstall(app, keeper, change)?,
        Action::Status => {
            for service in Service::ALL {
                let state = state(app, keeper, service)?;
                writeln!(app.out, "{:<7} {state}", service.name())?;
            }
        }
    }
    Ok(ExitStatus::Done)
}

fn install(app: &mut App<'_>, keeper: Keeper, change: &ChangeArgs) -> anyhow::Result<()> {
    let service = change.service;
    // With a broken configuration the service would be restarted again and again.
    app.world.config()?;
    let path = file(app, keeper, service)?;
    let bytes = wanted(app, keeper, service)?.into_bytes();
    let mark = keeper.mark(service);
    let place = shown(app, &path);
    let found = ServiceFile::at(&path, &mark)?;
    let mut commands = keeper.start(service, &path);
    if found == ServiceFile::Ours(bytes.clone()) {
        say(app.err, &format!("{place} is up to date"));
    } else {
        ServiceFile::write(&path, &mark, &bytes)?;
        say(app.err, &format!("{place} is written"));
        if found != ServiceFile::Absent {
            commands.extend(keeper.restart(service));
        }
    }
    run_or_say(
        app,
        &commands,
        change.now,
        "to start it, now and at each login:",
    )
}

fn uninstall(app: &mut App<'_>, keeper: Keeper, change: &ChangeArgs) -> anyhow::Result<()> {
    let service = change.service;
    let path = file(app, keeper, service)?;
    let place = shown(app, &path);
    let commands = keeper.stop(service, &path);
    let mark = keeper.mark(service);
    // A service of another file is not stopped either.
    let is_ours = matches!(ServiceFile::at(&path, &mark)?, ServiceFile::Ours(_));
    if is_ours && change.now {
        run_or_say(app, &commands, true, "")?;
    }
    if !ServiceFile::remove(&path, &mark)? {
        say(app.err, &format!("{place} is not there"));
        return Ok(());
    }
    say(app.err, &format!("{place} is removed"));
    if change.now {
        return Ok(());
    }
    run_or_say(app, &commands, false, "to stop it, if it is running:")
}

/// The state of a service.
fn state(app: &App<'_>, keeper: Keeper, service: Service) -> anyhow::Result<String> {
    let path = file(app, keeper, service)?;
    let place = shown(app, &path);
    Ok(match ServiceFile::at(&path, &keeper.mark(service))? {
        ServiceFile::Absent => "not installed".to_owned(),
        ServiceFile::Foreign => format!("not installed by whosup: {place} is another file"),
        ServiceFile::Ours(bytes) if bytes == wanted(app, keeper, service)?.as_bytes() => {
            format!("installed: {place}")
        }
        ServiceFile::Ours(_) => format!(
            "out of date: {place} runs another program or was edited; `whosup service install {}` \
             writes it anew",
            service.name()
        ),
    })
}

fn file(app: &App<'_>, keeper: Keeper, service: Service) -> anyhow::Result<PathBuf> {
    keeper.file(service, app.world.machine().environment())
}

/// The text of the file.
fn wanted(app: &App<'_>, keeper: Keeper, service: Service) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut argv = vec![program];
    if let Some(config) = app.world.config_file() {
        argv.extend(["--config".into(), std::path::absolute(config)?]);
    }
    argv.push(service.name().into());
    let word = |word: PathBuf| {
        let word = word.into_os_string().into_string();
        word.ok()
            .context("cannot write a service: a path is not UTF-8")
    };
    let argv: Vec<String> = argv.into_iter().map(word).collect::<Result<_, _>>()?;
    keeper.text(service, &argv)
}

fn shown(app: &App<'_>, path: &std::path::Path) -> String {
    text::path(path, app.world.home())
}

fn run_or_say(
    app: &mut App<'_>,
    commands: &[Vec<String>],
    is_run: bool,
    why: &str,
) -> anyhow::Result<()> {
    if !is_run {
        say(app.err, why);
    }
    for words in commands {
        let line = shell::line(words.iter().map(String::as_str), None, [], shell::quoted);
        if !is_run {
            writeln!(app.out, "{}", text::visible(&line))?;
        } else if let [program, arguments @ ..] = words.as_slice() {
            let mut command = Command::new(program);
            let status = command.args(arguments).stdin(Stdio::null()).status();
            let status = status.with_context(|| format!("cannot run `{line}`"))?;
            ensure!(status.success(), "`{line}` failed: {status}");
        }
    }
    Ok(())
}
