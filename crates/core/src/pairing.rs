//! Pairs processes that publish no PID with sessions that name no process, by
//! elimination to a fixed point. Pure.
//!
//! What is not unique both ways stays unpaired and is shown as ambiguous with
//! its candidates. "The newest file in the directory" is never a reason.

mod lengths;

use std::collections::BTreeSet;
use std::path::PathBuf;

use whosup_process::Pid;

/// How much older than its process a session may look and still be its own, in
/// milliseconds: both are dated by this host's clock, so only for rounding.
const BIRTH_SLACK_MS: i64 = 250;

/// A process that looks for its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeker {
    /// Its id.
    pub pid: Pid,
    /// The directory it works in.
    pub work_dir: Option<PathBuf>,
    /// When it began, in milliseconds since 1970.
    pub began_at_ms: Option<i64>,
    /// The session that its arguments name: an id or the beginning of one.
    pub named: Option<String>,
    /// That session may lie in any directory.
    pub names_any_directory: bool,
    /// The agent's homes that it may use; empty if that isn't known.
    pub homes: Vec<PathBuf>,
    /// The title that its terminal shows.
    pub terminal_title: Option<String>,
    /// It must have a session, since its agent makes one at launch.
    pub has_session: bool,
}

/// A session that looks for its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The agent's id of it.
    pub id: String,
    /// The agent's home that it lies in.
    pub home: PathBuf,
    /// The directory it works in.
    pub work_dir: Option<PathBuf>,
    /// When it was born, in milliseconds since 1970.
    pub born_at_ms: Option<i64>,
    /// The date inside its last record.
    pub last_record_at_ms: Option<i64>,
    /// Until when it may have gone on, where the end of its records is missing.
    pub perhaps_until_ms: Option<i64>,
    /// The name that a terminal may show for it.
    pub title: Option<String>,
    /// A process came into being with it. Of several such sessions one at most
    /// is a process's; whose the others were, nobody can say.
    pub is_first_of_a_process: bool,
    /// Some process serves it for certain (a held lock).
    pub is_held: bool,
    /// The processes that may serve it, where that is told more closely than by
    /// directories and dates: then only these fit.
    pub possible_owners: Option<BTreeSet<Pid>>,
    /// Processes that may serve it, where one that has ended may have served it
    /// as well: these are not paired by elimination, with this or another one.
    pub doubtful_owners: BTreeSet<Pid>,
}

impl Seeker {
    fn may_use(&self, candidate: &Candidate) -> bool {
        self.homes.is_empty() || self.homes.contains(&candidate.home)
    }

    /// Its arguments name this session, and it can be the one that they mean.
    fn names(&self, candidate: &Candidate) -> bool {
        let is_named = self
            .named
            .as_deref()
            .is_some_and(|named| candidate.id.starts_with(named));
        let may_serve = candidate
            .possible_owners
            .as_ref()
            .is_none_or(|possible| possible.contains(&self.pid));
        let is_found_here = self.names_any_directory || self.may_work_beside(candidate);
        is_named && may_serve && is_found_here && self.may_use(candidate)
    }

    /// Same directory; or the session is served for certain and nothing on disk
    /// says yet in which one.
    fn may_work_beside(&self, candidate: &Candidate) -> bool {
        match (&self.work_dir, &candidate.work_dir) {
            (Some(its), Some(claimed)) => its == claimed,
            (Some(_), None) => candidate.is_held,
            (None, _) => false,
        }
    }
}

/// Why a pair is a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairedBy {
    /// The process's arguments name the session, and nothing newer contradicts.
    Arguments,
    /// Its terminal's title is the session's name, and no other's.
    Title,
    /// Neither has another one to go to.
    Elimination,
}

/// Who goes with whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// `(seeker, candidate)` by their places in the input.
    pub pairs: Vec<(usize, usize, PairedBy)>,
    /// Candidates that a paired process has left for a younger one:
    /// `(left, current)`.
    pub superseded: Vec<(usize, usize)>,
    /// For each seeker without a pair, the candidates that fit it.
    pub open: Vec<(usize, Vec<usize>)>,
}

