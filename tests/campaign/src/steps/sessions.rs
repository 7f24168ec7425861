//! Processes begin, are prompted, and go from session to session.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::{Cast, has_room, is_running, name, pick, stat};
use crate::agents::{Agent, Task};
use crate::world::{State, World};

/// Where the next PID can be chosen.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";
/// How many of a hundred PIDs are taken again by the same agent, which may be mistaken for the
/// one that is gone.
const SAME_AGENT_PERCENT: usize = 50;
/// How many of a hundred PIDs are taken again only after a while.
const LATE_REUSES_PERCENT: usize = 12;
/// How long that is, in milliseconds: longer than dates of claims are taken for equal.
const LATE_MS: u64 = 3_200;

pub(super) fn start(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    let directory = world.chance.below(world.directories.len());
    let Some(agent) = world.chance.pick(&cast.agents).copied() else {
        return Ok(None);
    };
    if !has_room(world, agent, directory) {
        return Ok(None);
    }
    let has_terminal = world.chance.percent(85);
    let at = world.start(agent, directory, &Task::New, has_terminal, None)?;
    Ok(Some(format!(
        "{} begins in app_{directory}",
        name(world, at)
    )))
}

pub(super) fn prompt(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        is_running(world, at)
            && world.processes.get(at).is_some_and(|process| {
                let cwd = fs::read_link(format!("/proc/{}/cwd", process.pid()));
                let is_deleted = !cwd.is_ok_and(|cwd| cwd.is_dir());
                !(process.agent.habits().is_alone_in_directory && is_deleted)
            })
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let agent = world.process(at)?.agent;
    agent.prompt(world, at)?;
    Ok(Some(format!("{} is prompted", name(world, at))))
}

fn leave_for(world: &mut World, at: usize, to: Option<usize>) -> anyhow::Result<()> {
    let process = world.process(at)?;
    if !process.is_silent {
        process.left.clear();
    }
    process.left.extend(process.current);
    let (agent, is_nested) = (process.agent, process.is_nested);
    agent.switch(world, at, to)?;
    if let Some(session) = to {
        world.session(session)?.was_nested |= is_nested;
    }
    Ok(())
}

pub(super) fn switch(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        let process = world.processes.get(at);
        let has_session = process.is_some_and(|process| {
            process.current.is_some() && !process.is_headless && !process.is_settling
        });
        is_running(world, at) && has_session
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let before = name(world, at);
    leave_for(world, at, None)?;
    Ok(Some(format!(
        "{before} leaves it for a new one: {}",
        name(world, at)
    )))
}

/// The sessions that a process could take up.
fn free_sessions(world: &World, agent: &'static dyn Agent) -> Vec<usize> {
    let is_free = |at: usize| {
        let mut processes = world.processes.iter();
        !processes.any(|process| process.is_alive() && process.current == Some(at))
    };
    let is_stored = |at: usize| {
        world.sessions.get(at).is_some_and(|session| {
            let place = world.directories.get(session.directory);
            let is_in_place =
                place.is_some_and(|place| place.now.as_ref() == Some(&session.work_dir));
            session.agent.id() == agent.id()
                && session.prompts > 0
                && session.is_on_disk
                && session.elsewhere.is_none()
                && is_in_place
        })
    };
    (0..world.sessions.len())
        .filter(|at| is_stored(*at) && is_free(*at))
        .collect()
}

pub(super) fn resume_inside(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        let process = world.processes.get(at);
        is_running(world, at)
            && process.is_some_and(|process| {
                process.agent.habits().resumes_inside
                    && !process.is_headless
                    && !process.is_settling
                    && process.current.is_some()
            })
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let process = world.process(at)?;
    let (agent, work_dir) = (process.agent, process.work_dir.clone());
    let mut free = free_sessions(world, agent);
    free.retain(|session| {
        let session = world.sessions.get(*session);
        session.is_some_and(|session| session.work_dir == work_dir)
    });
    let Some(session) = world.chance.pick(&free).copied() else {
        return Ok(None);
    };
    let before = name(world, at);
    leave_for(world, at, Some(session))?;
    Ok(Some(format!(
        "{before} takes up another: {}",
        name(world, at)
    )))
}

