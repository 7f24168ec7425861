//! `whosup sweep`

use clap::Args;
use whosup_core::machine::Machine;
use whosup_core::process::Pid;
use whosup_core::wire::timestamp;
use whosup_track::{SweepOptions, SweepReport, sweep};

use crate::app::{App, say};
use crate::exit::ExitStatus;

const EXAMPLES: &str = "\
Examples:
  whosup sweep               Ends what has exited without saying so
  whosup sweep --dry-run     Tells what it would end, and why the rest goes on

A session is ended only if its recorded process has provably exited and nothing else serves it or
may serve it. Only whosup's own records are written; no agent's file is touched.";

/// What `sweep` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Only tells what it would do
    #[arg(long)]
    dry_run: bool,
}

/// Ends the recorded sessions whose process is gone.
///
/// # Errors
///
/// If the configuration can't be understood, there is no place for records, or
/// nobody takes the output.
pub(crate) fn run(app: &mut App<'_>, arguments: &SweepArgs) -> anyhow::Result<ExitStatus> {
    let options = SweepOptions {
        is_dry_run: arguments.dry_run,
        extra_homes: app.world.config()?.homes.clone(),
        ..SweepOptions::default()
    };
    let report = sweep(Machine::here, &options)?;
    show(app, &report, arguments.dry_run)?;
    Ok(ExitStatus::Done)
}

fn process(pid: Option<Pid>) -> String {
    pid.map_or_else(
        || "process not known".to_owned(),
        |pid| format!("process {pid}"),
    )
}

fn show(app: &mut App<'_>, report: &SweepReport, is_dry_run: bool) -> anyhow::Result<()> {
    let (ended, removed) = if is_dry_run {
        ("would end", "would remove")
    } else {
        ("ended", "removed")
    };
    for swept in &report.ended {
        writeln!(
            app.out,
            "{ended} {} session {} ({}): {}, last sign of life {}",
            swept.agent,
            swept.session,
            swept.cause.name(),
            process(swept.pid),
            timestamp(swept.ended_at_ms).unwrap_or_default(),
        )?;
    }
    for kept in &report.kept {
        writeln!(
            app.out,
            "left {} session {} as it is: {}",
            kept.agent,
            kept.session,
            crate::text::visible(&kept.because)
        )?;
    }
    if report.removed > 0 {
        writeln!(
            app.out,
            "{removed} {} records of sessions that ended long ago",
            report.removed
        )?;
    }
    if report.ended.is_empty() && report.kept.is_empty() && report.removed == 0 {
        writeln!(app.out, "nothing to end")?;
    }
    for problem in &report.problems {
        say(
            app.err,
            &format!("warning: {}", crate::text::visible(&problem.to_string())),
        );
    }
    Ok(())
}
