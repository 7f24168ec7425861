//! The steps that a world can take.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::json;

use crate::agents::{Agent, Leave, Task};
use crate::world::{Elsewhere, State, World, date, now_ms, text};

/// How many processes live at once.
const LIVING_MAX: usize = 6;
/// How many kinds of steps are tried for one that can be taken.
const TRIES_MAX: usize = 20;
/// Where the next PID can be chosen.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// A kind of step: what it is called, how often it is drawn, and what it does.
/// It returns what happened, or nothing if the world has no place for it.
struct Step {
    name: &'static str,
    weight: usize,
    take: fn(&mut World, &Cast) -> anyhow::Result<Option<String>>,
}

const fn step(
    name: &'static str,
    weight: usize,
    take: fn(&mut World, &Cast) -> anyhow::Result<Option<String>>,
) -> Step {
    Step { name, weight, take }
}

const STEPS: &[Step] = &[
    step("start", 16, start),
    step("prompt", 26, prompt),
    step("switch", 11, switch),
    step("resume-inside", 6, resume_inside),
    step("resume", 10, resume),
    step("fork", 3, fork),
    step("headless", 5, headless),
    step("exit", 6, exit),
    step("terminate", 4, terminate),
    step("kill", 7, kill),
    step("zombie", 3, zombie),
    step("stop", 3, stop),
    step("continue", 4, carry_on),
    step("exec", 2, exec),
    step("reuse-pid", 5, reuse_pid),
    step("late-hooks", 6, late_hooks),
    step("tear", 2, tear),
    step("lose", 2, lose),
    step("rename-directory", 2, rename_directory),
    step("delete-directory", 1, delete_directory),
    step("remake-directory", 3, remake_directory),
    step("rename-home", 1, rename_home),
    step("link-home", 1, link_home),
    step("other-boot", 2, other_boot),
    step("other-host", 2, other_host),
    step("nested", 4, nested),
];

/// The agents of a world, and what the machine allows.
pub(crate) struct Cast {
    pub(crate) agents: Vec<&'static dyn Agent>,
    /// It has a PID namespace of its own.
    pub(crate) is_apart: bool,
}

/// Takes a random step. Returns its kind and what happened.
pub(crate) fn take(world: &mut World, cast: &Cast) -> anyhow::Result<(&'static str, String)> {
    let weights: Vec<usize> = STEPS.iter().map(|step| step.weight).collect();
    for _ in 0..TRIES_MAX {
        let at = world.chance.weighted(&weights);
        let step = STEPS.get(at).context("a step was drawn")?;
        let taken =
            (step.take)(world, cast).with_context(|| format!("the step `{}` failed", step.name))?;
        if let Some(what) = taken {
            return Ok((step.name, what));
        }
    }
    Ok(("none", "nothing fits".to_owned()))
}

/// A process that fits.
fn pick(world: &mut World, fits: impl Fn(&World, usize) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..world.processes.len())
        .filter(|at| fits(world, *at))
        .collect();
    world.chance.pick(&fitting).copied()
}

fn is_running(world: &World, at: usize) -> bool {
    world
        .processes
        .get(at)
        .is_some_and(|process| process.state == State::Running)
}

fn is_crowded(world: &World) -> bool {
    let living = world.processes.iter().filter(|process| process.is_alive());
    living.count() >= LIVING_MAX
}

/// Whether another process can begin in that directory.
fn has_room(world: &World, agent: &'static dyn Agent, directory: usize) -> bool {
    let is_there = world
        .directories
        .get(directory)
        .is_some_and(|directory| directory.now.is_some());
    let mut others = world.processes.iter();
    let is_taken = agent.habits().is_alone_in_directory
        && others.any(|other| {
            other.is_alive() && other.agent.id() == agent.id() && other.directory == directory
        });
    is_there && !is_taken && !is_crowded(world)
}

fn name(world: &World, process: usize) -> String {
    let Some(process) = world.processes.get(process) else {
        return String::new();
    };
    let session = process.current.and_then(|at| world.sessions.get(at));
    let session = session.map_or("no session", |session| session.id.as_str());
    format!("{} {} ({session})", process.agent.id(), process.pid())
}

