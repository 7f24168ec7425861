//! Which of several facts about a conversation counts.
//!
//! Hooks, the agent's own registry, the title of its terminal and its transcript each
//! report what a session does, and each of them misses something: no hook fires when a
//! person interrupts a turn, and a transcript does not record that permission is asked
//! for. So no source is preferred: the newest dated fact wins.

use whosup_process::{Pid, Process, StartStamp};

use super::{Phase, WaitingFor};

/// How far ahead of the clock a date may lie, in milliseconds. A later date is ignored.
const CLOCK_SLACK_MS: i64 = 2_000;

/// How long after a hook has reported the end of a turn the transcript may record it, in
/// milliseconds: when all hooks of that end have run, for each of which Claude Code waits a
/// minute (its documentation of hooks, 2026-11).
const HOOKS_MS_MAX: i64 = 60_000;

/// The word for a turn that has ended while its background work continues.
pub const BACKGROUND: &str = "background";

/// Returns whether a date lies so far ahead of `now_ms` that a clock was wrong.
#[must_use]
pub const fn is_ahead(at_ms: i64, now_ms: i64) -> bool {
    at_ms > now_ms.saturating_add(CLOCK_SLACK_MS)
}

/// The source of a fact. Of two facts with the same date, the earlier source here wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactSource {
    /// A hook of the agent, by our record.
    Hook,
    /// What the agent publishes: its registry, its sidecar, its table of sessions.
    Registry,
    /// The title of the terminal, as it is at the moment of the look.
    Title,
    /// The last records of the conversation.
    Transcript,
}

/// The phase of a conversation, from one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseFact {
    /// The source.
    pub source: FactSource,
    /// The phase; `None` if the agent's word maps to none.
    pub phase: Option<Phase>,
    /// What it waits for.
    pub waiting_for: Option<WaitingFor>,
    /// The agent's own word, where it publishes one.
    pub word: Option<String>,
    /// The date of the fact, in milliseconds since 1970, by which facts compete.
    pub at_ms: Option<i64>,
    /// The start of the phase; `None` if only `at_ms` is known.
    pub since_ms: Option<i64>,
    /// The process that it is about, if the source names it.
    pub process: Option<(Pid, StartStamp)>,
}

impl PhaseFact {
    /// A fact about a phase, without a date.
    #[must_use]
    pub const fn new(source: FactSource, phase: Option<Phase>) -> Self {
        Self {
            source,
            phase,
            waiting_for: None,
            word: None,
            at_ms: None,
            since_ms: None,
            process: None,
        }
    }

    /// The same with what it waits for.
    #[must_use]
    pub const fn waiting_for(mut self, what: Option<WaitingFor>) -> Self {
        self.waiting_for = what;
        self
    }

    /// The same in the agent's own word.
    #[must_use]
    pub fn in_word(mut self, word: &str) -> Self {
        self.word = Some(word.to_owned());
        self
    }

    /// The same with a date.
    #[must_use]
    pub const fn dated(mut self, at_ms: Option<i64>) -> Self {
        self.at_ms = at_ms;
        self
    }

    /// The same without dates that lie ahead of `now_ms`: a clock was wrong.
    #[must_use]
    pub fn by_the_clock(mut self, now_ms: i64) -> Self {
        let is_past = |at: &i64| !is_ahead(*at, now_ms);
        self.at_ms = self.at_ms.filter(is_past);
        self.since_ms = self.since_ms.filter(is_past);
        self
    }

    /// The title of a terminal whose agent shows a sign during a turn, without that sign:
    /// the session is in no turn, or the person has turned signs off.
    const fn is_missing_sign(&self) -> bool {
        matches!(self.source, FactSource::Title) && self.phase.is_none()
    }

    /// The transcript's record of the end of a turn that a hook has reported together with
    /// what continues in the background, of which the transcript knows nothing.
    fn is_of_end_in(&self, background: &Self) -> bool {
        let is_background = background.source == FactSource::Hook
            && background.phase == Some(Phase::Working)
            && background.word.as_deref() == Some(BACKGROUND);
        let dates = self.at_ms.zip(background.at_ms);
        is_background
            && (self.source, self.phase) == (FactSource::Transcript, Some(Phase::Idle))
            && dates.is_some_and(|(at, reported)| at <= reported.saturating_add(HOOKS_MS_MAX))
    }

    /// Its rank among facts: dated before undated, newest first.
    fn rank(&self) -> (std::cmp::Reverse<Option<i64>>, FactSource) {
        (std::cmp::Reverse(self.at_ms), self.source)
    }
}

/// The phase of a conversation, by the winning fact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doing {
    /// The phase.
    pub phase: Option<Phase>,
    /// What it waits for, while it waits.
    pub waiting_for: Option<WaitingFor>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// The agent's own word.
    pub word: Option<String>,
    /// Who reports it.
    pub source: Option<FactSource>,
}

