"""Checks that only Codex has."""

import expect
import wait
import wrapper_checks
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


def three_in_one_directory(stage):
    """Three over one daemon in one directory are never swapped: prompted, one cleared, one left."""
    runs = [stage.open() for _ in range(3)]
    first, second, third = runs
    with expect.Watch(stage) as watch:
        for run in runs:
            run.say(stage.model)
        old = first.clear()
        first.say(stage.model)
    watch.never_two(first.process, (old, first.session))
    watch.never_two(second.process, (second.session,))
    watch.never_two(third.process, (third.session,))
    for run in runs:
        watch.always_accounted(run.process)
    third.say(stage.model)
    with expect.Watch(stage) as watch:
        second.quit()
        third.say(stage.model)
        first.say(stage.model)
    watch.never_two(first.process, (first.session,))
    watch.never_two(second.process, (second.session,))
    watch.never_two(third.process, (third.session,))
    look = stage.look()
    for run, sessions in ((first, {first.session}), (second, set()), (third, {third.session})):
        ids = {row.get("session_id") for row in look.live_of(run.process.pid)}
        if ids - sessions:
            raise expect.Failed(f"process {run.process.pid} has {ids}, not {sessions} | {expect.shown(look)}")
    left = look.live(second.session)
    if left is not None and left.get("client") is not None:
        raise expect.Failed(f"session {second.session} has no terminal any more | {expect.shown(look, second.session)}")


SHARED_CHECKS = (("forked", forked), ("exec-beside-tui", exec_beside_tui), ("new", new_conversation))
# The daemon is never the program that was started, but a copy of the package's own.
ALONE_CHECKS = (*SHARED_CHECKS, *wrapper_checks.CHECKS)
DAEMON_CHECKS = (*SHARED_CHECKS, ("detached", held_turn_survives), ("launched-at-once", launched_at_once),
                 ("three-never-swapped", three_in_one_directory))
