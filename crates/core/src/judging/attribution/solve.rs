//! Decides which of its possible sessions each process serves. Pure.
//!
//! The input are processes that make no claim, and for each the sessions that it may
//! serve, with what is known of the pair. A process that has gone is an explanation too:
//! a session that was touched since a process was launched may belong to another process,
//! so that touching alone decides nothing.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of one process and one session, both by their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) process: usize,
    pub(super) session: usize,
    /// The arguments name the session, since this time.
    pub(super) named_at_ms: Option<i64>,
    /// The process was launched with the session, which was born or taken up then.
    pub(super) launched_at_ms: Option<i64>,
    /// The agent's log shows that the process was in the session then.
    pub(super) visited_at_ms: Option<i64>,
    /// Something happened in the session since the process was launched, in the directory
    /// of the process. (Of a session that a host serves: it is there.)
    pub(super) is_touched: bool,
    /// It was begun in a running process, after this one was launched.
    pub(super) is_begun_later: bool,
    /// The launch no longer shows where the process is. Either one of the directories was
    /// renamed, so that later sessions may be recorded under an unknown path, or the session
    /// has ended since, in an unknown process.
    pub(super) may_be_left: bool,
    /// The title of the terminal names the session.
    pub(super) is_shown: bool,
    /// The terminal was last used when something was last recorded in the session.
    pub(super) is_last_used: bool,
    /// The terminal had input since shortly before the session was born, or prompted
    /// last.
    pub(super) is_typed_since: bool,
}

impl Pair {
    /// Whether only the title of the terminal connects the two.
    pub(super) fn is_only_shown(&self) -> bool {
        self.is_shown && !self.is_touched && self.strongest().is_none()
    }

    /// When arguments, launch or log connect the two last, in milliseconds since 1970.
    pub(super) fn latest_ms(&self) -> Option<i64> {
        self.strongest().map(|(at_ms, _)| at_ms)
    }

    fn strongest(&self) -> Option<(i64, Because)> {
        let named = self.named_at_ms.map(|at| (at, Because::Arguments));
        let launched = self.launched_at_ms.map(|at| (at, Because::Launch));
        let visited = self.visited_at_ms.map(|at| (at, Because::Run));
        [named, launched, visited].into_iter().flatten().max()
    }
}

/// Why a process is taken to serve a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Because {
    /// Its arguments name the session, and nothing newer contradicts that.
    Arguments,
    /// It was launched with the session.
    Launch,
    /// The agent's log shows it.
    Run,
    /// The use or the title of its terminal chooses among the possible sessions.
    Terminal,
    /// Every process has a session, and this is the only one here.
    Sole,
}

/// A session, as far as the solver needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionDates {
    /// When it was born, as far as is known.
    pub(super) born_ms: Option<i64>,
    /// The latest that something can have happened in it.
    pub(super) latest_ms: Option<i64>,
}

/// A process, as far as the solver needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProcessFacts {
    /// When it began, as far as is known.
    pub(super) began_ms: Option<i64>,
    /// The log of its run may lack something: it may have moved to another session.
    pub(super) is_run_incomplete: bool,
    /// It moved, or may have moved, to a session that is not known.
    pub(super) is_lost: bool,
    /// When it was last seen to leave a session, or its hooks were heard last.
    pub(super) left_at_ms: Option<i64>,
    /// It always has one of the sessions that a host serves.
    pub(super) must_have_one: bool,
}

/// What the solver found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Solution {
    /// The session that each process serves.
    pub(super) serves: BTreeMap<usize, (usize, Because)>,
    /// Sessions that a process has left, and the session for which it left them.
    pub(super) left: BTreeMap<usize, usize>,
    /// The sessions that each other process may serve.
    pub(super) open: BTreeMap<usize, Vec<usize>>,
}

/// Decides for all processes.
pub(super) fn solve(
    processes: &[ProcessFacts],
    sessions: &[SessionDates],
    pairs: &[Pair],
) -> Solution {
    let mut solver = Solver {
        processes,
        sessions,
        pairs_of: (0..processes.len())
            .map(|process| {
                pairs
                    .iter()
                    .filter(|pair| pair.process == process)
                    .collect()
            })
            .collect(),
        solution: Solution::default(),
    };
    // Each round decides about a process or is the last.
    while solver.decide_some() {}
    solver.finish()
}

struct Solver<'a> {
    processes: &'a [ProcessFacts],
    sessions: &'a [SessionDates],
    pairs_of: Vec<Vec<&'a Pair>>,
    solution: Solution,
}

struct Choice {
    session: usize,
    because: Because,
    left: Vec<usize>,
}

