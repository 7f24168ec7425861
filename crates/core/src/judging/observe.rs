//! Looks up a claim's PID in the process table.
//!
//! Looks; judging is [`crate::judging::verdict::judge`]'s.

mod claimed_program;
mod rivals;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use whosup_process::{
    AtPid, AtPids, Details, Pid, Platform, ProbeError, Process, ProcessTable, StampKind,
};

use crate::adapter::claim::{CLOCK_SLACK_MS, Claim, Serving};
use crate::adapter::{AgentProcess, Role};
use crate::judging::attribution::{Places, ProcessKey, process_key};
use crate::judging::verdict::{
    Context, Elsewhere, LookFailure, Observed, Recognition, Rival, Seen, Verdict, judge,
};
use crate::machine::Machine;
use crate::machine::composed::is_same;
use claimed_program::recognition;
use rivals::Candidate;

/// Judges claims against one machine; looks at each PID once.
#[derive(Debug)]
pub struct Observer<'a> {
    machine: &'a Machine,
    booted_at_ms: Option<i64>,
    init_began_at_ms: Option<i64>,
    claims: Vec<&'a Claim>,
    /// For each claimed PID, what shows that it serves one session alone; put together
    /// once a claimed process is there.
    claims_of: OnceCell<HashMap<Pid, Vec<&'a Claim>>>,
    at_pids: AtPids<'a>,
    /// Where sessions and processes work, if that was looked at.
    places: Option<&'a Places>,
    probes: Probes,
}

/// What was looked at so far.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    /// What has a PID; `None` if nothing does, as is so for nearly all that the files of
    /// a long history name.
    by_pid: HashMap<Pid, Option<Box<Result<AtPid, ProbeError>>>>,
    /// The processes of nested PID namespaces, by their innermost PIDs; asked
    /// for once.
    nested: OnceCell<HashMap<Pid, Vec<Process>>>,
    /// Processes that look like an agent and only started it.
    launchers: HashSet<Pid>,
}

impl Probes {
    /// Nothing was looked at yet, but the agents' processes.
    pub(crate) fn beside(processes: &[AgentProcess]) -> Self {
        let launchers = processes
            .iter()
            .filter(|process| process.role == Role::Launcher);
        Self {
            launchers: launchers.map(|launcher| launcher.process.pid).collect(),
            ..Self::default()
        }
    }
}

/// A claim with its verdict and the process that the verdict is about.
#[derive(Debug, Clone)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Box<Claim>,
    /// The verdict.
    pub verdict: Verdict,
    /// The process, as it was looked at for the verdict; `None` if there is none.
    pub process: Option<Box<Process>>,
    /// What was found about the process, for explanations.
    pub recognition: Option<Recognition>,
}

impl JudgedClaim {
    fn new(claim: Box<Claim>, verdict: Verdict, seen: Option<Seen>) -> Self {
        Self {
            claim,
            verdict,
            recognition: seen.as_ref().map(|seen| seen.recognition),
            process: seen.map(|seen| Box::new(seen.process)),
        }
    }

    /// The process that the verdict is about.
    pub(crate) fn process_key(&self) -> Option<ProcessKey> {
        self.process.as_deref().map(process_key)
    }

    /// Whether it rests on a file in the home of the session, and none beside it.
    pub(crate) fn lies_in_home(&self) -> bool {
        let path = self.claim.evidence.path.as_deref();
        path.is_some_and(|path| path.starts_with(&self.claim.key.home))
    }

    /// Whether the verdict is about this process.
    pub(crate) fn is_about(&self, process: &ProcessKey) -> bool {
        self.process_key().as_ref() == Some(process)
    }
}

