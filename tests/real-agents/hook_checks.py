"""Checks of what an agent's hooks tell, and of what a sweep makes of an agent that tells nothing any more.

whosup sets its hooks in the world's own home and is called by the real agent
from then on. After each step the list must show the right phase, owner and end.
"""

import json
import os
import signal
import threading
import time

import expect
import processes
import wait
from agents.agent import new_mark
from whosup import pid_in

STEP_SECONDS = 45
SETTLE_SECONDS = 8
NEW_SECONDS = 2.0
TOOL_SECONDS = 6
# How long a sweep may take that ends the session of a killed agent.
SWEEP_SECONDS = 1.0
REVIEW_SECONDS = 60
OUTPUT = threading.Lock()


def note(stage, step, row, more=""):
    """Prints what whosup said after a step."""
    owner = pid_in(row.get("owner")) if row else None
    words = [str(row.get(name)) for name in ("liveness", "phase", "waiting_for")] if row else ["not listed"]
    with OUTPUT:
        print(f"seen     {stage.agent.name:14} {step:18} {' '.join(words)} owner {owner} {more}".rstrip(), flush=True)


def set_hooks(stage):
    """Lets whosup set its hooks, as a person would."""
    if not stage.agent.has_hooks:
        raise expect.Skipped("it has no hooks that whosup knows")
    done = stage.whosup.run("hooks", "install", stage.agent.id, "--yes")
    if done.returncode != 0 or ": installed (" not in done.stdout:
        raise expect.Failed(f"hooks install: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}")
    again = stage.whosup.run("hooks", "install", stage.agent.id, "--yes")
    if ": already installed (" not in again.stdout:
        raise expect.Failed(f"a second hooks install: {again.stdout[-300:]} {again.stderr[-300:]}")


def open_with_hooks(stage, directory=None):
    """Starts the agent in a pane, trusts the hooks where it asks, and makes one turn."""
    agent, directory = stage.agent, directory or stage.app
    before = agent.sessions_before(stage.world)
    run = agent.start(agent.argv(), stage.world, directory)
    agent.trust_hooks(run.pane)
    run.wait_ready()
    run.settle(before)
    run.say(stage.model)
    return run


def record_of(stage, session):
    """Returns whosup's own record of a session, or None."""
    path = stage.world.in_home(".local", "state", "whosup", "sessions", stage.agent.id, f"{session}.json")
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def hook_log(stage):
    """Returns what went wrong with hooks."""
    path = stage.world.in_home(".local", "state", "whosup", "hook.log")
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()[-600:]


def shows(stage, step, run, phases, waiting_for=None, owner=None):
    """Fails unless the list shows the run's session live, by its record too, in this phase and process."""
    owner = owner or stage.agent.owner_of(run)
    seen = {}

    def is_right():
        seen["look"] = stage.look()
        row = seen["row"] = seen["look"].live(run.session)
        return (row is not None and row.get("phase") in phases and pid_in(row.get("owner")) == owner.pid
                and (waiting_for is None or row.get("waiting_for") == waiting_for)
                and record_of(stage, run.session) is not None)
    try:
        wait.until(f"{step}: {' or '.join(phases)}", is_right, SETTLE_SECONDS, wait.SLOW_STEP_SECONDS)
    except wait.NotSeen:
        raise expect.Failed(f"{step}: not {' or '.join(phases)} of process {owner.pid}; record "
                            f"{record_of(stage, run.session)}; hook.log {hook_log(stage)} | "
                            + expect.shown(seen["look"], run.session)) from None
    note(stage, step, seen["row"])


def reported(stage):
    """Hooks tell of a turn, of a question, of `/clear` and of the end."""
    set_hooks(stage)
    run = open_with_hooks(stage)
    shows(stage, "turn", run, ("idle",))
    run.start_turn(stage.model, f"run-tool{{touch {new_mark()}; sleep {TOOL_SECONDS}}}")
    wait.until("the question", lambda: stage.agent.asks_permission(run.pane), STEP_SECONDS, wait.SLOW_STEP_SECONDS)
    if stage.agent.hooks_tell_questions:
        shows(stage, "question", run, ("waiting",), "permission")
    else:
        shows(stage, "question", run, ("waiting", "working"))
    stage.agent.allow(run.pane)
    wait.until("the question gone", lambda: not stage.agent.asks_permission(run.pane), STEP_SECONDS,
               wait.SLOW_STEP_SECONDS)
    shows(stage, "tool runs", run, ("working",))
    wait.until("ready after the turn", lambda: stage.agent.is_ready(run.pane)
               and not stage.agent.asks_permission(run.pane), STEP_SECONDS, wait.SLOW_STEP_SECONDS)
    shows(stage, "answered", run, ("idle",))
    old = run.clear()
    # What is typed while it draws the new conversation may go to the old one.
    wait_new(stage, run)
    run.say(stage.model)
    shows(stage, "cleared", run, ("idle",))
    left(stage, old)
    owner = stage.agent.owner_of(run)
    run.quit()
    is_over(stage, "exit", run, owner)


