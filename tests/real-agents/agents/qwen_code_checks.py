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


def parents_outlive_it(stage):
    """While the agent's parents, stopped, outlive it, its session is not theirs."""
    run = stage.prompted()
    parents = [one for one in processes.descendants(run.pane.shell_pid)
               if one.pid != run.process.pid and "qwen" in " ".join(one.argv)]
    for process in parents:
        processes.send(process, signal.SIGSTOP)
    try:
        run.kill()
        expect.not_live(stage, run.session, (run.process,))
    finally:
        for process in parents:
            processes.send(process, signal.SIGCONT)


CHECKS = (("launcher-killed", launcher_killed), ("left-over-sidecar", left_over_sidecar),
          ("parents-outlive-it", parents_outlive_it))