/// Notes beside a claim that holds that its host had another name then
/// (tailscale#4003). A claim may be judged more than once.
fn note_former_name(claim: &mut Claim, verdict: Verdict, machine: &Machine) {
    let ours = &machine.table().scope().host;
    let is_of_our_namespace = claim
        .scope
        .pid_namespace
        .is_none_or(|named| machine.table().scope().pid_namespace == Ok(named));
    if let (Verdict::Live(..), Some(named), Ok(ours)) = (verdict, &claim.scope.host, ours)
        && is_of_our_namespace
        && !ours.is_same_host(named)
    {
        let note = format!(", written when this host was called {named}");
        if !claim.evidence.says.ends_with(&note) {
            claim.evidence.says.push_str(&note);
        }
    }
}

/// Judges those claims with whose PID there is no process, so that no other claim can change
/// the verdict. The rest stays in `claims`.
pub(crate) fn judge_unserved(
    machine: &Machine,
    claims: &mut Vec<Box<Claim>>,
    places: &Places,
    probes: &mut Probes,
) -> Vec<JudgedClaim> {
    let unserved = {
        let mut observer = Observer::new(machine, []);
        observer.probes = std::mem::take(probes);
        let unserved = claims.extract_if(.., |claim| observer.has_no_process(claim));
        let unserved = unserved.collect();
        *probes = observer.probes;
        unserved
    };
    judge_all(machine, unserved, places, probes)
}

/// Judges claims, which are all the claims there are to the processes they name.
pub(crate) fn judge_all(
    machine: &Machine,
    claims: Vec<Box<Claim>>,
    places: &Places,
    probes: &mut Probes,
) -> Vec<JudgedClaim> {
    let judged: Vec<_> = {
        let mut observer = Observer::new(machine, claims.iter().map(|claim| &**claim));
        observer.places = Some(places);
        observer.probes = std::mem::take(probes);
        let judged = claims.iter().map(|one| observer.verdict_on(one)).collect();
        *probes = observer.probes;
        judged
    };
    let judged = claims.into_iter().zip(judged);
    judged
        .map(|(mut claim, (verdict, seen))| {
            note_former_name(&mut claim, verdict, machine);
            JudgedClaim::new(claim, verdict, seen)
        })
        .collect()
}

/// Judges the claims that `is_about` chooses once more, among all of them.
pub(crate) fn judge_again(
    machine: &Machine,
    claims: &mut [JudgedClaim],
    places: &Places,
    processes: &[AgentProcess],
    is_about: impl Fn(&JudgedClaim) -> bool,
) {
    let judged: Vec<(usize, JudgedClaim)> = {
        let mut observer = Observer::new(machine, claims.iter().map(|one| &*one.claim));
        observer.places = Some(places);
        observer.probes = Probes::beside(processes);
        let chosen = claims.iter().enumerate().filter(|(_, one)| is_about(one));
        chosen
            .map(|(at, one)| (at, observer.judge(&one.claim)))
            .collect()
    };
    for (at, again) in judged {
        if let Some(claim) = claims.get_mut(at) {
            *claim = again;
        }
    }
}

impl<'a> Observer<'a> {
    /// An observer of `machine` for `claims`, which are all the claims there are.
    #[must_use]
    pub fn new(machine: &'a Machine, claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let init = Pid::new(1).ok().and_then(|pid| machine.table().seen(pid));
        Self {
            machine,
            booted_at_ms: booted_at_ms(machine.table()),
            init_began_at_ms: init.and_then(|init| init.began_ms()),
            claims: claims.into_iter().collect(),
            claims_of: OnceCell::new(),
            at_pids: machine.table().at_pids(),
            places: None,
            probes: Probes::default(),
        }
    }

    /// Judges one claim.
    pub fn judge(&mut self, claim: &Claim) -> JudgedClaim {
        let (verdict, seen) = self.verdict_on(claim);
        let mut claim = claim.clone();
        note_former_name(&mut claim, verdict, self.machine);
        JudgedClaim::new(Box::new(claim), verdict, seen)
    }