fn start(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
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

fn prompt(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        is_running(world, at)
            && world.processes.get(at).is_some_and(|process| {
                let is_deleted = !process.work_dir.exists();
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

fn switch(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn resume_inside(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn resume(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
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

fn fork(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
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

fn headless(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
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

/// Ends a process and those above it, which collect what they started.
fn end(world: &mut World, at: usize, signal: Signal) -> anyhow::Result<()> {
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

fn exit(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    leave(world, Leave::Exit, Signal::KILL, "exits")
}

fn terminate(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn kill(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn zombie(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn stop(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn carry_on(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn exec(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
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

fn reuse_pid(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    if !cast.is_apart {
        return Ok(None);
    }
    let gone = |world: &World, at: usize| {
        world.processes.get(at).is_some_and(|process| {
            process.state == State::Gone && !process.is_nested && stat(process.pid()).is_none()
        })
    };
    let (Some(dead), Some(agent)) = (pick(world, gone), world.chance.pick(&cast.agents).copied())
    else {
        return Ok(None);
    };
    let pid = world.process(dead)?.pid();
    let directory = world.process(dead)?.directory;
    if !has_room(world, agent, directory) {
        return Ok(None);
    }
    fs::write(LAST_PID, (pid - 1).to_string()).context("cannot choose a PID")?;
    let at = world.start(agent, directory, &Task::New, true, None)?;
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

fn late_hooks(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    if world.late.is_empty() {
        return Ok(None);
    }
    let mut hooks = std::mem::take(&mut world.late);
    if world.chance.percent(50) {
        hooks.reverse();
    }
    let mut what = String::from("late hooks:");
    for hook in hooks {
        world.run_hook(&hook)?;
        world.session(hook.session)?;
        what += &format!(
            " {} by process {}",
            hook.payload,
            world.process(hook.process)?.pid()
        );
    }
    Ok(Some(what))
}

/// Cuts the file that says which process serves a session, or removes it.
fn damage(
    world: &mut World,
    how: fn(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        let process = world.processes.get(at);
        is_running(world, at) && process.is_some_and(|process| process.current.is_some())
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let agent = world.process(at)?.agent;
    let Some(file) = agent.claim_file(world, at) else {
        return Ok(None);
    };
    let path = world.home.join(&file);
    if !path.exists() {
        return Ok(None);
    }
    how(&path)?;
    world.process(at)?.is_damaged = true;
    world.is_damaged = true;
    Ok(Some(format!("{file} of {} is damaged", name(world, at))))
}

fn tear(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    damage(world, |path| {
        let length = fs::metadata(path)?.len();
        Ok(fs::File::options()
            .write(true)
            .open(path)?
            .set_len(length / 2)?)
    })
}

fn lose(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    damage(world, |path| Ok(fs::remove_file(path)?))
}

/// Crush keeps its sessions in the directory; they go where it goes.
fn forget_crush(world: &mut World, directory: usize) {
    for session in &mut world.sessions {
        if session.directory == directory && session.agent.id() == "crush" {
            session.is_on_disk = false;
        }
    }
}

fn rename_directory(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let at = world.chance.below(world.directories.len());
    let place = world.directories.get_mut(at).context("a directory")?;
    let Some(now) = place.now.clone() else {
        return Ok(None);
    };
    let to = place.path.with_extension(format!("renamed-{}", now_ms()));
    fs::rename(&now, &to)?;
    place.now = Some(to.clone());
    place.is_moved = true;
    forget_crush(world, at);
    Ok(Some(format!(
        "{} is renamed to {}",
        now.display(),
        to.display()
    )))
}

fn delete_directory(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let at = world.chance.below(world.directories.len());
    let place = world.directories.get_mut(at).context("a directory")?;
    let Some(now) = place.now.take() else {
        return Ok(None);
    };
    fs::remove_dir_all(&now)?;
    place.is_moved = true;
    forget_crush(world, at);
    Ok(Some(format!("{} is deleted", now.display())))
}

fn remake_directory(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let at = world.chance.below(world.directories.len());
    let place = world.directories.get_mut(at).context("a directory")?;
    if place.now.as_ref() == Some(&place.path) {
        return Ok(None);
    }
    fs::create_dir_all(&place.path)?;
    place.now = Some(place.path.clone());
    let path = text(&place.path);
    Ok(Some(format!("{path} is made again")))
}

fn rename_home(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let to = world.root.join("home-moved");
    if to.exists() {
        return Ok(None);
    }
    fs::rename(&world.home, &to)?;
    std::os::unix::fs::symlink(&to, &world.home)?;
    world.other_homes.push(to);
    Ok(Some("the home is renamed, and a link is left".to_owned()))
}

fn link_home(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let link = world.root.join("home-link");
    if link.exists() {
        return Ok(None);
    }
    std::os::unix::fs::symlink(&world.home, &link)?;
    world.other_homes.push(link);
    Ok(Some("the home has a link".to_owned()))
}

fn other_boot(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    foreign(world, cast, Elsewhere::AnotherBoot)
}

fn other_host(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    foreign(world, cast, Elsewhere::AnotherHost)
}

/// Files of qwen-code from before a reboot, or of another host that has the same
/// home; they name the PID of a process that lives here.
fn foreign(world: &mut World, cast: &Cast, from: Elsewhere) -> anyhow::Result<Option<String>> {
    let Some(agent) = cast.agents.iter().find(|agent| agent.id() == "qwen-code") else {
        return Ok(None);
    };
    let alive = |world: &World, at: usize| {
        let process = world.processes.get(at);
        process.is_some_and(|process| process.is_alive() && !process.is_nested)
    };
    let Some(at) = pick(world, alive) else {
        return Ok(None);
    };
    let process = world.process(at)?;
    let (pid, stamp) = (process.pid(), process.main()?.stamp);
    let namespace = process.main()?.pid_namespace;
    let uptime = fs::read_to_string("/proc/uptime")?;
    let seconds: f64 = uptime.split(' ').next().unwrap_or_default().parse()?;
    #[allow(clippy::cast_possible_truncation, reason = "an uptime in milliseconds")]
    let booted_ms = now_ms() - (seconds * 1000.0) as i64;
    let (at_ms, host) = match from {
        Elsewhere::AnotherBoot => (booted_ms - 3_600_000, world.host.clone()),
        Elsewhere::AnotherHost => (now_ms() - 1000, "elsewhere".to_owned()),
    };
    let id = world.chance.uuid();
    let boot = world.chance.uuid();
    let directory = world.chance.below(world.directories.len());
    let work_dir = world
        .directories
        .get(directory)
        .context("a directory")?
        .path
        .clone();
    let folder: String = text(&work_dir)
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '-'
            }
        })
        .collect();
    let base = format!(".qwen/projects/{folder}/chats/{id}");
    let started_at = Duration::from_millis(at_ms.unsigned_abs()).as_secs_f64();
    let sidecar = json!({
        "schema_version": 1, "pid": pid, "session_id": id, "work_dir": work_dir,
        "hostname": host, "started_at": started_at, "qwen_version": "0.24.4",
    });
    world.write(&format!("{base}.runtime.json"), &sidecar.to_string())?;
    let line = json!({ "uuid": "u", "sessionId": id, "timestamp": date(at_ms), "type": "user", "cwd": work_dir,
        "version": "0.24.4", "message": { "role": "user", "parts": [{ "text": "hello" }] } });
    world.append(&format!("{base}.jsonl"), &[line])?;
    let record = format!(".qwen/sessions/{pid}.json");
    if from == Elsewhere::AnotherBoot && !world.home.join(&record).exists() {
        let content = json!({ "schemaVersion": 1, "pid": pid, "procStart": format!("{boot}:{stamp}"),
            "pidNs": namespace, "sessionId": id, "cwd": work_dir, "name": "app", "startedAt": at_ms,
            "qwenVersion": "0.24.4", "kind": "tui" });
        world.write(&record, &content.to_string())?;
    }
    world.sessions.push(crate::world::Session {
        agent: *agent,
        id: id.clone(),
        directory,
        work_dir,
        born_ms: at_ms,
        last_ms: at_ms,
        is_on_disk: true,
        prompts: 1,
        elsewhere: Some(from),
        arguable: None,
        was_nested: false,
    });
    Ok(Some(format!(
        "files of {from:?}: session {id} names PID {pid}"
    )))
}

fn nested(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
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

fn stat(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
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
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while std::time::Instant::now() < deadline {
        if is_so() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    anyhow::bail!("waited in vain for {what}")
}
