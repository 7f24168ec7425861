"""Checks that only pi has."""

import time

import expect
import wait

# Longer than the seconds in which a key that was pressed may have meant `/new`.
IDLE_SECONDS = 75
WAIT_SECONDS = 120


def prompted_at_once(stage):
    """`/new` and a prompt in the same second look like a run with `--print`: never exited, never another's."""
    run = stage.prompted()
    stage.agent.reads_seconds = 0
    try:
        with expect.Watch(stage) as watch:
            old = run.clear()
            run.say(stage.model)
        watch.never_two(run.process, (old, run.session))
        watch.always_accounted(run.process)
        expect.live_or_undecided(stage, run.truth())
        for row in stage.look("--all").rows(run.session):
            if row.get("liveness") == "exited":
                raise expect.Failed(f"session {run.session} is exited, but lives in process {run.process.pid}")
    finally:
        del stage.agent.reads_seconds


def beside_an_idle_one(stage):
    """A second pi that was launched, prompted and ended leaves its session with nobody; the first keeps its own."""
    idle = stage.prompted()
    ready = time.monotonic()
    wait.until("nobody to have typed for a while", lambda: time.monotonic() > ready + IDLE_SECONDS, WAIT_SECONDS)
    other = stage.prompted()
    expect.live(stage, idle.truth())
    expect.live(stage, other.truth())
    other.kill()
    expect.not_live(stage, other.session, (other.process,))
    expect.live(stage, idle.truth())


CHECKS = (("prompted-at-once", prompted_at_once), ("beside-an-idle-one", beside_an_idle_one))
