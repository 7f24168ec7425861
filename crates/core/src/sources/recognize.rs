//! Finds the processes that are agents or may be, and the homes that they use.

mod look_through;
mod others;
mod possible;
mod relatives;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Absent, Details, Pid, Process};
use whosup_sidecar::file::{Links, facts, facts_of_any};
use whosup_sidecar::{AgentId, SessionId};

use crate::adapter::{Adapter, AgentProcess, Home, LaunchedIn, Program, Role, is_runtime_name};

use crate::adapter::claim::Placement;
use crate::machine::problem::Problem;
use crate::machine::{Machine, parallel};
use crate::sources::agents::{self, AGENTS};

pub use look_through::look_through;
pub(crate) use look_through::{is_name_of_layer, unwrapped_name};
pub(crate) use others::{is_below_ours, is_by_another, leave_out_others};
pub use possible::PossibleProcess;
pub(crate) use possible::{Possible, possible_agents};

/// The variable that shells keep the current directory in.
const LAUNCH_DIRECTORY: &str = "PWD";
/// How many agent processes one scan looks at.
const AGENT_PROCESSES_MAX: usize = 10_000;
/// How many processes are looked at before the next.
const AT_ONCE_MAX: usize = 1_024;

/// The users whose processes are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Users {
    /// Processes of the user who runs the scan, and processes of others that may use the same
    /// homes.
    #[default]
    Own,
    /// Processes of all users, as far as they can be seen.
    All,
}

/// The processes found in the process table.
#[derive(Debug, Clone, Default)]
pub struct AgentProcesses {
    /// Processes that an adapter recognizes.
    pub recognized: Vec<AgentProcess>,
    /// Processes that no adapter recognizes and that may be an agent.
    pub possible: Vec<PossibleProcess>,
    /// Sessions that the arguments of other users' processes name, whose homes can't be read.
    pub named_by_others: HashMap<(AgentId, SessionId), Pid>,
}

/// Finds the processes of `adapters`' agents, and the processes that may be such an agent,
/// whoever runs them.
///
/// A process gets a closer look only if the process name or the executable's name is used by
/// an agent, a language runtime, a loader or an emulator. The executable and the arguments
/// of the program that it runs then decide.
pub fn find_agent_processes(
    machine: &Machine,
    adapters: &[&'static dyn Adapter],
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
    let mut launched = HashSet::new();
    let seen = processes.chunks(AT_ONCE_MAX).flat_map(|some| {
        let some = some.iter().collect();
        parallel::map(some, |process| seen_as(machine, process, adapters))
    });
    for seen in seen.flatten() {
        if found.recognized.len() + found.possible.len() == AGENT_PROCESSES_MAX {
            problems.push(Problem::of_machine(format!(
                "more than {AGENT_PROCESSES_MAX} agent processes: the rest is left out"
            )));
            break;
        }
        match seen {
            SeenAs::Agent(process, is_launched) => {
                if is_launched {
                    launched.insert(process.process.pid);
                }
                found.recognized.push(process);
            }
            SeenAs::Possible(process) => found.possible.push(process),
        }
    }
    relatives::leave_out_forks(&mut found.recognized);
    relatives::mark_launchers(&mut found.recognized, &launched);
    found.possible =
        possible::without_tools_and_launchers(machine.table(), found.possible, &found.recognized);
    found
}

/// What a process turned out to be.
enum SeenAs {
    /// An agent, and whether it was started by a launcher that marks the environment.
    Agent(AgentProcess, bool),
    Possible(PossibleProcess),
}

/// `None` if a process is no agent.
fn seen_as(
    machine: &Machine,
    process: &Process,
    adapters: &[&'static dyn Adapter],
) -> Option<SeenAs> {
    if process.is_kernel_thread || process.is_exited || !is_candidate(machine, process) {
        return None;
    }
    let details = what_it_runs(machine, process);
    let program = Program {
        process,
        details: &details,
    };
    let Some((adapter, role)) = recognize(&program, adapters) else {
        return as_possible(machine, process, &details).map(SeenAs::Possible);
    };
    let homes = homes_of(machine, adapter, &program);
    if homes.is_empty() && has_gone_since(machine, process) {
        return None;
    }
    let is_launched = is_launched_if_session(machine, adapter, role, &program);
    let found = AgentProcess {
        agent: agents::id_of(adapter),
        adapter,
        process: process.clone(),
        homes,
        launched_in: launched_in(machine, &program),
        details,
        role: match is_launched {
            Some(false) => Role::Launcher,
            _ => role,
        },
    };
    Some(SeenAs::Agent(found, is_launched == Some(true)))
}

/// Asks the adapters in their order whether a process is one of theirs.
pub(crate) fn recognize(
    program: &Program<'_>,
    adapters: &[&'static dyn Adapter],
) -> Option<(&'static dyn Adapter, Role)> {
    adapters
        .iter()
        .find_map(|adapter| Some((*adapter, adapter.profile().programs.recognize(program)?)))
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
        Possible::NoAgent => return None,
        Possible::OneOf(agents) => agents,
        Possible::AnyAgent => BTreeSet::new(),
    };
    Some(PossibleProcess {
        process: process.clone(),
        details: Arc::clone(details),
        agents,
    })
}

/// Details of a process, with the executable and arguments of the program that it runs.
/// Loaders, emulators and wrapper names are looked through. A link is followed if no adapter
/// knows the name of the link.
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

/// The same for the target of a link: the script of a runtime, or the program of a loader or
/// an emulator. (For an executable, the kernel shows the target itself.)
///
/// A process in another PID namespace has its own file system, and network file systems may
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

/// Returns whether a process is worth a closer look, by the process name and the name of the
/// executable alone.
///
/// A link, a wrapper or an emulator passes its own name on to the process, and many programs
/// set a process name. Reading the executable costs one link.
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
        is_runtime_name(name)
            || adapters.any(|adapter| adapter.profile().programs.may_be_called(name))
    };
    is_of_agent(name) || is_name_of_layer(name) || unwrapped_name(name).is_some_and(is_runtime_name)
}

