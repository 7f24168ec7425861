//! Of processes that look alike and are above one another, which one is the agent.

use std::collections::{HashMap, HashSet};

use whosup_process::Pid;
use whosup_sidecar::AgentId;

use crate::adapter::{AgentProcess, Role};

/// A child that an agent has forked looks like the agent until it executes the program that
/// it was forked for.
pub(super) fn leave_out_forks(processes: &mut Vec<AgentProcess>) {
    let agents: HashMap<Pid, AgentId> = processes
        .iter()
        .map(|process| (process.process.pid, process.agent.clone()))
        .collect();
    processes.retain(|process| {
        let parent = process.process.ppid.and_then(|parent| agents.get(&parent));
        !process.process.is_fork || parent != Some(&process.agent)
    });
}

/// A script that restarts itself (to give its runtime options) leaves a chain of equal
/// processes: all but the deepest are launchers.
///
/// A process that is known to be `launched` is the deepest. An equal process below it is a
/// fork, which is about to run another program.
pub(super) fn mark_launchers(processes: &mut [AgentProcess], launched: &HashSet<Pid>) {
    let shape = |process: &AgentProcess| {
        let program = process.program();
        let after = program.argv().get(program.script_at()? + 1..)?.to_vec();
        Some((process.agent.clone(), process.process.tty, after))
    };
    let sessions = processes
        .iter()
        .filter(|process| process.role == Role::Session);
    let shapes: HashMap<Pid, _> = sessions
        .clone()
        .filter_map(|process| Some((process.process.pid, shape(process)?)))
        .collect();
    let below: Vec<(Pid, Pid)> = sessions
        .filter_map(|process| Some((process.process.ppid?, process.process.pid)))
        .filter(|(parent, child)| {
            let parent = shapes.get(parent);
            parent.is_some() && parent == shapes.get(child)
        })
        .collect();
    let forks: HashSet<Pid> = below
        .iter()
        .filter(|(parent, _)| launched.contains(parent))
        .map(|(_, child)| *child)
        .collect();
    let launchers: HashSet<Pid> = below
        .iter()
        .filter(|(parent, _)| !launched.contains(parent))
        .map(|(parent, _)| *parent)
        .collect();
    for process in processes.iter_mut() {
        if forks.contains(&process.process.pid) {
            process.role = Role::Auxiliary;
        } else if launchers.contains(&process.process.pid) {
            process.role = Role::Launcher;
        }
    }
}
