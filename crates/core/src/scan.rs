//! One pass along the line: processes, homes, claims, verdicts, sessions, panes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use whosup_process::{Absent, Pid};
use whosup_sidecar::AgentId;

use crate::agents::{self, AGENTS, Adapter, AgentProcess, AgentScan, Depth, Home, Look, Role};
use crate::claim::{Claim, Placement, Trust};
use crate::common_place::scan_common_place;
use crate::dismissal::Dismissals;
use crate::machine::Machine;
use crate::merge::{Merged, Parts, merge};
use crate::observe::judge_all;
use crate::panes::Panes;
use crate::problem::{Found, PROBLEMS_MAX, Problem};
use crate::recognize::{Users, find_agent_processes, homes};
use crate::record::scan_records;
use crate::session::{Session, Snapshot};
use crate::terminal_title;
use crate::unseen::who_may_use;
use crate::verdict::Liveness;

/// What one scan looks for.
#[derive(Debug, Clone)]
pub struct Scope {
    /// How far to look.
    pub depth: Depth,
    /// These agents only; all of them if `None`.
    pub agents: Option<BTreeSet<AgentId>>,
    /// Whose processes.
    pub users: Users,
    /// Homes beyond those that environments lead to.
    pub extra_homes: Vec<(AgentId, PathBuf)>,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            depth: Depth::Live,
            agents: None,
            users: Users::Own,
            extra_homes: Vec::new(),
        }
    }
}

/// A scan, and what is needed to ask its sessions for more.
#[derive(Debug)]
pub struct Scanned<'a> {
    machine: &'a Machine,
    depth: Depth,
    processes: Vec<AgentProcess>,
    /// What was found.
    pub snapshot: Snapshot,
}

/// Looks at one machine once.
#[must_use]
pub fn scan<'a>(machine: &'a Machine, scope: &Scope) -> Scanned<'a> {
    let mut problems = Vec::new();
    let adapters: Vec<&'static dyn Adapter> = AGENTS
        .iter()
        .copied()
        .filter(|adapter| is_wanted(scope, *adapter))
        .collect();
    let mut processes = find_agent_processes(machine, &adapters, scope.users, &mut problems);
    let published = scan_common_place(machine, |agent| is_asked_for(scope, agent));
    let mut published = published.take(&mut problems);
    let needs_panes = processes.iter().any(may_be_in_a_pane) || published.names_a_terminal(machine);
    let mut asked: Vec<(&'static dyn Adapter, Home)> = Vec::new();
    for adapter in &adapters {
        let found = homes(machine, *adapter, &scope.extra_homes, &mut processes);
        asked.extend(found.into_iter().map(|home| (*adapter, home)));
    }
    let (panes, scans) = std::thread::scope(|threads| {
        let panes = needs_panes.then(|| threads.spawn(|| Panes::ask(machine)));
        let scans: Vec<_> = asked
            .iter()
            .map(|(adapter, home)| scan_home(machine, scope, *adapter, home, &processes))
            .collect();
        let panes = panes
            .and_then(|asked| asked.join().ok())
            .unwrap_or_default();
        (panes, scans)
    });
    let panes = panes.take(&mut problems);
    let records = scan_records(machine, &scope.depth, |agent| is_asked_for(scope, agent));
    let mut found = records.take(&mut problems);
    for scanned in scans {
        let scanned = scanned.take(&mut problems);
        found.claims.extend(scanned.claims);
        found.sketches.extend(scanned.sketches);
    }
    published.move_to_homes_of(&found);
    found.claims.extend(published.scan.claims);
    found.sketches.extend(published.scan.sketches);
    problems.extend(found.claims.iter().filter_map(distrust));
    let unseen = who_may_use(machine, &asked, &processes);
    let mut homes: Vec<Home> = asked.into_iter().map(|(_, home)| home).collect();
    homes.extend(published.homes);
    let mut merged = judge_and_merge(machine, found, &homes, (&processes, unseen), &panes);
    let dismissals = Dismissals::read(machine.environment(), |agent| is_asked_for(scope, agent));
    hide_dismissed(&mut merged.sessions, &dismissals.take(&mut problems));
    let snapshot = finish(machine, merged, &panes, &processes, problems, homes);
    Scanned {
        machine,
        depth: scope.depth.clone(),
        processes,
        snapshot,
    }
}

/// A session that lives, or may, is never hidden.
fn hide_dismissed(sessions: &mut [Session], dismissals: &Dismissals) {
    for session in sessions {
        session.is_dismissed = session.liveness() == Liveness::Exited
            && dismissals.hide(&session.key, session.last_heard_of_ms());
    }
}

/// What is wrong with a claim that anybody could have written.
fn distrust(claim: &Claim) -> Option<Problem> {
    let Trust::Untrusted { because } = &claim.trust else {
        return None;
    };
    Some(Problem {
        agent: Some(claim.key.agent.clone()),
        path: claim.evidence.path.clone(),
        message: because.clone(),
    })
}

fn is_wanted(scope: &Scope, adapter: &dyn Adapter) -> bool {
    is_asked_for(scope, &agents::id_of(adapter))
}

fn is_asked_for(scope: &Scope, agent: &AgentId) -> bool {
    let mut asked = scope.agents.iter();
    asked.all(|agents| agents.contains(agent))
}

fn may_be_in_a_pane(process: &AgentProcess) -> bool {
    matches!(process.role, Role::Session | Role::Client) && process.process.tty.is_some()
}

