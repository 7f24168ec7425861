"""opencode: one native process, one database for all. Seen in 1.18.33, 2026-11.

A session is made by its first prompt, and nothing on disk names a process: the
truth is the session that the request to the model names.
"""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import install
import processes
from agents.agent import Agent, Move

BUSY_SECONDS = 2
CONFIGURATION = {
    "$schema": "https://opencode.ai/config.json",
    "autoupdate": False,
    "share": "disabled",
    "model": "mock/mock-model",
    "small_model": "mock/mock-model",
    "permission": {"bash": "ask"},
}


class OpenCode(Agent):
    """opencode in a terminal, and `run` without one."""

    name = "opencode"
    id = "opencode"
    command = "opencode"
    install_script = os.path.join("opencode-ai", "postinstall.mjs")
    # What it fetches for plugins at its start, and waits for; here it can't.
    packages = (install.Package("opencode-ai", "1.18.33"), install.Package("@opencode-ai/plugin", "1.18.33"))
    # What its directories, its database and its configuration are called, and what its variables begin with.
    called, variable = "opencode", "OPENCODE"
    moves = (Move("XDG_DATA_HOME", {".local/share": ""}, home=called),)
    clear_command = "/new"
    confidences = ("inferred",)
    has_session_at_launch = False
    tells_continued = False
    survivor_is_undecided = "its files name no process: what the one that has ended leaves behind fits the other as well"

    def install(self):
        super().install()
        self.plugins = install.install(self.packages[1])

    def headless_argv(self, prompt):
        return [self.binary, "run", prompt]

    def configure(self, world, directories):
        folder = world.in_home(".config", self.called)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Mock",
            "options": {"baseURL": world.model_url + "/v1", "apiKey": "mock"},
            "models": {"mock-model": {"name": "mock-model", "limit": {"context": 128000, "output": 8000}}},
        }
        with open(os.path.join(folder, self.called + ".json"), "w") as file:
            json.dump(dict(CONFIGURATION, provider={"mock": provider}), file)
        self.configure_plugins(folder)

    def configure_plugins(self, folder):
        """Puts what it fetches at its start into the folder of its configuration."""
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(self.plugins, name), folder)
        modules = os.path.join(folder, "node_modules")
        if not os.path.isdir(modules):
            shutil.copytree(os.path.join(self.plugins, "node_modules"), modules, symlinks=True)

    def variables(self, world):
        kept_off = ("AUTOUPDATE", "LSP_DOWNLOAD", "MODELS_FETCH", "SHARE")
        return {f"{self.variable}_DISABLE_{what}": "1" for what in kept_off}

    def is_ready(self, pane):
        return pane.shows("ctrl+p commands") and not pane.shows("esc interrupt")

    def is_new(self, pane):
        return pane.shows("Ask anything")

    def asks_permission(self, pane):
        return pane.shows("Permission required")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and self.is_program(os.path.basename(one.exe))), None)

    def is_program(self, name):
        """Whether an executable of this name is the agent's own program."""
        return name.startswith("opencode")

    def sessions_before(self, world):
        path = world.in_home(".local", "share", self.called, self.called + ".db")
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as database:
                return frozenset(row[0] for row in database.execute("select id from session"))
        except sqlite3.Error:
            return frozenset()

    def session_of(self, run, before):
        # Only asked for one that is taken up again: it is there already.
        found = self.sessions_before(run.world) - before
        return next(iter(found)) if len(found) == 1 else None

    def session_that_heard(self, world, model, text):
        asked = model.asked(text)
        return asked[-1].headers.get("x-session-id") if asked else None

    def resume_arguments(self, session):
        return ("--session", session)

    def own_checks(self):
        from agents import opencode_checks
        return opencode_checks.CHECKS
