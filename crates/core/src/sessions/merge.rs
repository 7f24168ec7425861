//! Makes sessions from claims and verdicts: one for each key, with the best that is known of
//! it. Pure: it looks at nothing itself.

mod draft;
mod settle;

use std::collections::{HashMap, HashSet};

use whosup_process::Pid;
use whosup_sidecar::{AgentId, SessionId};

use crate::adapter::claim::SessionKey;
use crate::adapter::{Adapter, AgentProcess, Sketch, adapter_of};
use crate::judging::attribution::{Drafts, Places, ProcessKey, attribute, process_key};
use crate::judging::observe::JudgedClaim;
use crate::judging::verdict::{ExitedBecause, Liveness, Verdict};
use crate::sessions::session::{Session, Unattributed};
use crate::sources::recognize::PossibleProcess;

pub(crate) use draft::Draft;
pub(crate) use settle::{Surroundings, settle};

/// The input of a merge.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// Every claim with its verdict.
    pub claims: Vec<JudgedClaim>,
    /// What else adapters found about sessions.
    pub sketches: Vec<Box<Sketch>>,
    /// Every recognized agent process.
    pub processes: Vec<AgentProcess>,
    /// What the terminals of these processes show as their title.
    pub terminal_titles: HashMap<Pid, String>,
    /// Keys whose home is the agent's default one.
    pub default_homes: HashSet<std::path::PathBuf>,
    /// Homes all of whose possible processes can be seen from here.
    pub fully_seen_homes: HashSet<std::path::PathBuf>,
    /// Processes that may use a home and could not be inspected.
    pub unseen: HashMap<std::path::PathBuf, Pid>,
    /// Sessions that the arguments of other users' processes name, whose homes can't be read.
    pub named_by_others: HashMap<(AgentId, SessionId), Pid>,
    /// Where sessions and processes work.
    pub places: Places,
    /// Processes that may be an agent's although no adapter recognizes them.
    pub possible: Vec<PossibleProcess>,
    /// When the look was taken, in milliseconds since 1970.
    pub now_ms: i64,
    /// Every adapter.
    pub adapters: &'static [&'static dyn Adapter],
}

impl Parts {
    /// The adapter of an agent; `None` if it has none.
    pub(crate) fn adapter(&self, agent: &AgentId) -> Option<&'static dyn Adapter> {
        adapter_of(self.adapters, agent)
    }

    /// The recognized process with this key.
    pub(crate) fn process(&self, key: &ProcessKey) -> Option<&AgentProcess> {
        let mut processes = self.processes.iter();
        processes.find(|found| process_key(&found.process) == *key)
    }

    /// Another user's process whose arguments name the session.
    pub(crate) fn named_by_other(&self, key: &SessionKey) -> Option<Pid> {
        if self.named_by_others.is_empty() {
            return None;
        }
        let name = (key.agent.clone(), key.session.clone());
        self.named_by_others.get(&name).copied()
    }
}

/// Sessions, and agent processes without one.
#[derive(Debug, Default)]
pub struct Merged {
    /// By key.
    pub sessions: Vec<Session>,
    /// By PID.
    pub unattributed: Vec<Unattributed>,
}

/// Merges everything into sessions.
///
/// The order of the parts does not matter.
#[must_use]
pub fn merge(mut parts: Parts) -> Merged {
    let mut drafts = draft::group(
        std::mem::take(&mut parts.sketches),
        std::mem::take(&mut parts.claims),
    );
    let unattributed = attribute(&mut drafts, &parts);
    follow_parents(&mut drafts);
    let sessions = drafts
        .into_values()
        .filter(|draft| !draft.is_nothing())
        .map(|draft| {
            let is_default_home = parts.default_homes.contains(&*draft.sketch.key.home);
            let adapter = parts.adapter(&draft.sketch.key.agent);
            draft.into_session(adapter, is_default_home)
        })
        .collect();
    Merged {
        sessions,
        unattributed,
    }
}

/// A sub-agent is live if its parent is, unless the sub-agent's claim shows that
/// it has ended before.
fn follow_parents(drafts: &mut Drafts) {
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

/// The verdict on a session that was left for `current`.
const SUPERSEDED: Verdict = Verdict::Exited(ExitedBecause::Superseded);

fn is_live(verdict: Verdict) -> bool {
    verdict.liveness() == Liveness::Live
}

#[cfg(test)]
mod tests;