fn scan_home(
    machine: &Machine,
    scope: &Scope,
    adapter: &dyn Adapter,
    home: &Home,
    processes: &[AgentProcess],
) -> Found<AgentScan> {
    let agent = agents::id_of(adapter);
    let its: Vec<AgentProcess> = processes
        .iter()
        .filter(|process| process.agent == agent)
        .cloned()
        .collect();
    let look = Look {
        machine,
        depth: &scope.depth,
        processes: &its,
    };
    adapter.scan(&look, home)
}

fn judge_and_merge(
    machine: &Machine,
    found: AgentScan,
    homes: &[Home],
    (processes, unseen): (&[AgentProcess], HashMap<PathBuf, Pid>),
    panes: &Panes,
) -> Merged {
    let AgentScan { claims, sketches } = found;
    let judged = judge_all(machine, claims);
    let terminal_titles = processes
        .iter()
        .filter(|process| may_be_in_a_pane(process))
        .filter_map(|process| {
            let pane = panes.of(&process.process, machine.table())?;
            let adapter = agents::adapter(&process.agent)?;
            let name = adapter.name_in_title(&pane.title);
            Some((process.process.pid, name.to_owned()))
        })
        .collect();
    let fully_seen_homes = homes
        .iter()
        .filter(|home| is_fully_seen(machine, home))
        .map(|home| home.root.clone())
        .collect();
    let default_homes = homes
        .iter()
        .filter(|home| home.is_default)
        .map(|home| home.root.clone())
        .collect();
    let directories: HashSet<PathBuf> = if processes.is_empty() {
        HashSet::new()
    } else {
        let of_sketches = sketches.iter().filter_map(|sketch| sketch.work_dir.clone());
        of_sketches.collect()
    };
    let real_paths: HashMap<PathBuf, PathBuf> = directories
        .into_iter()
        .filter_map(|path| Some((path.clone(), path.canonicalize().ok()?)))
        .collect();
    merge(Parts {
        claims: judged,
        sketches,
        processes: processes.to_vec(),
        terminal_titles,
        default_homes,
        fully_seen_homes,
        unseen,
        real_paths,
    })
}

/// Every process that could serve a session of this home can be seen from here.
fn is_fully_seen(machine: &Machine, home: &Home) -> bool {
    let view = machine.table().view();
    let placement = machine.mounts().placement_of(&home.root);
    let is_initial =
        |field: &Result<bool, Absent>| matches!(field, Ok(true) | Err(Absent::Unsupported));
    machine.table().processes().is_ok()
        && matches!(view.is_everything_shown, Ok(true))
        && match placement {
            Placement::SharedByMachines => false,
            Placement::ThisContainer => true,
            Placement::Local => is_initial(&view.is_initial_pid_namespace),
        }
}

fn finish(
    machine: &Machine,
    merged: Merged,
    panes: &Panes,
    processes: &[AgentProcess],
    mut problems: Vec<Problem>,
    looked_at: Vec<Home>,
) -> Snapshot {
    let Merged {
        mut sessions,
        mut unattributed,
    } = merged;
    let agent_pids: HashSet<Pid> = processes
        .iter()
        .filter(|process| matches!(process.role, Role::Session | Role::Client))
        .map(|process| process.process.pid)
        .collect();
    for session in &mut sessions {
        session.pane = pane_of(session.terminal_process(), panes, machine, &agent_pids);
        // Nothing on disk says it yet: it works where its process does.
        if session.sketch.work_dir.is_none()
            && let Some(process) = session.terminal_process()
        {
            session.sketch.work_dir = machine.table().details(process).cwd.clone().ok();
        }
        terminal_title::refine(session);
    }
    for one in &mut unattributed {
        one.pane = pane_of(Some(&one.process.process), panes, machine, &agent_pids);
    }
    problems.sort();
    problems.dedup();
    let left_out = problems.len().saturating_sub(PROBLEMS_MAX);
    if left_out > 0 {
        problems.truncate(PROBLEMS_MAX);
        problems.push(Problem::of_machine(format!(
            "{left_out} more problems are left out"
        )));
    }
    Snapshot {
        taken_at_ms: machine.now_ms(),
        scope: machine.table().scope().clone(),
        sessions,
        unattributed,
        problems,
        looked_at,
    }
}

/// The pane of a process, unless it runs below another agent's process in that
/// pane: a nested agent does not take the pane.
fn pane_of(
    process: Option<&whosup_process::Process>,
    panes: &Panes,
    machine: &Machine,
    agent_pids: &HashSet<Pid>,
) -> Option<crate::panes::Pane> {
    let process = process?;
    let pane = panes.of(process, machine.table())?;
    let is_nested = machine.table().ancestors(process).any(|ancestor| {
        agent_pids.contains(&ancestor.pid) && panes.of(ancestor, machine.table()) == Some(pane)
    });
    (!is_nested).then(|| pane.clone())
}

impl Scanned<'_> {
    /// Every process that an adapter recognized, whatever it is to its agent.
    #[must_use]
    pub fn processes(&self) -> &[AgentProcess] {
        &self.processes
    }

    /// Reads what the files of the sessions that pass `wanted` tell of them.
    pub fn describe(&mut self, wanted: impl Fn(&Session) -> bool) {
        for session in self
            .snapshot
            .sessions
            .iter_mut()
            .filter(|session| wanted(session))
        {
            let Some(adapter) = agents::adapter(&session.key.agent) else {
                continue;
            };
            let look = Look {
                machine: self.machine,
                depth: &self.depth,
                processes: &self.processes,
            };
            let description = adapter.describe(&look, &session.sketch);
            session.description = description.take(&mut self.snapshot.problems);
        }
        self.snapshot.problems.sort();
        self.snapshot.problems.dedup();
    }
}
