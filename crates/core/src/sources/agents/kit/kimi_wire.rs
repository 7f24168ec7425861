//! The wire file of kimi-cli and of its successor Kimi Code: what the engine told
//! its interface, one record a line. The two name their records differently; how
//! a conversation is read out of them is the same.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::AgentId;
use whosup_sidecar::file::ReadFileError;

use crate::adapter::Description;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::one_per_session::Said;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::transcript::{HeadBounds, TailBounds, TranscriptError, TranscriptFile};

/// How much of the beginning is read: the first prompt comes after a few lines,
/// one of which may have the system prompt.
pub(crate) const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 64,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};

/// What both put where a prompt stands.
const WRAPPING: Wrapping = Wrapping {
    elements: &["kimi-", "notification", "system"],
    notices: &[],
};

/// How one of the two names its records.
pub(crate) struct Dialect {
    /// It is of the conversation itself. The others say how the session is set
    /// up, count, or may be written by a later start.
    pub(crate) is_of_conversation: fn(&Value) -> bool,
    /// The date of a record.
    pub(crate) at_ms: fn(&Value) -> Option<i64>,
    /// When the session was born, if the record says so.
    pub(crate) born_at_ms: fn(&Value) -> Option<i64>,
    /// What a person typed.
    pub(crate) prompt_of: fn(&Value) -> Option<String>,
    /// The model that was asked.
    pub(crate) model_of: fn(&Value) -> Option<String>,
    /// What the record does to the turn.
    pub(crate) step_of: fn(&Value) -> Step,
    /// What a session does in which nothing tells of a turn.
    pub(crate) phase_without_turn: Option<Phase>,
}

/// What a record does to the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// It begins.
    Begun,
    /// It ends, or is interrupted.
    Ended,
    /// Somebody is asked, by the names of the request and of what it is about.
    Asked {
        names: Vec<String>,
        waiting_for: Option<WaitingFor>,
    },
    /// What is called so has its answer.
    Answered(Option<String>),
    /// It goes on.
    Within,
    /// Nothing: it may stand between two turns.
    Aside,
}

/// What the records say of a session as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) born_at_ms: Option<i64>,
    /// The date inside the last record of the conversation.
    pub(crate) last_at_ms: Option<i64>,
    /// The first prompt, on one line.
    pub(crate) prompt: Option<String>,
    /// The model that was asked last.
    pub(crate) model: Option<String>,
    pub(crate) phase: Option<Phase>,
    pub(crate) waiting_for: Option<WaitingFor>,
    /// The date of the newest record that shows this phase.
    pub(crate) phase_at_ms: Option<i64>,
    /// The date of the record that began it.
    pub(crate) phase_since_ms: Option<i64>,
    /// Why some lines told nothing.
    pub(crate) problem: Option<String>,
}

/// What is known of a session without a transcript: before its first prompt it waits
/// for that.
pub(crate) fn of_untouched() -> Description {
    Description {
        phase: Some(Phase::Idle),
        ..Description::default()
    }
}

