//! Processes without a claim, and the dates of the sessions that they may serve.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;

use super::Projects;
use super::name::{chats_in, transcript_path};
use crate::adapter::{AgentProcess, Clue, Unclaimed};
use crate::sources::agents::qwen_code::fit::{Dates, Fit};
use crate::sources::agents::qwen_code::home::Runtime;
use crate::sources::agents::qwen_code::{process, transcript};
use crate::sources::transcript::TranscriptFile;

impl Projects<'_, '_> {
    /// Dates the sessions that a process without a claim may be serving: `qwen -p`, versions
    /// before sidecars, and processes that have just started.
    pub(super) fn sketch_for_seekers(&mut self, is_all: bool) {
        let scan = &self.reading.scan;
        let mut seekers_in: BTreeMap<&Path, Vec<&AgentProcess>> = BTreeMap::new();
        for seeker in scan.seekers() {
            if scan.claims_of(&seeker.process).next().is_none() {
                for work_dir in seeker.work_dirs() {
                    seekers_in.entry(work_dir).or_default().push(seeker);
                }
            }
        }
        for (work_dir, seekers) in seekers_in {
            let has_prompt =
                |seeker: &&AgentProcess| process::plain_prompt(&seeker.program()).is_some();
            let are_prompts_wanted = seekers.iter().any(has_prompt);
            for runtime in self.runtimes {
                let chats = self.list(&chats_in(runtime, work_dir));
                self.read_passed_over(runtime, &chats.directory);
                for session in &chats.transcripts {
                    let path = transcript_path(&chats.directory, session);
                    if let Some(dates) = self.read_dates(&path, are_prompts_wanted) {
                        let fits = seekers.iter();
                        let fits = fits.filter_map(|seeker| Fit::of(seeker, session, &dates));
                        let fits: Vec<Fit> = fits.collect();
                        if is_all || !fits.is_empty() {
                            let others = Fit::others(&seekers, &fits);
                            self.sketch_dates(runtime, session, path, dates, &fits, others);
                        }
                    }
                }
            }
        }
    }

    fn read_dates(&mut self, path: &Path, are_prompts_wanted: bool) -> Option<Dates> {
        let read = TranscriptFile::open(path).and_then(|file| {
            let prompts = match are_prompts_wanted {
                true => transcript::read_prompts(&file)?,
                false => Vec::new(),
            };
            let last_record_at_ms = transcript::read_last_record_at(&file)?;
            let missing = transcript::DIALECT.missing_end(&file, last_record_at_ms)?;
            Ok(Dates {
                prompts,
                birth: transcript::read_birth(&file)?,
                last_record_at_ms,
                perhaps_until_ms: missing.map(|end| end.until_ms),
            })
        });
        self.reading.scan.read_or_report(path, read)
    }

    fn sketch_dates(
        &mut self,
        runtime: &Runtime,
        session: &SessionId,
        path: PathBuf,
        dates: Dates,
        fits: &[Fit],
        other_runs: Vec<Clue>,
    ) {
        if !self.is_ours(runtime, session) {
            return;
        }
        if fits.iter().any(|fit| fit.may_have_taken_up) {
            self.reading.share(session);
        }
        let is_headless = !fits.is_empty() && fits.iter().all(|fit| fit.is_headless);
        let is_named = fits.iter().any(|fit| fit.is_named);
        let sketch = self.reading.sketch(session);
        sketch.unclaimed = match fits.is_empty() {
            true => Unclaimed::NoProcess,
            false => Unclaimed::Owner,
        };
        sketch.born_at_ms = dates.birth.born_at_ms;
        sketch.last_record_at_ms = dates.last_record_at_ms;
        sketch.perhaps_until_ms = dates.perhaps_until_ms;
        // A run makes its session at its launch.
        if is_headless {
            sketch.launched_at_ms.extend(dates.birth.born_at_ms);
        }
        sketch.clues.extend(other_runs);
        sketch.work_dir = sketch.work_dir.take().or(dates.birth.work_dir);
        if is_headless && (sketch.is_headless.is_none() || is_named) {
            sketch.is_headless = Some(true);
        }
        self.set_transcript(session, path);
    }
}
