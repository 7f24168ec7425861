//! Settles the sessions of one home that no other source can change, because no process
//! could serve them. They are finished at once, so that a large home is never in memory as a
//! whole.
//!
//! The result equals that of [`super::merge`] on everything: tests compare both for every
//! world.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::Pid;
use whosup_sidecar::{AgentId, SessionId};

use super::draft::{self, Draft};
use crate::adapter::claim::SessionKey;
use crate::adapter::{Adapter, AgentProcess, Role, Sketch, adapter_of, is_prefix_of};
use crate::judging::attribution::{Beside, Places};
use crate::judging::observe::JudgedClaim;
use crate::judging::verdict::{ExitedBecause, UnknownBecause, Verdict};
use crate::sessions::session::Session;
use crate::sources::recognize::PossibleProcess;

/// Finds homes.
pub(crate) type FindHomes<'a> = Box<dyn FnOnce() -> HashSet<PathBuf> + 'a>;

/// What may affect the sessions of a home, besides that home.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    neighbours: Vec<Neighbour<'a>>,
    /// Processes that may be an agent's although no adapter recognizes them.
    possible: &'a [PossibleProcess],
    /// The homes that their agents use by default.
    pub(crate) default_homes: HashSet<PathBuf>,
    /// Homes that are there.
    pub(crate) homes_there: HashSet<PathBuf>,
    /// Homes whose possible processes are all visible from here; computed for the first session.
    pub(crate) fully_seen_homes: LazyCell<HashSet<PathBuf>, FindHomes<'a>>,
    /// Processes that may use a home and could not be inspected.
    pub(crate) unseen: HashMap<PathBuf, Pid>,
    /// Sessions that the arguments of other users' processes name, whose homes can't be read.
    pub(crate) named_by_others: HashMap<(AgentId, SessionId), Pid>,
    /// Those sessions, and the sessions that sources other than their homes report, with the
    /// parents of these.
    pub(crate) known_elsewhere: HashSet<(AgentId, SessionId)>,
    /// Every adapter.
    pub(crate) adapters: &'static [&'static dyn Adapter],
}

impl<'a> Surroundings<'a> {
    /// Surroundings of only these processes: of the recognized, those that may have a session,
    /// or may be about to start a process that has.
    pub(crate) fn of(processes: &'a [AgentProcess], possible: &'a [PossibleProcess]) -> Self {
        let processes = processes.iter();
        let processes = processes
            .filter(|process| process.may_have_session() || process.role == Role::Launcher);
        Self {
            neighbours: processes.map(Neighbour::of).collect(),
            possible,
            default_homes: HashSet::new(),
            homes_there: HashSet::new(),
            fully_seen_homes: LazyCell::new(Box::new(HashSet::new)),
            unseen: HashMap::new(),
            named_by_others: HashMap::new(),
            known_elsewhere: HashSet::new(),
            adapters: &[],
        }
    }

    /// Whether a process may affect any session of this agent.
    pub(crate) fn has_process_of(&self, agent: &AgentId) -> bool {
        let mut neighbours = self.neighbours.iter();
        neighbours.any(|neighbour| neighbour.process.agent == *agent)
            || self.possible.iter().any(|process| process.may_be(agent))
    }

    fn may_change(&self, key: &SessionKey, draft: &Draft, places: &Places) -> bool {
        let is_known_elsewhere = || {
            let name = (key.agent.clone(), key.session.clone());
            self.known_elsewhere.contains(&name)
        };
        (!self.unseen.is_empty() && self.unseen.contains_key(&*key.home))
            || (!self.known_elsewhere.is_empty() && is_known_elsewhere())
            || !draft.is_claimed_unserved()
            || self.may_be_served(key, draft, places)
    }

    /// Whether a process may serve a session that is dead by all of its claims.
    fn may_be_served(&self, key: &SessionKey, draft: &Draft, places: &Places) -> bool {
        let sketch = &draft.sketch;
        if !sketch.clues.is_empty() || !sketch.visits.is_empty() {
            return true;
        }
        // A sub-agent is judged with its parent.
        if sketch.parent.is_some() {
            return false;
        }
        if draft.is_dead_for_good() {
            let mut neighbours = self.neighbours.iter();
            return neighbours.any(|neighbour| neighbour.names(key));
        }
        let work_dir = sketch.work_dir.as_deref();
        let is_possible = |possible: &PossibleProcess| {
            possible.may_be(&key.agent)
                && places.beside(&possible.process, &possible.details, work_dir) == Beside::Same
        };
        let mut neighbours = self.neighbours.iter();
        neighbours
            .any(|neighbour| neighbour.is_beside(key, work_dir, places) || neighbour.names(key))
            || self.possible.iter().any(is_possible)
    }
}

