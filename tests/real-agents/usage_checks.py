"""Checks that the tokens counted are those that the model sent."""

import json

import wait
from whosup import BadAnswer

# What the mock model reports of each answer: input, cached input, output.
SENT = (234, 1000, 56)
FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens")
WRITTEN_SECONDS = 30
TURNS = 2


def counted(stage):
    """The tokens of two turns are those that the model sent, each answer once."""
    run = stage.prompted()
    run.say(stage.model)
    wait.until("the tokens of both turns", lambda: answers_in(sums(stage, run.session)) >= TURNS, WRITTEN_SECONDS,
               wait.SLOW_STEP_SECONDS)
    found = answers_in(sums(stage, run.session))
    asked = len(stage.model.requests)
    if found > asked:
        raise BadAnswer(f"{found} answers were counted, and the model was asked {asked} times")


def sums(stage, session):
    """Returns what whosup counts for a session, or None if it counts nothing yet."""
    done = stage.whosup.run("usage", "--by", "session", "--json", "--agent", stage.agent.id)
    if done.returncode != 0:
        raise BadAnswer(f"whosup usage exited with {done.returncode}: {done.stderr.strip()[-400:]}")
    rows = [row for row in json.loads(done.stdout)["rows"] if row["session"].endswith(session)]
    return tuple(rows[0][name] for name in FIELDS) if rows else None


def answers_in(counted):
    """Returns how many answers of the model the counts are of, or fails if they are of no whole number of them.

    An agent that does not record what was cached counts it as input.
    """
    if counted is None:
        return 0
    number = counted[2] // SENT[2]
    whole = tuple(number * each for each in SENT)
    uncached = (whole[0] + whole[1], 0, whole[2])
    if counted not in (whole, uncached):
        raise BadAnswer(f"{counted} tokens are not those of {number} answers: {whole}")
    return number


CHECKS = (("counted", counted),)