/// Whether a listed process has exited before its homes could be read: then its homes are
/// unknown, and it serves no session.
fn has_gone_since(machine: &Machine, process: &Process) -> bool {
    let environment = machine.table().backend().environment(process, &["HOME"]);
    matches!(environment, Err(Absent::Exited | Absent::Vanished))
}

/// The homes that a process uses, by arguments and environment. If these cannot be read, the
/// open files decide. Empty if neither names a home.
fn homes_of(machine: &Machine, adapter: &dyn Adapter, program: &Program<'_>) -> Vec<PathBuf> {
    let of_homes = adapter.profile().home_variables;
    let of_launched = adapter.profile().programs.variables_of_launched;
    // What is asked for later is read with them. In an environment that was overwritten in part,
    // these may be there, and others not.
    let all = [of_homes, of_launched, &[LAUNCH_DIRECTORY]].concat();
    let environment = machine.environment_of(program.process, &all);
    environment
        .or_else(|| machine.environment_of(program.process, of_homes))
        .filter(|environment| environment.home().is_some())
        .map_or_else(
            || homes_held_open(machine, adapter, program.process),
            |environment| adapter.homes_named_by(program, &environment),
        )
}

/// The start directory of a process, by its environment. (Shells and tmux set `PWD`. A
/// program that its parent starts elsewhere inherits the parent's directory, which exists, and
/// is older than the process.)
fn launched_in(machine: &Machine, program: &Program<'_>) -> LaunchedIn {
    let environment = machine.environment_of(program.process, &[LAUNCH_DIRECTORY]);
    let named = environment.as_ref();
    let named = named.and_then(|all| all.variable(LAUNCH_DIRECTORY));
    let Some(named) = named.map(Path::new).filter(|named| named.is_absolute()) else {
        return LaunchedIn::NotKnown;
    };
    if program.details.cwd.as_deref() == Ok(named) {
        return LaunchedIn::There;
    }
    let began_ms = program.process.began_ms();
    let is_since = |born_ms: i64| began_ms.is_some_and(|began| born_ms > began);
    match machine.mounts().touchable(named) {
        Ok(named) if program.details.shares_mounts == Ok(true) => {
            let gone = || LaunchedIn::Gone(named.as_path().to_owned());
            match facts_of_any(named.as_path(), Links::Follow) {
                Ok(facts) if facts.born_ms.is_some_and(is_since) => gone(),
                Ok(_) => LaunchedIn::There,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => gone(),
                Err(_) => LaunchedIn::NotKnown,
            }
        }
        _ => LaunchedIn::NotKnown,
    }
}

/// The homes in which a process has its agent's file open.
///
/// The path must lead here to that very file: in a container the same path may mean another.
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
                    .is_ok_and(|own| (own.device, own.inode) == (open.file.device, open.file.inode))
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

/// Returns whether a process is a launcher or was started by one, for agents whose launchers
/// mark the environment. `None` if the environment cannot be read.
fn is_launched(machine: &Machine, adapter: &dyn Adapter, program: &Program<'_>) -> Option<bool> {
    let names = adapter.profile().programs.variables_of_launched;
    if names.is_empty() {
        return None;
    }
    let environment = machine.environment_of(program.process, names)?;
    let mut names = names.iter();
    Some(names.any(|name| environment.variable(name).is_some()))
}

/// The homes of one agent: those of our environment, those in the configuration, and those
/// that its processes use.
///
/// A directory with several names (a link, a trailing slash) is one home.
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
        for root in &mut process.homes {
            let real = real_name(machine, root).unwrap_or_else(|| name_of_missing(machine, root));
            if let Some(first_name) = known.get(&real) {
                root.clone_from(first_name);
            }
        }
    }
    homes
}

/// Keeps one home for each directory among `roots`, under its first name, with a map from
/// the names without links to these names.
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

/// The name of a directory without links; `None` if it is unknown. A missing directory costs
/// one look instead of one per parent directory.
fn real_name(machine: &Machine, root: &Path) -> Option<PathBuf> {
    let mounts = machine.mounts();
    let is_there = mounts.touchable(root).is_ok_and(|root| root.exists());
    is_there.then(|| mounts.real_path(root))
}

/// The name without links of a missing directory: an agent makes its home at its first
/// write.
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
