//! `whosup doctor`

mod finding;
mod hooks;
mod host;
mod records;
mod sessions;

use clap::Args;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::sessions::session::Session;
use whosup_core::sources::record::read_records;
use whosup_track::{HookSite, Store, SweepOptions, make, plan_install};

use self::finding::{Finding, Remedy};
use super::sweep::{options, sweep_here};
use crate::app::App;
use crate::exit::ExitStatus;
use crate::text;
use whosup_core::reader::Reach;

const EXAMPLES: &str = "\
Examples:
  whosup doctor              Report problems and how to fix them
  whosup doctor --fix        Fix the problems marked with `*`, and nothing else
  whosup doctor --dry-run    Report without ending exited sessions

Ends exited sessions first, as `whosup sweep` does.
Exit status: 0 no problems (or all fixed), 1 problems found, 2 usage error or failure.";

// What `doctor` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Change nothing, not even the records of exited sessions
    #[arg(long, conflicts_with = "fix")]
    dry_run: bool,
    /// Fix the problems marked with `*`: install missing hooks
    #[arg(long)]
    fix: bool,
}

/// Sweeps, and tells what is wrong.
///
/// # Errors
///
/// If the configuration can't be understood, there is no place for records, or
/// nobody takes the output.
pub(crate) fn run(app: &mut App<'_>, arguments: &DoctorArgs) -> anyhow::Result<ExitStatus> {
    let options = SweepOptions {
        is_dry_run: arguments.dry_run,
        ..options(app)?
    };
    let report = sweep_here(app, &options)?;
    if !report.ended.is_empty() {
        let sessions = text::count(report.ended.len(), "session", "sessions");
        let verb = if arguments.dry_run {
            "would end"
        } else {
            "ended"
        };
        writeln!(app.out, "{verb} {sessions} whose agent had exited")?;
    }
    let mut findings = host::findings(app.world.machine());
    findings.extend(records::of_sweep(&report));
    findings.extend(look(app)?);
    if findings.is_empty() {
        writeln!(app.out, "nothing is wrong")?;
        return Ok(ExitStatus::Done);
    }
    let mut left = 0;
    for finding in &findings {
        left += usize::from(!tell(app, finding, arguments.fix)?);
    }
    Ok(if left == 0 {
        ExitStatus::Done
    } else {
        ExitStatus::Findings
    })
}

/// What is wrong with sessions and hooks, by one look.
fn look(app: &App<'_>) -> anyhow::Result<Vec<Finding>> {
    let mut scanned = app.world.scan(&Reach::default())?;
    // A hook may be silent while its transcript grows.
    let is_working = |session: &Session| {
        session.liveness() == Liveness::Live && session.phase() == Some(Phase::Working)
    };
    scanned.snapshot.unattributed.clear();
    app.world.describe(&mut scanned, is_working)?;
    let snapshot = scanned.snapshot;
    let now_ms = app.world.machine().now_ms();
    let store = Store::of(app.world.machine().environment())?;
    let records = read_records(store.root(), |_| true).found;
    let mut findings: Vec<Finding> = records::of_dates(&records, now_ms).into_iter().collect();
    findings.extend(sessions::findings(&snapshot.sessions, &records, now_ms));
    findings.extend(hooks::findings(app, &snapshot.sessions, &records)?);
    findings.extend(records::of_look(&snapshot.problems));
    Ok(findings)
}

/// Tells of one finding, and puts it right if that is wanted and can be done.
fn tell(app: &mut App<'_>, finding: &Finding, fixes: bool) -> anyhow::Result<bool> {
    let mark = if finding.remedy.is_some() { "* " } else { "" };
    writeln!(app.out, "{mark}{}", text::visible(&finding.what))?;
    match &finding.remedy {
        Some(remedy) if fixes => match put_right(app, remedy) {
            Ok(()) => {
                writeln!(app.out, "  fixed")?;
                Ok(true)
            }
            Err(error) => {
                writeln!(
                    app.out,
                    "  not fixed: {}",
                    text::visible(&error.to_string())
                )?;
                Ok(false)
            }
        },
        _ => {
            writeln!(app.out, "  fix: {}", text::visible(&finding.fix))?;
            Ok(false)
        }
    }
}

fn put_right(app: &App<'_>, remedy: &Remedy) -> anyhow::Result<()> {
    match remedy {
        Remedy::SetHooks { adapter, home } => {
            let environment = app.world.machine().environment();
            let store = Store::of(environment)?;
            let program = std::env::current_exe()?;
            let site = HookSite {
                adapter: *adapter,
                home,
                environment,
                program: &program,
            };
            // Nothing to do where an earlier finding was of the same settings.
            if let Some(change) = plan_install(&site, &store)? {
                make(&change)?;
            }
            Ok(())
        }
    }
}
