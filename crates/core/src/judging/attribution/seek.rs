//! Looks for the sessions of processes that make no claim.
//!
//! Input: sessions with their claims and clues, and the agent's processes. Output:
//! sessions that are, or may be, live in a process, and the processes without a session.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use whosup_process::Pid;
use whosup_sidecar::{AgentId, SessionId};

use super::put_down::put_down;
use super::seeker::Seeker;
use super::solve::{ProcessFacts, solve};
use super::table::{Table, dates};
use super::{Drafts, ProcessKey, attributed, process_key};
use crate::adapter::claim::{EvidenceKind, Serving, SessionKey};
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
            let seekers: Vec<Seeker<'_>> = seeking
                .filter(|process| part == Unclaimed::Client || process.role == Role::Session)
                .map(|process| Seeker::of(process, parts, &provisional))
                .collect();
            let served = seek_part(drafts, parts, part, &seekers, &mut open);
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
    for seekers in heard(drafts, parts).into_values() {
        seek_part(
            drafts,
            parts,
            Unclaimed::Owner,
            &seekers,
            &mut BTreeMap::new(),
        );
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
    seekers: &[Seeker<'_>],
    open: &mut BTreeMap<Pid, BTreeSet<SessionKey>>,
) -> BTreeSet<Pid> {
    let Some(first) = seekers.first() else {
        return BTreeSet::new();
    };
    let has_session = first.heard_at_ms.is_some();
    let keys: Vec<SessionKey> = drafts
        .iter()
        .filter(|(key, draft)| key.agent == first.process.agent && may_be_sought(draft, part))
        .filter(|(_, draft)| !has_session || !draft.is_found_out())
        .map(|(key, _)| key.clone())
        .collect();
    let table = Table::new(drafts, parts, part, &keys, seekers);
    let facts = seekers.iter().enumerate().map(|(process, seeker)| {
        let facts = seeker.facts(part, drafts);
        let is_lost = facts.is_lost || table.lost.contains(&process);
        ProcessFacts { is_lost, ..facts }
    });
    let facts: Vec<ProcessFacts> = facts.collect();
    let solution = solve(&facts, &table.dates, &table.pairs);
    let seeking: Vec<&AgentProcess> = seekers.iter().map(|seeker| seeker.process).collect();
    let found = (solution, table.pairs.as_slice());
    put_down(drafts, part, &keys, &seeking, found, open)
}

/// Processes whose session only hooks show, by agent. Hooks may be heard no more (they were
/// uninstalled, or the program was moved), so that what nothing else explains may be theirs. That
/// decides nothing: what hooks reported is proven.
fn heard<'a>(drafts: &Drafts, parts: &'a Parts) -> BTreeMap<&'a AgentId, Vec<Seeker<'a>>> {
    let mut heard_at_ms: HashMap<ProcessKey, Option<i64>> = HashMap::new();
    for judged in drafts.values().flat_map(Draft::live_claims) {
        let Some(process) = judged.process.as_deref() else {
            continue;
        };
        let claim = &judged.claim;
        let is_by_hooks =
            claim.evidence.kind == EvidenceKind::Record && claim.serving == Serving::One;
        let at_ms = claim.dated_at_ms.filter(|_| is_by_hooks);
        let its = heard_at_ms.entry(process_key(process)).or_insert(at_ms);
        *its = its.zip(at_ms).map(|(one, other)| one.max(other));
    }
    let mut heard: BTreeMap<&AgentId, Vec<Seeker<'_>>> = BTreeMap::new();
    for process in &parts.processes {
        let at_ms = heard_at_ms.get(&process_key(&process.process)).copied();
        if let Some(at_ms) = at_ms.flatten()
            && process.role == Role::Session
        {
            let seeker = Seeker::heard_at(process, parts, at_ms);
            heard.entry(&process.agent).or_default().push(seeker);
        }
    }
    heard
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
