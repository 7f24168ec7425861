//! The steps that a world can take.

mod endings;
mod files;
mod foreign;
mod sessions;

use anyhow::Context as _;

use crate::agents::Agent;
use crate::world::{State, World};

/// How many processes live at once.
const LIVING_MAX: usize = 6;
/// How many kinds of steps are tried for one that can be taken.
const TRIES_MAX: usize = 20;

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
    step("start", 16, sessions::start),
    step("prompt", 26, sessions::prompt),
    step("switch", 11, sessions::switch),
    step("resume-inside", 6, sessions::resume_inside),
    step("resume", 10, sessions::resume),
    step("fork", 3, sessions::fork),
    step("headless", 5, sessions::headless),
    step("exit", 6, endings::exit),
    step("terminate", 4, endings::terminate),
    step("kill", 7, endings::kill),
    step("zombie", 3, endings::zombie),
    step("stop", 3, endings::stop),
    step("continue", 4, endings::carry_on),
    step("exec", 2, endings::exec),
    step("reuse-pid", 5, sessions::reuse_pid),
    step("late-hooks", 6, files::late_hooks),
    step("tear", 2, files::tear),
    step("lose", 2, files::lose),
    step("rename-directory", 2, files::rename_directory),
    step("delete-directory", 1, files::delete_directory),
    step("remake-directory", 3, files::remake_directory),
    step("rename-home", 1, files::rename_home),
    step("link-home", 1, files::link_home),
    step("other-boot", 2, foreign::other_boot),
    step("other-host", 2, foreign::other_host),
    step("nested", 4, sessions::nested),
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

fn stat(pid: i32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}