pub(super) fn resume(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    let Some(agent) = world.chance.pick(&cast.agents).copied() else {
        return Ok(None);
    };
    let free = free_sessions(world, agent);
    let Some(session) = world.chance.pick(&free).copied() else {
        return Ok(None);
    };
    let directory = world.session(session)?.directory;
    if !has_room(world, agent, directory) {
        return Ok(None);
    }
    let at = world.start(agent, directory, &Task::Resume(session), true, None)?;
    Ok(Some(format!("{} resumes", name(world, at))))
}

pub(super) fn fork(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    let Some(agent) = world.chance.pick(&cast.agents).copied() else {
        return Ok(None);
    };
    let free = free_sessions(world, agent);
    let Some(session) = world.chance.pick(&free).copied() else {
        return Ok(None);
    };
    let directory = world.session(session)?.directory;
    if !agent.habits().forks || !has_room(world, agent, directory) {
        return Ok(None);
    }
    let at = world.start(agent, directory, &Task::Fork(session), true, None)?;
    Ok(Some(format!("{} forks one", name(world, at))))
}

pub(super) fn headless(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    let Some(agent) = world.chance.pick(&cast.agents).copied() else {
        return Ok(None);
    };
    let mut fitting = free_sessions(world, agent);
    if agent.habits().shares_sessions {
        let shared = |at: &usize| {
            world.sessions.get(*at).is_some_and(|session| {
                let place = world.directories.get(session.directory);
                session.agent.id() == agent.id()
                    && session.prompts > 0
                    && session.elsewhere.is_none()
                    && place.is_some_and(|place| place.now.as_ref() == Some(&session.work_dir))
            })
        };
        fitting = (0..world.sessions.len()).filter(shared).collect();
    }
    let on = if world.chance.percent(70) {
        world.chance.pick(&fitting).copied()
    } else {
        None
    };
    let directory = match on {
        Some(session) => world.session(session)?.directory,
        None => world.chance.below(world.directories.len()),
    };
    if !has_room(world, agent, directory) {
        return Ok(None);
    }
    let at = world.start(agent, directory, &Task::Headless(on), false, None)?;
    agent.prompt(world, at)?;
    Ok(Some(format!("{} runs one prompt", name(world, at))))
}

pub(super) fn reuse_pid(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    if !cast.is_apart {
        return Ok(None);
    }
    let gone = |world: &World, at: usize| {
        world.processes.get(at).is_some_and(|process| {
            process.state == State::Gone && !process.is_nested && stat(process.pid()).is_none()
        })
    };
    let (Some(dead), Some(other)) = (pick(world, gone), world.chance.pick(&cast.agents).copied())
    else {
        return Ok(None);
    };
    let dead = world.process(dead)?;
    let (pid, directory, same) = (dead.pid(), dead.directory, dead.agent);
    let agent = if world.chance.percent(SAME_AGENT_PERCENT) {
        same
    } else {
        other
    };
    if !has_room(world, agent, directory) {
        return Ok(None);
    }
    // Dates alone decide only where they lie further apart than they are trusted.
    if world.chance.percent(LATE_REUSES_PERCENT) {
        thread::sleep(Duration::from_millis(LATE_MS));
    }
    let last = fs::read_to_string(LAST_PID)?;
    fs::write(LAST_PID, (pid - 1).to_string()).context("cannot choose a PID")?;
    let at = world.start(agent, directory, &Task::New, true, None)?;
    // Else the next looks have PIDs that files name.
    fs::write(LAST_PID, last.trim())?;
    let is_reused = world
        .process(at)?
        .actors
        .iter()
        .any(|actor| actor.pid == pid);
    let how = if is_reused { "under" } else { "without" };
    Ok(Some(format!(
        "{} begins {how} the PID {pid} of one that is gone",
        name(world, at)
    )))
}

pub(super) fn nested(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    if !cast.is_apart {
        return Ok(None);
    }
    let mut fitting = cast.agents.clone();
    fitting.retain(|agent| agent.habits().nests);
    let directory = world.chance.below(world.directories.len());
    let Some(agent) = world.chance.pick(&fitting).copied() else {
        return Ok(None);
    };
    if !has_room(world, agent, directory) {
        return Ok(None);
    }
    let host = world.chance.percent(50).then(|| "box".to_owned());
    let at = world.start(agent, directory, &Task::New, false, Some(host))?;
    Ok(Some(format!(
        "{} begins in a PID namespace of its own",
        name(world, at)
    )))
}
