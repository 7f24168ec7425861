"""Checks that only opencode has."""

import expect
import wait
from agents.agent import new_mark

QUESTION_SECONDS = 45


def refused(stage):
    """A refused command ends the turn: the session is idle again, though the model was not asked again."""
    run = stage.prompted()
    run.start_turn(stage.model, f"run-tool{{touch {new_mark()}}}")
    wait.until("the question", lambda: stage.agent.asks_permission(run.pane), QUESTION_SECONDS,
               wait.SLOW_STEP_SECONDS)
    stage.agent.refuse(run.pane)
    wait.until("ready after the refusal", lambda: stage.agent.is_ready(run.pane), QUESTION_SECONDS,
               wait.SLOW_STEP_SECONDS)
    expect.live(stage, run.truth())
    expect.phase(stage, run.session, ("idle",))


CHECKS = (("refused", refused),)
