//! `whosup doctor`

mod finding;
mod hooks;
mod host;
mod records;
mod redaction;
mod sessions;

use clap::Args;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::sessions::session::Session;
use whosup_core::sources::record::read_records;
use whosup_track::{HookSite, Store, SweepOptions, SweepReport, make, plan_install};

use self::finding::{Check, Finding, Outcome, Remedy};
use self::redaction::Redaction;
use super::sweep::{options, sweep_here};
use crate::app::App;
use crate::exit::ExitStatus;
use crate::json::reports::{CheckedDocument, DoctorDocument, FindingDocument, Head};
use crate::json::write_document;
use crate::text;
use whosup_core::reader::{Filter, Reach, Wish, in_full};

const EXAMPLES: &str = "\
Examples:
  whosup doctor              Report problems and how to fix them
  whosup doctor --fix        Fix the problems marked with `*`, and nothing else
  whosup doctor --dry-run    Report without ending exited sessions
  whosup doctor --json --redact
                             For a bug report: without names of users, hosts and homes

Ends exited sessions first, as `whosup sweep` does.
Exit status: 0 no problems (or all fixed), 1 problems found, 2 usage error or failure.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Change nothing, not even the records of exited sessions
    #[arg(long, conflicts_with = "fix")]
    dry_run: bool,
    /// Fix the problems marked with `*`: install missing hooks
    #[arg(long)]
    fix: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Replace personal details: home directory, user and host names
    #[arg(long)]
    redact: bool,
}

/// Sweeps, and reports what is wrong.
///
/// # Errors
///
/// If the configuration can't be understood, there is no place for records, or
/// the output can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &DoctorArgs) -> anyhow::Result<ExitStatus> {
    let options = SweepOptions {
        is_dry_run: arguments.dry_run,
        ..options(app)?
    };
    let report = sweep_here(app, &options)?;
    let mut checks = host::checks(app.world.machine());
    checks.extend(look(app, &report)?);
    if arguments.fix {
        fix(app, &mut checks);
    }
    let redaction = if arguments.redact {
        Redaction::of(app.world.machine())
    } else {
        Redaction::default()
    };
    if arguments.json {
        let document = document(app, arguments, report.ended.len(), &checks, &redaction);
        write_document(app.out, &document)?;
    } else {
        write_ended(app, arguments, report.ended.len())?;
        for check in &checks {
            write(app, check, &redaction)?;
        }
        if checks.iter().all(|check| check.findings.is_empty()) {
            writeln!(app.out, "nothing is wrong")?;
        }
    }
    let mut findings = checks.iter().flat_map(|check| &check.findings);
    Ok(
        if findings.all(|finding| matches!(finding.outcome, Outcome::Fixed)) {
            ExitStatus::Done
        } else {
            ExitStatus::Findings
        },
    )
}

/// What is wrong with records, sessions and hooks, from one scan.
fn look(app: &App<'_>, report: &SweepReport) -> anyhow::Result<Vec<Check>> {
    let machine = app.world.machine();
    let mut scanned = app.world.scan(&Reach::default())?;
    // Hooks may be silent while the transcript grows.
    let is_working = |session: &Session| {
        session.liveness() == Liveness::Live && session.phase() == Some(Phase::Working)
    };
    scanned.snapshot.unattributed.clear();
    app.world.describe(&mut scanned, is_working)?;
    let snapshot = scanned.snapshot;
    let filter = Filter::new(Wish::default(), machine)?;
    let is_orphan = |one: &&Session| one.is_orphan() && filter.is_shown(one);
    let orphans: Vec<&Session> = snapshot.sessions.iter().filter(is_orphan).collect();
    let now_ms = machine.now_ms();
    let store = Store::of(machine.environment())?;
    let records = read_records(store.root(), |_| true).found;
    let number = text::count(records.len(), "session record", "session records");
    let of_records = records::of_sweep(report).into_iter();
    let mut checks = vec![Check::new(
        "records",
        format!("{number}, all usable"),
        of_records.chain(records::of_dates(&records, now_ms)),
    )];
    let sessions = sessions::checks(&snapshot.sessions, &orphans, &records, now_ms);
    checks.extend(sessions);
    checks.push(Check::new(
        "hooks",
        "installed hooks are complete, and their agents report through them",
        hooks::findings(app, &snapshot.sessions, &records)?,
    ));
    checks.push(Check::new(
        "files",
        "every file that was looked at could be read",
        records::of_look(&snapshot.problems, report),
    ));
    Ok(checks)
}

/// Applies the fixes that need no person.
fn fix(app: &App<'_>, checks: &mut [Check]) {
    let findings = checks.iter_mut().flat_map(|check| &mut check.findings);
    for finding in findings {
        if let Some(remedy) = &finding.remedy {
            finding.outcome = match put_right(app, remedy) {
                Ok(()) => Outcome::Fixed,
                Err(error) => Outcome::Failed(in_full(error.as_ref())),
            };
        }
    }
}

fn write_ended(app: &mut App<'_>, arguments: &DoctorArgs, ended: usize) -> anyhow::Result<()> {
    if ended > 0 {
        let sessions = text::count(ended, "session", "sessions");
        let verb = if arguments.dry_run {
            "would end"
        } else {
            "ended"
        };
        writeln!(app.out, "{verb} {sessions} whose agent had exited")?;
    }
    Ok(())
}

/// Writes a check: one line if all is well, else each finding with a fix.
fn write(app: &mut App<'_>, check: &Check, redaction: &Redaction) -> anyhow::Result<()> {
    let shown = |words: &str| text::visible(&redaction.apply(words));
    if check.findings.is_empty() {
        writeln!(app.out, "ok: {}", check.fine)?;
    }
    for finding in &check.findings {
        let mark = if finding.remedy.is_some() { "* " } else { "" };
        writeln!(app.out, "{mark}{}", shown(&finding.what))?;
        match &finding.outcome {
            Outcome::Left => writeln!(app.out, "  fix: {}", shown(&finding.fix))?,
            Outcome::Fixed => writeln!(app.out, "  fixed")?,
            Outcome::Failed(error) => writeln!(app.out, "  not fixed: {}", shown(error))?,
        }
    }
    Ok(())
}

fn document(
    app: &App<'_>,
    arguments: &DoctorArgs,
    ended: usize,
    checks: &[Check],
    redaction: &Redaction,
) -> DoctorDocument {
    let mut head = Head::of(app.world.machine());
    head.host.hostname = head.host.hostname.map(|name| redaction.apply(&name));
    let finding = |finding: &Finding| FindingDocument {
        what: redaction.apply(&finding.what),
        fix: redaction.apply(&finding.fix),
        is_fixable: finding.remedy.is_some(),
        is_fixed: matches!(finding.outcome, Outcome::Fixed),
        error: match &finding.outcome {
            Outcome::Failed(error) => Some(redaction.apply(error)),
            Outcome::Left | Outcome::Fixed => None,
        },
    };
    let checks = checks.iter().map(|check| CheckedDocument {
        check: check.name,
        is_ok: check.findings.is_empty(),
        findings: check.findings.iter().map(finding).collect(),
    });
    DoctorDocument {
        head,
        version: env!("CARGO_PKG_VERSION"),
        system: std::env::consts::OS,
        is_dry_run: arguments.dry_run,
        ended,
        checks: checks.collect(),
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
            // An earlier finding was about the same settings.
            if let Some(change) = plan_install(&site, &store)? {
                make(&change)?;
            }
            Ok(())
        }
    }
}
