//! Decides about the sessions that no process was found to serve.
//!
//! A session has exited when every process that could serve it is excluded, in a complete
//! view. A stale claim excludes only the claimed process, unless every process that
//! serves the session would make such a claim.

use whosup_process::Pid;

use super::directory::Beside;
use super::{Drafts, attributed, process_key};
use crate::adapter::claim::SessionKey;
use crate::judging::unseen::is_refused;
use crate::judging::verdict::{Confidence, ExitedBecause, Liveness, UnknownBecause, Verdict};
use crate::sessions::merge::{Draft, Parts};
use crate::sessions::session::Unattributed;

use crate::adapter::{AgentProcess, ClueKind, Role, is_prefix_of};

/// How long after its own start a launcher may take to start the agent, in milliseconds. Seen:
/// half a second for Gemini CLI, and several on a loaded machine.
const STARTS_WITHIN_MS: i64 = 15_000;

/// Decides about every session that is neither live nor attributed.
pub(super) fn question_the_dead(drafts: &mut Drafts, parts: &Parts, unattributed: &[Unattributed]) {
    let blind = without_directory(drafts, parts);
    let seeking = unattributed.iter().map(|one| &one.process);
    let seeking: Vec<&AgentProcess> = seeking.chain(starting(parts)).collect();
    let left_over = without_session(drafts, parts, &seeking);
    let named = named_by(&seeking);
    for (key, draft) in drafts.iter_mut() {
        if draft.sketch.parent.is_some() || draft.is_found_out() {
            continue;
        }
        let mut named = named.iter().filter(|(one, name)| {
            is_prefix_of(name, &key.session) && may_serve(one, key, draft, parts)
        });
        let named = named.next().map(|(one, _)| one.process.pid);
        let named = named.or_else(|| parts.named_by_other(key));
        let gap = gap_of(draft, &left_over).or(named);
        if !is_open(key, draft, parts, gap.is_some()) {
            continue;
        }
        let may_serve = seeking
            .iter()
            .find(|one| may_serve(one, key, draft, parts))
            .map(|one| one.process.pid)
            .or(gap)
            .or_else(|| unrecognized(key, draft, parts))
            .or_else(|| host_of(key, draft, parts))
            .or_else(|| parts.unseen.get(&*key.home).copied())
            .or_else(|| {
                let may_use = |process: &&AgentProcess| {
                    process.agent == key.agent && process.may_use(&key.home)
                };
                let mut blind = blind.iter().copied();
                blind.find(may_use).map(|process| process.process.pid)
            });
        match may_serve {
            Some(pid) => {
                draft.find_out(Verdict::Unknown(UnknownBecause::MayBeServedBy(pid)), None);
            }
            None if draft.has_claims() => {}
            None if parts.fully_seen_homes.contains(&*key.home) => {
                draft.find_out(Verdict::Exited(ExitedBecause::NoProcess), None);
            }
            None => {
                draft.find_out(Verdict::Unknown(UnknownBecause::IncompleteView), None);
            }
        }
    }
}

/// The verdict of the claims does not settle the session.
fn is_open(key: &SessionKey, draft: &Draft, parts: &Parts, has_gap: bool) -> bool {
    if !draft.has_claims() {
        return true;
    }
    let may_be_hidden = parts.unseen.contains_key(&*key.home)
        && parts
            .adapter(&key.agent)
            .is_some_and(|adapter| adapter.profile().resumes_in_silence);
    draft.verdict().liveness() == Liveness::Exited
        && (may_be_hidden || has_gap || !draft.is_dead_for_good())
}

/// A process without a session, whose record of serving this session can't be read.
fn gap_of(draft: &Draft, left_over: &[Pid]) -> Option<Pid> {
    let gaps = draft.sketch.clues.iter();
    let mut gaps = gaps.filter(|clue| clue.kind == ClueKind::Gap);
    let gap = gaps.find(|clue| left_over.contains(&clue.pid));
    gap.map(|clue| clue.pid)
}

