"""Waits for a condition, always with a bound.

Nothing in this suite sleeps for a fixed time and hopes: it asks again in small
steps until the answer is there or the bound has passed.
"""

import threading
import time

STEP_SECONDS = 0.02
# A look that starts a process (tmux, whosup) costs more, so it is repeated less often.
SLOW_STEP_SECONDS = 0.15


_INTERRUPTED = threading.Event()


class NotSeen(Exception):
    """What was waited for did not happen within its bound."""


class Interrupted(NotSeen):
    """The suite was asked to stop."""


def interrupt():
    """Makes every wait end with `Interrupted`, so that all that was started is ended."""
    _INTERRUPTED.set()


def is_interrupted():
    """Whether the suite was asked to stop."""
    return _INTERRUPTED.is_set()


def until(what, look, seconds, step=STEP_SECONDS):
    """Returns the first true answer of `look`, or raises `NotSeen` after `seconds`.

    `what` names the thing waited for. An answer that is not yet what is wanted
    is any false value; the last one is named in the error if it says something.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = look()
        if answer:
            return answer
        if _INTERRUPTED.is_set():
            raise Interrupted(f"stopped while waiting for {what}")
        if time.monotonic() >= deadline:
            last = f" (last seen: {answer})" if answer not in (None, False) else ""
            raise NotSeen(f"not seen within {seconds:g} s: {what}{last}")
        time.sleep(step)


def holds_for(what, look, seconds, step=SLOW_STEP_SECONDS):
    """Asks `look` again and again for `seconds`; raises `NotSeen` at the first false answer.

    Returns how often it looked.
    """
    deadline = time.monotonic() + seconds
    looks = 0
    while True:
        if not look():
            raise NotSeen(f"did not hold for {seconds:g} s: {what}")
        looks += 1
        if _INTERRUPTED.is_set():
            raise Interrupted(f"stopped while watching {what}")
        if time.monotonic() >= deadline:
            return looks
        time.sleep(step)
