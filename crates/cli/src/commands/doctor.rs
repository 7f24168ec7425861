//! `whosup doctor`

use clap::Args;
use whosup_core::agents::{AGENTS, id_of};
use whosup_core::claim::EvidenceKind;
use whosup_core::machine::Machine;
use whosup_core::phase::Phase;
use whosup_core::record::read_records;
use whosup_core::session::{JudgedEvidence, Session};
use whosup_core::verdict::Liveness;
use whosup_track::{HookSite, Kept, Store, SweepOptions, SweepReport, installed};

use super::sweep::{options, sweep_here};
use crate::app::{App, Reach};
use crate::exit::ExitStatus;
use crate::text;

/// How long a session may be silent before that is worth a word, in milliseconds.
const SILENT_MS: i64 = 60 * 60 * 1_000;
/// How many problems are told one by one.
const PROBLEMS_TOLD_MAX: usize = 10;

const EXAMPLES: &str = "\
Examples:
  whosup doctor              What is wrong, and what to do about it
  whosup doctor --dry-run    The same, without ending what has exited

Ends first what has exited without saying so, as `whosup sweep` does.
Exit status: 0 nothing is wrong, 1 something is, 2 usage error or failure.";

/// What `doctor` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Changes nothing, not even records of what has exited
    #[arg(long)]
    dry_run: bool,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// What.
    what: String,
    /// What to do.
    fix: String,
}

impl Finding {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }
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
    let scanned = app.world.scan(&Reach::default())?;
    let snapshot = scanned.snapshot;
    let now_ms = app.world.machine().now_ms();
    let mut findings = of_sweep(&report);
    findings.extend(of_process_table(app.world.machine()));
    findings.extend(
        snapshot
            .sessions
            .iter()
            .flat_map(|one| of_session(one, now_ms)),
    );
    findings.extend(of_hooks(app)?);
    let told = snapshot.problems.iter().take(PROBLEMS_TOLD_MAX);
    findings.extend(told.map(|problem| {
        Finding::new(
            format!("cannot read everything: {problem}"),
            "look at that file; `whosup list --problems` has all of them",
        )
    }));
    if !report.ended.is_empty() {
        let sessions = text::count(report.ended.len(), "session", "sessions");
        let verb = if arguments.dry_run {
            "would end"
        } else {
            "ended"
        };
        writeln!(app.out, "{verb} {sessions} whose agent had exited")?;
    }
    for finding in &findings {
        writeln!(app.out, "{}", text::visible(&finding.what))?;
        writeln!(app.out, "  fix: {}", text::visible(&finding.fix))?;
    }
    if findings.is_empty() {
        writeln!(app.out, "nothing is wrong")?;
        return Ok(ExitStatus::Done);
    }
    Ok(ExitStatus::Findings)
}

fn of_sweep(report: &SweepReport) -> Vec<Finding> {
    let kept = report.kept.iter().map(|kept| {
        let Kept {
            agent,
            session,
            because,
        } = kept;
        Finding::new(
            format!("{agent} session {session} has exited and is not ended: {because}"),
            format!(
                "whosup why {agent}:{session}, and if you know better, whosup end {agent}:{session}"
            ),
        )
    });
    let problems = report.problems.iter().map(|problem| {
        Finding::new(
            format!("cannot use a session record: {problem}"),
            "look at that file, and remove it if it is of no use",
        )
    });
    kept.chain(problems).collect()
}

fn of_process_table(machine: &Machine) -> Vec<Finding> {
    let table = machine.table();
    let unusable = table.processes().err().map(|error| {
        Finding::new(
            format!("no process can be looked at: {error}"),
            "mount /proc for this PID namespace: mount -t proc proc /proc",
        )
    });
    let hidden = matches!(table.view().is_everything_shown, Ok(false)).then(|| {
        Finding::new(
            "processes of other users are hidden, so their sessions stay unknown",
            "mount /proc without `hidepid`, or run this as root",
        )
    });
    unusable.into_iter().chain(hidden).collect()
}