/// Decides the phase of a live conversation.
///
/// `owner` is the process that serves it. A turn from before the start of that process was
/// left unfinished by an earlier process, and leaves the session idle, as an end does that
/// this process reported. An end that another process reported does not count.
#[must_use]
pub fn doing<'a>(
    facts: impl Iterator<Item = &'a PhaseFact> + Clone,
    owner: Option<&Process>,
) -> Doing {
    let is_known_better = |fact: &PhaseFact| {
        facts
            .clone()
            .any(|background| fact.is_of_end_in(background))
    };
    let is_others_end = |fact: &PhaseFact| {
        let others = fact.process.as_ref().zip(owner);
        fact.phase == Some(Phase::Ended)
            && others.is_some_and(|(named, owner)| !is_process(named, owner))
    };
    let has_phase = |fact: &&PhaseFact| {
        !fact.is_missing_sign() && !is_known_better(fact) && !is_others_end(fact)
    };
    let Some(newest) = facts
        .clone()
        .filter(has_phase)
        .min_by_key(|fact| fact.rank())
    else {
        return Doing::default();
    };
    if is_left_unfinished(newest, owner) || newest.phase == Some(Phase::Ended) {
        return Doing {
            phase: Some(Phase::Idle),
            since_ms: owner.and_then(Process::began_ms),
            ..Doing::default()
        };
    }
    // Not every agent announces or records an interruption: then only the title shows it, and
    // it has two readings.
    if newest.source == FactSource::Hook
        && matches!(newest.phase, Some(Phase::Working | Phase::Waiting))
        && facts.clone().any(PhaseFact::is_missing_sign)
    {
        return Doing::default();
    }
    // A title has neither a date nor details: a fact that agrees with it supplies them.
    let agreeing = facts
        .clone()
        .filter(|fact| fact.phase == newest.phase && fact.source != FactSource::Title)
        .min_by_key(|fact| fact.rank())
        .filter(|fact| !is_left_unfinished(fact, owner));
    let detailed = match newest.source {
        FactSource::Title => agreeing.unwrap_or(newest),
        _ => newest,
    };
    Doing {
        phase: newest.phase,
        waiting_for: newest
            .phase
            .filter(|phase| *phase == Phase::Waiting)
            .and_then(|_| waited_for(facts, detailed).or(newest.waiting_for)),
        since_ms: match detailed.source {
            FactSource::Title => None,
            _ => detailed.since_ms.or(detailed.at_ms),
        },
        word: detailed.word.clone().or_else(|| newest.word.clone()),
        source: Some(newest.source),
    }
}

/// What a waiting session waits for. An agent that asks for an answer and for permission in
/// one way may publish both as permission; a source that reports a question knows better.
fn waited_for<'a>(
    mut facts: impl Iterator<Item = &'a PhaseFact>,
    detailed: &PhaseFact,
) -> Option<WaitingFor> {
    let question = Some(WaitingFor::Question);
    let is_question =
        |fact: &PhaseFact| fact.phase == Some(Phase::Waiting) && fact.waiting_for == question;
    match detailed.waiting_for {
        Some(WaitingFor::Permission) if facts.any(is_question) => question,
        what => what,
    }
}

/// Decides the phase of a conversation whose process has exited, or may have: only an end
/// outlives the process.
#[must_use]
pub fn outlived<'a>(facts: impl Iterator<Item = &'a PhaseFact>) -> Doing {
    match facts.min_by_key(|fact| fact.rank()) {
        Some(fact) if fact.phase == Some(Phase::Ended) => Doing {
            phase: fact.phase,
            since_ms: fact.since_ms.or(fact.at_ms),
            source: Some(fact.source),
            ..Doing::default()
        },
        _ => Doing::default(),
    }
}

fn is_left_unfinished(fact: &PhaseFact, owner: Option<&Process>) -> bool {
    let is_turn = matches!(fact.phase, Some(Phase::Working | Phase::Waiting));
    let is_before = |(at, began): (i64, i64)| at.saturating_add(CLOCK_SLACK_MS) < began;
    // Dates lie where a clock was set; a stamp does not.
    let is_its_own = |owner: &Process| {
        let named = fact.process.as_ref();
        named.is_some_and(|named| is_process(named, owner))
    };
    let began = owner
        .filter(|owner| !is_its_own(owner))
        .and_then(Process::began_ms);
    is_turn && fact.at_ms.zip(began).is_some_and(is_before)
}

fn is_process((pid, stamp): &(Pid, StartStamp), process: &Process) -> bool {
    (*pid, stamp) == (process.pid, &process.stamp)
}

#[cfg(test)]
#[path = "fact_tests.rs"]
mod tests;
