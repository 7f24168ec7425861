//! Looks for the sessions of processes that make no claim.
//!
//! Comes in: sessions with their claims and clues, and the agent's processes. Goes out:
//! sessions that are live in a process, or may be, and the processes that stay without.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use whosup_process::{Pid, Process};
use whosup_sidecar::{AgentId, SessionId};

use super::clue::{ClueKind, Unclaimed};
use super::directory::Beside;
use super::launch::{Event, Launched, match_launches};
use super::solve::{Because, Pair, ProcessFacts, SessionDates, Solution, solve};
use super::terminal;
use super::{Drafts, Places, ProcessKey, attributed, may_have_session, process_key, shown};
use crate::agents::{self, AgentProcess, Profile, Role};
use crate::claim::{CLOCK_SLACK_MS, EvidenceKind, SessionKey};
use crate::merge::{Draft, Parts};
use crate::session::Unattributed;
use crate::verdict::{Confidence, LiveBecause, UnknownBecause, Verdict};

/// How many candidates of a process are named.
const CANDIDATES_MAX: usize = 64;
/// How much older than its process a session may look that the process made, in
/// milliseconds: one clock dates both, so this is for rounding.
const BIRTH_SLACK_MS: i64 = 250;
/// The same where that connects the two.
const LAUNCH_SLACK_MS: i64 = 50;

/// Finds what processes without a claim serve or show, agent by agent, and returns the
/// processes that stay without a session.
pub(super) fn seek(drafts: &mut Drafts, parts: &Parts) -> Vec<Unattributed> {
    let mut taken = attributed(drafts);
    taken.extend(
        drafts
            .values()
            .filter_map(Draft::found_owner)
            .map(process_key),
    );
    let provisional = provisional(drafts);
    let mut free_of: BTreeMap<&AgentId, Vec<&AgentProcess>> = BTreeMap::new();
    for process in &parts.processes {
        if may_have_session(process) && !taken.contains(&process_key(&process.process)) {
            free_of.entry(&process.agent).or_default().push(process);
        }
    }
    let mut unattributed = Vec::new();
    for mut free in free_of.into_values() {
        free.sort_by_key(|process| process.process.pid);
        let mut open: BTreeMap<Pid, BTreeSet<SessionKey>> = BTreeMap::new();
        for part in [Unclaimed::Client, Unclaimed::Owner] {
            let seeking = free.iter().copied();
            let seeking: Vec<&AgentProcess> = seeking
                .filter(|its| part == Unclaimed::Client || its.role == Role::Session)
                .collect();
            let served = seek_part(drafts, parts, part, (&seeking, &provisional), &mut open);
            free.retain(|process| !served.contains(&process.process.pid));
        }
        free.retain(|process| !provisional.contains(&process_key(&process.process)));
        for process in free {
            let pid = process.process.pid;
            let candidates = open.get(&pid).cloned().unwrap_or_default();
            let others = open.iter().filter(|(other, _)| **other != pid);
            let rivals = others.filter(|(_, its)| !its.is_disjoint(&candidates));
            unattributed.push(Unattributed {
                process: process.clone(),
                pane: None,
                titles: BTreeMap::new(),
                reason: reason(candidates.len(), rivals.count()),
                candidates: newest_first(&candidates, drafts),
            });
        }
    }
    unattributed.sort_by_key(|one| one.process.process.pid);
    unattributed
}

/// Processes for which their agent claims a session that is none yet.
fn provisional(drafts: &Drafts) -> HashSet<ProcessKey> {
    let provisional = drafts.values().filter(|draft| draft.sketch.is_provisional);
    let claims = provisional.flat_map(Draft::live_claims);
    let processes = claims.filter_map(|claim| claim.process.as_deref());
    processes.map(process_key).collect()
}

fn reason(candidates: usize, rivals: usize) -> String {
    match (candidates, rivals) {
        (0, _) => "no session yet, or one that nothing on disk connects with it".to_owned(),
        (1, 0) => "one session is possible, and nothing decides".to_owned(),
        (1, _) => "one session is possible, for other processes as well".to_owned(),
        (many, _) => format!("{many} sessions are possible"),
    }
}

