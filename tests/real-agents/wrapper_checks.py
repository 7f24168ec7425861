"""Checks of an agent whose program is reached by another name: it lives, whatever it is called.

The agent's own program runs each time; only the name it is started by, or the file that holds
it, is another one. Its files and its hooks tell of its sessions as ever.
"""

import os
import shutil

import expect
import hook_checks

LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
ANSWER_SECONDS = 20


def called_cc(stage):
    """Started through a link named `cc`, with hooks: its session is live."""
    path = os.path.join(stage.world.root, "cc")
    os.symlink(stage.agent.program(), path)
    _is_live(stage, [path], path)


def wrapped(stage):
    """A copy named as Nix names it (`.NAME-wrapped`), with hooks: its session is live."""
    path = os.path.join(stage.world.root, f".{stage.agent.command}-wrapped")
    try:
        os.link(stage.agent.program(), path)
    except OSError:
        shutil.copy2(stage.agent.program(), path)
    _is_live(stage, [path], path)


def by_loader(stage):
    """Run by the dynamic loader, with hooks: its session is live."""
    loader = next((path for path in LOADERS if os.path.exists(path)), None)
    if loader is None:
        raise expect.Skipped("this machine has no such loader")
    program = stage.agent.program()
    done = stage.world.start([loader, program, "--version"], stage.app, stage.agent.variables(stage.world), "loader")
    done.wait(ANSWER_SECONDS)
    with open(os.path.join(stage.world.root, "loader"), errors="replace") as file:
        said = file.read()
    if stage.agent.packages[0].version not in said:
        raise expect.Skipped(f"the loader cannot run its program: {said.strip()[:160]!r}")
    _is_live(stage, [loader, program], program)


def _is_live(stage, argv, name):
    agent = stage.agent
    agent.other_names = (name,)
    try:
        hook_checks.set_hooks(stage)
        before = agent.sessions_before(stage.world)
        run = agent.start([*argv, *agent.switches], stage.world, stage.app)
        agent.trust_hooks(run.pane)
        run.wait_ready()
        run.settle(before)
        run.say(stage.model)
        # Which of the names whosup knows the program by decides how sure it is.
        expect.live(stage, run.truth(), confidences=("proven", "consistent"))
        run.kill()
        expect.not_live(stage, run.session, (run.process,))
    finally:
        agent.other_names = ()


CHECKS = (("called-cc", called_cc), ("wrapped", wrapped), ("by-loader", by_loader))
