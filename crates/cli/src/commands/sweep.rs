//! `whosup sweep`

use clap::Args;
use whosup_core::process::Pid;
use whosup_core::views::wire::{self, timestamp};
use whosup_track::{SweepOptions, SweepReport, TrackError, sweep};

use super::after_end;
use crate::app::{App, say};
use crate::exit::ExitStatus;
use crate::json::reports::{Head, KeptDocument, SweepDocument, SweptDocument};
use crate::json::write_document;

const EXAMPLES: &str = "\
Examples:
  whosup sweep               End sessions that exited without reporting it
  whosup sweep --dry-run     Report what would be ended, and why the rest stays
  whosup sweep --forget-host 3f2a9c0d1e4b
                             End the sessions of a container that is gone

A session is ended only if its recorded process has provably exited and no other process serves
it or may serve it. Only whosup's own records are written; no agent's file is touched.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Report what would be ended, without writing
    #[arg(long)]
    dry_run: bool,
    /// Also end recorded sessions of this host, a machine or container that is gone
    #[arg(long, value_name = "NAME")]
    forget_host: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Ends the recorded sessions whose process is gone.
///
/// # Errors
///
/// If the configuration can't be understood, there is no place for records, or
/// the output can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &SweepArgs) -> anyhow::Result<ExitStatus> {
    let options = SweepOptions {
        is_dry_run: arguments.dry_run,
        forgotten_host: arguments.forget_host.clone(),
        ..options(app)?
    };
    let report = sweep_here(app, &options)?;
    if arguments.json {
        write_json(app, report, arguments.dry_run)?;
    } else {
        show(app, &report, arguments.dry_run)?;
    }
    Ok(ExitStatus::Done)
}

/// The configured options of sweeps.
///
/// # Errors
///
/// If the configuration can't be understood.
pub(crate) fn options(app: &App<'_>) -> anyhow::Result<SweepOptions> {
    let config = app.world.config()?;
    Ok(SweepOptions {
        keep_ended: config.tracking.keep_ended,
        end_unknown_after: config.tracking.end_unknown_after,
        extra_homes: config.reading.homes.clone(),
        ..SweepOptions::default()
    })
}

/// Sweeps, and starts the configured commands for sessions that have ended.
///
/// # Errors
///
/// If there is no place for records, or `--forget-host` names this host.
pub(crate) fn sweep_here(app: &App<'_>, options: &SweepOptions) -> Result<SweepReport, TrackError> {
    let report = sweep(|| app.world.look(), options)?;
    let environment = app.world.machine().environment();
    after_end::start(app, environment, &report.to_pass_on);
    Ok(report)
}

fn process(pid: Option<Pid>) -> String {
    pid.map_or_else(
        || "process not known".to_owned(),
        |pid| format!("process {pid}"),
    )
}

fn write_json(app: &mut App<'_>, report: SweepReport, is_dry_run: bool) -> anyhow::Result<()> {
    let ended = report.ended.into_iter().map(|swept| SweptDocument {
        agent: swept.agent.to_string(),
        session_id: swept.session.to_string(),
        cause: swept.cause.name().into_owned(),
        pid: swept.pid.map(Pid::get),
        ended_at: timestamp(swept.ended_at_ms),
    });
    let kept = report.kept.into_iter().map(|kept| KeptDocument {
        agent: kept.agent.to_string(),
        session_id: kept.session.to_string(),
        because: kept.because,
    });
    let document = SweepDocument {
        head: Head::of(app.world.machine()),
        is_dry_run,
        ended: ended.collect(),
        kept: kept.collect(),
        removed: report.removed,
        problems: report.problems.iter().map(wire::problem).collect(),
    };
    Ok(write_document(app.out, &document)?)
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
            app.world.local_time(swept.ended_at_ms).unwrap_or_default(),
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
