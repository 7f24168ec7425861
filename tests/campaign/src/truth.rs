//! What somebody would say who had watched everything, and whether it could be
//! known from outside.

use crate::world::{Elsewhere, Process, Session, State, World};

/// How far dates may be apart and still be the same, with some room.
const TOLERANCE_MS: i64 = 3000;
/// How long after its launch a pi dates the session that it was launched with.
const START_WINDOW_MS: i64 = 5_000;
/// How much later than the kernel dates it the start of a process is noted here: the kernel
/// does so in steps of ten milliseconds.
const NOTED_LATER_MS: i64 = 50;
/// A directory that was made no longer before the start of a process may have taken the
/// place of the one that the process works in: dates are no more exact.
const SLACK_MS: i64 = 2_000;
/// The step in which the kernel notes the use of a terminal.
const TERMINAL_STEP_MS: i64 = 8_000;

/// Whether and where a session is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    /// By these processes, as the harness sees them.
    Live(Vec<i32>),
    Dead,
    /// On a machine that can't be seen from here.
    Elsewhere,
}

/// The truth about one session.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    pub(crate) life: Life,
    /// What decides can be seen from outside, so that *unknown* is too little.
    pub(crate) is_knowable: bool,
    /// Why any answer will do.
    pub(crate) arguable: Option<&'static str>,
}

/// The truth about a session.
pub(crate) fn truth(world: &World, at: usize, session: &Session) -> Truth {
    let arguable = silent(world, at)
        .or_else(|| reused_at_once(world, at, session))
        .or_else(|| launched_together(world, at, session))
        .or_else(|| hook_is_late(world, at))
        .or_else(|| numbered_alike(world, at));
    let truth = |life, is_knowable| Truth {
        life,
        is_knowable,
        arguable,
    };
    match session.elsewhere {
        Some(Elsewhere::AnotherHost) => return truth(Life::Elsewhere, false),
        Some(Elsewhere::AnotherBoot) => return truth(Life::Dead, !has_candidates(world, session)),
        None => {}
    }
    let serving: Vec<&Process> = world
        .processes
        .iter()
        .filter(|process| process.is_alive() && process.current == Some(at))
        .collect();
    if serving.is_empty() {
        let is_hidden = session.was_nested || is_masked(world, at);
        return truth(Life::Dead, !is_hidden && !has_candidates(world, session));
    }
    let is_knowable = serving.iter().any(|process| is_known(world, process, at));
    let pids = serving.iter().map(|process| process.pid()).collect();
    truth(Life::Live(pids), is_knowable)
}

/// A process that served it executes another program, or another process has its
/// PID: a claim without a stamp does not tell them apart, nor do dates within
/// seconds.
fn is_masked(world: &World, session: usize) -> bool {
    let served =
        |process: &Process| process.current == Some(session) || process.left.contains(&session);
    world.processes.iter().any(|process| {
        let mut others = world.processes.iter();
        let is_reused = process.state == State::Gone
            && others.any(|other| {
                let mut actors = other.actors.iter();
                other.is_alive() && actors.any(|actor| actor.pid == process.pid())
            });
        served(process) && (process.state == State::Another || is_reused)
    })
}

/// A process went from one session to another and left no trace of it yet.
fn silent(world: &World, at: usize) -> Option<&'static str> {
    let mut processes = world.processes.iter();
    let is_between = |process: &Process| {
        process.is_alive()
            && process.is_silent
            && (process.current == Some(at) || process.left.contains(&at))
    };
    processes
        .any(is_between)
        .then_some("its process changed sessions and left no trace of that yet")
}

/// Another process of its agent has the PID of the one that served it, began within
/// the tolerance of dates, and no record with a start stamp is left.
fn reused_at_once(world: &World, at: usize, session: &Session) -> Option<&'static str> {
    let is_taken = |(number, dead): (usize, &Process)| {
        let served = dead.current == Some(at) || dead.left.contains(&at);
        let has_record = world.claims.values().any(|process| *process == number);
        let mut others = world.processes.iter();
        served
            && dead.state == State::Gone
            && !has_record
            && others.any(|other| {
                other.is_alive()
                    && other.agent.id() == session.agent.id()
                    && other.began_ms < session.last_ms + TOLERANCE_MS
                    && may_be_taken_for(other, dead)
            })
    };
    let mut processes = world.processes.iter().enumerate();
    processes
        .any(is_taken)
        .then_some("its PID was taken again within the tolerance of dates")
}

