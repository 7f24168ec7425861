"""Checks that only Claude Code has."""

import os
import signal
from dataclasses import replace

import checks
import expect
import hook_checks
import processes
import wait
import wrapper_checks
from agents.agent import Truth, new_mark
from whosup import pid_in

OPEN_SECONDS = 45
WORKS_SECONDS = 2
# Since then, or a version before: auto mode, sub-agents in the background.
NEW_VERSION = "2.1.332"


def forked(stage):
    """`--fork-session`: the fork is another session in another process; the original stays live."""
    first = stage.prompted()
    fork = stage.open("--resume", first.session, "--fork-session")
    fork.say(stage.model)
    if fork.session == first.session:
        raise expect.Failed("the fork has the id of its origin")
    expect.live(stage, first.truth())
    expect.live(stage, fork.truth())


def doubled(stage):
    """One session resumed a second time while it lives: live, with both processes shown."""
    first = stage.prompted()
    second = stage.open("--resume", first.session, session=first.session)
    pids = {first.process.pid, second.process.pid}
    seen = {}

    def shows_both():
        seen["look"] = stage.look()
        row = seen["look"].live(first.session)
        return row is not None and {pid_in(row.get("owner")), *map(pid_in, row.get("other_live", []))} == pids
    try:
        wait.until("both processes", shows_both, OPEN_SECONDS / 9, wait.SLOW_STEP_SECONDS)
    except wait.NotSeen:
        raise expect.Failed(f"not both of {sorted(pids)} | {expect.shown(seen['look'], first.session)}") from None
    second.kill()
    expect.live(stage, first.truth())


def attached(stage):
    """`--bg`: live and detached; with `claude attach`: live in its worker, shown by the terminal that attached."""
    agent = stage.agent
    if not agent.is_at_least(NEW_VERSION):
        raise expect.Skipped("a background session of this version does not use the mock model")
    mark = new_mark()
    agent.start(agent.argv("--bg", f"hold-turn{{{mark}}}"), stage.world, stage.app)
    record = wait.until("a background session", lambda: agent.background_record(stage.world), OPEN_SECONDS)
    wait.until("a held turn", lambda: stage.model.is_held(mark), OPEN_SECONDS)
    worker = processes.read(record["pid"])
    truth = Truth(session=record["sessionId"], owner=worker, directory=stage.app, detached=True)
    expect.live(stage, truth)
    viewer = agent.start(agent.argv("attach", record["jobId"]), stage.world, stage.app)
    client = wait.until("the viewer", lambda: agent.process_below(viewer.pane.shell_pid), OPEN_SECONDS)
    wait.until("the session on its screen", lambda: viewer.pane.shows(mark), OPEN_SECONDS, wait.SLOW_STEP_SECONDS)
    expect.live(stage, replace(truth, client=client, pane=viewer.pane.id, detached=False))
    expect.phase(stage, truth.session, ("working",))
    expect.no_problems(stage)
    processes.send(client, signal.SIGKILL)
    wait.until("the viewer gone", lambda: not processes.is_running(client), OPEN_SECONDS)
    expect.live(stage, truth)
    stage.model.release(mark)


def sub_agent_works(stage):
    """With hooks: while a sub-agent works the session works, also after its turn has ended; then it is idle."""
    hook_checks.set_hooks(stage)
    run = hook_checks.open_with_hooks(stage)
    mark = new_mark()
    run.start_turn(stage.model, f"run-agent{{{mark}}}")
    wait.until("a working sub-agent", lambda: stage.model.is_held(mark), OPEN_SECONDS)
    if stage.agent.is_at_least(NEW_VERSION):
        wait.until("the end of the turn", lambda: stage.model.answers_to(mark) > 0 and run.pane.shows("tool done"),
                   OPEN_SECONDS, wait.SLOW_STEP_SECONDS)

    def works():
        row = stage.look().live(run.session)
        if row is None or row.get("phase") != "working":
            raise expect.Failed(f"phase is {row and row.get('phase')}, not 'working' | "
                                + expect.shown(stage.look(), run.session))
        return True
    expect.phase(stage, run.session, ("working",))
    wait.holds_for("working", works, WORKS_SECONDS)
    stage.model.release(mark)
    expect.phase(stage, run.session, ("idle",), OPEN_SECONDS)
    expect.live(stage, run.truth())


def auto_mode(stage):
    """In auto mode, the default of new versions: right after a turn, in one, and idle again."""
    if not stage.agent.is_at_least(NEW_VERSION):
        raise expect.Skipped("this version has no auto mode by default")
    os.remove(stage.world.in_home(".claude", "settings.json"))
    checks.working(stage)


CHECKS = (("attached", attached), ("sub-agent-works", sub_agent_works), ("auto-mode", auto_mode),
          ("forked", forked), ("doubled", doubled), *wrapper_checks.CHECKS)
