"""Checks that nothing is called exited, or given to another process, without proof.

Where nothing an agent leaves behind can decide, the right answer is *undecided*: the session is
live as it is, or unknown with its process among the candidates; never exited, never another's.
"""

import os

import expect
import processes
import wait

GONE_SECONDS = 45
WATCH_SECONDS = 1.5


def one_of_two_ends(stage):
    """Of two in one directory one is killed: the other one's session is not exited, and never that of the dead one."""
    one, two = stage.prompted(), stage.prompted()
    with expect.Watch(stage) as watch:
        one.kill()
        wait.holds_for("looks after the end", lambda: True, WATCH_SECONDS)
    watch.never_two(two.process, (two.session,))
    watch.always_accounted(two.process)
    if stage.agent.survivor_is_undecided:
        expect.undecided(stage, two.truth())
        _is_in_no_process(stage, one, two)
        return
    expect.live(stage, two.truth())
    if stage.agent.lingers_seconds:
        return
    expect.not_live(stage, one.session, (one.process,))


def _is_in_no_process(stage, dead, survivor):
    """Fails if the session of the one that has ended is live in the other."""
    look = stage.look("--all")
    row = look.live(dead.session)
    if row is not None:
        raise expect.Failed(f"session {dead.session} of ended process {dead.process.pid} is live beside "
                            f"{survivor.process.pid} | {expect.shown(look, dead.session)}")


def resume_watched(stage):
    """A killed session resumed: from the new process's first moment on never exited, never another process's."""
    agent = stage.agent
    if not agent.resumes_alike():
        raise expect.Skipped("its plain command runs it in another way")
    first = stage.prompted()
    wait.until("the turn on disk", lambda: agent.is_written(stage.world, first.session), GONE_SECONDS)
    owners = {agent.owner_of(first)} if agent.lingers_seconds else set()
    first.kill()
    looks = []
    again = agent.start(agent.argv(*agent.resume_arguments(first.session)), stage.world, stage.app)

    def look_on():
        # The process first: what is seen then was there when the look began.
        process = agent.process_below(again.pane.shell_pid)
        if process is not None and process.is_running:
            looks.append((process, stage.look("--all")))
        return agent.is_ready(again.pane)
    wait.until("ready for a prompt", look_on, GONE_SECONDS)
    again.wait_ready()
    again.settle(frozenset(), first.session)
    allowed = {process.pid for process in (*agent.parts_of(again), agent.owner_of(again), *owners)}
    allowed |= {process.pid for process, _ in looks}
    if not looks:
        raise expect.Skipped("it was ready before the first look")
    for at, (process, look) in enumerate(looks):
        _is_no_ones_else(look, first.session, process, allowed, f"look {at + 1} of {len(looks)}")
    if agent.tells_resumed:
        expect.live(stage, again.truth())
    again.say(stage.model)
    expect.live(stage, again.truth())


def _is_no_ones_else(look, session, process, allowed, which):
    for row in look.rows(session):
        said = f"session {session} is {row.get('liveness')} ({row.get('reason')})"
        if row.get("liveness") == "exited":
            offered = "; its resume is offered" if row.get("resume") else ""
            raise expect.Failed(f"{which}: {said}{offered}, but process {process.pid} resumes it | "
                                + expect.shown(look, session))
        owner = expect.pid_in(row.get("owner"))
        if owner is not None and owner not in allowed:
            raise expect.Failed(f"{which}: {said} in {owner}, not in {process.pid} | {expect.shown(look, session)}")


def directory_renamed(stage):
    """The directory of an idle session is renamed: it is live, or unknown where nothing names its process."""
    run = stage.prompted()
    expect.live(stage, run.truth())
    os.rename(stage.app, stage.app + "-renamed")

    def is_right():
        for options in ((), ("--all",)):
            look = stage.look(*options)
            expect.not_exited(look, run.session, run.process)
            if not look.live_of(run.process.pid) and run.process.pid not in look.unattributed_pids():
                raise expect.Failed(f"process {run.process.pid} lives, but is nowhere in the answer | "
                                    + expect.shown(look))
        return True
    wait.holds_for("not exited", is_right, WATCH_SECONDS)
    if not processes.is_running(run.process):
        raise expect.Skipped("it has ended with its directory")
    if "proven" in stage.agent.confidences and stage.look().live(run.session) is None:
        look = stage.look()
        raise expect.Failed(f"session {run.session} is not live, though its evidence is no directory | "
                            + expect.shown(look, run.session))


CHECKS = (("two-one-ends", one_of_two_ends), ("resume-watched", resume_watched),
          ("directory-renamed", directory_renamed))
