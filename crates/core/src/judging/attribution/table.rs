//! Tabulates what connects each process without a claim with each session that it may
//! serve.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;

use super::directory::Beside;
use super::launch::{Event, Launched, match_launches};
use super::seeker::Seeker;
use super::solve::{Pair, SessionDates};
use super::terminal;
use super::{Drafts, attributed, process_key};
use crate::adapter::claim::SessionKey;
use crate::adapter::{ClueKind, Switch, Unclaimed, Visit};
use crate::sessions::merge::{Draft, Parts};

/// When a session was born, and the latest that something can have happened in it.
pub(super) fn dates(draft: &Draft) -> SessionDates {
    let sketch = &draft.sketch;
    let last_ms = sketch.last_record_at_ms.max(sketch.born_at_ms);
    SessionDates {
        born_ms: sketch.born_at_ms,
        latest_ms: last_ms.max(sketch.perhaps_until_ms),
    }
}

/// What is known of each process and each session.
pub(super) struct Table {
    pub(super) dates: Vec<SessionDates>,
    pub(super) pairs: Vec<Pair>,
    /// Processes that moved, or may have moved, to a session that is not known.
    pub(super) lost: BTreeSet<usize>,
}

impl Table {
    pub(super) fn new(
        drafts: &Drafts,
        parts: &Parts,
        part: Unclaimed,
        keys: &[SessionKey],
        seekers: &[Seeker<'_>],
    ) -> Self {
        let rows: Vec<(&SessionKey, &Draft)> = keys
            .iter()
            .filter_map(|key| Some((key, drafts.get(key)?)))
            .collect();
        let mut pairs = Vec::new();
        for (process, seeker) in seekers.iter().enumerate() {
            for (session, (key, draft)) in rows.iter().enumerate() {
                let pair = pair_of(seeker, key, draft, part);
                pairs.extend(pair.map(|pair| Pair {
                    process,
                    session,
                    ..pair
                }));
            }
        }
        let mut table = Self {
            dates: rows.iter().map(|(_, draft)| dates(draft)).collect(),
            pairs,
            lost: BTreeSet::new(),
        };
        let taken = attributed(drafts);
        let agent = keys.first().map(|key| &key.agent);
        let claiming = parts.processes.iter().filter(|process| {
            Some(&process.agent) == agent
                && process.may_have_session()
                && taken.contains(&process_key(&process.process))
        });
        let claiming: Vec<Seeker<'_>> = claiming
            .map(|process| Seeker::of(process, parts, &HashSet::new()))
            .collect();
        let launched = table.find_launches(&rows, seekers, part, &claiming);
        table.find_visits(&rows, seekers, &launched);
        table.find_switches(&rows, seekers);
        table
    }

    fn pair_mut(&mut self, process: usize, session: usize) -> Option<&mut Pair> {
        let mut pairs = self.pairs.iter_mut();
        pairs.find(|pair| (pair.process, pair.session) == (process, session))
    }

    /// Which session each process was launched with.
    fn find_launches(
        &mut self,
        rows: &[(&SessionKey, &Draft)],
        seekers: &[Seeker<'_>],
        part: Unclaimed,
        claiming: &[Seeker<'_>],
    ) -> BTreeMap<usize, (usize, i64)> {
        let named = self.pairs.iter().filter(|pair| pair.named_at_ms.is_some());
        let named: BTreeSet<usize> = named.map(|pair| pair.process).collect();
        let mut events: Vec<(usize, RangeInclusive<i64>, Event)> = Vec::new();
        for (session, (_, draft)) in rows.iter().enumerate() {
            let launches = launches_of(draft).map(|at_ms| (at_ms..=at_ms, true));
            let perhaps = perhaps_launched_ms(draft, seekers).map(|time_ms| (time_ms, false));
            for (time_ms, is_sure) in launches.chain(perhaps) {
                let beside = self.pairs.iter().filter(|pair| pair.session == session);
                let candidates = beside.filter(|pair| {
                    let seeker = seekers.get(pair.process);
                    // A process that was launched for one session begins no other session.
                    let is_for_another =
                        pair.named_at_ms.is_none() && named.contains(&pair.process);
                    pair.is_touched
                        && !is_for_another
                        && seeker.is_some_and(|seeker| {
                            seeker.may_be_launched_within(&time_ms)
                                && seeker.may_be_launched_in(draft.sketch.work_dir.as_deref())
                                && (part == Unclaimed::Client
                                    || seeker.makes_session_unprompted()
                                    || !seeker.is_silent_since(*time_ms.start()))
                        })
                });
                let own: Vec<usize> = candidates.map(|pair| pair.process).collect();
                let displaced = displaced(seekers, rows.get(session), &time_ms);
                let all: BTreeSet<usize> = own.iter().copied().chain(displaced).collect();
                if !all.is_empty() {
                    let event = Event {
                        processes: all.into_iter().collect(),
                        sure: if is_sure { own } else { Vec::new() },
                    };
                    events.push((session, time_ms, event));
                }
            }
        }
        // A process that claims a session now may have been launched with another one.
        events.retain(|(session, time_ms, _)| {
            !claiming.iter().any(|seeker| {
                let row = rows.get(*session);
                seeker.may_be_launched_within(time_ms)
                    && row.is_some_and(|(key, draft)| {
                        seeker.process.may_use(&key.home)
                            && seeker.is_beside(draft.sketch.work_dir.as_deref(), false)
                    })
            })
        });
        let launched: Vec<Launched> = seekers
            .iter()
            .map(|seeker| Launched {
                has_event: seeker.profile.has_session_at_launch,
            })
            .collect();
        let plain: Vec<Event> = events.iter().map(|(_, _, event)| event.clone()).collect();
        let mut found = BTreeMap::new();
        for (process, event) in match_launches(&launched, &plain) {
            let Some((session, time_ms, _)) = events.get(event) else {
                continue;
            };
            let at_ms = time_ms.start();
            found.insert(process, (*session, *at_ms));
            if let Some(pair) = self.pair_mut(process, *session) {
                pair.launched_at_ms = Some(*at_ms);
            }
        }
        found
    }

    /// Follows the processes with a known first session through the agent's log.
    fn find_visits(
        &mut self,
        rows: &[(&SessionKey, &Draft)],
        seekers: &[Seeker<'_>],
        launched: &BTreeMap<usize, (usize, i64)>,
    ) {
        for (process, seeker) in seekers.iter().enumerate() {
            let Some((first, begun_at_ms)) = self.first_of(process, seeker, rows, launched) else {
                continue;
            };
            let Some((first, begun)) = rows.get(first) else {
                continue;
            };
            if begun.sketch.lost_launches_ms.contains(&begun_at_ms) {
                self.lost.insert(process);
            }
            for (session, (key, draft)) in rows.iter().enumerate() {
                let visits = draft.sketch.visits.iter();
                let visits = visits.filter(|visit| {
                    visit.launched_with == first.session
                        && visit.launched_at_ms == begun_at_ms
                        && key.home == first.home
                });
                let at_ms = visits.map(|visit| visit.at_ms).max();
                if at_ms.is_some() {
                    match self.pair_mut(process, session) {
                        Some(pair) => pair.visited_at_ms = pair.visited_at_ms.max(at_ms),
                        None => self.pairs.push(Pair {
                            process,
                            session,
                            visited_at_ms: at_ms,
                            ..Pair::default()
                        }),
                    }
                }
            }
        }
    }

    /// The session that a process was launched with, and when: by its launch, or by its
    /// arguments and the one start of that session in its start window.
    fn first_of(
        &self,
        process: usize,
        seeker: &Seeker<'_>,
        rows: &[(&SessionKey, &Draft)],
        launched: &BTreeMap<usize, (usize, i64)>,
    ) -> Option<(usize, i64)> {
        if let Some(launched) = launched.get(&process) {
            return Some(*launched);
        }
        let named = self
            .pairs
            .iter()
            .find(|pair| pair.process == process && pair.named_at_ms.is_some())?;
        let (_, draft) = rows.get(named.session)?;
        let mut starts = launches_of(draft).filter(|at_ms| seeker.may_be_launched_at(*at_ms));
        match (starts.next(), starts.next()) {
            (Some(only), None) => Some((named.session, only)),
            _ => None,
        }
    }

    /// The agent's log shows that a running process made a session and moved to it. If there
    /// is only one process, it was that process. Of several, each may have left what it was
    /// in before.
    fn find_switches(&mut self, rows: &[(&SessionKey, &Draft)], seekers: &[Seeker<'_>]) {
        let known_since = |pairs: &[Pair], process: usize| {
            let its = pairs.iter().filter(|pair| pair.process == process);
            its.filter_map(Pair::latest_ms).max()
        };
        let mut left_perhaps: Vec<(usize, i64)> = Vec::new();
        for (session, (_, draft)) in rows.iter().enumerate() {
            let Some(Switch { at_ms, may_be_left }) = draft.sketch.switched else {
                continue;
            };
            let of_it = self.pairs.iter().filter(|pair| {
                pair.session == session
                    && seekers
                        .get(pair.process)
                        .is_some_and(|seeker| seeker.began_before(Some(at_ms)))
            });
            let processes: Vec<usize> = of_it.map(|pair| pair.process).collect();
            if let [only] = processes.as_slice() {
                if let Some(pair) = self.pair_mut(*only, session) {
                    pair.visited_at_ms = pair.visited_at_ms.max(Some(at_ms));
                }
                left_perhaps.extend(may_be_left.then_some((*only, at_ms)));
                continue;
            }
            let known = |process: &usize| known_since(&self.pairs, *process);
            let may_have_moved = processes
                .into_iter()
                .filter(|process| known(process).is_some_and(|known| known < at_ms));
            self.lost.extend(may_have_moved);
        }
        let is_last =
            |(process, at_ms): &(usize, i64)| known_since(&self.pairs, *process) == Some(*at_ms);
        let left_perhaps = left_perhaps.into_iter().filter(is_last);
        self.lost.extend(left_perhaps.map(|(process, _)| process));
    }
}

/// The processes in whose start window an event of a session lies, where the directory of
/// the session may have been renamed.
fn displaced(
    seekers: &[Seeker<'_>],
    row: Option<&(&SessionKey, &Draft)>,
    time_ms: &RangeInclusive<i64>,
) -> Vec<usize> {
    let is_displaced = |seeker: &Seeker<'_>| {
        row.is_some_and(|(key, draft)| {
            let work_dir = draft.sketch.work_dir.as_deref();
            seeker.may_be_launched_within(time_ms)
                && seeker.process.may_use(&key.home)
                && seeker.may_be_renamed(work_dir)
        })
    };
    let seekers = seekers.iter().enumerate();
    let displaced = seekers.filter(|(_, seeker)| is_displaced(seeker));
    displaced.map(|(place, _)| place).collect()
}

/// When processes may have been launched with a session.
fn launches_of(draft: &Draft) -> impl Iterator<Item = i64> {
    draft.sketch.launched_at_ms.iter().copied()
}

/// When a process was, or may have been, launched with a session. The birth of the session
/// counts only if nothing shows that one of `seekers` began it while running.
fn perhaps_launched_ms(draft: &Draft, seekers: &[Seeker<'_>]) -> Option<RangeInclusive<i64>> {
    let sketch = &draft.sketch;
    let may_be_of_these = |visit: &Visit| {
        let mut seekers = seekers.iter();
        seekers.any(|seeker| seeker.may_be_launched_at(visit.launched_at_ms))
    };
    let is_begun_while_running =
        sketch.switched.is_some() || sketch.visits.iter().any(may_be_of_these);
    let born = sketch
        .born_at_ms
        .filter(|born| !is_begun_while_running && !sketch.launched_at_ms.contains(born));
    let within = sketch.launched_within_ms.clone();
    within.or_else(|| born.map(|born| born..=born))
}

/// What is known of one process and one session. `None` if the process cannot have
/// anything to do with it.
fn pair_of(seeker: &Seeker<'_>, key: &SessionKey, draft: &Draft, part: Unclaimed) -> Option<Pair> {
    let sketch = &draft.sketch;
    let clues = || sketch.clues.iter().filter(|clue| clue.pid == seeker.pid());
    let has_clue = |kind: ClueKind| clues().any(|clue| clue.kind == kind);
    if !seeker.process.may_use(&key.home) || clues().any(|clue| clue.kind.excludes()) {
        return None;
    }
    let is_beside = seeker.is_beside(sketch.work_dir.as_deref(), draft.is_live());
    let is_named = has_clue(ClueKind::Names) || seeker.names(key, draft, is_beside);
    let visits = clues().filter_map(|clue| match clue.kind {
        ClueKind::Run { at_ms } => Some(at_ms),
        _ => None,
    });
    let visited_at_ms = visits.max();
    let is_silent = is_silent(draft, part) && !seeker.is_provisional;
    let is_held = part == Unclaimed::Client && draft.is_live();
    let latest_ms = dates(draft).latest_ms;
    let is_touched = is_silent
        && (seeker.heard_at_ms.is_none() || latest_ms > seeker.heard_at_ms)
        && !seeker.is_ruled_out(draft, part)
        && !has_clue(ClueKind::Untouched)
        && (has_clue(ClueKind::Touched)
            || (is_beside && (is_held || seeker.began_before(latest_ms))));
    let is_typed_since = seeker.was_typed_since(draft);
    let is_displaced = part == Unclaimed::Owner
        && sketch.work_dir.is_some()
        && seeker.beside(sketch.work_dir.as_deref()) == Beside::Unknown;
    let pair = Pair {
        named_at_ms: seeker.began_at_ms.filter(|_| is_named),
        visited_at_ms,
        is_touched,
        may_be_left: is_displaced || seeker.was_ended_since(draft, None),
        is_begun_later: seeker.began_before(sketch.born_at_ms)
            && !sketch.launched_at_ms.is_empty()
            && !launches_of(draft).any(|at_ms| seeker.may_be_launched_at(at_ms)),
        is_shown: is_silent
            && (is_touched || is_named || (is_beside && seeker.profile.shows_title_at_once))
            && seeker.shows(draft),
        is_last_used: is_touched
            && is_typed_since
            && sketch
                .last_record_at_ms
                .is_some_and(|last| terminal::was_last_used_at(seeker.process, last)),
        is_typed_since,
        ..Pair::default()
    };
    (is_touched || is_named || visited_at_ms.is_some() || pair.is_shown).then_some(pair)
}

/// A process may serve or show the session without a claim.
fn is_silent(draft: &Draft, part: Unclaimed) -> bool {
    draft.sketch.unclaimed == part
        && (part == Unclaimed::Client || !draft.is_live())
        && !draft.is_dead_for_good()
}
