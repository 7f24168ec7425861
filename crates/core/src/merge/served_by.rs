//! Sessions without a process and processes without a session.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::AgentId;

use super::draft::Draft;
use super::{Parts, attributed, ids_of, is_live, may_have_session, process_key};
use crate::agents::{self, Adapter, AgentProcess, PairingRule, Role, Sketch};
use crate::claim::{EvidenceKind, SessionKey};
use crate::composed::composed;
use crate::pairing::{Candidate, PairedBy, Pairs, Seeker, pair};
use crate::session::Unattributed;
use crate::unseen::is_refused;
use crate::verdict::{Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict};

/// The sessions that processes' arguments lead to without naming them: they name the
/// sessions that these were forked from.
pub(super) struct Forks(Vec<(Pid, SessionKey)>);

impl Forks {
    pub(super) fn of(sketches: &[Box<Sketch>]) -> Self {
        let named = sketches
            .iter()
            .filter_map(|sketch| Some((sketch.named_by?, sketch.key.clone())));
        Self(named.collect())
    }

    fn of_process(&self, process: &AgentProcess) -> Option<&str> {
        let mut forks = self.0.iter();
        let fork =
            forks.find(|(pid, key)| *pid == process.process.pid && key.agent == process.agent);
        fork.map(|(_, key)| key.session.as_str())
    }
}

/// Pairs what is left over, agent by agent, and returns the processes that
/// stay without a session.
pub(super) fn pair_processes(
    drafts: &mut BTreeMap<SessionKey, Draft>,
    parts: &Parts,
    forks: &Forks,
) -> Vec<Unattributed> {
    let taken = attributed(drafts);
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
        for rule in [PairingRule::Client, PairingRule::Owner] {
            let seeking: Vec<&AgentProcess> = free
                .iter()
                .copied()
                .filter(|process| rule == PairingRule::Client || process.role == Role::Session)
                .collect();
            let paired = pair_by_rule(drafts, (parts, forks), rule, &seeking, &mut open);
            free.retain(|process| !paired.contains(&process.process.pid));
        }
        for process in free {
            let candidates = open.remove(&process.process.pid).unwrap_or_default();
            let rivals = open
                .values()
                .filter(|others| !others.is_disjoint(&candidates));
            unattributed.push(Unattributed {
                titles: BTreeMap::new(),
                process: process.clone(),
                pane: None,
                reason: reason(&candidates, rivals.count()),
                candidates: ids_of(&candidates),
            });
        }
    }
    unattributed.sort_by_key(|one| one.process.process.pid);
    unattributed
}

fn reason(candidates: &BTreeSet<SessionKey>, rivals: usize) -> String {
    match (candidates.len(), rivals) {
        (0, _) => "it has no session yet, or one that nothing on disk connects with it".to_owned(),
        (1, 0) => "one session may be its, but nothing settles it".to_owned(),
        (1, _) => "one session fits it, and other processes as well".to_owned(),
        (many, _) => format!("{many} sessions fit"),
    }
}

fn pair_by_rule(
    drafts: &mut BTreeMap<SessionKey, Draft>,
    (parts, forks): (&Parts, &Forks),
    rule: PairingRule,
    seeking: &[&AgentProcess],
    open: &mut BTreeMap<Pid, BTreeSet<SessionKey>>,
) -> BTreeSet<Pid> {
    let Some(agent) = seeking.first().map(|process| &process.agent) else {
        return BTreeSet::new();
    };
    let keys: Vec<SessionKey> = drafts
        .iter()
        .filter(|(key, draft)| key.agent == *agent && is_candidate(draft, rule))
        .map(|(key, _)| key.clone())
        .collect();
    let candidates: Vec<Candidate> = keys
        .iter()
        .filter_map(|key| Some(candidate(key, drafts.get(key)?, parts)))
        .collect();
    let seekers: Vec<Seeker> = seeking
        .iter()
        .map(|process| seeker(process, parts, forks))
        .collect();
    let Pairs {
        pairs,
        superseded,
        open: left_open,
    } = pair(&seekers, &candidates);
    let mut paired = BTreeSet::new();
    for (seeker, candidate, by) in pairs {
        let (Some(process), Some(key)) = (seeking.get(seeker), keys.get(candidate)) else {
            continue;
        };
        paired.insert(process.process.pid);
        if let Some(draft) = drafts.get_mut(key) {
            put_together(draft, process, rule, by);
        }
    }
    if rule == PairingRule::Owner {
        for (left, current) in superseded {
            if let (Some(left), Some(current)) = (keys.get(left), keys.get(current))
                && let Some(draft) = drafts.get_mut(left)
            {
                draft.leave_for(&current.session);
            }
        }
    }
    for (seeker, fits) in left_open {
        let Some(process) = seeking.get(seeker) else {
            continue;
        };
        for key in fits.into_iter().filter_map(|at| keys.get(at)) {
            open.entry(process.process.pid)
                .or_default()
                .insert(key.clone());
            if let Some(draft) = drafts.get_mut(key) {
                leave_open(draft, process, rule);
            }
        }
    }
    paired
}

