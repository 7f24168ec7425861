//! Which processes are agents, and which homes they use.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Pid, Process};
use whosup_sidecar::AgentId;
use whosup_sidecar::file::{Links, facts};

use crate::agents::{self, Adapter, AgentProcess, Home, Program, Role};
use crate::machine::Machine;
use crate::problem::Problem;

/// How many agent processes one scan looks at.
const AGENT_PROCESSES_MAX: usize = 10_000;

/// Whose processes are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Users {
    /// Those of whoever asks.
    #[default]
    Own,
    /// Everybody's, as far as they can be seen.
    All,
}

/// Finds the processes of `adapters`' agents.
///
/// A process is looked at closer only if its name is one that some agent or a
/// language runtime goes by; what it is, its executable and arguments decide.
pub fn find_agent_processes(
    machine: &Machine,
    adapters: &[&'static dyn Adapter],
    users: Users,
    problems: &mut Vec<Problem>,
) -> Vec<AgentProcess> {
    let processes = match machine.table().processes() {
        Ok(processes) => processes,
        Err(error) => {
            problems.push(Problem::of_machine(error));
            return Vec::new();
        }
    };
    let own = machine.table().view().uid.clone().ok();
    let mut found = Vec::new();
    let mut launched = HashSet::new();
    for process in processes {
        if process.is_kernel_thread || process.is_exited || !is_candidate(process, adapters) {
            continue;
        }
        let details = machine.table().details(process);
        let is_wanted = match (users, &details.uid, own) {
            (Users::Own, Ok(uid), Some(own)) => *uid == own,
            _ => true,
        };
        if !is_wanted {
            continue;
        }
        let program = Program {
            process,
            details: &details,
        };
        let recognized = adapters
            .iter()
            .find_map(|adapter| Some((*adapter, adapter.recognize(&program)?)));
        let Some((adapter, mut role)) = recognized else {
            continue;
        };
        if role == Role::Session {
            match is_launched(machine, adapter, &program) {
                Some(true) => {
                    launched.insert(process.pid);
                }
                Some(false) => role = Role::Launcher,
                None => {}
            }
        }
        if found.len() == AGENT_PROCESSES_MAX {
            problems.push(Problem::of_machine(format!(
                "more than {AGENT_PROCESSES_MAX} agent processes: the rest is left out"
            )));
            break;
        }
        let homes = homes_of(machine, adapter, &program);
        found.push(AgentProcess {
            agent: agents::id_of(adapter),
            process: process.clone(),
            details: Arc::clone(&details),
            role,
            homes,
        });
    }
    mark_launchers(&mut found, &launched);
    found
}

/// Tells whether a process may be one of `adapters`' agents, by its name alone.
#[must_use]
pub fn is_candidate(process: &Process, adapters: &[&'static dyn Adapter]) -> bool {
    let Ok(comm) = std::str::from_utf8(&process.comm) else {
        return false;
    };
    // Node names its main thread; runtimes otherwise keep the name they were
    // started by.
    comm == "MainThread"
        || agents::is_runtime_name(comm)
        || adapters.iter().any(|adapter| adapter.may_be_called(comm))
}

/// The homes that a process uses by its own arguments and environment, or, where
/// that can't be read, by the files that it has open; empty if neither tells.
fn homes_of(machine: &Machine, adapter: &dyn Adapter, program: &Program<'_>) -> Vec<PathBuf> {
    let names = adapter.profile().home_variables;
    machine
        .environment_of(program.process, names)
        .filter(|environment| environment.home().is_some())
        .map_or_else(
            || homes_held_open(machine, adapter, program.process),
            |environment| adapter.homes_named_by(program, &environment),
        )
}

/// The homes in which a process has a file open that its agent keeps there.
///
/// The path must lead us to that very file: a process of a container names
/// paths that are others here.
fn homes_held_open(machine: &Machine, adapter: &dyn Adapter, process: &Process) -> Vec<PathBuf> {
    let Ok(open) = machine.table().open_files(process) else {
        return Vec::new();
    };
    let mut homes: Vec<PathBuf> = open
        .iter()
        .filter_map(|open| Some((open, adapter.home_of_open_file(&open.path)?)))
        .filter(|(open, _)| {
            let checked = machine.mounts().touchable(&open.path);
            checked.is_ok_and(|_| {
                facts(&open.path, Links::Refuse)
                    .is_ok_and(|its| (its.device, its.inode) == (open.file.device, open.file.inode))
            })
        })
        .map(|(_, home)| home)
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

/// Tells by its environment whether a launcher has started a process or it is one
/// itself, where its agent's launchers can be told by that. What can't be read
/// tells nothing.
fn is_launched(machine: &Machine, adapter: &dyn Adapter, program: &Program<'_>) -> Option<bool> {
    let names = adapter.variables_of_launched();
    if names.is_empty() {
        return None;
    }
    let environment = machine.environment_of(program.process, names)?;
    let mut names = names.iter();
    Some(names.any(|name| environment.variable(name).is_some()))
}

/// A script that starts itself again (to give its runtime options) leaves a
/// chain of equal processes: all but the deepest are launchers.
///
/// One that is known to be `launched` is the deepest. What looks the same below it
/// is its fork, which is about to run another program.
fn mark_launchers(processes: &mut [AgentProcess], launched: &HashSet<Pid>) {
    let shape = |process: &AgentProcess| {
        let program = process.program();
        let script = program.script()?.to_owned();
        let after = program
            .argv()
            .iter()
            .skip_while(|arg| Path::new(arg) != script)
            .skip(1)
            .cloned()
            .collect::<Vec<_>>();
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

/// The homes of one agent: what our environment leads to, what the
/// configuration adds, and what its processes use.
///
/// One directory by several names (a link, a slash at the end) is one home.
pub fn homes(
    machine: &Machine,
    adapter: &dyn Adapter,
    extra: &[(AgentId, PathBuf)],
    processes: &mut [AgentProcess],
    problems: &mut Vec<Problem>,
) -> Vec<Home> {
    let agent = agents::id_of(adapter);
    let default = machine
        .environment()
        .home()
        .map(|home| home.join(adapter.profile().default_home));
    let configured = extra
        .iter()
        .filter(|(of, _)| *of == agent)
        .map(|(_, root)| root.clone());
    let of_processes = processes
        .iter()
        .filter(|process| process.agent == agent)
        .flat_map(|process| process.homes.clone());
    let own: Vec<PathBuf> = adapter
        .homes(machine.environment())
        .into_iter()
        .chain(configured)
        .collect();
    for root in &own {
        machine.mounts().rely_on(root);
    }
    let mut barred = HashSet::new();
    let mut is_touchable = |root: &PathBuf| match machine.mounts().touchable(root) {
        Ok(_) => true,
        Err(why) => {
            if barred.insert(root.clone()) {
                problems.push(Problem {
                    agent: Some(agent.clone()),
                    path: Some(root.clone()),
                    message: format!(
                        "a process uses this home, which is not looked at: {why}; `homes` in \
                         the configuration can name it"
                    ),
                });
            }
            false
        }
    };
    let of_processes = of_processes.filter(&mut is_touchable);
    let roots = own.into_iter().chain(of_processes);
    let mut known: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut homes: Vec<Home> = Vec::new();
    for root in roots {
        let real = real_name(machine, &root);
        if known.contains_key(real.as_ref().unwrap_or(&root)) {
            continue;
        }
        homes.push(Home {
            is_default: default.as_ref() == Some(&root),
            owner_uid: real.as_deref().and_then(whosup_sidecar::file::owner_of),
            root: root.as_path().into(),
        });
        known.insert(real.unwrap_or_else(|| root.clone()), root);
    }
    for process in processes
        .iter_mut()
        .filter(|process| process.agent == agent)
    {
        let mut named = HashSet::new();
        for root in &mut process.homes {
            let real = real_name(machine, root).unwrap_or_else(|| root.clone());
            if let Some(first_name) = known.get(&real) {
                root.clone_from(first_name);
            }
            named.insert(root.clone());
        }
    }
    homes
}

/// The name of a directory without links; `None` if it can't be told. What is not there
/// costs one look, and not one at each directory above it.
fn real_name(machine: &Machine, root: &Path) -> Option<PathBuf> {
    let mounts = machine.mounts();
    let is_there = mounts.touchable(root).is_ok_and(|root| root.exists());
    is_there.then(|| mounts.real_path(root))
}

#[cfg(all(test, unix))]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::sync::Arc;

    use whosup_process::{ProcessTable, Recorded};

    use super::*;
    use crate::agents::vibe::Vibe;
    use crate::command::NoCommands;
    use crate::machine::Environment;
    use crate::mounts::Mounts;

    #[test]
    fn a_home_is_known_with_the_user_who_owns_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join(".vibe");
        std::fs::create_dir(&root).unwrap();
        let us = rustix::process::geteuid();
        let owner = if us.is_root() {
            std::os::unix::fs::chown(&root, Some(12_345), None).unwrap();
            12_345
        } else {
            eprintln!("only a home of our own is looked at: nobody but root can give one away");
            us.as_raw()
        };
        let machine = Machine::new(
            Environment::new(Some(directory.path().to_owned()), None, []),
            0,
            ProcessTable::look(Arc::new(Recorded::initial())),
            Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
            Arc::new(NoCommands),
        );
        let homes = homes(&machine, &Vibe, &[], &mut [], &mut Vec::new());
        assert_eq!(homes.len(), 1);
        assert_eq!(homes[0].owner_uid, Some(owner));
    }
}