fn newest_first(candidates: &BTreeSet<SessionKey>, drafts: &Drafts) -> Vec<SessionId> {
    let date = |key: &SessionKey| drafts.get(key).and_then(|draft| dates(draft).latest_ms);
    let mut keys: Vec<&SessionKey> = candidates.iter().collect();
    keys.sort_by_key(|key| std::cmp::Reverse(date(key)));
    let keys = keys.into_iter().take(CANDIDATES_MAX);
    keys.map(|key| key.session.clone()).collect()
}

fn seek_part(
    drafts: &mut Drafts,
    parts: &Parts,
    part: Unclaimed,
    (seeking, provisional): (&[&AgentProcess], &HashSet<ProcessKey>),
    open: &mut BTreeMap<Pid, BTreeSet<SessionKey>>,
) -> BTreeSet<Pid> {
    let Some(agent) = seeking.first().map(|process| &process.agent) else {
        return BTreeSet::new();
    };
    let keys: Vec<SessionKey> = drafts
        .iter()
        .filter(|(key, draft)| key.agent == *agent && may_be_sought(draft, part))
        .map(|(key, _)| key.clone())
        .collect();
    let seekers: Vec<Seeker<'_>> = seeking
        .iter()
        .map(|its| Seeker::of(its, parts, provisional))
        .collect();
    let table = Table::new(drafts, parts, part, &keys, &seekers);
    let facts = seekers
        .iter()
        .enumerate()
        .map(|(process, its)| ProcessFacts {
            is_lost: table.lost.contains(&process),
            ..its.facts(part, drafts)
        });
    let facts: Vec<ProcessFacts> = facts.collect();
    let solution = solve(&facts, &table.dates, &table.pairs);
    let found = (solution, table.pairs.as_slice());
    put_down(drafts, part, &keys, seeking, found, open)
}

/// A session that a process without a claim may serve, or show.
fn may_be_sought(draft: &Draft, part: Unclaimed) -> bool {
    let is_live = draft.has_claims() && draft.is_live();
    draft.sketch.parent.is_none()
        && match part {
            Unclaimed::Client => {
                draft.sketch.unclaimed == Unclaimed::Client && is_live && draft.may_have_client()
            }
            // Arguments name any session, and two processes may serve one.
            Unclaimed::Owner | Unclaimed::Nobody => {
                draft.sketch.unclaimed != Unclaimed::Client && (!is_live || draft.is_exclusive())
            }
        }
}

/// A process that makes no claim.
struct Seeker<'a> {
    process: &'a AgentProcess,
    profile: Option<&'static Profile>,
    began_at_ms: Option<i64>,
    places: &'a Places,
    named: Option<&'a str>,
    names_any_directory: bool,
    shows_title_at_once: bool,
    title: Option<&'a str>,
    now_ms: i64,
    /// Its agent claims a session for it that is none yet.
    is_provisional: bool,
}

impl<'a> Seeker<'a> {
    fn of(process: &'a AgentProcess, parts: &'a Parts, provisional: &HashSet<ProcessKey>) -> Self {
        let adapter = agents::adapter(&process.agent);
        let program = process.program();
        let title = parts.terminal_titles.get(&process.process.pid);
        Self {
            process,
            profile: adapter.map(|adapter| adapter.profile()),
            began_at_ms: process.process.began_at_ms.clone().ok(),
            places: &parts.places,
            named: adapter.and_then(|adapter| adapter.session_named_by(&program)),
            names_any_directory: adapter.is_some_and(|adapter| adapter.resumes_from_anywhere()),
            shows_title_at_once: adapter.is_some_and(|adapter| adapter.shows_title_at_once()),
            title: title.map(String::as_str),
            now_ms: parts.now_ms,
            is_provisional: provisional.contains(&process_key(&process.process)),
        }
    }

    fn pid(&self) -> Pid {
        self.process.process.pid
    }