impl Solver<'_> {
    /// Decides about every process whose session is clear from what was decided before.
    /// So the order of the processes does not matter.
    fn decide_some(&mut self) -> bool {
        let undecided: Vec<usize> = self.undecided().collect();
        // What is known directly explains sessions, before anything is chosen among the
        // rest.
        for rule in [Self::by_evidence, Self::by_choice] {
            let choices: Vec<(usize, Choice)> = undecided
                .iter()
                .filter_map(|process| Some((*process, rule(self, *process)?)))
                .collect();
            let chosen_by = |session: usize| {
                choices
                    .iter()
                    .filter(move |(_, choice)| choice.session == session)
            };
            let is_contested = |choice: &Choice| {
                choice.because >= Because::Terminal && chosen_by(choice.session).count() > 1
            };
            let clear: Vec<usize> = choices
                .iter()
                .filter(|(_, choice)| !is_contested(choice))
                .map(|(process, _)| *process)
                .collect();
            let mut is_any = false;
            for (process, choice) in choices {
                if clear.contains(&process) {
                    self.take(process, choice);
                    is_any = true;
                }
            }
            if is_any {
                return true;
            }
        }
        false
    }

    fn undecided(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.processes.len();
        all.filter(|process| !self.solution.serves.contains_key(process))
    }

    fn take(&mut self, process: usize, choice: Choice) {
        for left in choice.left {
            self.solution.left.insert(left, choice.session);
        }
        self.solution
            .serves
            .insert(process, (choice.session, choice.because));
    }

    /// A session that another process was found to serve, or has left.
    fn is_explained(&self, session: usize) -> bool {
        let mut served = self.solution.serves.values();
        served.any(|(served, _)| *served == session) || self.solution.left.contains_key(&session)
    }

    /// The session was born since `process` began, and before `other` did: `other` does not
    /// explain all that happened in it.
    fn is_born_between(&self, process: usize, other: usize, session: usize) -> bool {
        let born_ms = self.dates(session).born_ms;
        let (began_ms, other_ms) = (self.facts(process).began_ms, self.facts(other).began_ms);
        let dates = born_ms.zip(began_ms).zip(other_ms);
        dates.is_some_and(|((born, began), other)| began <= born && born < other)
    }

    /// Others explain what happened in the session since `process` began.
    fn is_explained_to(&self, process: usize, session: usize) -> bool {
        let serves = self.solution.serves.iter();
        let mut serving = serves.filter(|(_, (served, _))| *served == session);
        let explains = |other: usize| !self.is_born_between(process, other, session);
        self.solution.left.contains_key(&session) || serving.any(|(other, _)| explains(*other))
    }

    fn facts(&self, process: usize) -> ProcessFacts {
        self.processes.get(process).copied().unwrap_or_default()
    }

    fn pairs(&self, process: usize) -> impl Iterator<Item = &Pair> {
        self.pairs_of.get(process).into_iter().flatten().copied()
    }

    fn pair(&self, process: usize, session: usize) -> Option<&Pair> {
        self.pairs(process).find(|pair| pair.session == session)
    }

    fn dates(&self, session: usize) -> SessionDates {
        self.sessions.get(session).copied().unwrap_or_default()
    }

    /// The sessions that arguments, launch and log connect with a process, oldest first.
    fn evidence_of(&self, process: usize) -> Vec<(i64, Because, usize)> {
        let mut named = self
            .pairs(process)
            .filter(|pair| pair.named_at_ms.is_some());
        // A prefix that several sessions share identifies none of them.
        let is_named_once = named.next().is_some() && named.next().is_none();
        let left_at_ms = self.facts(process).left_at_ms;
        let mut evidence: Vec<_> = self
            .pairs(process)
            .filter_map(|pair| {
                let mut pair = pair.clone();
                pair.named_at_ms = pair.named_at_ms.filter(|_| is_named_once);
                let (at, because) = pair.strongest()?;
                (Some(at) > left_at_ms).then_some((at, because, pair.session))
            })
            .collect();
        evidence.sort_unstable();
        evidence
    }

    /// The sessions to which a process may have moved from `session`, with which it was
    /// launched. Later activity in `session` does not show that the process is still there:
    /// another process may have taken it up, and may have exited.
    fn doubts(&self, process: usize, session: usize, because: Because) -> Vec<usize> {
        // A move to a session without a prompt is in no log.
        let facts = self.facts(process);
        let is_whole = because == Because::Run && !facts.is_run_incomplete && !facts.is_lost;
        let others = self.pairs(process).filter(|pair| {
            pair.session != session
                && (pair.is_only_shown() || (!is_whole && pair.is_touched))
                && !self.is_explained_to(process, pair.session)
                && !self.is_of_another(process, pair.session)
        });
        others.map(|pair| pair.session).collect()
    }

    /// It is the last session that arguments, launch or log connect with another process.
    fn is_of_another(&self, process: usize, session: usize) -> bool {
        let mut others = self.undecided().filter(|other| *other != process);
        others.any(|other| {
            let last = self.evidence_of(other).last().copied();
            last.is_some_and(|(_, _, last)| last == session)
                && !self.is_born_between(process, other, session)
        })
    }

    /// The last session that arguments, launch or log connect with a process, where
    /// nothing shows that it may have moved to another session.
    fn by_evidence(&self, process: usize) -> Option<Choice> {
        if self.facts(process).is_lost {
            return None;
        }
        let evidence = self.evidence_of(process);
        let (at_ms, because, session) = *evidence.last()?;
        let is_tie = evidence
            .iter()
            .any(|(at, _, other)| *at == at_ms && *other != session);
        let may_be_left = because != Because::Run
            && self
                .pair(process, session)
                .is_some_and(|pair| pair.may_be_left);
        let is_clear = !is_tie && !may_be_left && self.doubts(process, session, because).is_empty();
        is_clear.then(|| Choice {
            session,
            because,
            left: others(&evidence, session),
        })
    }

    /// The session that the terminal chooses among all possible ones.
    fn by_choice(&self, process: usize) -> Option<Choice> {
        if self.facts(process).is_lost {
            return None;
        }
        let evidence = self.evidence_of(process);
        let possible = self.possible(process);
        let chosen = self.chosen_by_terminal(process, &possible, evidence.is_empty());
        let (session, because) = match chosen {
            Some(session) => (session, Because::Terminal),
            None => (self.sole(process, &possible)?, Because::Sole),
        };
        if self.is_explained(session) {
            return None;
        }
        let left = others(&evidence, session);
        // Evidence of another process does not show that this process left the session.
        let left = left.into_iter().filter(|left| !self.is_explained(*left));
        Some(Choice {
            session,
            because,
            left: left.collect(),
        })
    }

    /// The sessions that a process may serve: the last that is known of it, and those
    /// that were touched since.
    fn possible(&self, process: usize) -> Vec<usize> {
        let evidence = self.evidence_of(process);
        let mut possible: BTreeSet<usize> = match evidence.last() {
            Some((_, because, session)) => {
                let others = self.doubts(process, *session, *because);
                others.into_iter().chain([*session]).collect()
            }
            None => {
                let pairs = self.pairs(process);
                let touched = pairs.filter(|pair| pair.is_touched || pair.is_only_shown());
                let free = touched.filter(|pair| !self.is_explained(pair.session));
                free.map(|pair| pair.session).collect()
            }
        };
        let tied = evidence.iter().filter(|(at_ms, ..)| {
            evidence
                .last()
                .is_some_and(|(latest_ms, ..)| at_ms == latest_ms)
        });
        possible.extend(tied.map(|(_, _, session)| *session));
        possible.into_iter().collect()
    }

    fn chosen_by_terminal(
        &self,
        process: usize,
        possible: &[usize],
        is_without_evidence: bool,
    ) -> Option<usize> {
        let pairs = || {
            possible
                .iter()
                .filter_map(|session| self.pair(process, *session))
        };
        let is_shown_elsewhere = |session: usize| {
            let mut others = self.undecided().filter(|other| *other != process);
            others.any(|other| self.pair(other, session).is_some_and(|pair| pair.is_shown))
        };
        if let [only] = possible
            && self.pair(process, *only)?.is_only_shown()
        {
            return None;
        }
        if let Some(shown) = sole_of(pairs().filter(|pair| pair.is_shown)) {
            return (!is_shown_elsewhere(shown.session)).then_some(shown.session);
        }
        if let [only] = possible
            && is_without_evidence
        {
            let pair = self.pair(process, *only)?;
            // Which session did the process leave for it?
            let is_first = !pair.is_begun_later;
            let is_likely =
                is_first && pair.is_typed_since && self.is_only_candidate(process, *only);
            return is_likely.then_some(*only);
        }
        let used = sole_of(pairs().filter(|pair| pair.is_last_used))?;
        let latest = |session: usize| self.dates(session).latest_ms;
        let is_latest = possible
            .iter()
            .all(|session| latest(*session) <= latest(used.session));
        (is_latest && self.is_only_candidate(process, used.session)).then_some(used.session)
    }

    /// A process that always has a session, where a host serves only one that it may show.
    fn sole(&self, process: usize, possible: &[usize]) -> Option<usize> {
        match possible {
            [only]
                if self.facts(process).must_have_one && self.is_only_candidate(process, *only) =>
            {
                Some(*only)
            }
            _ => None,
        }
    }

    /// No other undecided process may explain the session.
    fn is_only_candidate(&self, process: usize, session: usize) -> bool {
        let mut others = self.undecided().filter(|other| *other != process);
        !others.any(|other| {
            self.pair(other, session)
                .is_some_and(|pair| pair.is_touched || pair.is_shown || pair.strongest().is_some())
        })
    }

    fn finish(mut self) -> Solution {
        for process in self.undecided().collect::<Vec<_>>() {
            let possible = self.possible(process);
            self.solution.open.insert(process, possible);
        }
        self.solution
    }
}

fn others(evidence: &[(i64, Because, usize)], session: usize) -> Vec<usize> {
    let others = evidence.iter().map(|(_, _, other)| *other);
    others.filter(|other| *other != session).collect()
}

fn sole_of<'a>(mut pairs: impl Iterator<Item = &'a Pair>) -> Option<&'a Pair> {
    match (pairs.next(), pairs.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
#[path = "solve_tests.rs"]
mod tests;
