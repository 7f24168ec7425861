//! Which processes are agents, which may be, and which homes they use.

mod look_through;
mod possible;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Absent, Details, Pid, Process};
use whosup_sidecar::AgentId;
use whosup_sidecar::file::{Links, facts, facts_of_any};

use crate::adapter::{Adapter, AgentProcess, Home, LaunchedIn, Program, Role, is_runtime_name};

use crate::adapter::claim::Placement;
use crate::machine::Machine;
use crate::machine::problem::Problem;
use crate::sources::agents::{self, AGENTS};

pub(crate) use look_through::is_name_of_layer;
pub use look_through::look_through;
pub use possible::PossibleProcess;
pub(crate) use possible::{Possible, possible_agents};

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

/// What was found in the process table.
#[derive(Debug, Clone, Default)]
pub struct AgentProcesses {
    /// Processes that an adapter recognizes.
    pub recognized: Vec<AgentProcess>,
    /// Processes that no adapter recognizes and that may be an agent all the same.
    pub possible: Vec<PossibleProcess>,
}

/// Finds the processes of `adapters`' agents, and those that may be an agent's.
///
/// A process is looked at closer only if its name or that of its executable is one that
/// some agent, a language runtime, a loader or an emulator goes by; what it is, the
/// executable and the arguments of the program that it runs decide.
pub fn find_agent_processes(
    machine: &Machine,
    adapters: &[&'static dyn Adapter],
    users: Users,
    problems: &mut Vec<Problem>,
) -> AgentProcesses {
    let mut found = AgentProcesses::default();
    let processes = match machine.table().processes() {
        Ok(processes) => processes,
        Err(error) => {
            problems.push(Problem::of_machine(error));
            return found;
        }
    };
    let own = machine.table().view().uid.clone().ok();
    let mut launched = HashSet::new();
    for process in processes {
        if process.is_kernel_thread || process.is_exited || !is_candidate(machine, process) {
            continue;
        }
        let details = what_it_runs(machine, process);
        let is_wanted = match (users, &details.uid, own) {
            (Users::Own, Ok(uid), Some(own)) => *uid == own,
            _ => true,
        };
        if !is_wanted {
            continue;
        }
        if found.recognized.len() + found.possible.len() == AGENT_PROCESSES_MAX {
            problems.push(Problem::of_machine(format!(
                "more than {AGENT_PROCESSES_MAX} agent processes: the rest is left out"
            )));
            break;
        }
        let program = Program {
            process,
            details: &details,
        };
        match recognize(&program, adapters) {
            Some((adapter, role)) => {
                let homes = homes_of(machine, adapter, &program);
                if homes.is_empty() && has_gone_since(machine, process) {
                    continue;
                }
                let role = match (
                    role,
                    is_launched_if_session(machine, adapter, role, &program),
                ) {
                    (role, None) => role,
                    (role, Some(true)) => {
                        launched.insert(process.pid);
                        role
                    }
                    (_, Some(false)) => Role::Launcher,
                };
                found.recognized.push(AgentProcess {
                    agent: agents::id_of(adapter),
                    adapter,
                    process: process.clone(),
                    homes,
                    launched_in: launched_in(machine, &program),
                    details,
                    role,
                });
            }
            None => found
                .possible
                .extend(as_possible(machine, process, &details)),
        }
    }
    mark_launchers(&mut found.recognized, &launched);
    found.possible = possible::without_tools(machine.table(), found.possible, &found.recognized);
    found
}

/// Asks the adapters in their order whether a process is one of theirs.
pub(crate) fn recognize(
    program: &Program<'_>,
    adapters: &[&'static dyn Adapter],
) -> Option<(&'static dyn Adapter, Role)> {
    adapters
        .iter()
        .find_map(|adapter| Some((*adapter, adapter.programs().recognize(program)?)))
}

fn as_possible(
    machine: &Machine,
    process: &Process,
    details: &Arc<Details>,
) -> Option<PossibleProcess> {
    let program = Program { process, details };
    // Whatever was asked for: another agent's process is none of these.
    if recognize(&program, AGENTS).is_some() {
        return None;
    }
    let agents = match possible_agents(&machine.table().details(process), &program) {
        Possible::Nobody => return None,
        Possible::OneOf(agents) => agents,
        Possible::Anybody => BTreeSet::new(),
    };
    Some(PossibleProcess {
        process: process.clone(),
        details: Arc::clone(details),
        agents,
    })
}

/// What a process tells, with the executable and the arguments of the program that it
/// runs: loaders, emulators and the names of wrappers are looked through, and a link is
/// followed where no adapter knows the name of it.
#[must_use]
pub fn what_it_runs(machine: &Machine, process: &Process) -> Arc<Details> {
    let raw = machine.table().details(process);
    let seen = look_through(&raw).map_or_else(|| Arc::clone(&raw), Arc::new);
    let is_recognized =
        |details: &Details| recognize(&Program { process, details }, AGENTS).is_some();
    if is_recognized(&seen) {
        return seen;
    }
    let behind_link = behind_link(machine, &raw, &seen);
    behind_link
        .map(|details| look_through(&details).unwrap_or(details))
        .filter(is_recognized)
        .map_or(seen, Arc::new)
}

/// The same with the file that a link leads to: the script of a runtime, or the program
/// of a loader or an emulator. (Of an executable the kernel shows the file itself.)
///
/// A process of another PID namespace has files of its own, and what machines share may
/// not answer.
fn behind_link(machine: &Machine, raw: &Details, seen: &Details) -> Option<Details> {
    let is_of_ours =
        raw.pid_namespace.is_ok() && raw.pid_namespace == machine.table().scope().pid_namespace;
    if !is_of_ours {
        return None;
    }
    let real = |path: &Path| {
        let is_here = machine.mounts().placement_of(path) != Placement::SharedByMachines;
        let is_there = machine
            .mounts()
            .touchable(path)
            .is_ok_and(|path| path.exists());
        let real =
            (path.is_absolute() && is_here && is_there).then(|| machine.mounts().real_path(path));
        real.filter(|real| real != path)
    };
    if let Some(at) = look_through::script_at(seen) {
        let cwd = seen.cwd.as_deref().ok()?;
        let script = cwd.join(seen.argv.as_deref().ok()?.get(at)?);
        return look_through::with_script(seen, at, &real(&script)?);
    }
    let exe = seen.exe.as_deref().ok()?;
    if raw.exe.as_deref() == Ok(exe) {
        return None;
    }
    let mut behind = seen.clone();
    behind.exe = Ok(real(exe)?);
    Some(behind)
}

/// Tells whether a process is worth a closer look, by its name and that of its
/// executable alone.
///
/// A link, a wrapper or an emulator leaves the name of it to the process, and many
/// programs choose one. The executable is one link to read.
fn is_candidate(machine: &Machine, process: &Process) -> bool {
    let comm = std::str::from_utf8(&process.comm);
    if comm.is_ok_and(is_name_of_candidate) {
        return true;
    }
    let exe = machine.table().executable(process);
    let name = exe
        .as_deref()
        .ok()
        .and_then(|exe| exe.file_name()?.to_str());
    name.is_some_and(is_name_of_candidate)
}

fn is_name_of_candidate(name: &str) -> bool {
    let is_of_agent = |name: &str| {
        let mut adapters = AGENTS.iter();
        is_runtime_name(name) || adapters.any(|adapter| adapter.programs().may_be_called(name))
    };
    is_of_agent(name)
        || is_name_of_layer(name)
        || look_through::unwrapped_name(name).is_some_and(is_of_agent)
}

/// It was there when the processes were listed, and has exited before its homes could be
/// read: so nothing is known of them, and it serves nothing.
fn has_gone_since(machine: &Machine, process: &Process) -> bool {
    let environment = machine.table().environment(process, &["HOME"]);
    matches!(environment, Err(Absent::Exited | Absent::Vanished))
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

/// What the environment of a process says of the directory that it was started in. (Shells
/// and tmux set `PWD`; a program that its parent starts elsewhere has that of the parent,
/// which is there.)
fn launched_in(machine: &Machine, program: &Program<'_>) -> LaunchedIn {
    let environment = machine.environment_of(program.process, &["PWD"]);
    let named = environment.as_ref().and_then(|all| all.variable("PWD"));
    let Some(named) = named.map(Path::new).filter(|named| named.is_absolute()) else {
        return LaunchedIn::NotKnown;
    };
    if program.details.cwd.as_deref() == Ok(named) {
        return LaunchedIn::There;
    }
    let shares_mounts = machine.table().shares_mounts(program.process);
    match machine.mounts().touchable(named) {
        Ok(named) if matches!(shares_mounts, Ok(true)) => {
            match facts_of_any(named.as_path(), Links::Follow) {
                Ok(_) => LaunchedIn::There,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    LaunchedIn::Gone(named.as_path().to_owned())
                }
                Err(_) => LaunchedIn::NotKnown,
            }
        }
        _ => LaunchedIn::NotKnown,
    }
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

fn is_launched_if_session(
    machine: &Machine,
    adapter: &dyn Adapter,
    role: Role,
    program: &Program<'_>,
) -> Option<bool> {
    (role == Role::Session)
        .then(|| is_launched(machine, adapter, program))
        .flatten()
}

/// Tells by its environment whether a launcher has started a process or it is one
/// itself, where its agent's launchers can be told by that. What can't be read
/// tells nothing.
fn is_launched(machine: &Machine, adapter: &dyn Adapter, program: &Program<'_>) -> Option<bool> {
    let names = adapter.programs().variables_of_launched;
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
    let roots: Vec<PathBuf> = own.into_iter().chain(of_processes).collect();
    let (homes, known) = distinct(machine, &roots, default.as_deref());
    for process in processes
        .iter_mut()
        .filter(|process| process.agent == agent)
    {
        let mut named = HashSet::new();
        for root in &mut process.homes {
            let real = real_name(machine, root).unwrap_or_else(|| name_of_missing(machine, root));
            if let Some(first_name) = known.get(&real) {
                root.clone_from(first_name);
            }
            named.insert(root.clone());
        }
    }
    homes
}

/// One home for each directory among `roots`, by its first name, and these names by the
/// names without links.
fn distinct(
    machine: &Machine,
    roots: &[PathBuf],
    default: Option<&Path>,
) -> (Vec<Home>, HashMap<PathBuf, PathBuf>) {
    let mut known: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut homes: Vec<Home> = Vec::new();
    for root in roots {
        let real = real_name(machine, root);
        let owner_uid = real.as_deref().and_then(whosup_sidecar::file::owner_of);
        let name = match real {
            None if roots.len() > 1 => name_of_missing(machine, root),
            real => real.unwrap_or_else(|| root.clone()),
        };
        if known.contains_key(&name) {
            continue;
        }
        homes.push(Home {
            is_default: default == Some(root.as_path()),
            owner_uid,
            root: root.as_path().into(),
        });
        known.insert(name, root.clone());
    }
    (homes, known)
}

/// The name of a directory without links; `None` if it can't be told. What is not there
/// costs one look, and not one at each directory above it.
fn real_name(machine: &Machine, root: &Path) -> Option<PathBuf> {
    let mounts = machine.mounts();
    let is_there = mounts.touchable(root).is_ok_and(|root| root.exists());
    is_there.then(|| mounts.real_path(root))
}

/// The name without links of a directory that is not there: an agent makes its home when
/// it writes something.
fn name_of_missing(machine: &Machine, root: &Path) -> PathBuf {
    let real_above = root.ancestors().skip(1).find_map(|above| {
        let rest = root.strip_prefix(above).ok()?;
        Some(real_name(machine, above)?.join(rest))
    });
    real_above.unwrap_or_else(|| root.to_owned())
}

#[cfg(all(test, unix))]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests;
