//! Chooses the sessions that a list shows, and reads no more than that.

use std::collections::{BTreeSet, HashMap, HashSet};

use whosup_sidecar::AgentId;

use super::filter::{Filter, Wish, parent_key, sub_agents_of};
use super::find::{AgentError, parse_agent};
use super::order::Order;
use super::{Reach, Reader};
use crate::claim::SessionKey;
use crate::machine::Environment;
use crate::recognize::Users;
use crate::scan::Scanned;
use crate::session::{Session, Snapshot};

/// What a list is asked for.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Which sessions.
    pub wish: Wish,
    /// Of these agents only; of all if it is empty.
    pub agents: BTreeSet<AgentId>,
    /// Whose processes.
    pub users: Users,
    /// In which order.
    pub order: Order,
    /// No more than so many, sub-agents not counted.
    pub limit: Option<usize>,
    /// Whether sub-agents of what is shown are shown.
    pub sub_agents: SubAgents,
}

/// Whether sub-agents of what is shown are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubAgents {
    /// They are.
    #[default]
    Shown,
    /// They are not.
    Hidden,
}

impl ListQuery {
    /// The same, of agents that have these names; of all if there are none.
    ///
    /// # Errors
    ///
    /// [`AgentError`] if one of them is no agent.
    pub fn of_agents(
        mut self,
        names: &[String],
        environment: &Environment,
    ) -> Result<Self, AgentError> {
        let agents = names.iter().map(|name| parse_agent(name, environment));
        self.agents = agents.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// How far it looks.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach {
            depth: self.wish.depth(),
            agents: (!self.agents.is_empty()).then(|| self.agents.clone()),
            users: self.users,
        }
    }
}

/// What a list shows.
#[derive(Debug)]
pub struct Chosen {
    /// The sessions that are shown, in order, and the processes.
    pub snapshot: Snapshot,
    /// How far below another session of the list each sub-agent is.
    pub depths: HashMap<SessionKey, usize>,
}

/// Chooses among what a look found.
///
/// Files of sessions are read last, and only those of sessions that are shown,
/// unless the filter or the order can't decide without them.
pub(super) fn choose(
    reader: Reader<'_>,
    mut scanned: Scanned<'_>,
    query: &ListQuery,
    filter: &Filter,
) -> Chosen {
    let mut described: HashSet<SessionKey> = HashSet::new();
    let order = query.order;
    let is_limited = query.limit.is_some();
    describe(reader, &mut scanned, &mut described, |session| {
        filter.needs_files(session) || (is_limited && order.needs_files(session))
    });
    let shown = shown_keys(&mut scanned, query, filter);
    scanned
        .snapshot
        .sessions
        .retain(|session| shown.contains(&session.key));
    describe(reader, &mut scanned, &mut described, |_| true);
    let mut snapshot = scanned.snapshot;
    order.sort(&mut snapshot.sessions);
    let depths = put_below_parents(&mut snapshot.sessions);
    snapshot
        .unattributed
        .retain(|one| filter.is_process_shown(one));
    Chosen { snapshot, depths }
}

fn describe(
    reader: Reader<'_>,
    scanned: &mut Scanned<'_>,
    described: &mut HashSet<SessionKey>,
    wanted: impl Fn(&Session) -> bool,
) {
    let keys: HashSet<SessionKey> = scanned
        .snapshot
        .sessions
        .iter()
        .filter(|session| !described.contains(&session.key) && wanted(session))
        .map(|session| session.key.clone())
        .collect();
    if !keys.is_empty() {
        reader.describe(scanned, |session| keys.contains(&session.key));
        described.extend(keys);
    }
}

/// The keys of what is shown: the first sessions that pass the filter, and the
/// sub-agents that belong with them.
fn shown_keys(
    scanned: &mut Scanned<'_>,
    query: &ListQuery,
    filter: &Filter,
) -> HashSet<SessionKey> {
    let sessions = &mut scanned.snapshot.sessions;
    query.order.sort(sessions);
    let top: HashSet<SessionKey> = sessions
        .iter()
        .filter(|session| session.sketch.parent.is_none() && filter.is_shown(session))
        .take(query.limit.unwrap_or(usize::MAX))
        .map(|session| session.key.clone())
        .collect();
    if query.sub_agents == SubAgents::Hidden {
        return top;
    }
    let below = sub_agents_of(sessions, &top);
    // A sub-agent whose parent is not shown for another reason than the limit
    // is shown for its own sake.
    let alone = sessions
        .iter()
        .filter(|session| session.sketch.parent.is_some() && query.limit.is_none())
        .filter(|session| filter.is_shown(session))
        .map(|session| session.key.clone());
    top.iter().cloned().chain(below).chain(alone).collect()
}

/// Puts each sub-agent right below its parent, keeping the order otherwise.
fn put_below_parents(sessions: &mut Vec<Session>) -> HashMap<SessionKey, usize> {
    let keys: HashSet<SessionKey> = sessions.iter().map(|one| one.key.clone()).collect();
    let mut children: HashMap<SessionKey, Vec<Session>> = HashMap::new();
    let mut roots = Vec::new();
    for session in sessions.drain(..) {
        match parent_key(&session).filter(|parent| keys.contains(parent)) {
            Some(parent) if parent != session.key => {
                children.entry(parent).or_default().push(session);
            }
            _ => roots.push(session),
        }
    }
    let mut depths = HashMap::new();
    // The last of the list is the next to come out.
    let mut waiting: Vec<(Session, usize)> = roots.into_iter().rev().map(|one| (one, 0)).collect();
    while let Some((session, depth)) = waiting.pop() {
        let below = children.remove(&session.key).unwrap_or_default();
        waiting.extend(below.into_iter().rev().map(|one| (one, depth + 1)));
        if depth > 0 {
            depths.insert(session.key.clone(), depth);
        }
        sessions.push(session);
    }
    // Sub-agents that claim each other as parent hang below nobody.
    sessions.extend(children.into_values().flatten());
    depths
}
