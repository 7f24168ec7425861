//! Counts what sessions used, and caches the counts in the user's cache directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use whosup_core::adapter::Sketch;
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::sessions::scan::untouched_transcript;
use whosup_core::sessions::session::Session;
use whosup_core::sidecar::file::{Links, facts};
use whosup_core::sources::agents;
use whosup_core::sources::config::ConfigError;
use whosup_core::sources::usage::{Prices, QUARTER_MS, Tally, Usage};
use whosup_track::{CountJob, TrackError, UsageCache, WholeSession};

/// Counts what sessions used.
pub(crate) struct Ledger {
    cache: UsageCache,
    /// What tokens cost.
    pub(crate) prices: Prices,
    /// The models that have no price.
    pub(crate) without_price: BTreeSet<String>,
    /// What could not be counted.
    pub(crate) problems: Vec<Problem>,
}

impl Ledger {
    /// The ledger of the user.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the user's prices can't be understood.
    pub(crate) fn of(machine: &Machine) -> Result<Self, ConfigError> {
        let environment = machine.environment();
        Ok(Self {
            cache: UsageCache::of(environment),
            prices: Prices::read(environment)?,
            without_price: BTreeSet::new(),
            problems: Vec::new(),
        })
    }

    /// Counts what each of these sessions used; `None` where nothing is counted. Transcripts
    /// without a write since `since_ms` are left out. `counted` gets the number of transcripts
    /// done, and of all.
    pub(crate) fn count(
        &mut self,
        machine: &Machine,
        sketches: &[&Sketch],
        since_ms: Option<i64>,
        counted: &(dyn Fn(usize, usize) + Sync),
    ) -> Vec<Option<Tally>> {
        let mut jobs = Vec::new();
        let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
        // Sessions of agents whose records are read as a whole, with their positions.
        let mut whole: BTreeMap<&str, Vec<(usize, WholeSession)>> = BTreeMap::new();
        for (at, sketch) in sketches.iter().enumerate() {
            let Some(adapter) = agents::adapter(&sketch.key.agent) else {
                continue;
            };
            if let Some(problem) = untouched_transcript(machine, sketch) {
                self.problems.push(problem);
                continue;
            }
            let Some(counting) = adapter.profile().counting else {
                continue;
            };
            // Agents that are counted by transcript are skipped here.
            if adapter.counted_records(&[], &mut |_, _| {}).is_some() {
                let used_ms = sketch.last_record_at_ms.max(sketch.perhaps_until_ms);
                if since_ms
                    .zip(used_ms)
                    .is_none_or(|(since, used)| used >= since.saturating_sub(QUARTER_MS))
                {
                    let files = adapter.counted_files(sketch);
                    let session = WholeSession::new(&sketch.key.session, &files, sketch.born_at_ms);
                    match self.cache.whole(&session) {
                        // It had no records.
                        Some(tally) if tally == Tally::default() => {}
                        Some(tally) => tallies.entry(at).or_default().join(&tally),
                        None => {
                            let of_agent = whole.entry(sketch.key.agent.as_str()).or_default();
                            of_agent.push((at, session));
                        }
                    }
                }
            } else {
                let files = adapter.counted_files(sketch).into_iter();
                let files = files.filter(|path| since_ms.is_none_or(|since| is_newer(path, since)));
                jobs.extend(files.map(|path| (at, CountJob { counting, path })));
            }
        }
        for sessions in whole.into_values() {
            self.count_whole(sketches, sessions, &mut tallies);
        }
        let (owners, jobs): (Vec<usize>, Vec<CountJob>) = jobs.into_iter().unzip();
        let all = jobs.len();
        let results = self.cache.count(&jobs, &|done| counted(done, all));
        for ((at, job), result) in owners.into_iter().zip(&jobs).zip(results) {
            let agent = sketches.get(at).map(|sketch| &sketch.key.agent);
            let problem = |text: String| agent.map(|agent| Problem::at(agent, &job.path, text));
            match result {
                Ok(tally) => {
                    if tally.lost_lines > 0 {
                        let lines = tally.lost_lines;
                        let text = format!("{lines} of its lines can't be counted");
                        self.problems.extend(problem(text));
                    }
                    tallies.entry(at).or_default().join(&tally);
                }
                Err(error) => self.problems.extend(problem(error.reason())),
            }
        }
        (0..sketches.len()).map(|at| tallies.remove(&at)).collect()
    }

    /// Counts sessions of one agent, whose records are read as a whole.
    fn count_whole(
        &mut self,
        sketches: &[&Sketch],
        sessions: Vec<(usize, WholeSession)>,
        tallies: &mut BTreeMap<usize, Tally>,
    ) {
        let asked: Vec<&Sketch> = sessions
            .iter()
            .filter_map(|(at, _)| sketches.get(*at).copied())
            .collect();
        let agent = asked.first().map(|sketch| &sketch.key.agent);
        let Some(adapter) = agent.and_then(agents::adapter) else {
            return;
        };
        let mut each = |place: usize, records: &[Value]| {
            if let Some(((at, _), sketch)) = sessions.get(place).zip(asked.get(place))
                && let Some(counting) = adapter.profile().counting.filter(|_| !records.is_empty())
            {
                let tally = counting.count_records(records, sketch.born_at_ms);
                tallies.entry(*at).or_default().join(&tally);
            }
        };
        let problems = adapter.counted_records(&asked, &mut each);
        let problems = problems.unwrap_or_default();
        // What could not be read is looked at again the next time.
        if problems.is_empty() {
            for (at, session) in sessions {
                let nothing = Tally::default();
                let tally = tallies.get(&at).unwrap_or(&nothing);
                self.cache.keep_whole(session, tally);
            }
        }
        self.problems.extend(problems);
    }

    /// Counts what one session used.
    pub(crate) fn add_to(&mut self, machine: &Machine, session: &mut Session) {
        let mut sketch = session.sketch.clone();
        let described = session.description.transcript.clone();
        sketch.transcript = described.or(sketch.transcript);
        let tally = self
            .count(machine, &[&sketch], None, &|_, _| {})
            .pop()
            .flatten();
        // "Not counted" is not "nothing used".
        let tally = tally.filter(|tally| !tally.sums.is_empty());
        session.usage = tally.map(|tally| {
            let mut usage = Usage::default();
            for (slot, sums) in &tally.sums {
                usage.add(slot, sums, &self.prices, &mut self.without_price);
            }
            usage
        });
    }

    /// Saves the counts in the cache.
    ///
    /// # Errors
    ///
    /// Why the cache could not be written. The counts are right nevertheless.
    pub(crate) fn save(&mut self) -> Result<(), TrackError> {
        self.cache.save()
    }
}

/// The transcript was written to since, or that is unknown.
fn is_newer(path: &Path, since_ms: i64) -> bool {
    let modified_ms = facts(path, Links::Follow)
        .ok()
        .and_then(|facts| facts.modified_ms);
    modified_ms.is_none_or(|modified| modified >= since_ms.saturating_sub(QUARTER_MS))
}
