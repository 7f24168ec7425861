"""Checks of a turn that a person interrupts, with whosup's hooks and without.

That the turn was interrupted is seen at the model: the agent closes the connection of the
answer that it waits for. No agent but Codex has a hook for it; the agent's own files, or what
it publishes, must tell it as soon as with no hooks set.
"""

import expect
import hook_checks
import wait
from agents.agent import new_mark

HELD_SECONDS = 45
# How long whosup may show what was before the key: some agents write it down late.
TOLD_SECONDS = 8


def in_turn(stage):
    """Esc in the middle of a turn: live, and idle again (working where nothing tells it, with the reason)."""
    _in_turn(stage, stage.prompted())


def in_turn_with_hooks(stage):
    """The same with whosup's hooks set: they make the answer no worse."""
    hook_checks.set_hooks(stage)
    _in_turn(stage, hook_checks.open_with_hooks(stage))


def at_question(stage):
    """Esc at the question whether a command may run: live, and not waiting any more; then idle."""
    _at_question(stage, stage.prompted())


def at_question_with_hooks(stage):
    """The same with whosup's hooks set: they make the answer no worse."""
    hook_checks.set_hooks(stage)
    _at_question(stage, hook_checks.open_with_hooks(stage))


def _in_turn(stage, run):
    agent, mark = stage.agent, new_mark()
    run.start_turn(stage.model, f"hold-turn{{{mark}}}")
    wait.until("a held turn", lambda: stage.model.is_held(mark), HELD_SECONDS)
    agent.press_until("the turn interrupted", run.pane, (agent.interrupt_key,), lambda: stage.model.is_dropped(mark))
    _is_idle(stage, run, stage.agent.interruption_is_untold)


def _at_question(stage, run):
    agent = stage.agent
    run.start_turn(stage.model, f"run-tool{{touch {new_mark()}}}")
    wait.until("the question", lambda: agent.asks_permission(run.pane), HELD_SECONDS, wait.SLOW_STEP_SECONDS)
    agent.refuse(run.pane)
    _is_idle(stage, run)


def _is_idle(stage, run, untold=""):
    allowed = ("idle",)
    if untold:
        allowed += (None,)
    expect.phase(stage, run.session, allowed, TOLD_SECONDS)
    # Hooks name the process with its start.
    expect.live(stage, run.truth(), confidences=(*stage.agent.confidences, "proven"))


CHECKS = (("esc-in-turn", in_turn), ("esc-at-question", at_question),
          ("hooks-esc-in-turn", in_turn_with_hooks), ("hooks-esc-at-question", at_question_with_hooks))