/// pi dates a session by the launch of its process, and the kernel notes the use of a
/// terminal in steps. So within one step, a process whose own session is not on disk, is
/// there under the former name of its directory, or was not prompted since the process took
/// it up, looks like the one that was launched a moment later, prompted and ended. This makes
/// both sessions arguable.
fn launched_together(world: &World, at: usize, session: &Session) -> Option<&'static str> {
    let is_found = |process: &Process| {
        let own = process.current.and_then(|own| world.sessions.get(own));
        let directory = world.directories.get(process.directory);
        own.zip(directory).is_some_and(|(own, directory)| {
            let is_used = !process.is_silent && own.last_ms >= process.began_ms;
            own.is_on_disk && is_used && directory.now.as_ref() == Some(&own.work_dir)
        })
    };
    let looks_like_that_of = |process: &Process, number: usize, other: &Session| {
        process.agent.id() == other.agent.id()
            && process.directory == other.directory
            && process.current != Some(number)
            && (-NOTED_LATER_MS..=START_WINDOW_MS).contains(&(other.born_ms - process.began_ms))
            && other.last_ms - process.began_ms <= TERMINAL_STEP_MS
    };
    let is_arguable = |process: &Process| {
        let mut others = world.sessions.iter().enumerate();
        process.is_alive()
            && !is_found(process)
            && others.any(|(number, other)| {
                (number == at || process.current == Some(at))
                    && looks_like_that_of(process, number, other)
            })
    };
    let mut processes = world.processes.iter();
    (session.agent.id() == "pi" && processes.any(is_arguable))
        .then_some("an unprompted process was launched in the same seconds")
}

/// Where the hook of a switch has not run, the record of the session that was left says
/// that it is served, and nothing newer names the process. (Claude Code runs that hook
/// before it rewrites its own record. A record that names a session which hooks saw left is
/// behind, as some versions leave it; where the hook has not run, the same files mean the
/// opposite.)
fn hook_is_late(world: &World, at: usize) -> Option<&'static str> {
    let mut processes = world.processes.iter();
    let is_late = |process: &Process| {
        process.is_alive()
            && (process.agent.id() == "claude-code"
                || process.is_damaged
                || !process.agent.habits().files_decide)
            && process.heard.is_some()
            && process.heard != process.current
            && (process.current == Some(at) || process.heard == Some(at))
    };
    processes
        .any(is_late)
        .then_some("the hook of its last switch has not run")
}

/// A sidecar without a start stamp, of a process in a PID namespace that is gone, has the PID
/// of a process of the same agent, and the directory of that one does not exclude it: a
/// process that went on to a session elsewhere (`/cd`) leaves the same files.
fn numbered_alike(world: &World, at: usize) -> Option<&'static str> {
    let has_had = |process: &Process| process.current == Some(at) || process.left.contains(&at);
    let own_pid = |process: &Process| process.actors.last().map(|actor| actor.own_pid);
    let is_alike = |process: &Process, gone: &Process| {
        process.is_alive()
            && process.agent.id() == gone.agent.id()
            && own_pid(process) == own_pid(gone)
            && is_unproven_elsewhere(world, process, gone.directory)
            && (has_had(process) || has_had(gone))
    };
    let mut gone = world.processes.iter().filter(|process| {
        process.is_nested
            && process.state == State::Gone
            && ["qwen-code", "kimi-cli"].contains(&process.agent.id())
    });
    gone.any(|gone| {
        world
            .processes
            .iter()
            .any(|process| is_alike(process, gone))
    })
    .then_some("a sidecar of a namespace that is gone has the PID of its process")
}

/// It has the same PID, or the same one in a PID namespace and the same directory.
fn may_be_taken_for(other: &Process, dead: &Process) -> bool {
    let own_pid = |process: &Process| process.actors.last().map(|actor| actor.own_pid);
    other.actors.iter().any(|actor| {
        actor.pid == dead.pid()
            || (Some(actor.own_pid) == own_pid(dead) && other.directory == dead.directory)
    })
}

/// What decides that a process serves a session can be seen.
fn is_known(world: &World, process: &Process, session: usize) -> bool {
    if process.current != Some(session) || process.is_nested {
        return false;
    }
    // One-shot runs of qwen-code publish nothing.
    let is_one_shot = process.is_headless && process.agent.id() == "qwen-code";
    let is_settled = !process.is_damaged && !process.is_settling;
    let publishes = process.agent.habits().files_decide && is_settled && !is_one_shot;
    // Who left what its arguments name may still be in it, for all that shows.
    let is_named = process.named == Some(session)
        && !world.processes.iter().any(|other| {
            other.is_alive() && other.argument == Some(session) && other.current != Some(session)
        });
    publishes || process.heard == Some(session) || is_named
}

/// Some living process could serve it, as far as can be seen: there is none
/// whose own session isn't known.
fn has_candidates(world: &World, session: &Session) -> bool {
    world.processes.iter().any(|process| {
        let is_settled = process
            .current
            .is_some_and(|current| is_known(world, process, current));
        // The interface above a server that was killed is left without one.
        let is_interface = process.state == State::Zombie && process.actors.len() > 1;
        (is_interface || process.is_alive() && (!is_settled || process.is_silent))
            && process.agent.id() == session.agent.id()
            && (process.directory == session.directory
                || process.is_nested
                || is_unproven_elsewhere(world, process, session.directory))
    })
}

/// The dates and places of directories do not show that a process does not work in this one.
fn is_unproven_elsewhere(world: &World, process: &Process, directory: usize) -> bool {
    let is_anything_moved = world.directories.iter().any(|directory| directory.is_moved);
    let made_ms = world.directories.get(directory);
    let made_ms = made_ms.map(|directory| directory.made_ms);
    is_anything_moved
        || made_ms.is_some_and(|made| process.began_ms - NOTED_LATER_MS <= made + SLACK_MS)
}
