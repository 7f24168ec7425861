"""Copilot CLI: a Node launcher and a native agent. Seen in 1.0.102, 2026-11.

A session that is served has a file which its process holds locked, but for a
resumed one, which has it from its first prompt on.
"""

import glob
import json
import os
import re

import install
import processes
from agents.agent import Agent, Move

EXE = "/copilot-linux-"
FOREGROUND = re.compile(rb"(R|Unr)egistering foreground session: ([0-9a-f-]{36})")
FILE_BYTES_MAX = 4 * 1024 * 1024


class Copilot(Agent):
    """Copilot CLI in a terminal, and `-p` without one."""

    name = "copilot"
    id = "copilot"
    command = "copilot"
    packages = (install.Package("@github/copilot", "1.0.102"),)
    moves = (Move("COPILOT_HOME", {".copilot": ""}),)
    # The one that `/clear` has left is held a second longer.
    holds_several = True
    # Escape does not interrupt it while it waits for the model.
    interrupt_key = "C-c"
    loses_early_typing = True

    def headless_argv(self, prompt):
        return [self.binary, "-p", prompt, "--allow-all-tools"]

    def configure(self, world, directories):
        os.makedirs(world.in_home(".copilot"), mode=0o700, exist_ok=True)
        settings = {"trusted_folders": directories, "trustedFolders": directories, "banner": "never"}
        with open(world.in_home(".copilot", "config.json"), "w") as file:
            json.dump(settings, file)

    def variables(self, world):
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": world.model_url + "/v1",
            "COPILOT_PROVIDER_API_KEY": "sk-mock",
            "COPILOT_MODEL": "gpt-5",
        }

    def is_ready(self, pane):
        return pane.shows("/ commands", "? help")

    def asks_permission(self, pane):
        return pane.shows("Do you want to run this command?")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and EXE in one.exe), None)

    def held_by(self, world, process):
        """Returns the sessions whose file this process holds locked."""
        root = world.in_home(".copilot", "session-state")
        folders = [os.path.dirname(path) for path in processes.locked_by(process.pid) if path.endswith(".hold")]
        return frozenset(os.path.basename(one) for one in folders if os.path.dirname(one) == root)

    def sessions_before(self, world):
        held = [self.held_by(world, one) for one in world.started() if EXE in one.exe]
        return frozenset().union(*held)

    def session_of(self, run, before):
        new = self.held_by(run.world, run.process) - before
        if new:
            return next(iter(new)) if len(new) == 1 else None
        # A resumed one is locked by its first prompt only.
        resumed = self.shown_by(run.world, run.process)
        return None if resumed in before else resumed

    def shown_by(self, world, process):
        """Returns the session that the process's own log calls the one in front, or None."""
        shown = None
        for path in glob.glob(world.in_home(".copilot", "logs", f"process-*-{process.pid}.log")):
            with open(path, "rb") as file:
                for kind, session in FOREGROUND.findall(file.read(FILE_BYTES_MAX)):
                    shown = session.decode() if kind == b"R" else None
        return shown

    def session_that_heard(self, world, model, text):
        for path in glob.glob(world.in_home(".copilot", "session-state", "*", "events.jsonl")):
            with open(path, "rb") as file:
                if text.encode() in file.read(FILE_BYTES_MAX):
                    return os.path.basename(os.path.dirname(path))
        return None

    def resume_arguments(self, session):
        return (f"--resume={session}",)