/// A process that may serve a session without a claim.
#[derive(Debug)]
struct Neighbour<'a> {
    process: &'a AgentProcess,
    /// The session that its arguments name, or a prefix of its ID.
    named: Option<&'a str>,
}

impl<'a> Neighbour<'a> {
    fn of(process: &'a AgentProcess) -> Self {
        Self {
            process,
            named: process.named_session(),
        }
    }

    fn may_use(&self, key: &SessionKey) -> bool {
        self.process.agent == key.agent && self.process.may_use(&key.home)
    }

    /// The directory of the session does not exclude the process.
    fn is_beside(&self, key: &SessionKey, work_dir: Option<&Path>, places: &Places) -> bool {
        // There may be very many sessions: the most selective test comes first.
        self.process.agent == key.agent
            && places.beside(&self.process.process, &self.process.details, work_dir)
                != Beside::Excluded
            && self.may_use(key)
    }

    fn names(&self, key: &SessionKey) -> bool {
        let is_named = |named: &str| is_prefix_of(named, &key.session);
        self.named.is_some_and(is_named) && self.may_use(key)
    }
}

/// Passes on each settled session of one home, and returns what was found of the rest.
///
/// `claimed` are the sessions with claims that are not judged yet, since there are processes
/// with their PIDs. `places` has the directories of the sketches and of the processes.
pub(crate) fn settle(
    (sketches, claims): (Vec<Box<Sketch>>, Vec<JudgedClaim>),
    claimed: &HashSet<SessionKey>,
    around: &Surroundings<'_>,
    places: &Places,
    settled: &mut dyn FnMut(Session),
) -> (Vec<Box<Sketch>>, Vec<JudgedClaim>) {
    let mut drafts = draft::group(sketches, claims);
    let open = open_families(&drafts, |key, draft| {
        claimed.contains(key) || around.may_change(key, draft, places)
    });
    for (key, draft) in &mut drafts {
        if draft.sketch.parent.is_none() && !draft.has_claims() && !open.contains(key) {
            let verdict = if around.fully_seen_homes.contains(&*key.home) {
                Verdict::Exited(ExitedBecause::NoProcess)
            } else {
                Verdict::Unknown(UnknownBecause::IncompleteView)
            };
            draft.find_out(verdict, None);
        }
    }
    super::follow_parents(&mut drafts);
    let mut rest: (Vec<Box<Sketch>>, Vec<JudgedClaim>) = Default::default();
    // All of them belong to one home.
    let mut asked: Option<(Arc<Path>, bool)> = None;
    let mut is_default_home = |home: &Arc<Path>| match &asked {
        Some((before, is_default)) if Arc::ptr_eq(before, home) => *is_default,
        _ => {
            let is_default = around.default_homes.contains(&**home);
            asked = Some((Arc::clone(home), is_default));
            is_default
        }
    };
    for (key, mut draft) in drafts {
        if open.contains(&key) {
            let (sketch, claims) = draft.into_parts();
            rest.0.push(sketch);
            rest.1.extend(claims);
        } else if !draft.is_nothing() {
            // A session without a process has no client.
            draft.sketch.client = None;
            let adapter = adapter_of(around.adapters, &key.agent);
            settled(draft.into_session(adapter, is_default_home(&key.home)));
        }
    }
    rest
}

/// The sessions that may still change, and those that must be judged with them: a
/// sub-agent is live if its parent is.
fn open_families(
    drafts: &BTreeMap<SessionKey, Draft>,
    may_change: impl Fn(&SessionKey, &Draft) -> bool,
) -> BTreeSet<SessionKey> {
    let mut open: BTreeSet<SessionKey> = drafts
        .iter()
        .filter(|(key, draft)| may_change(key, draft))
        .map(|(key, _)| key.clone())
        .collect();
    let parents: Vec<(&SessionKey, SessionKey)> = drafts
        .iter()
        .filter_map(|(key, draft)| {
            let parent = SessionKey {
                session: draft.sketch.parent.clone()?,
                ..key.clone()
            };
            Some((key, parent))
        })
        .collect();
    // Each round opens at least one session, or is the last.
    loop {
        let before = open.len();
        for (key, parent) in &parents {
            let is_known = drafts
                .get(parent)
                .is_some_and(|parent| parent.sketch.parent.is_none());
            if open.contains(*key) || open.contains(parent) || !is_known {
                open.insert((*key).clone());
                if drafts.contains_key(parent) {
                    open.insert(parent.clone());
                }
            }
        }
        if open.len() == before {
            return open;
        }
    }
}