fn is_candidate(draft: &Draft, rule: PairingRule) -> bool {
    let is_live = draft.has_claims() && is_live(draft.verdict());
    draft.sketch.pairing == rule
        && draft.sketch.parent.is_none()
        && match rule {
            PairingRule::Never => false,
            PairingRule::Client => is_live && draft.may_have_client(),
            PairingRule::Owner => !is_live && !draft.is_dead_for_good(),
        }
}

fn candidate(key: &SessionKey, draft: &Draft, parts: &Parts) -> Candidate {
    let sketch = &draft.sketch;
    Candidate {
        id: key.session.as_str().to_owned(),
        home: key.home.to_path_buf(),
        work_dir: sketch.work_dir.as_deref().map(|dir| real_path(dir, parts)),
        born_at_ms: sketch.born_at_ms,
        last_record_at_ms: sketch.last_record_at_ms,
        perhaps_until_ms: sketch.perhaps_until_ms,
        title: sketch
            .terminal_title
            .clone()
            .or_else(|| sketch.title.clone()),
        is_first_of_a_process: sketch.is_first_of_a_process,
        is_held: draft.live_claims().next().is_some(),
        possible_owners: sketch.possible_owners.clone(),
        doubtful_owners: sketch.doubtful_owners.clone(),
    }
}

fn seeker(process: &AgentProcess, parts: &Parts, forks: &Forks) -> Seeker {
    let adapter = agents::adapter(&process.agent);
    let program = process.program();
    let named_dir = adapter.and_then(|adapter| adapter.work_dir_named_by(&program));
    let work_dir = named_dir.as_deref().or(process.work_dir());
    Seeker {
        pid: process.process.pid,
        work_dir: work_dir.map(|dir| real_path(dir, parts)),
        began_at_ms: process.process.began_at_ms.clone().ok(),
        named: adapter
            .and_then(|adapter| adapter.session_named_by(&program))
            .or_else(|| forks.of_process(process))
            .map(str::to_owned),
        names_any_directory: adapter.is_some_and(|adapter| adapter.resumes_from_anywhere()),
        homes: process.homes.clone(),
        terminal_title: parts.terminal_titles.get(&process.process.pid).cloned(),
        has_session: adapter.is_some_and(|adapter| adapter.profile().has_session_at_launch),
    }
}

fn real_path(path: &Path, parts: &Parts) -> PathBuf {
    let known = parts.real_paths.of(path).map(Path::to_owned);
    known.unwrap_or_else(|| composed(path.to_owned()))
}

fn put_together(draft: &mut Draft, process: &AgentProcess, rule: PairingRule, by: PairedBy) {
    let (kind, because) = match by {
        PairedBy::Arguments => (EvidenceKind::Arguments, LiveBecause::Arguments),
        PairedBy::Title => (EvidenceKind::Title, LiveBecause::Paired),
        PairedBy::Elimination => (EvidenceKind::Pairing, LiveBecause::Paired),
    };
    let pid = process.process.pid;
    let how = match by {
        PairedBy::Arguments if draft.sketch.named_by == Some(pid) => {
            format!("the arguments of process {pid} name the session that it was forked from")
        }
        PairedBy::Arguments => format!("the arguments of process {pid} name it"),
        PairedBy::Title => format!("the terminal of process {pid} shows its name"),
        PairedBy::Elimination => {
            format!("process {pid} is the only one that fits, and fits no other session")
        }
    };
    let verdict = Verdict::Live(because, Confidence::Inferred);
    if rule == PairingRule::Client {
        draft.add_evidence(
            kind,
            format!("client: {how}"),
            verdict,
            Some(&process.process),
        );
        draft.client = Some(Box::new(process.process.clone()));
    } else {
        draft.add_evidence(kind, how, verdict, Some(&process.process));
        draft.find_out(verdict, Some(process.process.clone()));
    }
}

