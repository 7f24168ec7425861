"""Checks that only Gemini CLI has."""

import checks
from agents.agent import Run


def shell_pane_closed(stage):
    """Started by the pane's shell it ends with the pane: then the session is not live."""
    checks.ended(stage, Run.close_pane)


CHECKS = (("shell-pane-closed", shell_pane_closed),)
