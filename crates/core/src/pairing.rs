//! Pairs processes that publish no PID with sessions that name no process, by
//! elimination to a fixed point. Pure.
//!
//! What is not unique both ways stays unpaired and is shown as ambiguous with
//! its candidates. "The newest file in the directory" is never a reason.

use std::path::PathBuf;

use crate::claim::CLOCK_SLACK_MS;

/// A process that looks for its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeker {
    /// The directory it works in.
    pub work_dir: Option<PathBuf>,
    /// When it began, in milliseconds since 1970.
    pub began_at_ms: Option<i64>,
    /// The session that its arguments name: an id or the beginning of one.
    pub named: Option<String>,
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
    /// The name that a terminal may show for it.
    pub title: Option<String>,
    /// Some process serves it for certain (a held lock).
    pub is_held: bool,
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
#[must_use]
pub fn pair(seekers: &[Seeker], candidates: &[Candidate]) -> Pairs {
    let mut pool = Pool {
        seekers,
        candidates,
        free_seekers: vec![true; seekers.len()],
        free_candidates: vec![true; candidates.len()],
        result: Pairs::default(),
    };
    // Each round pairs at least one or is the last, so there are at most as
    // many rounds as seekers.
    while pool.pair_one() {}
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
    /// Pairs one process that can only go one way; `false` if there is none.
    fn pair_one(&mut self) -> bool {
        let rules = [
            Self::by_arguments as fn(&Self, usize, &[usize]) -> Option<Choice>,
            Self::by_title,
            Self::by_elimination,
            Self::by_sole_lock,
        ];
        for rule in rules {
            for seeker in 0..self.seekers.len() {
                if !self.is_free_seeker(seeker) {
                    continue;
                }
                let fits = self.fits_of(seeker);
                if let Some(choice) = rule(self, seeker, &fits) {
                    self.take(seeker, choice);
                    return true;
                }
            }
        }
        false
    }

    /// The arguments name it, unless a younger session can only be this
    /// process's: then it has moved on.
    fn by_arguments(&self, seeker: usize, fits: &[usize]) -> Option<Choice> {
        let named = self.seekers.get(seeker)?.named.as_deref()?;
        let mut named_ones = self.free().filter(|at| {
            self.candidates
                .get(*at)
                .is_some_and(|candidate| candidate.id.starts_with(named))
        });
        let (Some(candidate), None) = (named_ones.next(), named_ones.next()) else {
            return None;
        };
        let is_wanted_by_another = self.seekers.iter().enumerate().any(|(other, wanting)| {
            other != seeker
                && self.is_free_seeker(other)
                && wanting.named.as_deref().is_some_and(|named| {
                    self.candidates
                        .get(candidate)
                        .is_some_and(|candidate| candidate.id.starts_with(named))
                })
        });
        if is_wanted_by_another {
            return None;
        }
        let began = self.seekers.get(seeker)?.began_at_ms?;
        // Born after this process, and no other process can explain it.
        let moved_on = fits.iter().copied().filter(|at| {
            *at != candidate
                && self.is_born_after(*at, began)
                && self.seekers_of(*at).len() == 1
        });
        let moved_on: Vec<usize> = moved_on.collect();
        if moved_on.is_empty() {
            // A younger one that another process may explain as well makes the
            // arguments doubtful only once that process turns out not to.
            return Some(Choice::one(candidate, PairedBy::Arguments));
        }
        let current = self.youngest(&moved_on)?;
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
        let mut shown = fits.iter().copied().filter(|at| shows(seeker, *at).is_some());
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
        if let [only] = fits
            && (its.has_session || self.seekers_of(*only).len() == 1)
        {
            return Some(Choice::one(*only, by));
        }
        // Several sessions, and no other process can explain any of them: it
        // has gone from one to the next, and is now in the youngest.
        let are_all_its_own =
            fits.len() > 1 && fits.iter().all(|at| self.seekers_of(*at).len() == 1);
        if !are_all_its_own {
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
        let is_alone = !self.seekers.iter().enumerate().any(|(other, another)| {
            other != seeker && self.is_free_seeker(other) && another.work_dir == its.work_dir
        });
        match self.held_beside(seeker).as_slice() {
            [only] if is_alone && its.has_session && fits.iter().all(|at| at == only) => {
                Some(Choice::one(*only, PairedBy::Elimination))
            }
            _ => None,
        }
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
        // An older one that got records after the youngest was born was not left.
        let is_contradicted = among.iter().any(|at| {
            let last = self.candidates.get(*at).and_then(|one| one.last_record_at_ms);
            *at != youngest
                && last.zip(born(youngest)).is_some_and(|(last, born)| {
                    last > born.saturating_add(CLOCK_SLACK_MS)
                })
        });
        (!is_tie && !is_contradicted).then_some(youngest)
    }

    fn take(&mut self, seeker: usize, choice: Choice) {
        if let Some(free) = self.free_seekers.get_mut(seeker) {
            *free = false;
        }
        for at in choice.left.iter().chain([&choice.current]) {
            if let Some(free) = self.free_candidates.get_mut(*at) {
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
                let open = if fits.is_empty() { self.held_beside(seeker) } else { fits };
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

    /// The session may be this process's: same directory, and it was born or
    /// got records after the process began, or it is held by somebody.
    fn is_fit(&self, seeker: usize, candidate: usize) -> bool {
        let (Some(seeker), Some(candidate)) =
            (self.seekers.get(seeker), self.candidates.get(candidate))
        else {
            return false;
        };
        if !seeker.homes.is_empty() && !seeker.homes.contains(&candidate.home) {
            return false;
        }
        let is_named = seeker
            .named
            .as_deref()
            .is_some_and(|named| candidate.id.starts_with(named));
        let is_same_directory =
            seeker.work_dir.is_some() && seeker.work_dir == candidate.work_dir;
        let is_since = |at: Option<i64>| {
            at.zip(seeker.began_at_ms)
                .is_some_and(|(at, began)| at >= began.saturating_sub(CLOCK_SLACK_MS))
        };
        let is_of_its_time =
            is_since(candidate.born_at_ms) || is_since(candidate.last_record_at_ms);
        is_named || (is_same_directory && is_of_its_time)
    }

    /// Held sessions that no rule has placed, in the directory of a process.
    fn held_beside(&self, seeker: usize) -> Vec<usize> {
        let work_dir = self.seekers.get(seeker).and_then(|its| its.work_dir.as_ref());
        let is_beside = |at: &usize| {
            self.candidates.get(*at).is_some_and(|candidate| {
                candidate.is_held && work_dir.is_some() && candidate.work_dir.as_ref() == work_dir
            })
        };
        self.free().filter(is_beside).collect()
    }

    fn is_born_after(&self, candidate: usize, began_at_ms: i64) -> bool {
        self.candidates
            .get(candidate)
            .and_then(|candidate| candidate.born_at_ms)
            .is_some_and(|born| born > began_at_ms.saturating_add(CLOCK_SLACK_MS))
    }
}

struct Choice {
    current: usize,
    left: Vec<usize>,
    by: PairedBy,
}

impl Choice {
    const fn one(current: usize, by: PairedBy) -> Self {
        Self {
            current,
            left: Vec::new(),
            by,
        }
    }
}
