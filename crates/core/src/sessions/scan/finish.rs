//! Completes sessions after all sources are merged: pane, and the phase in the terminal's
//! title.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whosup_process::{Pid, Process};

use crate::adapter::{Adapter, AgentProcess, Home, Program, Role};
use crate::machine::Machine;
use crate::machine::problem::{PROBLEMS_MAX, Problem};
use crate::sessions::merge::Merged;
use crate::sessions::session::{LookedAt, SeenProcess, Snapshot};
use crate::sessions::terminal_title;
use crate::sources::agents::AGENTS;
use crate::sources::panes::Panes;
use crate::sources::recognize::PossibleProcess;

pub(super) fn finish(
    machine: &Machine,
    merged: Merged,
    panes: &Panes,
    processes: &[AgentProcess],
    mut problems: Vec<Problem>,
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
    let now_ms = machine.now_ms();
    for session in &mut sessions {
        session.pane = pane_of(session.terminal_process(), panes, machine, &agent_pids);
        for other in &mut session.other_live {
            other.pane = pane_of(Some(&other.process), panes, machine, &agent_pids);
        }
        // Nothing on disk names a directory yet: it works where its process does.
        if session.sketch.work_dir.is_none()
            && let Some(process) = session.terminal_process()
        {
            session.sketch.work_dir = machine.table().details(process).cwd.clone().ok();
        }
        terminal_title::add(session, now_ms);
        let facts = std::mem::take(&mut session.sketch.facts);
        let by_the_clock = facts.into_iter().map(|fact| fact.by_the_clock(now_ms));
        session.sketch.facts = by_the_clock.collect();
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
        taken_at_ms: now_ms,
        scope: machine.table().scope().clone(),
        sessions,
        unattributed,
        problems,
        looked_at: Vec::new(),
        processes: Vec::new(),
    }
}

/// The homes that were looked at, and those of agents without an adapter.
pub(super) fn looked_at(
    asked: Vec<(&'static dyn Adapter, Home)>,
    besides: Vec<Home>,
) -> Vec<LookedAt> {
    let asked = asked.into_iter();
    let asked = asked.map(|(adapter, home)| (Some(adapter), home));
    let besides = besides.into_iter().map(|home| (None, home));
    let looked_at = asked.chain(besides);
    looked_at
        .map(|(adapter, home)| LookedAt { adapter, home })
        .collect()
}

/// The processes that an answer depends on, besides those that sessions name.
pub(super) fn seen(
    processes: &[AgentProcess],
    possible: &[PossibleProcess],
    panes: &Panes,
) -> Vec<SeenProcess> {
    let recognized = processes
        .iter()
        .map(|found| (&found.process, &found.details));
    let possible = possible
        .iter()
        .map(|found| (&found.process, &found.details));
    let agents = recognized.chain(possible).map(|(process, details)| {
        let program = Program { process, details };
        let script = program.script_at().and_then(|at| program.argv().get(at));
        let script = script.and_then(|script| program.resolve(script.to_str()?));
        SeenProcess {
            pid: process.pid,
            stamp: process.stamp.clone(),
            // A runtime of scripts is opened by many other programs, too.
            program: script.or_else(|| executable(&program)),
        }
    });
    let servers = panes.servers().filter_map(|server| {
        Some(SeenProcess {
            pid: server.pid?,
            stamp: server.stamp.clone()?,
            program: None,
        })
    });
    agents.chain(servers).collect()
}

fn executable(program: &Program<'_>) -> Option<PathBuf> {
    let is_of_agent = |name| {
        AGENTS
            .iter()
            .any(|agent| agent.profile().programs.may_be_called(name))
    };
    program.exe_name().filter(|name| is_of_agent(name))?;
    program.exe().map(Path::to_owned)
}

/// The pane of a process, unless it runs below another agent's process in that
/// pane: a nested agent does not take the pane.
fn pane_of(
    process: Option<&Process>,
    panes: &Panes,
    machine: &Machine,
    agent_pids: &HashSet<Pid>,
) -> Option<crate::sources::panes::Pane> {
    let process = process?;
    let table = machine.table();
    let shown = panes.shown(process, table)?;
    let pane = panes.of(process, table);
    let is_beside = |ancestor: &Process| match pane {
        Some(_) => panes.of(ancestor, table) == pane,
        None => ancestor.tty == process.tty,
    };
    let mut agents_above = table.ancestors(process);
    let is_nested =
        agents_above.any(|ancestor| agent_pids.contains(&ancestor.pid) && is_beside(ancestor));
    (!is_nested).then_some(shown)
}
