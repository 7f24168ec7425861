//! Removes dates in the future, which come from files and databases.
//!
//! A clock that was set back, another machine's clock or a broken writer leaves such dates.
//! A session with a date one year ahead would be the newest session for a year. So the date
//! is removed as soon as it has been read, and reported as a problem. The other dates of the
//! session show how old it is.

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use whosup_sidecar::AgentId;

use crate::adapter::claim::{CLOCK_SLACK_MS, Claim, TakenUp};
use crate::adapter::{AgentScan, Description, Sketch};
use crate::machine::problem::Problem;

/// Removes dates in the future from the scan of one source, and reports them.
pub(crate) fn take_out(scan: &mut AgentScan, now_ms: i64, problems: &mut Vec<Problem>) {
    let mut named = HashSet::new();
    for claim in &mut scan.claims {
        if of_claim(claim, now_ms, problems) {
            named.insert(claim.key.clone());
        }
    }
    for sketch in &mut scan.sketches {
        of_files(sketch, now_ms, problems);
        let is_named = named.contains(&sketch.key);
        of_what_was_published(sketch, is_named, now_ms, problems);
    }
}

/// The same for the description from a session's files.
pub(crate) fn take_out_of_description(
    description: &mut Description,
    agent: &AgentId,
    file: Option<&Path>,
    now_ms: i64,
    problems: &mut Vec<Problem>,
) {
    let mut dates = Dates::new(now_ms);
    dates.check_description(description);
    dates.report(agent, file, problems);
}

/// Returns whether the claim had such a date.
fn of_claim(claim: &mut Claim, now_ms: i64, problems: &mut Vec<Problem>) -> bool {
    let mut dates = Dates::new(now_ms);
    dates.check(&mut claim.dated_at_ms);
    if let TakenUp::At(at_ms) = claim.taken_up
        && dates.is_of_future(at_ms)
    {
        claim.taken_up = TakenUp::AsDated;
    }
    dates.report(&claim.key.agent, claim.evidence.path.as_deref(), problems);
    dates.latest_ms.is_some()
}

/// Dates from the transcript or the database.
fn of_files(sketch: &mut Sketch, now_ms: i64, problems: &mut Vec<Problem>) {
    let mut dates = Dates::new(now_ms);
    dates.check(&mut sketch.born_at_ms);
    dates.check(&mut sketch.last_record_at_ms);
    dates.check(&mut sketch.started_at_ms);
    if let Some(described) = &mut sketch.described {
        dates.check_description(described);
    }
    // This date only makes the attribution uncertain, so it stays.
    if let Some(until_ms) = &mut sketch.perhaps_until_ms {
        *until_ms = now_ms.min(*until_ms);
    }
    let file = sketch.transcript.as_deref();
    let agent = &sketch.key.agent;
    dates.report(agent, file.or(Some(&sketch.key.home)), problems);
}

/// Dates from a registry or a record. Most of these make a claim too, which reports them.
fn of_what_was_published(
    sketch: &mut Sketch,
    is_named: bool,
    now_ms: i64,
    problems: &mut Vec<Problem>,
) {
    let mut dates = Dates::new(now_ms);
    dates.check(&mut sketch.ended_at_ms);
    for fact in &mut sketch.facts {
        dates.check(&mut fact.at_ms);
        dates.check(&mut fact.since_ms);
    }
    dates.check(&mut sketch.heard_at_ms);
    if !is_named {
        dates.report(&sketch.key.agent, Some(&sketch.key.home), problems);
    }
}

/// The dates of one thing that was read.
struct Dates {
    now_ms: i64,
    /// The latest date in the future.
    latest_ms: Option<i64>,
}

impl Dates {
    const fn new(now_ms: i64) -> Self {
        Self {
            now_ms,
            latest_ms: None,
        }
    }

    fn is_of_future(&mut self, at_ms: i64) -> bool {
        let is_of_future = at_ms > self.now_ms.saturating_add(CLOCK_SLACK_MS);
        if is_of_future {
            self.latest_ms = self.latest_ms.max(Some(at_ms));
        }
        is_of_future
    }

    fn check(&mut self, date: &mut Option<i64>) {
        if date.is_some_and(|at_ms| self.is_of_future(at_ms)) {
            *date = None;
        }
    }

    fn check_description(&mut self, description: &mut Description) {
        self.check(&mut description.started_at_ms);
        self.check(&mut description.last_activity_at_ms);
        self.check(&mut description.phase_at_ms);
        self.check(&mut description.phase_since_ms);
    }

