//! How many sessions a process with sidecars in the common place serves.

use std::collections::{BTreeSet, HashMap};

use whosup_process::{BootId, Pid, PidNamespace, StartStamp};
use whosup_sidecar::Serves;

use crate::adapter::AgentScan;
use crate::adapter::claim::{Claim, Serving, Trust};
use crate::machine::Machine;

/// What identifies a process besides the PID, as far as a claim has it.
#[derive(PartialEq, Eq, Hash)]
struct Named {
    stamp: StartStamp,
    /// Where it runs; `None` is here.
    scope: Option<(Option<String>, Option<BootId>, Option<PidNamespace>)>,
}

/// By the word in a file, before the other files are known; else one session at a time.
pub(super) const fn by_word(serves: Option<Serves>) -> Serving {
    match serves {
        Some(Serves::Many) => Serving::Many,
        Some(Serves::One) | None => Serving::One,
    }
}

/// Finds the processes that have files of several sessions. Those of the files that do
/// not record how many sessions their process serves (`unsaid`, by their place among the
/// claims) are all current: nothing shows that the process left any of them.
///
/// A process with one such file is left as it is: with an adapter, the agent's own files may
/// show that the process moved to another session.
pub(super) fn find_several(machine: &Machine, scan: &mut AgentScan, unsaid: &[usize]) {
    if unsaid.is_empty() {
        return;
    }
    let mut of_pid: HashMap<Pid, Vec<usize>> = HashMap::new();
    for (at, claim) in scan.claims.iter().enumerate() {
        // Files that every user may write do not affect other claims.
        if claim.trust == Trust::Trusted
            && let Some(pid) = claim.subject.pid()
        {
            of_pid.entry(pid).or_default().push(at);
        }
    }
    let several: Vec<usize> = of_pid
        .into_values()
        .filter(|places| places.len() > 1)
        .flat_map(|places| of_processes_with_several(machine, scan, &places))
        .filter(|at| unsaid.binary_search(at).is_ok())
        .collect();
    for at in several {
        if let Some(claim) = scan.claims.get_mut(at) {
            claim.serving = Serving::Several;
        }
    }
}

/// Among the claims at these places, which have one PID: the claims of a process that claims
/// more than one session.
fn of_processes_with_several(machine: &Machine, scan: &AgentScan, places: &[usize]) -> Vec<usize> {
    let mut of_process: HashMap<Named, Vec<(usize, &Claim)>> = HashMap::new();
    for at in places {
        if let Some(claim) = scan.claims.get(*at)
            && let Some(process) = named_by(machine, claim)
        {
            of_process.entry(process).or_default().push((*at, claim));
        }
    }
    let has_several = |claims: &[(usize, &Claim)]| {
        let sessions = claims.iter();
        let sessions = sessions.map(|(_, claim)| (&claim.key.agent, &claim.key.session));
        sessions.collect::<BTreeSet<_>>().len() > 1
    };
    let several = of_process.into_values();
    let several = several.filter(|claims| has_several(claims)).flatten();
    several.map(|(at, _)| at).collect()
}

/// The process that a claim names: the only process here that matches, else the process with
/// the claim's start stamp and scope. A PID alone names no process: containers use the same
/// small PIDs, and the kernel reuses PIDs.
fn named_by(machine: &Machine, claim: &Claim) -> Option<Named> {
    let pid = claim.subject.pid()?;
    let table = machine.table();
    let here = table.seen(pid).filter(|process| {
        let is_of_here = match &claim.stamp {
            Some(stamp) => stamp.is_same_as(&process.stamp) == Some(true),
            None => is_number_of_here(machine, claim.scope.pid_namespace),
        };
        is_of_here && claim.may_be_about(process, table.scope())
    });
    if let Some(process) = here {
        return Some(Named {
            stamp: process.stamp.clone(),
            scope: None,
        });
    }
    let scope = &claim.scope;
    Some(Named {
        stamp: claim.stamp.clone()?,
        scope: Some((scope.host.clone(), scope.boot.clone(), scope.pid_namespace)),
    })
}

/// Returns whether the PID in a file belongs to our own PID namespace.
pub(super) fn is_number_of_here(machine: &Machine, named: Option<PidNamespace>) -> bool {
    let table = machine.table();
    match (named, &table.scope().pid_namespace) {
        (Some(named), Ok(ours)) => named == *ours,
        (Some(_), Err(_)) => false,
        (None, _) => !table.has_nested_namespaces(),
    }
}
