//! Looks for the sessions of processes that make no claim.
//!
//! Input: sessions with their claims and clues, and the agent's processes. Output:
//! sessions that are, or may be, live in a process, and the processes without a session.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use whosup_process::Pid;
use whosup_sidecar::{AgentId, SessionId};

use super::put_down::put_down;
use super::seeker::Seeker;
use super::solve::{ProcessFacts, solve};
use super::table::{Table, dates};
use super::{Drafts, ProcessKey, attributed, process_key};
use crate::adapter::claim::SessionKey;
use crate::adapter::{AgentProcess, Role, Unclaimed};
use crate::sessions::merge::{Draft, Parts};
use crate::sessions::session::Unattributed;

/// How many candidates of a process are named.
const CANDIDATES_MAX: usize = 64;

/// Finds what processes without a claim serve or show, agent by agent, and returns the
/// processes that stay without a session.
pub(super) fn seek(drafts: &mut Drafts, parts: &Parts) -> Vec<Unattributed> {
    let mut taken = attributed(drafts);
    let found = drafts.values().filter_map(Draft::found_owner);
    taken.extend(found.map(process_key));
    let provisional = provisional(drafts);
    let mut free_of: BTreeMap<&AgentId, Vec<&AgentProcess>> = BTreeMap::new();
    for process in &parts.processes {
        if process.may_have_session() && !taken.contains(&process_key(&process.process)) {
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
                .filter(|process| part == Unclaimed::Client || process.role == Role::Session)
                .collect();
            let served = seek_part(drafts, parts, part, (&seeking, &provisional), &mut open);
            free.retain(|process| !served.contains(&process.process.pid));
        }
        free.retain(|process| !provisional.contains(&process_key(&process.process)));
        for process in free {
            let pid = process.process.pid;
            let candidates = open.get(&pid).cloned().unwrap_or_default();
            let others = open.iter().filter(|(other, _)| **other != pid);
            let rivals = others.filter(|(_, theirs)| !theirs.is_disjoint(&candidates));
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
        .map(|process| Seeker::of(process, parts, provisional))
        .collect();
    let table = Table::new(drafts, parts, part, &keys, &seekers);
    let facts = seekers
        .iter()
        .enumerate()
        .map(|(process, seeker)| ProcessFacts {
            is_lost: table.lost.contains(&process),
            ..seeker.facts(part, drafts)
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
            // Arguments name any session, and two processes may serve one session.
            Unclaimed::Owner | Unclaimed::NoProcess => {
                draft.sketch.unclaimed != Unclaimed::Client && (!is_live || draft.is_exclusive())
            }
        }
}