/// Pairs seekers and candidates of one agent, home and directory rule.
///
/// Where the end of a session's records is missing, what is settled is settled both if
/// nothing was there and if it went on for as long as it may have.
#[must_use]
pub fn pair(seekers: &[Seeker], candidates: &[Candidate]) -> Pairs {
    let pairs = pair_as_told(seekers, candidates);
    match lengths::longest(seekers, candidates) {
        None => pairs,
        Some(longest) => lengths::agreed(pairs, pair_as_told(seekers, &longest)),
    }
}

fn pair_as_told(seekers: &[Seeker], candidates: &[Candidate]) -> Pairs {
    let mut pool = Pool {
        seekers,
        candidates,
        free_seekers: vec![true; seekers.len()],
        free_candidates: vec![true; candidates.len()],
        result: Pairs::default(),
    };
    // Each round pairs at least one or is the last, so there are at most as
    // many rounds as seekers.
    while pool.pair_some() {}
    pool.finish()
}

struct Pool<'a> {
    seekers: &'a [Seeker],
    candidates: &'a [Candidate],
    free_seekers: Vec<bool>,
    free_candidates: Vec<bool>,
    result: Pairs,
}

impl Pool<'_> {
    /// Pairs the processes that can only go one way; `false` if there are none.
    ///
    /// All of them at once, by what is free before any is taken, so that the
    /// order of processes does not matter; those that want the same session
    /// stay where they are.
    fn pair_some(&mut self) -> bool {
        let rules = [
            Self::by_arguments as fn(&Self, usize, &[usize]) -> Option<Choice>,
            Self::by_title,
            Self::by_elimination,
            Self::by_sole_lock,
        ];
        for rule in rules {
            let choices: Vec<(usize, Choice)> = (0..self.seekers.len())
                .filter(|seeker| self.is_free_seeker(*seeker))
                .filter_map(|seeker| Some((seeker, rule(self, seeker, &self.fits_of(seeker))?)))
                .collect();
            let mut wanted = vec![0_usize; self.candidates.len()];
            for at in choices.iter().flat_map(|(_, choice)| choice.all()) {
                if let Some(count) = wanted.get_mut(at) {
                    *count += 1;
                }
            }
            let is_sole = |choice: &Choice| {
                choice
                    .all()
                    .all(|at| wanted.get(at).is_some_and(|count| *count == 1))
            };
            let (sole, _contested): (Vec<_>, Vec<_>) =
                choices.into_iter().partition(|(_, choice)| is_sole(choice));
            if !sole.is_empty() {
                for (seeker, choice) in sole {
                    self.take(seeker, choice);
                }
                return true;
            }
        }
        false
    }

    /// The arguments name it, unless a younger session can only be this
    /// process's: then it has moved on.
    fn by_arguments(&self, seeker: usize, fits: &[usize]) -> Option<Choice> {
        let its = self.seekers.get(seeker)?;
        let mut named_ones = self
            .free()
            .filter(|at| self.candidates.get(*at).is_some_and(|one| its.names(one)));
        let (Some(candidate), None) = (named_ones.next(), named_ones.next()) else {
            return None;
        };
        let wanted = self.candidates.get(candidate)?;
        let is_wanted_by_another = self.seekers.iter().enumerate().any(|(other, wanting)| {
            other != seeker && self.is_free_seeker(other) && wanting.names(wanted)
        });
        if is_wanted_by_another {
            return None;
        }
        let began = its.began_at_ms?;
        // It may have gone on to one of these, or somebody else did who has ended.
        let mut others = fits.iter().filter(|at| **at != candidate);
        if others.any(|at| self.is_doubtful(seeker, *at)) {
            return None;
        }
        // Born after this process, and no other process can explain it.
        let moved_on = fits.iter().copied().filter(|at| {
            *at != candidate && self.is_born_after(*at, began) && self.seekers_of(*at).len() == 1
        });
        let moved_on: Vec<usize> = moved_on.collect();
        if moved_on.is_empty() {
            // A younger one that another process may explain as well makes the
            // arguments doubtful only once that process turns out not to.
            return Some(Choice::one(candidate, PairedBy::Arguments));
        }
        let current = self.youngest(&moved_on)?;
        if self.went_on_beside(candidate, current) {
            return None;
        }
        let mut left: Vec<usize> = moved_on.into_iter().filter(|at| *at != current).collect();
        left.push(candidate);
        Some(Choice {
            current,
            left,
            by: PairedBy::Elimination,
        })
    }

    /// One terminal shows this name, and one session has it.
    fn by_title(&self, seeker: usize, fits: &[usize]) -> Option<Choice> {
        let shows = |seeker: usize, candidate: usize| {
            let title = self.seekers.get(seeker)?.terminal_title.as_deref()?.trim();
            let name = self.candidates.get(candidate)?.title.as_deref()?.trim();
            let rest = title.strip_prefix(name)?;
            let is_whole = rest.is_empty() || rest.starts_with(" |") || rest.starts_with(" -");
            (!name.is_empty() && is_whole).then_some(())
        };
        let mut shown = fits
            .iter()
            .copied()
            .filter(|at| shows(seeker, *at).is_some());
        let (Some(candidate), None) = (shown.next(), shown.next()) else {
            return None;
        };
        let is_shown_elsewhere = (0..self.seekers.len()).any(|other| {
            other != seeker && self.is_free_seeker(other) && shows(other, candidate).is_some()
        });
        (!is_shown_elsewhere).then(|| Choice::one(candidate, PairedBy::Title))
    }

    fn by_elimination(&self, seeker: usize, fits: &[usize]) -> Option<Choice> {
        let by = PairedBy::Elimination;
        let its = self.seekers.get(seeker)?;
        if fits.iter().any(|at| self.is_doubtful(seeker, *at)) {
            return None;
        }
        if let [only] = fits
            && (its.has_session || self.seekers_of(*only).len() == 1)
        {
            return Some(Choice::one(*only, by));
        }
        // Several sessions, and no other process can explain any of them: it
        // has gone from one to the next, and is now in the youngest.
        let are_all_its_own =
            fits.len() > 1 && fits.iter().all(|at| self.seekers_of(*at).len() == 1);
        let is_first = |at: &usize| {
            self.candidates
                .get(*at)
                .is_some_and(|candidate| candidate.is_first_of_a_process)
        };
        if !are_all_its_own || fits.iter().filter(|at| is_first(at)).count() > 1 {
            return None;
        }
        let current = self.youngest(fits)?;
        let left = fits.iter().copied().filter(|at| *at != current).collect();
        Some(Choice { current, left, by })
    }

    /// One process and one held session are left in a directory: no date is
    /// needed, for somebody serves that session and nobody else is there.
    fn by_sole_lock(&self, seeker: usize, fits: &[usize]) -> Option<Choice> {
        let its = self.seekers.get(seeker)?;
        let held = self.held_beside(seeker);
        let [only] = held.as_slice() else {
            return None;
        };
        let is_alone = !(0..self.seekers.len()).any(|other| {
            other != seeker && self.is_free_seeker(other) && self.held_beside(other).contains(only)
        });
        let fits_no_other = fits.iter().all(|at| at == only);
        (is_alone && its.has_session && fits_no_other)
            .then(|| Choice::one(*only, PairedBy::Elimination))
    }

    /// The one born last, if its records do not contradict that the others
    /// were left for it.
    fn youngest(&self, among: &[usize]) -> Option<usize> {
        let born = |at: usize| self.candidates.get(at)?.born_at_ms;
        if among.iter().any(|at| born(*at).is_none()) {
            return None;
        }
        let youngest = among.iter().copied().max_by_key(|at| born(*at))?;
        let is_tie = among
            .iter()
            .any(|at| *at != youngest && born(*at) == born(youngest));
        let is_contradicted = among
            .iter()
            .any(|at| *at != youngest && self.went_on_beside(*at, youngest));
        (!is_tie && !is_contradicted).then_some(youngest)
    }

    /// An older one that got records after the youngest was born was not left for it.
    fn went_on_beside(&self, older: usize, youngest: usize) -> bool {
        let last = self.candidates.get(older);
        let last = last.and_then(|one| one.last_record_at_ms);
        let born = self.candidates.get(youngest);
        let born = born.and_then(|one| one.born_at_ms);
        last.zip(born)
            .is_some_and(|(last, born)| last > born.saturating_add(BIRTH_SLACK_MS))
    }

    fn take(&mut self, seeker: usize, choice: Choice) {
        if let Some(free) = self.free_seekers.get_mut(seeker) {
            *free = false;
        }
        for at in choice.all() {
            if let Some(free) = self.free_candidates.get_mut(at) {
                *free = false;
            }
        }
        let left = choice.left.into_iter().map(|left| (left, choice.current));
        self.result.superseded.extend(left);
        self.result.pairs.push((seeker, choice.current, choice.by));
    }

    fn finish(mut self) -> Pairs {
        for seeker in 0..self.seekers.len() {
            if self.is_free_seeker(seeker) {
                let fits = self.fits_of(seeker);
                let open = if fits.is_empty() {
                    self.held_beside(seeker)
                } else {
                    fits
                };
                self.result.open.push((seeker, open));
            }
        }
        self.result
    }

    fn free(&self) -> impl Iterator<Item = usize> {
        let free = self.free_candidates.iter().enumerate();
        free.filter_map(|(at, free)| free.then_some(at))
    }

    fn is_free_seeker(&self, seeker: usize) -> bool {
        self.free_seekers.get(seeker).copied().unwrap_or(false)
    }

    fn fits_of(&self, seeker: usize) -> Vec<usize> {
        self.free().filter(|at| self.is_fit(seeker, *at)).collect()
    }

    fn seekers_of(&self, candidate: usize) -> Vec<usize> {
        (0..self.seekers.len())
            .filter(|seeker| self.is_free_seeker(*seeker) && self.is_fit(*seeker, candidate))
            .collect()
    }

    /// The session may be this process's: that is told; or it is the same
    /// directory, and it was born or got records after the process began; or
    /// its arguments name it.
    fn is_fit(&self, seeker: usize, candidate: usize) -> bool {
        let (Some(seeker), Some(candidate)) =
            (self.seekers.get(seeker), self.candidates.get(candidate))
        else {
            return false;
        };
        if !seeker.may_use(candidate) {
            return false;
        }
        if let Some(possible) = &candidate.possible_owners {
            return possible.contains(&seeker.pid);
        }
        let is_since = |at: Option<i64>| {
            at.zip(seeker.began_at_ms)
                .is_some_and(|(at, began)| at >= began.saturating_sub(BIRTH_SLACK_MS))
        };
        let is_of_its_time =
            is_since(candidate.born_at_ms) || is_since(candidate.last_record_at_ms);
        seeker.names(candidate) || (seeker.may_work_beside(candidate) && is_of_its_time)
    }

    fn is_doubtful(&self, seeker: usize, candidate: usize) -> bool {
        let pair = self.seekers.get(seeker).zip(self.candidates.get(candidate));
        pair.is_some_and(|(seeker, candidate)| candidate.doubtful_owners.contains(&seeker.pid))
    }

    /// Held sessions that no rule has placed and that may be in the directory
    /// of a process.
    fn held_beside(&self, seeker: usize) -> Vec<usize> {
        let is_beside = |at: &usize| {
            let pair = self.seekers.get(seeker).zip(self.candidates.get(*at));
            pair.is_some_and(|(seeker, candidate)| {
                candidate.is_held && seeker.may_use(candidate) && seeker.may_work_beside(candidate)
            })
        };
        self.free().filter(is_beside).collect()
    }

    fn is_born_after(&self, candidate: usize, began_at_ms: i64) -> bool {
        self.candidates
            .get(candidate)
            .and_then(|candidate| candidate.born_at_ms)
            .is_some_and(|born| born > began_at_ms.saturating_add(BIRTH_SLACK_MS))
    }
}

struct Choice {
    current: usize,
    left: Vec<usize>,
    by: PairedBy,
}

impl Choice {
    /// Every session that it takes out of the pool.
    fn all(&self) -> impl Iterator<Item = usize> {
        self.left.iter().copied().chain([self.current])
    }

    const fn one(current: usize, by: PairedBy) -> Self {
        Self {
            current,
            left: Vec::new(),
            by,
        }
    }
}

#[cfg(test)]
mod tests;
