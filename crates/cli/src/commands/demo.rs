//! `whosup demo`: runs a command on made-up sessions.
//!
//! The demo writes the files of agents into a temporary home, and starts processes that
//! pose as agents: copies of this program at the paths where agents are installed in that
//! home. The command then runs on a machine with only this home and these processes.
//! Nothing outside the temporary directory is touched. When the demo ends, also by a
//! signal, its processes and that directory are removed. After a SIGKILL the processes
//! end as well, and only the directory stays.

mod claude_code;
mod codex;
mod kimi_cli;
mod only_these;
mod part;
mod props;
mod qwen_code;
mod stage;

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine, now_ms};
use whosup_core::process::{ProcessTable, system_backend};

use self::only_these::OnlyThese;
use self::part::Part;
use self::props::Props;
use self::stage::Stage;
use crate::app::{App, say};
use crate::cli;
use crate::colour::ColourChoice;
use crate::commands::{Command, run_command};
use crate::completion::command_of_demo;
use crate::exit::{ExitStatus, report_usage};
use crate::verbose;

/// One local disk, so that the answers do not depend on where the temporary directory is.
const MOUNTS: &[u8] = b"27 1 254:0 / / rw,relatime - ext4 /dev/root rw\n";

const ABOUT: &str = "\
This is a demo: these sessions are made up, in a temporary home, and their
processes are copies of whosup that pose as agents. All of it goes when it ends.";

// Runs a command on made-up sessions.
//
// Makes a temporary home with sessions of every supported agent in every condition, held by
// processes that pose as agents, and runs a command there: `list`, or what comes after `--`.
// Nothing else on this machine is looked at or touched, and nothing stays behind, also after
// Ctrl-C. (A SIGKILL leaves the temporary directory, but no process.)
//
// Exits with the status of the command.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  whosup demo
  whosup demo -- list --all --json
  whosup demo -- why 4f1c0a52
  whosup demo -- check 4f1c0a52

Exit status: that of the command.")]
pub(crate) struct DemoArgs {
    /// The command to try, with arguments; `list` if omitted
    #[arg(last = true, value_name = "COMMAND", add = ArgValueCompleter::new(command_of_demo))]
    command: Vec<OsString>,
}

/// The sessions that completion offers.
pub(crate) const SESSIONS: [&str; 5] = claude_code::SESSIONS;

/// Runs a command on made-up sessions.
///
/// # Errors
///
/// If the demo can't be set up, or the command failed.
pub(crate) fn run(app: &mut App<'_>, arguments: &DemoArgs) -> anyhow::Result<ExitStatus> {
    let words = std::iter::once(OsString::from("whosup")).chain(arguments.command.iter().cloned());
    let shown = match cli::parse(words) {
        Ok(shown) => shown,
        Err(error) => return Ok(report_usage(error)),
    };
    if matches!(shown.command, Some(Command::Demo(_))) {
        bail!("cannot show a demo in a demo");
    }
    if matches!(
        shown.command,
        Some(Command::Watch(_) | Command::Wait(_) | Command::Serve(_))
    ) {
        bail!("cannot watch a demo: nothing happens in it");
    }
    if shown.globals.config.is_some() {
        bail!("cannot use a configuration in a demo: its home has none");
    }
    let stage = Stage::build()?;
    let look = put_up(&stage)?;
    say(app.err, ABOUT);
    match shown.globals.color {
        ColourChoice::Auto => {}
        ColourChoice::Always => app.face.is_coloured = true,
        ColourChoice::Never => app.face.is_coloured = false,
    }
    if shown.globals.verbose {
        verbose::follow();
        app.is_verbose = true;
    }
    let mut inner = app.on(look);
    let answered = run_command(&mut inner, shown.command.unwrap_or_else(Command::list));
    // While signals still end the demo: the reader of the output may be slow.
    let written = app.out.flush();
    stage.end()?;
    let status = answered?;
    written?;
    Ok(status)
}

/// Starts the processes, writes the files, and returns the machine for the command.
fn put_up(stage: &Stage) -> anyhow::Result<impl Fn() -> Machine + use<>> {
    let props = Props::new(stage, now_ms());
    let parts: Vec<Part> = [
        claude_code::parts(),
        codex::parts(&props),
        qwen_code::parts(),
        kimi_cli::parts(),
    ]
    .into_iter()
    .flatten()
    .collect();
    for part in &parts {
        props.folder(part.work_dir)?;
    }
    codex::make_folders(&props)?;
    let props = props.with_actors(stage.start(&parts)?, now_ms());
    claude_code::write(&props)?;
    codex::write(&props)?;
    qwen_code::write(&props)?;
    kimi_cli::write(&props)?;
    stage.end_crashed()?;
    let home = stage.home().to_owned();
    let backend = Arc::new(OnlyThese::new(system_backend(), props.pids_that_stay()));
    let look = move || {
        let variables = [("HOME".to_owned(), home.clone().into_os_string())];
        Machine::new(
            Environment::new(Some(home.clone()), Some(home.clone()), variables),
            now_ms(),
            ProcessTable::look(backend.clone()),
            Mounts::parse(MOUNTS),
            Arc::new(NoCommands),
        )
    };
    if let Err(error) = look().table().processes() {
        return Err(anyhow!("cannot show a demo on this machine: {error}"));
    }
    Ok(look)
}
