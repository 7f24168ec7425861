//! Problems with session records, and with other unreadable files.

use whosup_core::machine::problem::Problem;
use whosup_core::sources::record::StoredRecord;
use whosup_track::{Kept, SweepReport};

use super::finding::Finding;
use crate::text;

/// How many problems are reported one by one.
const PROBLEMS_SHOWN_MAX: usize = 10;
/// How far in the future a record may be dated, in milliseconds.
const AHEAD_MS_MAX: i64 = 5 * 60 * 1_000;

/// The problems of the sweep.
pub(super) fn of_sweep(report: &SweepReport) -> Vec<Finding> {
    let kept = report.kept.iter().map(|kept| {
        let Kept {
            agent,
            session,
            because,
        } = kept;
        Finding::new(
            format!("{agent} session {session} has exited and is not ended: {because}"),
            format!(
                "whosup why {agent}:{session}; if you know that it has exited, whosup end {agent}:{session}"
            ),
        )
    });
    let problems = report.problems.iter().map(|problem| {
        let fix = match &problem.path {
            Some(path) => format!(
                "look at that file; if it is of no use, rm {}",
                crate::shell::quoted(&path.to_string_lossy())
            ),
            None => "look at the files in ~/.local/state/whosup".to_owned(),
        };
        Finding::new(format!("cannot use a session record: {problem}"), fix)
    });
    kept.chain(problems).collect()
}

/// Records that are dated in the future: the clock was set back since.
pub(super) fn of_dates(records: &[StoredRecord], now_ms: i64) -> Option<Finding> {
    let latest = now_ms.saturating_add(AHEAD_MS_MAX);
    let is_ahead = |stored: &&StoredRecord| stored.record.last_event_at_ms > latest;
    let ahead = records.iter().filter(is_ahead).count();
    (ahead > 0).then(|| {
        let records = text::count(ahead, "session record is", "session records are");
        Finding::new(
            format!("{records} dated later than now: the clock was set back, or is wrong"),
            "timedatectl status, and set the clock if it is wrong",
        )
    })
}

/// The problems of the scan, without those of the sweep.
pub(super) fn of_look(problems: &[Problem], report: &SweepReport) -> Vec<Finding> {
    let is_new = |problem: &&Problem| !report.problems.contains(problem);
    let new = problems.iter().filter(is_new);
    let findings = new.take(PROBLEMS_SHOWN_MAX).map(|problem| {
        Finding::new(
            format!("ignored: {problem}"),
            "look at that file; `whosup list --problems` has all of them",
        )
    });
    findings.collect()
}
