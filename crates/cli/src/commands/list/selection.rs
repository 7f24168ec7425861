//! Chooses the sessions that a list shows, and reads no more than that.

use std::collections::{HashMap, HashSet};

use whosup_core::claim::SessionKey;
use whosup_core::scan::Scanned;
use whosup_core::session::{Session, Snapshot};

use super::ListArgs;
use crate::app::{Reach, World};
use crate::filter::{Filter, parent_key, sub_agents_of};
use crate::short_id::ShortIds;

/// What a list shows.
pub(super) struct Chosen {
    /// The sessions that are shown, in order, and the processes.
    pub(super) snapshot: Snapshot,
    /// The short ids of everything that was found.
    pub(super) ids: ShortIds,
    /// How far below another session of the list each sub-agent is.
    pub(super) depths: HashMap<SessionKey, usize>,
}

/// Looks, and chooses.
///
/// Files of sessions are read last, and only those of sessions that are shown,
/// unless the filter or the order can't decide without them.
pub(super) fn choose(
    world: &World,
    arguments: &ListArgs,
    filter: &Filter,
    reach: &Reach,
) -> anyhow::Result<Chosen> {
    let mut scanned = world.scan(reach)?;
    let ids = ShortIds::of(&scanned.snapshot.sessions);
    let mut described: HashSet<SessionKey> = HashSet::new();
    let order = arguments.sort;
    let is_limited = arguments.limit.is_some();
    describe(world, &mut scanned, &mut described, |session| {
        filter.needs_files(session) || (is_limited && order.needs_files(session))
    })?;
    let shown = shown_keys(&mut scanned, arguments, filter);
    scanned
        .snapshot
        .sessions
        .retain(|session| shown.contains(&session.key));
    describe(world, &mut scanned, &mut described, |_| true)?;
    let mut snapshot = scanned.snapshot;
    order.sort(&mut snapshot.sessions);
    let depths = put_below_parents(&mut snapshot.sessions);
    snapshot
        .unattributed
        .retain(|one| filter.is_process_shown(one));
    Ok(Chosen {
        snapshot,
        ids,
        depths,
    })
}

fn describe(
    world: &World,
    scanned: &mut Scanned<'_>,
    described: &mut HashSet<SessionKey>,
    wanted: impl Fn(&Session) -> bool,
) -> anyhow::Result<()> {
    let keys: HashSet<SessionKey> = scanned
        .snapshot
        .sessions
        .iter()
        .filter(|session| !described.contains(&session.key) && wanted(session))
        .map(|session| session.key.clone())
        .collect();
    if !keys.is_empty() {
        world.describe(scanned, |session| keys.contains(&session.key))?;
        described.extend(keys);
    }
    Ok(())
}

/// The keys of what is shown: the first sessions that pass the filter, and the
/// sub-agents that belong with them.
fn shown_keys(
    scanned: &mut Scanned<'_>,
    arguments: &ListArgs,
    filter: &Filter,
) -> HashSet<SessionKey> {
    let sessions = &mut scanned.snapshot.sessions;
    arguments.sort.sort(sessions);
    let may_show_below = arguments.has_sub_agents() || arguments.is_json();
    let top: HashSet<SessionKey> = sessions
        .iter()
        .filter(|session| session.sketch.parent.is_none() && filter.is_shown(session))
        .take(arguments.limit_or_all())
        .map(|session| session.key.clone())
        .collect();
    if !may_show_below {
        return top;
    }
    let below = sub_agents_of(sessions, &top);
    // A sub-agent whose parent is not shown for another reason than the limit
    // is shown for its own sake.
    let alone = sessions
        .iter()
        .filter(|session| session.sketch.parent.is_some() && arguments.limit.is_none())
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