def wait_new(stage, run):
    """Waits until the screen shows a new conversation, for a while."""
    since = [None]

    def is_settled():
        now = time.monotonic()
        since[0] = (since[0] or now) if stage.agent.is_new(run.pane) else None
        return since[0] is not None and now - since[0] >= NEW_SECONDS
    wait.until("a new conversation", is_settled, STEP_SECONDS, wait.SLOW_STEP_SECONDS)


def left(stage, old):
    """Fails if the session that was left by `/clear` is live in a terminal; says how it ended."""
    row = next(iter(stage.look("--all").rows(old)), None)
    if row is not None and row.get("liveness") == "live" and not row.get("detached"):
        raise expect.Failed(f"session {old} was left, but is live | {json.dumps(row)[:500]}")
    record = record_of(stage, old) or {}
    note(stage, "left", row, f"record {record.get('phase')} {record.get('end_cause')}")


def is_over(stage, step, run, owner):
    """Fails unless the session of a run that has ended is ended by its hook, or by the next `status`."""
    session = run.session
    if stage.agent.lingers_seconds:
        expect.lingering(stage, run, owner, (run.process,))
    by_hook = (record_of(stage, session) or {}).get("phase") == "ended"
    seen = {}

    def is_ended():
        done = stage.whosup.run("status")
        if done.returncode != 0:
            raise expect.Failed(f"status: {done.returncode} {done.stderr[-300:]}")
        seen["row"] = next(iter(stage.look("--all").rows(session)), None)
        seen["record"] = record_of(stage, session) or {}
        return (seen["record"].get("phase") == "ended" and seen["row"] is not None
                and seen["row"].get("liveness") == "exited" and seen["row"].get("phase") == "ended"
                and seen["row"].get("ended_at") is not None)
    try:
        wait.until(f"{step}: ended", is_ended, SWEEP_SECONDS, wait.STEP_SECONDS)
    except wait.NotSeen:
        raise expect.Failed(f"{step}: not ended by status: {seen} hook.log {hook_log(stage)}") from None
    cause = seen["record"].get("end_cause")
    # The hook of an agent whose terminal was closed may find that it is gone, or come before that.
    by_hooks = ("exit-hook", "terminal-closed") if step == "pane closed" else ("exit-hook",)
    if (cause not in by_hooks) if by_hook else (cause == "exit-hook"):
        raise expect.Failed(f"{step}: the cause is {cause}, and {'a' if by_hook else 'no'} hook had reported it")
    note(stage, step, seen["row"], f"by {'its hook' if by_hook else 'status'} ({cause})")


def ends(stage, step, end):
    """Ends an agent in some way; its session must be ended, and another one's not."""
    set_hooks(stage)
    run, other = open_with_hooks(stage), None
    other = open_with_hooks(stage, stage.other)
    owner = stage.agent.owner_of(run)
    shows(stage, "turn", run, ("idle",))
    end(run)
    is_over(stage, step, run, owner)
    shows(stage, "other", other, ("idle",))


def terminated(stage):
    """After SIGTERM the session is ended, by the agent's hook or by the next `status`."""
    ends(stage, "sigterm", lambda run: run.signal(signal.SIGTERM))


def killed(stage):
    """After SIGKILL no hook tells of anything: the next `status` ends the session within a second."""
    ends(stage, "sigkill", lambda run: run.signal(signal.SIGKILL))


def pane_closed(stage):
    """After its pane was closed the session is ended, by the agent's hook or by the next `status`."""
    ends(stage, "pane closed", lambda run: run.close_pane())


def daemon_killed(stage):
    """After SIGKILL of a shared daemon the sessions that it ran are not shown as its own."""
    if not stage.agent.lingers_seconds:
        raise expect.Skipped("it has no daemon")
    set_hooks(stage)
    run = open_with_hooks(stage)
    daemon = stage.agent.owner_of(run)
    shows(stage, "turn", run, ("idle",))
    run.kill()
    processes.send(daemon, signal.SIGKILL)
    wait.until("the daemon gone", lambda: not processes.is_running(daemon), STEP_SECONDS)
    is_over_without_lingering(stage, run)


def is_over_without_lingering(stage, run):
    """As `is_over`, where the daemon is gone too."""
    lingers = type(stage.agent).lingers_seconds
    stage.agent.lingers_seconds = 0
    try:
        is_over(stage, "daemon killed", run, run.process)
    finally:
        stage.agent.lingers_seconds = lingers


CHECKS = (("hooks-reported", reported), ("hooks-sigterm", terminated), ("hooks-sigkill", killed),
          ("hooks-pane-closed", pane_closed), ("hooks-daemon-killed", daemon_killed))