    fn verdict_on(&mut self, claim: &Claim) -> (Verdict, Option<Seen>) {
        let observed = self.observe(claim);
        let table = self.machine.table();
        let context = Context {
            scope: table.scope(),
            view: table.view(),
            platform: platform_of(table),
            now_ms: self.machine.now_ms(),
            booted_at_ms: self.booted_at_ms,
            init_began_at_ms: self.init_began_at_ms,
        };
        let verdict = judge(claim, &observed, &context);
        (verdict, observed.judged(claim, verdict))
    }

    /// No process has the PID that a claim names, here or in a nested namespace.
    fn has_no_process(&mut self, claim: &Claim) -> bool {
        let Some(pid) = claim.subject.pid() else {
            return true;
        };
        let is_nested = || {
            let nested = self.probes.nested.get_or_init(|| self.processes_by_inner());
            nested.contains_key(&pid)
        };
        let may_be_nested = self.machine.table().has_nested_namespaces() && is_nested();
        !may_be_nested && matches!(self.probe(pid), Ok(AtPid::Nothing))
    }

    fn probe(&mut self, pid: Pid) -> Result<AtPid, ProbeError> {
        let look = || match self.at_pids.look(pid) {
            Ok(AtPid::Nothing) => None,
            found => Some(Box::new(found)),
        };
        let probe = self.probes.by_pid.entry(pid).or_insert_with(look).clone();
        probe.map_or(Ok(AtPid::Nothing), |found| *found)
    }

    fn observe(&mut self, claim: &Claim) -> Observed {
        let mut observed = Observed {
            at_pid: Ok(None),
            is_thread: false,
            has_nested_namespaces: false,
            elsewhere: Vec::new(),
            named_namespace: Elsewhere::default(),
        };
        let Some(pid) = claim.subject.pid() else {
            return observed;
        };
        let table = self.machine.table();
        let probe = self.probe(pid);
        observed.is_thread = matches!(probe, Ok(AtPid::Thread));
        observed.at_pid = match probe {
            Ok(AtPid::Process(process)) => Ok(Some(self.seen(claim, process))),
            Ok(AtPid::Thread | AtPid::Nothing) => Ok(None),
            Err(ProbeError::Hidden { .. }) => Err(LookFailure::Hidden),
            Err(_) => Err(LookFailure::Failed),
        };
        let ours = table.scope().pid_namespace.as_ref().ok().copied();
        match claim.scope.pid_namespace {
            Some(named) if ours.is_some_and(|ours| ours != named) => {
                observed.named_namespace = self.look_into(claim, pid, named);
            }
            None if self.is_number_of_others(claim, pid, &observed) => {
                observed.has_nested_namespaces = true;
                observed.elsewhere = self.processes_with_inner(claim, pid);
                let here = observed.at_pid.as_mut().ok().and_then(Option::as_mut);
                for seen in here.into_iter().chain(&mut observed.elsewhere) {
                    self.compare(claim, seen);
                }
            }
            // A namespace that is gone may also have had the PID.
            None => {
                let here = observed.at_pid.as_mut().ok().and_then(Option::as_mut);
                if let Some(seen) = here {
                    seen.rival = self.elsewhere(claim, &seen.process).unwrap_or(seen.rival);
                }
            }
            _ => {}
        }
        observed
    }

    /// The PID of a claim without a PID namespace may be one of a nested namespace.
    /// Where the process with that very PID has the claim's stamp and is its agent, only
    /// a process that began at the same instant could be meant instead.
    fn is_number_of_others(&self, claim: &Claim, pid: Pid, observed: &Observed) -> bool {
        let table = self.machine.table();
        match &observed.at_pid {
            Ok(Some(seen)) if is_settled(claim, seen) => table
                .processes()
                .unwrap_or_default()
                .iter()
                .filter(|other| other.pid != pid && other.stamp == seen.process.stamp)
                .any(|other| table.details(other).innermost_pid() == Some(pid)),
            _ => table.has_nested_namespaces(),
        }
    }

