"""Checks that only qwen-code has."""

import os
import signal

import expect
import processes
import wait

GONE_SECONDS = 15


def launcher_killed(stage):
    """The launcher killed under a shell: the agent lives on, and so does its session."""
    run = stage.prompted()
    launcher = next(one for one in processes.descendants(run.pane.shell_pid)
                    if os.path.basename(one.argv[-1]) == "qwen")
    processes.send(launcher, signal.SIGKILL)
    wait.until("the launcher gone", lambda: not processes.is_running(launcher), GONE_SECONDS)
    if not processes.is_running(run.process):
        raise expect.Skipped("the agent went with its launcher")
    expect.live(stage, run.truth())


def left_over_sidecar(stage):
    """A sidecar that a clean exit left behind is no life, also when its directory is in use again."""
    first = stage.prompted()
    first.quit()
    second = stage.prompted()
    expect.not_live(stage, first.session, (first.process,))
    expect.live(stage, second.truth())


def parent_outlives_it(stage):
    """While the agent's parent, which looks just like it, outlives it, its session is not the parent's."""
    run = stage.prompted()
    parent = processes.read(run.process.parent)
    # Not the launcher: the shell would notice, and take the terminal back.
    processes.send(parent, signal.SIGSTOP)
    try:
        run.quit()
        expect.not_live(stage, run.session, (run.process,))
    finally:
        processes.send(parent, signal.SIGCONT)


CHECKS = (("launcher-killed", launcher_killed), ("left-over-sidecar", left_over_sidecar),
          ("parent-outlives-it", parent_outlives_it))
