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

/// How deep sub-agents of sub-agents are followed.
pub(crate) const SUB_AGENT_DEPTH_MAX: usize = 16;

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
    /// Homes that are there: a process whose home is gone may have gone on under its new name.
    pub homes_there: HashSet<std::path::PathBuf>,
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
/// it has ended before. Sub-agents of sub-agents follow theirs.
fn follow_parents(drafts: &mut Drafts) {
    let parent_of = |key: &SessionKey, draft: &Draft| {
        Some(SessionKey {
            session: draft.sketch.parent.clone()?,
            ..key.clone()
        })
    };
    let mut followed: HashSet<SessionKey> = HashSet::new();
    for depth in 0..SUB_AGENT_DEPTH_MAX {
        let is_settled = |key: &SessionKey, draft: &Draft| match depth {
            0 => draft.sketch.parent.is_none(),
            _ => followed.contains(key),
        };
        let children = drafts.iter().filter_map(|(key, draft)| {
            let parent = parent_of(key, draft)?;
            let above = drafts.get(&parent).filter(|it| is_settled(&parent, it))?;
            Some((key.clone(), above.verdict(), above.served_by()))
        });
        let children: Vec<_> = children.collect();
        if children.is_empty() {
            return;
        }
        followed = children.iter().map(|(key, ..)| key.clone()).collect();
        for (key, verdict, served_by) in children {
            let draft = drafts.get_mut(&key);
            if let Some(draft) = draft.filter(|draft| !draft.is_dead_for_good()) {
                draft.follow_parent(verdict, served_by);
            }
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