    /// The process that has `pid` inside the PID namespace `named`.
    fn look_into(&self, claim: &Claim, pid: Pid, named: whosup_process::PidNamespace) -> Elsewhere {
        let mut sight = Elsewhere::default();
        let table = self.machine.table();
        for process in table.processes().unwrap_or_default() {
            let details = table.details(process);
            if details.pid_namespace != Ok(named) {
                continue;
            }
            sight.is_populated = true;
            if details.innermost_pid() == Some(pid) {
                sight.at_pid = Some(self.seen(claim, process.clone()));
            }
        }
        sight
    }

    /// The processes of nested namespaces that have `pid` there.
    fn processes_with_inner(&self, claim: &Claim, pid: Pid) -> Vec<Seen> {
        let nested = self.probes.nested.get_or_init(|| self.processes_by_inner());
        let processes = nested.get(&pid).into_iter().flatten();
        processes
            .filter(|process| process.pid != pid)
            .map(|process| self.seen(claim, process.clone()))
            .collect()
    }

    fn processes_by_inner(&self) -> HashMap<Pid, Vec<Process>> {
        let table = self.machine.table();
        let mut nested: HashMap<Pid, Vec<Process>> = HashMap::new();
        for process in table.processes().unwrap_or_default() {
            if process.is_kernel_thread {
                continue;
            }
            if let Some(inner) = table.details(process).innermost_pid() {
                nested.entry(inner).or_default().push(process.clone());
            }
        }
        nested
    }

    fn claims_by_pid(&self) -> HashMap<Pid, Vec<&'a Claim>> {
        let mut claims_of: HashMap<Pid, Vec<_>> = HashMap::new();
        for claim in &self.claims {
            if let Some(pid) = claim.subject.pid()
                && claim.serving != Serving::Many
            {
                claims_of.entry(pid).or_default().push(*claim);
            }
        }
        claims_of
    }

    /// The claims with one of these PIDs that may be all that its process serves.
    fn claims_to(&self, pids: [Option<Pid>; 2]) -> impl Iterator<Item = &'a Claim> + '_ {
        let claims_of = self.claims_of.get_or_init(|| self.claims_by_pid());
        let [one, other] = pids;
        let other = other.filter(|_| other != one);
        let claims = [one, other].into_iter().flatten();
        claims.flat_map(|pid| claims_of.get(&pid).into_iter().flatten().copied())
    }

    fn seen(&self, claim: &Claim, process: Process) -> Seen {
        let details = self.machine.table().details(&process);
        let is_in_claimed_directory = claim
            .work_dir
            .as_ref()
            .is_some_and(|claimed| details.cwd.as_ref().is_ok_and(|cwd| is_same(cwd, claimed)));
        let mut recognition = recognition(self.machine, claim, &process, is_in_claimed_directory);
        // An agent writes the PID of the process that runs it. One that has the number and
        // only starts the agent is not meant. Whether it got the number after that, dates
        // show, whatever they are rounded to.
        if claim.stamp.is_none() && self.probes.launchers.contains(&process.pid) {
            let dates = claim.dated_at_ms.zip(process.began_ms());
            recognition = match dates {
                Some((dated, began)) if dated < began => Recognition::AnotherProgram,
                _ => Recognition::Unrecognized,
            };
        }
        Seen {
            recognition,
            is_in_claimed_directory,
            has_newer_claim_to_other: self.has_newer_claim_to_other(claim, &process),
            is_of_another_user: false,
            rival: Rival::None,
            process,
        }
    }

    /// The process serves one session at a time, and has a claim to another one that was
    /// made since it began. What it serves beside another session takes nothing from it.
    fn has_newer_claim_to_other(&self, claim: &Claim, process: &Process) -> bool {
        let ours = self.machine.table().scope();
        claim.serving == Serving::One
            && self.claims_to([Some(process.pid), None]).any(|other| {
                let is_since = match (other.dated_at_ms, &process.began_at_ms) {
                    (Some(dated), Ok(began)) => dated > *began,
                    _ => false,
                };
                other.key.session != claim.key.session
                    && other.serving == Serving::One
                    && is_since
                    && other.may_be_about(process, ours)
            })
    }

    /// Collects what decides which of several processes with one PID is meant.
    fn compare(&self, claim: &Claim, seen: &mut Seen) {
        let details = self.machine.table().details(&seen.process);
        let candidate = self.candidate(&seen.process, &details);
        seen.is_of_another_user = candidate.is_of_another_user(claim);
        seen.rival = candidate.rival(claim, &self.others(claim, &seen.process));
    }

    /// The claim is about another process with this PID, which is gone.
    fn elsewhere(&self, claim: &Claim, process: &Process) -> Option<Rival> {
        let details = self.machine.table().details(process);
        let candidate = self.candidate(process, &details);
        let others = self.others(claim, process);
        let rival = candidate.rival(claim, &others);
        let works_elsewhere = |places| candidate.works_elsewhere(claim, places);
        if rival < Rival::Elsewhere && self.places.is_some_and(works_elsewhere) {
            return Some(Rival::Elsewhere);
        }
        Some(rival).filter(|rival| *rival >= Rival::Elsewhere)
    }

    /// The claims that may be about one process with `claim`, that included.
    fn others(&self, claim: &Claim, process: &Process) -> Vec<&'a Claim> {
        let pids = [claim.subject.pid(), Some(process.pid)];
        self.claims_to(pids).collect()
    }

    const fn candidate<'c>(&'c self, process: &'c Process, details: &'c Details) -> Candidate<'c> {
        Candidate {
            machine: self.machine,
            process,
            details,
        }
    }
}

