"""Kilo CLI: a relative of opencode, a Node launcher above its native process. Seen in 7.7.7, 2026-11."""


import install
from agents.agent import Agent, Move
from agents.opencode import OpenCode


class Kilo(OpenCode):
    """Kilo CLI in a terminal, and `run` without one."""

    name = "kilo"
    id = "kilo"
    command = "kilo"
    # It would only link the native program under another name, `.kilo`.
    install_script = None
    packages = (install.Package("@kilocode/cli", "7.7.7"),)
    called, variable = "kilo", "KILO"
    moves = (Move("XDG_DATA_HOME", {".local/share": ""}, home=called),)
    has_hooks = False

    def install(self):
        Agent.install(self)

    def configure_plugins(self, folder):
        pass

    def asks_permission(self, pane):
        return super().asks_permission(pane) or self.asks_for_reason(pane)

    def asks_for_reason(self, pane):
        """Whether it asks what to do in place of the command that was refused."""
        return pane.shows("Reject permission")

    def refuse(self, pane):
        self.press_until("a place for the reason", pane, ("Escape",), lambda: self.asks_for_reason(pane))
        self.press_until("the question refused", pane, ("Enter",), lambda: not self.asks_permission(pane))

    def is_program(self, name):
        return name in ("kilo", ".kilo")
