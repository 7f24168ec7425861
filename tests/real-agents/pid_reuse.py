"""The check that another program with a killed agent's PID is never held to be the agent.

The kernel gives PIDs in turn. Whoever may set the last one it gave (root, in the PID
namespace it lives in) can have any free PID for the next process; somebody else may take it
in between, so this is tried again.
"""

import os
import shutil
import signal

import expect
import processes
import wait

LAST_PID = "/proc/sys/kernel/ns_last_pid"
TRIES_MAX = 300
GONE_SECONDS = 20
END_SECONDS = 5
# What runs with the PID: name, command line, and whether it runs in the session's own directory.
PROGRAMS = (
    ("sleep", ("sleep", "600"), False),
    ("a shell in its directory", ("bash", "-c", "while :; do sleep 60; done"), True),
    ("node in its directory", ("node", "-e", "setTimeout(() => {}, 600000)"), True),
)


def start_as(world, pid, argv, directory):
    """Starts a program with exactly this PID, or returns None if another process is always faster."""
    for _ in range(TRIES_MAX):
        try:
            with open(LAST_PID, "w") as file:
                file.write(str(pid - 1))
        except OSError as error:
            raise expect.Skipped(f"cannot choose a PID: {LAST_PID}: {error.strerror}") from error
        started = world.start(argv, directory, {}, "reused")
        if started.pid == pid:
            return started
        end(started)
        if processes.read(pid) is not None:
            return None
    return None


def end(started):
    """Ends a program of ours that nobody else waits for."""
    started.kill()
    started.wait(END_SECONDS)


def kill(process):
    """Ends a process with SIGKILL and waits until its PID is free."""
    processes.send(process, signal.SIGKILL)
    wait.until(f"process {process.pid} gone for good", lambda: processes.read(process.pid) is None, GONE_SECONDS)


def reused(stage):
    """The PID of a killed agent, given to another program: the session is never live, nor is that an agent."""
    run = stage.prompted()
    victims = dict.fromkeys((run.process, stage.agent.owner_of(run)))
    expect.live(stage, run.truth())
    run.kill()
    for victim in victims:
        kill(victim)
    done = 0
    for victim in victims:
        for name, words, is_beside in PROGRAMS:
            program = shutil.which(words[0], path=stage.agent.search_path())
            if program is None:
                continue
            started = start_as(stage.world, victim.pid, (program, *words[1:]),
                               stage.app if is_beside else stage.world.root)
            if started is None:
                continue
            try:
                seen_through(stage, run.session, victim, name)
                done += 1
            finally:
                end(started)
    if not done:
        raise expect.Skipped(f"no program could be given the PID: another process took it, {TRIES_MAX} times")


def seen_through(stage, session, victim, name):
    """Fails if whosup takes the program that has the PID now for the agent.

    Where the agent notes no start beside its PID, a program that came at once may leave the answer unknown.
    """
    def is_right(*options):
        look = stage.look(*options)
        for row in look.rows(session):
            if row.get("liveness") not in ("exited", "unknown"):
                raise expect.Failed(f"session {session} is {row.get('liveness')} ({row.get('reason')})"
                                    f" | {expect.shown(look, session)}")
        expect.none_of_gone(look, (victim,))
        return True
    try:
        wait.holds_for("not live", is_right, expect.WATCH_SECONDS)
        is_right("--all")
    except expect.Failed as failure:
        raise expect.Failed(f"PID {victim.pid} is {name}'s now: {failure}") from None
    status = stage.whosup.run("check", session).returncode
    if status not in (1, 3):
        raise expect.Failed(f"PID {victim.pid} is {name}'s now: `check` exits with {status}, not with 1 or 3")


CHECKS = (("pid-reused", reused),)