    fn facts(&self, part: Unclaimed, drafts: &Drafts) -> ProcessFacts {
        let has_session = self.profile.is_some_and(|its| its.has_session_at_launch);
        let mut clues = drafts.values().flat_map(|draft| &draft.sketch.clues);
        ProcessFacts {
            is_run_incomplete: clues
                .any(|clue| clue.pid == self.pid() && clue.kind == ClueKind::Gap),
            must_have_one: part == Unclaimed::Client && has_session,
            is_lost: false,
        }
    }

    /// It works where the session does.
    fn is_beside(&self, work_dir: Option<&Path>, is_held: bool) -> bool {
        match work_dir {
            Some(_) => self.beside(work_dir) == Beside::Same,
            // Nothing on disk shows yet where it works.
            None => is_held && self.process.work_dir().is_some(),
        }
    }

    fn beside(&self, work_dir: Option<&Path>) -> Beside {
        let (process, details) = (&self.process.process, &self.process.details);
        self.places.beside(process, details, work_dir)
    }

    fn began_before(&self, at_ms: Option<i64>) -> bool {
        at_ms
            .zip(self.began_at_ms)
            .is_some_and(|(at, began)| at >= began.saturating_sub(BIRTH_SLACK_MS))
    }

    /// Its agent makes a session as soon as it is launched, or it was started to answer
    /// one prompt: then nobody has to type for that.
    fn makes_session_unprompted(&self) -> bool {
        self.profile.is_some_and(|its| its.has_session_at_launch)
            || self.process.process.tty.is_none()
    }

    fn is_silent_since(&self, at_ms: i64) -> bool {
        terminal::was_silent_since(self.process, at_ms)
    }

    /// The start window of the process has this time in it.
    fn may_be_launched_at(&self, at_ms: i64) -> bool {
        let window_ms = self.profile.and_then(|profile| profile.launch_window_ms);
        window_ms
            .zip(self.began_at_ms)
            .is_some_and(|(window, began)| {
                (-LAUNCH_SLACK_MS..=window).contains(&at_ms.saturating_sub(began))
            })
    }

    fn shows(&self, draft: &Draft) -> bool {
        let sketch = &draft.sketch;
        let name = sketch.terminal_title.as_deref().or(sketch.title.as_deref());
        let title = self.title.zip(name);
        title.is_some_and(|(title, name)| shown::is_named(title, name))
    }
}

/// When something was and may have been recorded in a session last.
pub(super) fn dates(draft: &Draft) -> SessionDates {
    let sketch = &draft.sketch;
    let last_ms = sketch.last_record_at_ms.max(sketch.born_at_ms);
    SessionDates {
        last_ms,
        latest_ms: last_ms.max(sketch.perhaps_until_ms),
    }
}

/// What is known of each process and each session.
struct Table {
    dates: Vec<SessionDates>,
    pairs: Vec<Pair>,
    /// Processes that went on to a session that is not known.
    lost: BTreeSet<usize>,
}

