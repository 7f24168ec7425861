//! What a session has once all sources are put together: its pane, and what its
//! terminal shows of it.

use std::collections::HashSet;

use whosup_process::{Pid, Process};

use crate::adapter::{AgentProcess, Home, Role};
use crate::machine::Machine;
use crate::machine::problem::{PROBLEMS_MAX, Problem};
use crate::sessions::merge::Merged;
use crate::sessions::session::Snapshot;
use crate::sessions::terminal_title;
use crate::sources::panes::Panes;

pub(super) fn finish(
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
    let now_ms = machine.now_ms();
    for session in &mut sessions {
        session.pane = pane_of(session.terminal_process(), panes, machine, &agent_pids);
        for other in &mut session.other_live {
            other.pane = pane_of(Some(&other.process), panes, machine, &agent_pids);
        }
        // Nothing on disk says it yet: it works where its process does.
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
        looked_at,
    }
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