/// A shared host whose hooks reported that it took the session up, and no end.
fn host_of(key: &SessionKey, draft: &Draft, parts: &Parts) -> Option<Pid> {
    let adapter = parts.adapter(&key.agent)?;
    let reported = draft.sketch.clues.iter();
    let mut reported = reported.filter(|clue| clue.kind == ClueKind::Gap);
    let is_host = |pid: Pid| {
        let mut hosts = parts.processes.iter();
        hosts.any(|one| one.process.pid == pid && one.agent == key.agent && one.role == Role::Host)
    };
    let host = reported.find(|clue| !adapter.profile().hosts_claim && is_host(clue.pid));
    host.map(|clue| clue.pid)
}

/// Launchers that have not started the agent yet: it may serve what they may.
fn starting(parts: &Parts) -> impl Iterator<Item = &AgentProcess> {
    let has_started = |launcher: &AgentProcess| {
        let mut others = parts.processes.iter();
        others.any(|other| {
            other.agent == launcher.agent && other.process.ppid == Some(launcher.process.pid)
        })
    };
    let launchers = parts
        .processes
        .iter()
        .filter(|process| process.role == Role::Launcher && !process.process.is_exited);
    let young = launchers.filter(|process| {
        let began = process.process.began_ms();
        began.is_none_or(|began| parts.now_ms.saturating_sub(began) < STARTS_WITHIN_MS)
    });
    young.filter(move |process| !has_started(process))
}

/// Processes without a session, with the session that their arguments name.
fn named_by<'a>(seeking: &[&'a AgentProcess]) -> Vec<(&'a AgentProcess, &'a str)> {
    let named = seeking.iter();
    let named = named.filter_map(|one| Some((*one, one.named_session()?)));
    named.collect()
}

/// A process without a session excludes itself by another directory, by a clue, or by
/// having left the session. What one process left another one may have resumed. Another
/// directory does not exclude a process whose arguments name the session, if its agent
/// resumes from anywhere.
fn may_serve(process: &AgentProcess, key: &SessionKey, draft: &Draft, parts: &Parts) -> bool {
    let work_dir = draft.sketch.work_dir.as_deref();
    let is_named = || {
        let mut name = process.named_session().into_iter();
        process.adapter.profile().resumes_from_anywhere
            && name.any(|name| is_prefix_of(name, &key.session))
    };
    let is_beside = || {
        let (process, details) = (&process.process, &process.details);
        parts.places.beside(process, details, work_dir) != Beside::Excluded
    };
    let pid = process.process.pid;
    let is_excluded = || {
        let mut clues = draft.sketch.clues.iter();
        clues.any(|clue| clue.pid == pid && clue.kind.excludes())
    };
    process.agent == key.agent
        && process.may_use(&key.home)
        && (is_beside() || is_named())
        && !is_excluded()
        && !draft.was_left_by(&process.process)
}

/// A process in the directory of the session that may be the agent, although no adapter
/// recognizes it.
fn unrecognized(key: &SessionKey, draft: &Draft, parts: &Parts) -> Option<Pid> {
    let work_dir = draft.sketch.work_dir.as_deref();
    let mut possible = parts.possible.iter();
    let found = possible.find(|candidate| {
        candidate.may_be(&key.agent)
            && parts
                .places
                .beside(&candidate.process, &candidate.details, work_dir)
                == Beside::Same
    });
    found.map(|found| found.process.pid)
}

/// Processes whose directory cannot be read and whose session is at best inferred: each
/// may have moved to any session of its home.
fn without_directory<'a>(drafts: &Drafts, parts: &'a Parts) -> Vec<&'a AgentProcess> {
    let is_sure = |process: &AgentProcess| {
        let process = process_key(&process.process);
        let mut claims = drafts.values().flat_map(Draft::live_claims);
        claims.any(|claim| {
            claim.verdict.confidence() > Some(Confidence::Inferred) && claim.is_about(&process)
        })
    };
    let processes = parts.processes.iter();
    processes
        .filter(|process| process.role == Role::Session && !process.process.is_exited)
        .filter(|process| is_refused(&process.details.cwd) && !is_sure(process))
        .collect()
}

/// Processes for which no session was found, with those that rarely have one.
fn without_session(drafts: &Drafts, parts: &Parts, seeking: &[&AgentProcess]) -> Vec<Pid> {
    let taken = attributed(drafts);
    let besides = parts.processes.iter().filter(|process| {
        process.role == Role::Auxiliary
            && !process.process.is_exited
            && !taken.contains(&process_key(&process.process))
    });
    let all = seeking.iter().copied().chain(besides);
    all.map(|process| process.process.pid).collect()
}