fn leave_open(draft: &mut Draft, process: &AgentProcess, rule: PairingRule) {
    match rule {
        PairingRule::Client => draft.is_client_ambiguous = true,
        PairingRule::Owner | PairingRule::Never => {
            let pid = process.process.pid;
            let verdict = Verdict::Unknown(UnknownBecause::MayBeServedBy(pid));
            let says = format!(
                "process {pid} may serve it, but does so for no other reason than its directory and dates"
            );
            draft.add_evidence(EvidenceKind::Pairing, says, verdict, Some(&process.process));
            draft.find_out(verdict, None);
        }
    }
}

/// A process of which nobody can say in which directory it works.
#[derive(Debug)]
struct Blind<'a>(&'a AgentProcess);

impl Blind<'_> {
    const fn pid(&self) -> Pid {
        self.0.process.pid
    }

    fn may_serve(&self, key: &SessionKey) -> bool {
        self.0.agent == key.agent && self.0.may_use(&key.home)
    }
}

/// Processes whose directory was refused and whose session is at best inferred:
/// each may have gone on to any session of its home.
fn without_directory<'a>(drafts: &BTreeMap<SessionKey, Draft>, parts: &'a Parts) -> Vec<Blind<'a>> {
    let is_sure = |process: &AgentProcess| {
        let mut claims = drafts.values().flat_map(Draft::live_claims);
        claims.any(|claim| {
            claim.verdict.confidence() > Some(Confidence::Inferred)
                && claim.process.as_deref().map(process_key) == Some(process_key(&process.process))
        })
    };
    let processes = parts.processes.iter();
    processes
        .filter(|process| process.role == Role::Session && !process.process.is_exited)
        .filter(|process| is_refused(&process.details.cwd) && !is_sure(process))
        .map(Blind)
        .collect()
}

/// Processes that no session was found for, those among them that rarely have one.
fn without_session(
    drafts: &BTreeMap<SessionKey, Draft>,
    parts: &Parts,
    unattributed: &[Unattributed],
) -> Vec<Pid> {
    let taken = attributed(drafts);
    let besides = parts.processes.iter().filter(|process| {
        process.role == Role::Auxiliary
            && !process.process.is_exited
            && !taken.contains(&process_key(&process.process))
    });
    let left_over = unattributed.iter().map(|one| &one.process);
    let all = left_over.chain(besides);
    all.map(|process| process.process.pid).collect()
}

/// Decides about sessions that no process was found for.
///
/// A stale claim that is not exclusive, or no claim at all, leaves the session
/// open while a process of that agent without a session works in its
/// directory, or one that did not let itself be looked into may. Otherwise nobody is left who could serve it, provided that
/// everybody who could is seen.
pub(super) fn question_the_dead(
    drafts: &mut BTreeMap<SessionKey, Draft>,
    parts: &Parts,
    unattributed: &[Unattributed],
) {
    let blind = without_directory(drafts, parts);
    let left_over = without_session(drafts, parts, unattributed);
    for (key, draft) in drafts.iter_mut() {
        if draft.sketch.parent.is_some() || draft.is_found_out() {
            continue;
        }
        let may_be_hidden = parts.unseen.contains_key(&*key.home)
            && agents::adapter(&key.agent).is_some_and(Adapter::takes_up_in_silence);
        let mut left_over = left_over.iter();
        let unread = left_over.find(|pid| draft.sketch.unread_owners.contains(pid));
        let unread = unread.copied();
        let is_open = if draft.has_claims() {
            draft.verdict().liveness() == Liveness::Exited
                && draft.verdict() != super::SUPERSEDED
                && (may_be_hidden || unread.is_some() || !draft.is_dead_for_good())
        } else {
            true
        };
        if !is_open {
            continue;
        }
        let work_dir = draft
            .sketch
            .work_dir
            .as_deref()
            .map(|dir| real_path(dir, parts));
        let may_serve = unattributed.iter().find(|one| {
            let is_beside = match (&work_dir, one.process.work_dir()) {
                (Some(dir), Some(its)) => real_path(its, parts) == *dir,
                _ => true,
            };
            one.process.agent == key.agent && one.process.may_use(&key.home) && is_beside
        });
        let may_serve = may_serve.map(|one| one.process.process.pid);
        let may_serve = may_serve
            .or(unread)
            .or_else(|| parts.unseen.get(&*key.home).copied())
            .or_else(|| blind.iter().find(|its| its.may_serve(key)).map(Blind::pid));
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
