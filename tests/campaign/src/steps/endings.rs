//! Processes end, stop, or become something else.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::json;

use super::{Cast, is_running, name, pick, stat};
use crate::agents::Leave;
use crate::world::{State, World};

/// How long a process may take to change its state.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(10);

/// Ends a process and those above it, which collect what they started.
fn end(world: &mut World, at: usize, signal: Signal) -> anyhow::Result<()> {
    world.overtaken.take_if(|hook| hook.process == at);
    let process = world.process(at)?;
    process.state = State::Gone;
    let mut first = true;
    for number in (0..process.actors.len()).rev() {
        let signal = if first { signal } else { Signal::KILL };
        first = false;
        if let Some(actor) = process.actors.get(number) {
            actor.signal(signal)?;
        }
        let above = number
            .checked_sub(1)
            .and_then(|at| process.actors.get_mut(at));
        if let Some(above) = above {
            above.order(&json!({ "do": "reap" }))?;
        } else if let Some(actor) = process.actors.get_mut(number) {
            actor.reap()?;
        }
    }
    Ok(())
}

pub(super) fn exit(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    leave(world, Leave::Exit, Signal::KILL, "exits")
}

pub(super) fn terminate(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    leave(world, Leave::Terminated, Signal::TERM, "is terminated")
}

fn leave(
    world: &mut World,
    how: Leave,
    signal: Signal,
    what: &str,
) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        let settled = world.processes.get(at);
        is_running(world, at) && settled.is_some_and(|process| !process.is_settling)
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let before = name(world, at);
    let process = world.process(at)?;
    let agent = process.agent;
    if process.current.is_some() {
        agent.leave(world, at, how)?;
    }
    end(world, at, signal)?;
    Ok(Some(format!("{before} {what}")))
}

pub(super) fn kill(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let alive = |world: &World, at: usize| {
        let process = world.processes.get(at);
        process.is_some_and(|process| process.is_alive() || process.state == State::Another)
    };
    let Some(at) = pick(world, alive) else {
        return Ok(None);
    };
    let before = name(world, at);
    end(world, at, Signal::KILL)?;
    Ok(Some(format!("{before} is killed")))
}

pub(super) fn zombie(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    // The launchers of other agents end with what they launched.
    let can = |world: &World, at: usize| {
        let process = world.processes.get(at);
        is_running(world, at)
            && process
                .is_some_and(|process| process.actors.len() == 1 || process.agent.id() == "vibe")
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let before = name(world, at);
    let process = world.process(at)?;
    process.main()?.signal(Signal::KILL)?;
    process.state = State::Zombie;
    let pid = process.pid();
    // Its other threads end after the first one.
    let is_over = || state(pid) == Some('Z') && threads(pid) <= 1;
    wait_for(&format!("process {pid} to end"), is_over)?;
    Ok(Some(format!("{before} is killed and not collected")))
}

pub(super) fn stop(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let Some(at) = pick(world, is_running) else {
        return Ok(None);
    };
    let process = world.process(at)?;
    process.main()?.signal(Signal::STOP)?;
    process.state = State::Stopped;
    let pid = process.pid();
    wait_for(&format!("process {pid} to stop"), || {
        state(pid) == Some('T')
    })?;
    Ok(Some(format!("{} is stopped", name(world, at))))
}

pub(super) fn carry_on(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let stopped = |world: &World, at: usize| {
        let process = world.processes.get(at);
        process.is_some_and(|process| process.state == State::Stopped)
    };
    let Some(at) = pick(world, stopped) else {
        return Ok(None);
    };
    let process = world.process(at)?;
    process.main()?.signal(Signal::CONT)?;
    process.state = State::Running;
    let pid = process.pid();
    wait_for(&format!("process {pid} to go on"), || {
        state(pid) != Some('T')
    })?;
    Ok(Some(format!("{} goes on", name(world, at))))
}

pub(super) fn exec(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        let process = world.processes.get(at);
        is_running(world, at) && process.is_some_and(|process| process.actors.len() == 1)
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let before = name(world, at);
    let process = world.process(at)?;
    let actor = process.actors.last_mut().context("a process was started")?;
    actor.execute(Path::new("/bin/sleep"))?;
    process.state = State::Another;
    Ok(Some(format!("{before} executes another program")))
}

fn state(pid: i32) -> Option<char> {
    let stat = stat(pid)?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.trim_start().chars().next()
}

fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + CHANGE_TIME_MAX;
    while Instant::now() < deadline {
        if is_so() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    anyhow::bail!("waited in vain for {what}")
}