    fn report(&self, agent: &AgentId, file: Option<&Path>, problems: &mut Vec<Problem>) {
        let Some(latest_ms) = self.latest_ms else {
            return;
        };
        let date = Timestamp::from_millisecond(latest_ms)
            .map_or_else(|_| format!("{latest_ms} ms"), |date| date.to_string());
        let message = format!("it has a date of the future, which is not used: `{date}`");
        problems.push(Problem {
            agent: Some(agent.clone()),
            path: file.map(Path::to_owned),
            message,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::claim::SessionKey;
    use crate::adapter::phase::{FactSource, PhaseFact};

    const NOW: i64 = 1_795_812_940_000;
    const YEAR: i64 = 31_536_000_000;

    fn sketch() -> Sketch {
        Sketch::new(SessionKey {
            agent: "codex".parse().unwrap(),
            session: "s1".parse().unwrap(),
            home: Path::new("/home/dev/.codex").into(),
        })
    }

    #[track_caller]
    fn check_taken_out(put: impl Fn(&mut Sketch, i64), read: impl Fn(&Sketch) -> Option<i64>) {
        for (at_ms, right) in [
            (NOW - YEAR, Some(NOW - YEAR)),
            (NOW + CLOCK_SLACK_MS, Some(NOW + CLOCK_SLACK_MS)),
            (NOW + CLOCK_SLACK_MS + 1, None),
            (i64::MAX, None),
        ] {
            let mut sketch = sketch();
            put(&mut sketch, at_ms);
            let mut scan = AgentScan::of(Vec::<Claim>::new(), [sketch]);
            let mut problems = Vec::new();
            take_out(&mut scan, NOW, &mut problems);
            assert_eq!(read(&scan.sketches[0]), right, "{at_ms}");
            assert_eq!(problems.len(), usize::from(right.is_none()), "{problems:?}");
        }
    }

    #[test]
    fn every_date_of_the_future_is_taken_out_and_named() {
        check_taken_out(
            |sketch, at| sketch.born_at_ms = Some(at),
            |sketch| sketch.born_at_ms,
        );
        check_taken_out(
            |sketch, at| sketch.last_record_at_ms = Some(at),
            |sketch| sketch.last_record_at_ms,
        );
        check_taken_out(
            |sketch, at| sketch.started_at_ms = Some(at),
            |sketch| sketch.started_at_ms,
        );
        check_taken_out(
            |sketch, at| sketch.ended_at_ms = Some(at),
            |sketch| sketch.ended_at_ms,
        );
        check_taken_out(
            |sketch, at| {
                sketch.facts = vec![PhaseFact {
                    at_ms: Some(at),
                    ..PhaseFact::new(FactSource::Registry, None)
                }];
            },
            |sketch| sketch.facts[0].at_ms,
        );
        let described = |at| Description {
            last_activity_at_ms: Some(at),
            ..Description::default()
        };
        check_taken_out(
            |sketch, at| sketch.described = Some(Box::new(described(at))),
            |sketch| sketch.described.as_ref().unwrap().last_activity_at_ms,
        );
    }

    #[test]
    fn the_problem_names_the_file_and_the_latest_date() {
        let mut sketch = sketch();
        sketch.transcript = Some("/home/dev/.codex/s1.jsonl".into());
        sketch.born_at_ms = Some(NOW + YEAR);
        sketch.last_record_at_ms = Some(NOW + 2 * YEAR);
        let mut scan = AgentScan::of(Vec::<Claim>::new(), [sketch]);
        let mut problems = Vec::new();
        take_out(&mut scan, NOW, &mut problems);
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert_eq!(
            problem.to_string(),
            "codex: /home/dev/.codex/s1.jsonl: it has a date of the future, which is not used: \
             `2028-11-26T20:55:40Z`"
        );
    }

    #[test]
    fn a_doubt_lasts_until_now_at_most() {
        let mut sketch = sketch();
        sketch.perhaps_until_ms = Some(NOW + YEAR);
        let mut scan = AgentScan::of(Vec::<Claim>::new(), [sketch]);
        let mut problems = Vec::new();
        take_out(&mut scan, NOW, &mut problems);
        assert_eq!(scan.sketches[0].perhaps_until_ms, Some(NOW));
        assert_eq!(problems, []);
    }
}