impl Table {
    fn new(
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
                && may_have_session(process)
                && taken.contains(&process_key(&process.process))
        });
        let claiming: Vec<Seeker<'_>> = claiming
            .map(|its| Seeker::of(its, parts, &HashSet::new()))
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
        let mut events: Vec<(usize, i64, Event)> = Vec::new();
        for (session, (_, draft)) in rows.iter().enumerate() {
            for at_ms in launches_of(draft) {
                let beside = self.pairs.iter().filter(|pair| pair.session == session);
                let may_be_its = beside.filter(|pair| {
                    let seeker = seekers.get(pair.process);
                    pair.is_touched
                        && seeker.is_some_and(|seeker| {
                            seeker.may_be_launched_at(at_ms)
                                && (part == Unclaimed::Client
                                    || seeker.makes_session_unprompted()
                                    || !seeker.is_silent_since(at_ms))
                        })
                });
                let processes: Vec<usize> = may_be_its.map(|pair| pair.process).collect();
                if !processes.is_empty() {
                    events.push((session, at_ms, Event { processes }));
                }
            }
        }
        // A process that claims a session now may have been launched with another one.
        events.retain(|(session, at_ms, _)| {
            !claiming.iter().any(|seeker| {
                let row = rows.get(*session);
                seeker.may_be_launched_at(*at_ms)
                    && row.is_some_and(|(key, draft)| {
                        seeker.process.may_use(&key.home)
                            && seeker.is_beside(draft.sketch.work_dir.as_deref(), false)
                    })
            })
        });
        let launched: Vec<Launched> = seekers
            .iter()
            .map(|seeker| Launched {
                has_event: seeker.profile.is_some_and(|its| its.has_session_at_launch),
            })
            .collect();
        let plain: Vec<Event> = events.iter().map(|(_, _, event)| event.clone()).collect();
        let mut found = BTreeMap::new();
        for (process, event) in match_launches(&launched, &plain) {
            let Some((session, at_ms, _)) = events.get(event) else {
                continue;
            };
            found.insert(process, (*session, *at_ms));
            if let Some(pair) = self.pair_mut(process, *session) {
                pair.launched_at_ms = Some(*at_ms);
            }
        }
        found
    }

    /// Where the processes went whose first session is known, by the agent's log.
    fn find_visits(
        &mut self,
        rows: &[(&SessionKey, &Draft)],
        seekers: &[Seeker<'_>],
        launched: &BTreeMap<usize, (usize, i64)>,
    ) {
        let named = self.pairs.iter().filter(|pair| pair.named_at_ms.is_some());
        let named: Vec<_> = named.map(|pair| (pair.process, pair.session)).collect();
        let launched = launched
            .iter()
            .map(|(process, (first, _))| (*process, *first));
        for (process, first) in launched.chain(named) {
            let (Some((first, begun)), Some(seeker)) = (rows.get(first), seekers.get(process))
            else {
                continue;
            };
            let lost_at_ms = begun.sketch.lost_at_ms;
            if lost_at_ms.is_some_and(|at| seeker.began_before(Some(at))) {
                self.lost.insert(process);
            }
            for (session, (key, draft)) in rows.iter().enumerate() {
                let visits = draft.sketch.visits.iter();
                let its = visits.filter(|visit| {
                    visit.launched_with == first.session
                        && key.home == first.home
                        && seeker.began_before(Some(visit.at_ms))
                });
                let at_ms = its.map(|visit| visit.at_ms).max();
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

    /// A running process made a session and went on to it, as the agent's log shows: where
    /// there is one process only, it was that one.
    fn find_switches(&mut self, rows: &[(&SessionKey, &Draft)], seekers: &[Seeker<'_>]) {
        for (session, (_, draft)) in rows.iter().enumerate() {
            let Some(at_ms) = draft.sketch.switched_at_ms else {
                continue;
            };
            let of_it = self.pairs.iter().filter(|pair| {
                pair.session == session
                    && seekers
                        .get(pair.process)
                        .is_some_and(|its| its.began_before(Some(at_ms)))
            });
            let processes: Vec<usize> = of_it.map(|pair| pair.process).collect();
            if let [only] = processes.as_slice()
                && let Some(pair) = self.pair_mut(*only, session)
            {
                pair.visited_at_ms = pair.visited_at_ms.max(Some(at_ms));
            }
        }
    }
}

/// When processes may have been launched with a session.
fn launches_of(draft: &Draft) -> impl Iterator<Item = i64> {
    draft.sketch.launched_at_ms.iter().copied()
}

/// What is known of one process and one session. `None` if the process cannot have
/// anything to do with it.
fn pair_of(seeker: &Seeker<'_>, key: &SessionKey, draft: &Draft, part: Unclaimed) -> Option<Pair> {
    let sketch = &draft.sketch;
    let clues = || sketch.clues.iter().filter(|clue| clue.pid == seeker.pid());
    let has_clue = |kind: ClueKind| clues().any(|clue| clue.kind == kind);
    if !seeker.process.may_use(&key.home) || has_clue(ClueKind::Excludes) {
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
    let is_touched = is_silent
        && !seeker.is_ruled_out(draft, part)
        && !has_clue(ClueKind::Untouched)
        && (has_clue(ClueKind::Touched)
            || (is_beside && (is_held || seeker.began_before(dates(draft).latest_ms))));
    let is_typed_since = seeker.was_typed_since(draft);
    let pair = Pair {
        named_at_ms: seeker.began_at_ms.filter(|_| is_named),
        visited_at_ms,
        is_touched,
        is_displaced: part == Unclaimed::Owner
            && sketch.work_dir.is_some()
            && seeker.beside(sketch.work_dir.as_deref()) == Beside::Unknown,
        is_begun_later: seeker.began_before(sketch.born_at_ms)
            && !sketch.launched_at_ms.is_empty()
            && !launches_of(draft).any(|at_ms| seeker.may_be_launched_at(at_ms)),
        is_shown: is_silent
            && (is_touched || is_named || (is_beside && seeker.shows_title_at_once))
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

impl Seeker<'_> {
    /// The arguments of the process name the session, and nothing shows that it has been
    /// left.
    fn names(&self, key: &SessionKey, draft: &Draft, is_beside: bool) -> bool {
        let is_named = self
            .named
            .is_some_and(|named| key.session.as_str().starts_with(named));
        let has_ended = || {
            self.began_at_ms
                .is_some_and(|began| draft.has_ended_since(began))
        };
        is_named
            && (self.names_any_directory || is_beside)
            && self.may_still_be_named(draft)
            && !has_ended()
    }

    /// The session was begun or prompted by hand, and not in this terminal.
    fn is_ruled_out(&self, draft: &Draft, part: Unclaimed) -> bool {
        let sketch = &draft.sketch;
        let is_begun_elsewhere = sketch
            .born_at_ms
            .is_some_and(|born| terminal::rules_out_birth(self.process, born));
        let is_prompted_elsewhere = sketch
            .prompted_at_ms
            .is_some_and(|at| self.began_before(Some(at)) && self.is_silent_since(at));
        let is_shown_elsewhere = sketch.last_record_at_ms.is_some_and(|at| {
            self.began_before(Some(at)) && terminal::showed_nothing_at(self.process, at)
        });
        part == Unclaimed::Owner
            && (is_begun_elsewhere || is_prompted_elsewhere || is_shown_elsewhere)
    }

    /// Somebody has typed in the terminal since shortly before the session was born, or
    /// was prompted last.
    fn was_typed_since(&self, draft: &Draft) -> bool {
        let sketch = &draft.sketch;
        let prompted_at_ms = sketch.prompted_at_ms.or_else(|| {
            // The birth of a session that is older than the process says nothing.
            let is_born_since = self.began_before(sketch.born_at_ms);
            sketch.last_record_at_ms.filter(|_| !is_born_since)
        });
        // What is missing at the end may have been prompted elsewhere.
        let is_whole = sketch.perhaps_until_ms <= sketch.last_record_at_ms;
        let since = prompted_at_ms.max(sketch.born_at_ms).filter(|_| is_whole);
        since.is_some_and(|since| terminal::was_typed_since(self.process, since))
    }
}

impl Seeker<'_> {
    /// Some agents show soon after their start which session they serve. After that,
    /// their arguments name a session that they have left.
    fn may_still_be_named(&self, draft: &Draft) -> bool {
        let announced_ms = self.profile.and_then(|its| its.announces_within_ms);
        let Some((within, began)) = announced_ms.zip(self.began_at_ms) else {
            return true;
        };
        draft.sketch.unclaimed == Unclaimed::Client
            || self.now_ms.saturating_sub(began) <= within.saturating_add(CLOCK_SLACK_MS)
    }
}

/// Puts down what was found. Returns the processes that have a session now.
fn put_down(
    drafts: &mut Drafts,
    part: Unclaimed,
    keys: &[SessionKey],
    seeking: &[&AgentProcess],
    (solution, pairs): (Solution, &[Pair]),
    open: &mut BTreeMap<Pid, BTreeSet<SessionKey>>,
) -> BTreeSet<Pid> {
    let mut served = BTreeSet::new();
    let is_served = |session: usize| {
        solution
            .serves
            .values()
            .any(|(served, _)| *served == session)
    };
    for (left, current) in &solution.left {
        if part == Unclaimed::Owner
            && !is_served(*left)
            && let (Some(left), Some(current)) = (keys.get(*left), keys.get(*current))
            && let Some(draft) = drafts.get_mut(left)
            && !draft.is_live()
        {
            draft.leave_for(&current.session);
        }
    }
    for (process, (session, because)) in &solution.serves {
        let (Some(process), Some(key)) = (seeking.get(*process), keys.get(*session)) else {
            continue;
        };
        served.insert(process.process.pid);
        if part == Unclaimed::Owner {
            hide_provisional(drafts, &process_key(&process.process));
        }
        if let Some(draft) = drafts.get_mut(key) {
            serve(draft, process, part, *because);
        }
    }
    for (at, possible) in solution.open {
        let Some(process) = seeking.get(at) else {
            continue;
        };
        let is_only_shown = |session: usize| {
            let mut its = pairs.iter();
            its.any(|pair| (pair.process, pair.session) == (at, session) && pair.is_only_shown())
        };
        for (session, key) in possible
            .into_iter()
            .filter_map(|at| Some((at, keys.get(at)?)))
        {
            let its = open.entry(process.process.pid).or_default();
            its.insert(key.clone());
            if let Some(draft) = drafts.get_mut(key) {
                leave_open(draft, &process.process, part, is_only_shown(session));
            }
        }
    }
    served
}

/// A record that an agent makes before it knows which session it serves is none.
fn hide_provisional(drafts: &mut Drafts, process: &ProcessKey) {
    for draft in drafts.values_mut() {
        if draft.sketch.is_provisional {
            draft.supersede(process, None);
        }
    }
}

fn serve(draft: &mut Draft, process: &AgentProcess, part: Unclaimed, because: Because) {
    let (kind, live_because) = match because {
        Because::Arguments => (EvidenceKind::Arguments, LiveBecause::Arguments),
        Because::Launch => (EvidenceKind::Launch, LiveBecause::Launch),
        Because::Run => (EvidenceKind::Log, LiveBecause::Run),
        Because::Terminal | Because::Sole => (EvidenceKind::Terminal, LiveBecause::Terminal),
    };
    let pid = process.process.pid;
    let clue = draft.sketch.clues.iter().find(|clue| {
        clue.pid == pid
            && match because {
                Because::Arguments => clue.kind == ClueKind::Names,
                Because::Run => matches!(clue.kind, ClueKind::Run { .. }),
                Because::Launch | Because::Terminal | Because::Sole => false,
            }
    });
    let how = match (clue, because) {
        (Some(clue), _) => clue.says.clone(),
        (None, Because::Arguments) => format!("the arguments of process {pid} name it"),
        (None, Because::Launch) => {
            format!("it was begun or resumed when process {pid} was launched, and no other")
        }
        (None, Because::Run) => format!("the agent's log shows that process {pid} went on to it"),
        (None, Because::Terminal) => {
            format!("the use or the title of the terminal of process {pid} fits it, and no other")
        }
        (None, Because::Sole) => {
            format!("process {pid} shows a session of this directory, and there is no other")
        }
    };
    let verdict = Verdict::Live(live_because, Confidence::Inferred);
    if part == Unclaimed::Client {
        draft.add_evidence(
            kind,
            format!("client: {how}"),
            verdict,
            Some(&process.process),
        );
        draft.client = Some(Box::new(process.process.clone()));
    } else {
        draft.add_evidence(kind, how, verdict, Some(&process.process));
        draft.serve_by(verdict, &process.process);
    }
}

fn leave_open(draft: &mut Draft, process: &Process, part: Unclaimed, is_only_shown: bool) {
    if part == Unclaimed::Client {
        draft.is_client_ambiguous = true;
        return;
    }
    let pid = process.pid;
    let verdict = Verdict::Unknown(UnknownBecause::MayBeServedBy(pid));
    let (kind, how) = match is_only_shown {
        true => (EvidenceKind::Terminal, "the title of its terminal names it"),
        false => (
            EvidenceKind::Touched,
            "it was used since that process began, in the same directory",
        ),
    };
    let says = format!("process {pid} may serve it: {how}");
    draft.add_evidence(kind, says, verdict, Some(process));
    if !draft.is_found_live() {
        draft.find_out(verdict, None);
    }
}
