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
    /// Processes that may have been launched with a session that they no longer serve.
    elsewhere: BTreeSet<usize>,
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
            elsewhere: BTreeSet::new(),
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
        // Sessions that are not sought count too.
        let is_client = |unclaimed| unclaimed == Unclaimed::Client;
        let all = drafts.iter().filter(|(key, draft)| {
            Some(&key.agent) == agent
                && draft.sketch.parent.is_none()
                && !draft.is_dead_for_good()
                && is_client(draft.sketch.unclaimed) == is_client(part)
        });
        let all = all.map(|(key, draft)| (keys.binary_search(key).ok(), key, draft));
        let launched = table.find_launches(&all.collect::<Vec<_>>(), seekers, part, &claiming);
        table.find_visits(&rows, seekers, &launched);
        table.find_switches(&rows, seekers);
        let is_known = |table: &Self, process| {
            table
                .pairs_of(process)
                .any(|pair| pair.latest_ms().is_some())
        };
        let elsewhere = std::mem::take(&mut table.elsewhere).into_iter();
        let lost: Vec<usize> = elsewhere
            .filter(|process| !is_known(&table, *process))
            .collect();
        table.lost.extend(lost);
        table
    }

    fn pairs_of(&self, process: usize) -> impl Iterator<Item = &Pair> {
        let pairs = self.pairs.iter();
        pairs.filter(move |pair| pair.process == process)
    }

    /// The arguments of the process name another session: it was launched for that, and
    /// begins no other.
    fn is_for_another(&self, process: usize, session: Option<usize>) -> bool {
        let named = self.pairs_of(process);
        let mut named = named.filter(|pair| pair.named_at_ms.is_some()).peekable();
        named.peek().is_some() && !named.any(|pair| Some(pair.session) == session)
    }

    fn pair_mut(&mut self, process: usize, session: usize) -> Option<&mut Pair> {
        let mut pairs = self.pairs.iter_mut();
        pairs.find(|pair| (pair.process, pair.session) == (process, session))
    }

    /// Which session each process was launched with.
    ///
    /// Every session counts, also one that another process serves by now, or in which nothing
    /// happened since: its birth may be the launch of this process.
    fn find_launches(
        &mut self,
        all: &[(Option<usize>, &SessionKey, &Draft)],
        seekers: &[Seeker<'_>],
        part: Unclaimed,
        claiming: &[Seeker<'_>],
    ) -> BTreeMap<usize, (usize, i64)> {
        let may_have_resumed = |seeker: &Seeker<'_>| {
            let mut all = all.iter();
            all.any(|(_, key, draft)| seeker.may_have_resumed_before_rename(key, draft))
        };
        let resumed = seekers.iter().enumerate();
        let resumed = resumed.filter(|(_, seeker)| may_have_resumed(seeker));
        let resumed: BTreeSet<usize> = resumed.map(|(process, _)| process).collect();
        let mut events: Vec<(Option<usize>, i64, Event)> = Vec::new();
        for (session, key, draft) in all {
            let launches = launches_of(draft).map(|at_ms| (at_ms..=at_ms, true));
            let perhaps = perhaps_launched_ms(draft, seekers).map(|time_ms| (time_ms, false));
            for (time_ms, is_sure) in launches.chain(perhaps) {
                // A process that claims a session now may have been launched with another one.
                let may_be_of = |seeker: &Seeker<'_>| {
                    seeker.may_be_launched_within(&time_ms)
                        && seeker.process.may_use(&key.home)
                        && seeker.is_beside(draft.sketch.work_dir.as_deref(), false)
                };
                if claiming.iter().any(may_be_of) {
                    continue;
                }
                let launched = seekers.iter().enumerate().filter(|(process, seeker)| {
                    seeker.may_be_launched_with(&time_ms, key, draft, part)
                        && !self.is_for_another(*process, *session)
                });
                let processes: Vec<usize> = launched.map(|(process, _)| process).collect();
                let is_touched = |process: &usize| {
                    let mut pairs = self.pairs_of(*process);
                    pairs.any(|pair| Some(pair.session) == *session && pair.is_touched)
                };
                let sure = processes.iter().copied();
                let sure = sure
                    .filter(|process| is_sure && is_touched(process) && !resumed.contains(process))
                    .collect();
                if !processes.is_empty() {
                    events.push((*session, *time_ms.start(), Event { processes, sure }));
                }
            }
        }
        let launched: Vec<Launched> = seekers
            .iter()
            .map(|seeker| Launched {
                has_event: seeker.profile.has_session_at_launch,
            })
            .collect();
        let plain: Vec<Event> = events.iter().map(|(_, _, event)| event.clone()).collect();
        let mut found = BTreeMap::new();
        let matched = match_launches(&launched, &plain);
        // What it was launched with may be a session that it serves no more.
        let may_serve = |process: usize, session: Option<usize>| {
            let mut pairs = self.pairs_of(process);
            pairs.any(|pair| Some(pair.session) == session)
        };
        let possible = events.iter().flat_map(|(session, _, event)| {
            let processes = event.processes.iter();
            processes.map(|process| (*process, *session))
        });
        let unmatched = possible.filter(|(process, _)| !matched.contains_key(process));
        let elsewhere = unmatched.filter(|(process, session)| !may_serve(*process, *session));
        self.elsewhere = elsewhere.map(|(process, _)| process).collect();
        for (process, event) in matched {
            let Some((Some(session), at_ms, _)) = events.get(event) else {
                continue;
            };
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
    /// is only one process, it was that process. Of several, or where one that has gone may
    /// have done so, each may have left what it was in before.
    fn find_switches(&mut self, rows: &[(&SessionKey, &Draft)], seekers: &[Seeker<'_>]) {
        let known_since = |pairs: &[Pair], process: usize| {
            let its = pairs.iter().filter(|pair| pair.process == process);
            its.filter_map(Pair::latest_ms).max()
        };
        let mut left_perhaps: Vec<(usize, i64)> = Vec::new();
        let rows = rows.iter().enumerate();
        let switches = rows.filter_map(|(row, (_, draft))| Some((draft.sketch.switched?, row)));
        let mut switches: Vec<(Switch, usize)> = switches.collect();
        // What a process had before each is known by then.
        switches.sort_unstable();
        for (switch, session) in switches {
            let at_ms = switch.at_ms;
            let mut its = self.pairs.iter().filter(|pair| pair.session == session);
            if switch.is_perhaps && its.any(|pair| pair.launched_at_ms.is_some()) {
                continue;
            }
            let of_it = self.pairs.iter().filter(|pair| {
                pair.session == session
                    && seekers
                        .get(pair.process)
                        .is_some_and(|seeker| seeker.began_before(Some(at_ms)))
            });
            let processes: Vec<usize> = of_it.map(|pair| pair.process).collect();
            if let ([only], false) = (processes.as_slice(), switch.is_perhaps) {
                if let Some(pair) = self.pair_mut(*only, session) {
                    pair.visited_at_ms = pair.visited_at_ms.max(Some(at_ms));
                }
                left_perhaps.extend(switch.may_be_left.then_some((*only, at_ms)));
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
    let is_switched = sketch.switched.is_some_and(|switch| !switch.is_perhaps);
    let is_begun_while_running = is_switched || sketch.visits.iter().any(may_be_of_these);
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