fn of_session(session: &Session, now_ms: i64) -> Vec<Finding> {
    let (agent, id) = (&session.key.agent, &session.key.session);
    let name = format!("{agent} session {id}");
    let why = format!("whosup why {agent}:{id}");
    let mut findings = Vec::new();
    if !session.other_live_pids.is_empty() {
        let pids: Vec<String> = session
            .other_live_pids
            .iter()
            .map(ToString::to_string)
            .collect();
        let owner = session.owner.as_ref().map(|owner| owner.pid.to_string());
        findings.push(Finding::new(
            format!(
                "{name} is claimed by several live processes: {}",
                owner.into_iter().chain(pids).collect::<Vec<_>>().join(", ")
            ),
            format!("{why}, then quit all but one of them"),
        ));
    }
    let silent_ms = session
        .last_activity_at_ms()
        .map(|at_ms| now_ms.saturating_sub(at_ms));
    if silent_ms.is_none_or(|silent_ms| silent_ms <= SILENT_MS) {
        return findings;
    }
    let age = text::age(now_ms, session.last_activity_at_ms().unwrap_or(now_ms));
    match (session.liveness(), session.phase()) {
        (Liveness::Live, Some(Phase::Working)) => findings.push(Finding::new(
            format!("{name} is stalled: it works, and nothing has happened for {age}"),
            format!("whosup show {agent}:{id} --tail 5, then look at its terminal"),
        )),
        // The sweep ends nothing of which this host can't be sure.
        (Liveness::Exited, phase) if has_record(session) && phase != Some(Phase::Ended) => {
            findings.push(Finding::new(
                format!(
                    "{name} has exited ({}), and its record is not of this host or says too little to end it",
                    session.verdict.reason()
                ),
                format!("{why}, then whosup end {agent}:{id}"),
            ));
        }
        (Liveness::Unknown, _) => findings.push(Finding::new(
            format!(
                "{name} is stale: unknown ({}), and silent for {age}",
                session.verdict.reason()
            ),
            format!("{why}, and if you know that it is gone, whosup end {agent}:{id}"),
        )),
        _ => {}
    }
    findings
}

/// A hook told of it, and its process is not one that went on to another session.
fn has_record(session: &Session) -> bool {
    let is_record = |judged: &JudgedEvidence| judged.evidence.kind == EvidenceKind::Record;
    session.superseded_by.is_none() && session.evidence.iter().any(is_record)
}

/// Hooks that are set in part, or that nothing was ever heard of.
fn of_hooks(app: &App<'_>) -> anyhow::Result<Vec<Finding>> {
    let store = Store::of(app.world.machine().environment())?;
    let program = std::env::current_exe()?;
    let records = read_records(store.root(), |_| true).found;
    let mut findings = Vec::new();
    for adapter in AGENTS.iter().copied().filter(|one| one.hooks().is_some()) {
        let agent = id_of(adapter);
        for home in app.world.homes_of(adapter, &[])? {
            let set = match installed(&HookSite {
                adapter,
                home: &home.root,
                environment: app.world.machine().environment(),
                program: &program,
            }) {
                Ok(set) => set,
                Err(error) => {
                    findings.push(Finding::new(error.to_string(), "correct that file"));
                    continue;
                }
            };
            if !set.present.is_empty() && !set.missing.is_empty() {
                findings.push(Finding::new(
                    format!(
                        "hooks of {agent} are set in part: {} are missing",
                        set.missing.join(", ")
                    ),
                    format!("whosup hooks install {agent}"),
                ));
            }
            let is_heard = records.iter().any(|stored| stored.record.agent == agent);
            let must_be_trusted = adapter.hooks().is_some_and(|hooks| hooks.must_be_trusted);
            if !set.present.is_empty() && !is_heard && must_be_trusted {
                findings.push(Finding::new(
                    format!("hooks of {agent} are set, and were never heard"),
                    "start it, and trust the hooks that it asks about",
                ));
            }
        }
    }
    Ok(findings)
}