impl Dialect {
    /// Reads head and tail.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn read(&self, file: &TranscriptFile) -> Result<Told, TranscriptError> {
        let mut bad_lines = BadLines::default();
        let mut told = Told::default();
        let mut turn = Turn::default();
        for line in file.backwards(LAST_BOUNDS)? {
            let line = line?;
            if line.is_too_long() {
                turn.skip_one();
            }
            for record in bad_lines.values(&line).iter().rev() {
                if (self.is_of_conversation)(record) {
                    told.last_at_ms = told.last_at_ms.or_else(|| (self.at_ms)(record));
                }
                told.model = told.model.or_else(|| (self.model_of)(record));
                turn.add_backwards((self.step_of)(record), (self.at_ms)(record));
            }
            if told.last_at_ms.is_some() && told.model.is_some() && turn.answer.is_some() {
                break;
            }
        }
        told.phase_at_ms = turn.newest_at_ms;
        told.phase_since_ms = turn.since_ms;
        (told.phase, told.waiting_for) = turn.finish(self.phase_without_turn);
        let head = file.head(HEAD_BOUNDS)?;
        let mut words = FirstWords::default();
        let mut first_model = None;
        for record in head.lines.iter().flat_map(|line| bad_lines.values(line)) {
            told.born_at_ms = told.born_at_ms.or_else(|| (self.born_at_ms)(&record));
            first_model = (self.model_of)(&record).or(first_model);
            if let Some(text) = (self.prompt_of)(&record) {
                words.add([text.as_str()], &Wrapping::NONE);
            }
        }
        told.prompt = words.title();
        told.model = told.model.or(first_model);
        told.problem = bad_lines.message();
        Ok(told)
    }

    /// What the file at `path` tells of its session.
    pub(crate) fn describe(&self, agent: &AgentId, path: PathBuf) -> Found<Description> {
        let told = match TranscriptFile::open(&path).and_then(|file| self.read(&file)) {
            Ok(told) => told,
            Err(TranscriptError::File(ReadFileError::NotFound { .. })) => {
                return Found::clean(of_untouched());
            }
            Err(error) => {
                return Found {
                    found: Description::default(),
                    problems: vec![Problem::at(agent, &path, error.reason())],
                };
            }
        };
        let problem = told.problem.map(|text| Problem::at(agent, &path, text));
        Found {
            found: Description {
                is_title_a_prompt: told.prompt.is_some(),
                title: told.prompt,
                model: told.model,
                started_at_ms: told.born_at_ms,
                last_activity_at_ms: told.last_at_ms,
                phase: told.phase,
                waiting_for: told.waiting_for,
                phase_at_ms: told.phase_at_ms,
                phase_since_ms: told.phase_since_ms,
                transcript: Some(path),
                ..Description::default()
            },
            problems: problem.into_iter().collect(),
        }
    }

    /// Reads what was said in the file at `path`.
    pub(crate) fn said(&self, path: &Path) -> Said {
        let read = TranscriptFile::open(path).and_then(|file| self.last_at_ms(&file));
        read.map_or(Said::UNREADABLE, |last_at_ms| Said {
            has_words: last_at_ms.is_some(),
            last_at_ms,
        })
    }

    /// Reads the date inside the last record of the conversation.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn last_at_ms(&self, file: &TranscriptFile) -> Result<Option<i64>, TranscriptError> {
        for line in file.backwards(LAST_BOUNDS)? {
            let records = line?.json().values;
            let its = records.iter().rev();
            let mut its = its.filter(|record| (self.is_of_conversation)(record));
            if let Some(at) = its.find_map(|record| (self.at_ms)(record)) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// What a person typed: a text, or parts some of which are text.
pub(crate) fn text_of_input(input: &Value) -> Option<String> {
    let parts = input.as_array().into_iter().flatten();
    let texts = input
        .as_str()
        .into_iter()
        .chain(parts.filter_map(part_text));
    WRAPPING.typed_in(texts)
}

/// The text of a part that is one.
pub(crate) fn part_text(part: &Value) -> Option<&str> {
    if part.get("type")?.as_str()? != "text" {
        return None;
    }
    part.get("text")?.as_str()
}

/// What a session is doing, from its last record backwards: it is in a turn from
/// its beginning to its end (which is written after an interruption too), and
/// waits while a request of that turn has no answer.
#[derive(Default)]
struct Turn {
    answered: HashSet<String>,
    is_in_turn: bool,
    answer: Option<(Option<Phase>, Option<WaitingFor>)>,
    /// The date of its newest record.
    newest_at_ms: Option<i64>,
    /// The date of the record that began the phase.
    since_ms: Option<i64>,
}

impl Turn {
    fn add_backwards(&mut self, step: Step, at_ms: Option<i64>) {
        if self.answer.is_some() || step == Step::Aside {
            return;
        }
        self.newest_at_ms = self.newest_at_ms.or(at_ms);
        if step == Step::Begun || !self.is_in_turn {
            self.since_ms = at_ms;
        }
        match step {
            Step::Ended if !self.is_in_turn => self.answer = Some((Some(Phase::Idle), None)),
            Step::Begun | Step::Ended => self.answer = Some((Some(Phase::Working), None)),
            Step::Asked { names, waiting_for } => {
                if !names.iter().any(|name| self.answered.contains(name)) {
                    self.since_ms = at_ms;
                    self.answer = Some((Some(Phase::Waiting), waiting_for));
                }
            }
            Step::Answered(name) => self.answered.extend(name),
            Step::Within | Step::Aside => {}
        }
        self.is_in_turn = true;
    }

    /// A record could not be read. If it is the last, nothing is certain.
    fn skip_one(&mut self) {
        if !self.is_in_turn && self.answer.is_none() {
            self.answer = Some((None, None));
        }
    }

    fn finish(self, without_turn: Option<Phase>) -> (Option<Phase>, Option<WaitingFor>) {
        let phase = if self.is_in_turn {
            Some(Phase::Working)
        } else {
            without_turn
        };
        self.answer.unwrap_or((phase, None))
    }
}