impl Observed {
    /// The process that `verdict` is about.
    fn judged(self, claim: &Claim, verdict: Verdict) -> Option<Seen> {
        if let Some(seen) = self.named_namespace.at_pid {
            return Some(seen);
        }
        let at_pid = self.at_pid.ok().flatten();
        let is_live = matches!(verdict, Verdict::Live(..));
        let mut elsewhere = self.elsewhere.into_iter().filter(|seen| fits(claim, seen));
        match elsewhere.next() {
            // A live process of a nested namespace, not the one that happens to
            // have the same number here.
            Some(seen) if is_live && at_pid.as_ref().is_none_or(|at| !fits(claim, at)) => {
                Some(seen)
            }
            _ => at_pid,
        }
    }
}

/// It may be the one that a live claim is about. There is one of these at most.
fn fits(claim: &Claim, seen: &Seen) -> bool {
    let is_excluded = seen.is_of_another_user || seen.rival >= Rival::Better;
    let is_it = match &claim.stamp {
        Some(stamp) => {
            seen.process.stamp == *stamp && seen.recognition != Recognition::AnotherProgram
        }
        None => {
            let is_elsewhere = claim.work_dir.is_some() && !seen.is_in_claimed_directory;
            let is_older = match (claim.dated_at_ms, &seen.process.began_at_ms) {
                (Some(dated), Ok(began)) => *began <= dated.saturating_add(CLOCK_SLACK_MS),
                _ => false,
            };
            seen.recognition == Recognition::ClaimingAgent && is_older && !is_elsewhere
        }
    };
    is_it && !is_excluded
}

/// This process has the claim's stamp and is its agent.
fn is_settled(claim: &Claim, seen: &Seen) -> bool {
    claim.stamp.as_ref() == Some(&seen.process.stamp)
        && seen.recognition == Recognition::ClaimingAgent
}

/// When this host booted: the wall-clock start of a process less its ticks is
/// the same for all of them, and the table already knows it for each.
fn booted_at_ms(table: &ProcessTable) -> Option<i64> {
    table.view().booted_at_ms.clone().ok()
}

/// Whose start stamps the table has.
fn platform_of(table: &ProcessTable) -> Option<Platform> {
    let first = table.processes().ok()?.first();
    first
        .map(|process| process.stamp.kind())
        .map(StampKind::platform)
        .or_else(Platform::current)
}

#[cfg(test)]
mod tests;
