"""Checks that only Codex has."""

import expect
import wait
from agents.agent import new_mark
from checks import headless

HELD_SECONDS = 45


def forked(stage):
    """`codex fork`: the fork is another session in another terminal; the original stays live."""
    first = stage.prompted()
    fork = stage.open("fork", first.session)
    fork.say(stage.model)
    expect.live(stage, first.truth())
    expect.live(stage, fork.truth())


def exec_beside_tui(stage):
    """`codex exec` in the directory of a live TUI: each has its own session, none is swapped."""
    run = stage.prompted()
    headless(stage)
    expect.live(stage, run.truth())


def new_conversation(stage):
    """`/new` (it asks where, in a repository): as `/clear`."""
    run = stage.prompted()
    left = run.session
    before = stage.agent.sessions_before(stage.world)
    with expect.Watch(stage) as watch:
        run.enter("/new")
        wait.until("the question where", lambda: run.pane.shows("Where should the new conversation run?"),
                   HELD_SECONDS, wait.SLOW_STEP_SECONDS)
        run.pane.key("Enter")
        run.settle(before)
    watch.never_two(run.process, (left, run.session))
    watch.never_back(run.process, left, run.session)
    run.say(stage.model)
    expect.live(stage, run.truth())


def held_turn_survives(stage):
    """A terminal that leaves in mid-turn leaves a live, detached session with the daemon."""
    run = stage.prompted()
    mark = new_mark()
    run.start_turn(stage.model, f"hold-turn{{{mark}}}")
    wait.until("a held turn", lambda: stage.model.is_held(mark), HELD_SECONDS)
    daemon = stage.agent.owner_of(run)
    run.kill()
    look = stage.look()
    row = look.live(run.session)
    if row is None or row.get("client") is not None or not row.get("detached"):
        raise expect.Failed(f"not live and detached while the daemon works | {expect.shown(look, run.session)}")
    if row["owner"]["pid"] != daemon.pid:
        raise expect.Failed(f"owner is not the daemon {daemon.pid} | {expect.shown(look, run.session)}")
    stage.model.release(mark)


def launched_at_once(stage):
    """Two launched at the same moment in one directory are never swapped; prompted, each is shown."""
    stage.open(directory=stage.other)
    runs = [stage.agent.start(stage.agent.argv(), stage.world, stage.app) for _ in range(2)]
    with expect.Watch(stage) as watch:
        for run in runs:
            run.wait_ready()
        for run in runs:
            text = f"hello {new_mark()}"
            run.start_turn(stage.model, text)
            run.session = stage.agent.session_that_heard(stage.world, stage.model, text)
            wait.until("ready after the turn", lambda run=run: stage.agent.is_ready(run.pane), HELD_SECONDS,
                       wait.SLOW_STEP_SECONDS)
    for run in runs:
        watch.never_two(run.process, (run.session,))
    for run in runs:
        expect.live(stage, run.truth())


ALONE_CHECKS = (("forked", forked), ("exec-beside-tui", exec_beside_tui), ("new", new_conversation))
DAEMON_CHECKS = (*ALONE_CHECKS, ("detached", held_turn_survives), ("launched-at-once", launched_at_once))
