//! Whether a process is the program that a claim is about.

use std::path::Path;

use whosup_process::Process;

use crate::adapter::{Adapter, Program, is_runtime_name};

use crate::adapter::claim::{Claim, EvidenceKind};
use crate::judging::verdict::Recognition;
use crate::machine::Machine;
use crate::sources::agents::{self, AGENTS};
use crate::sources::recognize::{Possible, possible_agents, recognize, what_it_runs};

/// Programs that replace themselves with another program (`exec`): a claim that names one
/// of them does not describe the program that runs later.
const STARTERS: &[&str] = &[
    "ash", "bash", "busybox", "dash", "env", "fish", "ksh", "mksh", "nice", "nohup", "setsid",
    "sh", "stdbuf", "sudo", "yash", "zsh",
];

/// Decides whether a process is the claim's program.
///
/// Positively another program is only what can be seen: what another agent's adapter
/// recognizes, a runtime whose script has nothing to do with the agent, an executable
/// that goes by none of the names that the agent goes by. What a loader or an emulator
/// runs is looked at; where that is unknown, it may be any program.
pub(super) fn recognition(
    machine: &Machine,
    claim: &Claim,
    process: &Process,
    is_in_claimed_directory: bool,
) -> Recognition {
    let details = what_it_runs(machine, process);
    let program = Program {
        process,
        details: &details,
    };
    let raw = machine.table().details(process);
    let adapter = agents::adapter(&claim.key.agent);
    if adapter.is_some_and(|adapter| adapter.profile().programs.recognize(&program).is_some()) {
        return Recognition::ClaimingAgent;
    }
    let executables = [raw.exe.as_deref().ok(), program.exe()];
    let is_named = claim
        .executable
        .as_deref()
        .is_some_and(|named| executables.contains(&Some(named)));
    // A runtime runs anything: that it is the same shows nothing.
    if is_named && !program.is_runtime() {
        return Recognition::NamedExecutable;
    }
    if is_about_any_program(claim, process) {
        return Recognition::Unrecognized;
    }
    if recognize(&program, AGENTS).is_some() {
        return Recognition::AnotherProgram;
    }
    let Some(exe) = program.exe() else {
        return Recognition::Unrecognized;
    };
    match adapter {
        Some(adapter) => of_known_agent(claim, adapter, &program, &possible_agents(&raw, &program)),
        None if is_named => Recognition::NamedExecutable,
        None if program.is_runtime() && is_in_claimed_directory => Recognition::FittingRuntime,
        None => of_unknown_agent(claim, exe),
    }
}

/// The claim is about this very process and names no program that stays: whoever starts a
/// process and announces it, as `whosup run` does, knows no more than its PID and start.
fn is_about_any_program(claim: &Claim, process: &Process) -> bool {
    let kind = claim.evidence.kind;
    matches!(kind, EvidenceKind::Sidecar | EvidenceKind::Record)
        && claim.scope.boot.is_some()
        && claim.stamp.as_ref() == Some(&process.stamp)
        && (claim.executable.is_none() || is_starter(claim.executable.as_deref()))
}

/// A process that the claiming agent's adapter does not recognize.
fn of_known_agent(
    claim: &Claim,
    adapter: &dyn Adapter,
    program: &Program<'_>,
    possible: &Possible,
) -> Recognition {
    let started_as = program
        .argv()
        .first()
        .and_then(|first| Path::new(first).file_name()?.to_str());
    let goes_by_its_name = || {
        let names = [program.exe_name(), program.comm(), started_as];
        let programs = adapter.profile().programs;
        let mut names = names.into_iter().flatten();
        names.any(|name| programs.may_be_called(name))
    };
    let may_be_its = if program.is_runtime() {
        possible.includes(&claim.key.agent)
    } else {
        possible.includes(&claim.key.agent) || goes_by_its_name()
    };
    if may_be_its || is_starter(claim.executable.as_deref()) {
        Recognition::Unrecognized
    } else {
        Recognition::AnotherProgram
    }
}

/// Only the claim describes the program.
fn of_unknown_agent(claim: &Claim, exe: &Path) -> Recognition {
    let Some(named) = claim.executable.as_deref() else {
        return Recognition::Unrecognized;
    };
    let is_runtime = |path: &Path| file_name(path).is_some_and(is_runtime_name);
    let may_run_anything = |path: &Path| is_runtime(path) || is_starter(Some(path));
    if may_run_anything(named) || is_runtime(exe) {
        Recognition::Unrecognized
    } else {
        Recognition::AnotherProgram
    }
}

/// It replaces itself with other programs, mostly as a shell that runs a script.
fn is_starter(executable: Option<&Path>) -> bool {
    let name = executable.and_then(file_name);
    name.is_some_and(|name| STARTERS.contains(&name))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
