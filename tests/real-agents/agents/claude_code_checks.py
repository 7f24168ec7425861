"""Checks that only Claude Code has."""

import expect
import wait
from whosup import pid_in

OPEN_SECONDS = 45


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
        return row is not None and {pid_in(row.get("owner")), *row.get("other_live_pids", [])} == pids
    try:
        wait.until("both processes", shows_both, OPEN_SECONDS / 9, wait.SLOW_STEP_SECONDS)
    except wait.NotSeen:
        raise expect.Failed(f"not both of {sorted(pids)} | {expect.shown(seen['look'], first.session)}") from None
    second.kill()
    expect.live(stage, first.truth())


CHECKS = (("forked", forked), ("doubled", doubled))
