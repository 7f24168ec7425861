//! From claims and verdicts to sessions: one for each name, with the best that
//! is known of it. Pure: everything it needs has been looked at already.

mod draft;
mod served_by;
mod settle;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use whosup_process::{Pid, Process, StartStamp};
use whosup_sidecar::SessionId;

use crate::agents::{AgentProcess, Role, Sketch};
use crate::attribution::current::current_of;
use crate::claim::{Serving, SessionKey};
use crate::observe::JudgedClaim;
use crate::real_paths::RealPaths;
use crate::session::{Session, Unattributed};
use crate::verdict::{ExitedBecause, Liveness, Verdict};

use draft::Draft;
pub(crate) use settle::{Surroundings, settle};

/// What a merge is made from.
#[derive(Debug, Default)]
pub struct Parts {
    /// Every claim with its verdict.
    pub claims: Vec<JudgedClaim>,
    /// What adapters told of sessions besides.
    pub sketches: Vec<Box<Sketch>>,
    /// Every recognized agent process.
    pub processes: Vec<AgentProcess>,
    /// What the terminals of these processes show as their title.
    pub terminal_titles: HashMap<Pid, String>,
    /// Keys whose home is the agent's default one.
    pub default_homes: HashSet<std::path::PathBuf>,
    /// Homes all of whose possible processes can be seen from here.
    pub fully_seen_homes: HashSet<std::path::PathBuf>,
    /// Processes that may use a home and could not be looked into.
    pub unseen: HashMap<std::path::PathBuf, Pid>,
    /// Where each directory really is, for comparing what agents wrote with
    /// what the kernel says.
    pub real_paths: RealPaths,
}

/// Sessions, and agent processes without one.
#[derive(Debug, Default)]
pub struct Merged {
    /// By key.
    pub sessions: Vec<Session>,
    /// By PID.
    pub unattributed: Vec<Unattributed>,
}

/// Names a process within one look.
type ProcessKey = (Pid, StartStamp);

fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.stamp.clone())
}

/// Puts everything together.
///
/// The order of the parts does not matter.
#[must_use]
pub fn merge(mut parts: Parts) -> Merged {
    let forks = served_by::Forks::of(&parts.sketches);
    let mut drafts = draft::group(
        std::mem::take(&mut parts.sketches),
        std::mem::take(&mut parts.claims),
    );
    supersede(&mut drafts);
    for draft in drafts.values_mut() {
        draft.take_known_client();
    }
    let unattributed = served_by::pair_processes(&mut drafts, &parts, &forks);
    served_by::question_the_dead(&mut drafts, &parts, &unattributed);
    follow_parents(&mut drafts);
    let sessions = drafts
        .into_values()
        .filter(|draft| !draft.is_nothing())
        .map(|draft| {
            let is_default_home = parts.default_homes.contains(&*draft.sketch.key.home);
            draft.into_session(is_default_home)
        })
        .collect();
    Merged {
        sessions,
        unattributed,
    }
}

/// Of several sessions that one process claims, the one that it took up last is
/// current; it has left the others (`/clear`, `/new`, `/fork`, `/resume`).
///
/// A process that serves many at once keeps them all, and sub-agents run
/// beside their parent.
fn supersede(drafts: &mut BTreeMap<SessionKey, Draft>) {
    let mut sessions_of: HashMap<ProcessKey, BTreeSet<SessionKey>> = HashMap::new();
    for (key, draft) in &*drafts {
        if draft.sketch.parent.is_some() {
            continue;
        }
        for claim in draft
            .live_claims()
            .filter(|claim| claim.claim.serving == Serving::One)
        {
            if let Some(process) = &claim.process {
                sessions_of
                    .entry(process_key(process))
                    .or_default()
                    .insert(key.clone());
            }
        }
    }
    let mut sessions_of: Vec<_> = sessions_of.into_iter().collect();
    sessions_of.sort_by_key(|((pid, _), _)| *pid);
    for (process, keys) in sessions_of {
        let drafts_of = keys.iter().filter_map(|key| drafts.get(key));
        let takings: Vec<_> = drafts_of
            .flat_map(|draft| draft.takings_by(&process))
            .collect();
        let sessions = current_of(&takings);
        let current = sessions.current.as_ref().map(|key| &key.session);
        for key in &sessions.superseded {
            if let Some(draft) = drafts.get_mut(key) {
                draft.supersede_by(current, &process);
            }
        }
    }
    // What was left stays left when its process dies.
    for draft in drafts.values_mut() {
        draft.supersede_dead();
    }
}

/// A sub-agent lives as its parent does, unless a claim of its own says that
/// it has ended before.
fn follow_parents(drafts: &mut BTreeMap<SessionKey, Draft>) {
    let parent_of = |key: &SessionKey, draft: &Draft| {
        Some(SessionKey {
            session: draft.sketch.parent.clone()?,
            ..key.clone()
        })
    };
    let parents = drafts.iter();
    let parents = parents.filter_map(|(key, draft)| parent_of(key, draft));
    let verdicts: HashMap<SessionKey, (Verdict, Option<Pid>)> = parents
        .filter_map(|parent| {
            let draft = drafts.get(&parent)?;
            let is_top = draft.sketch.parent.is_none();
            is_top.then(|| (parent, (draft.verdict(), draft.served_by())))
        })
        .collect();
    if verdicts.is_empty() {
        return;
    }
    for (key, draft) in drafts.iter_mut() {
        if draft.is_dead_for_good() {
            continue;
        }
        let verdict = parent_of(key, draft).and_then(|parent| verdicts.get(&parent));
        if let Some((verdict, served_by)) = verdict {
            draft.follow_parent(*verdict, *served_by);
        }
    }
}

/// Processes that a session is already known of.
fn attributed(drafts: &BTreeMap<SessionKey, Draft>) -> HashSet<ProcessKey> {
    let owners = drafts
        .values()
        .flat_map(Draft::live_claims)
        .filter_map(|claim| claim.process.as_deref());
    let clients = drafts.values().filter_map(|draft| draft.client.as_deref());
    owners.chain(clients).map(process_key).collect()
}

/// May come to run a session, or show one.
fn may_have_session(process: &AgentProcess) -> bool {
    matches!(process.role, Role::Session | Role::Client) && !process.process.is_exited
}

/// The verdict on a session that went on to `current`.
const SUPERSEDED: Verdict = Verdict::Exited(ExitedBecause::Superseded);

fn is_live(verdict: Verdict) -> bool {
    verdict.liveness() == Liveness::Live
}

/// Names for messages: at most so many candidates are listed.
const CANDIDATES_MAX: usize = 64;

fn ids_of<'a>(keys: impl IntoIterator<Item = &'a SessionKey>) -> Vec<SessionId> {
    keys.into_iter()
        .take(CANDIDATES_MAX)
        .map(|key| key.session.clone())
        .collect()
}

#[cfg(test)]
mod tests;
