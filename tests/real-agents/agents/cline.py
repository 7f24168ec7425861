"""Cline: one native process, and a hub daemon that the first one starts. Seen in 3.0.65, 2026-11.

Each session has a row and a file that name a PID, which may be the hub's or a former one. What is true
stands in the log: each process writes there, with its PID, which session it opens.
"""

import glob
import json
import os

import install
import processes
from agents.agent import Agent, Move

TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024
OFFERS = ("cline-cli-cline-pass-intro", "cline-cli-desktop-launch", "cline-cli-zen")
HUB_ARGUMENT = "--cline-hub-daemon"


class Cline(Agent):
    """Cline in a terminal, and with a prompt without one."""

    name = "cline"
    id = "cline"
    command = "cline"
    has_hooks = False
    packages = (install.Package("cline", "3.0.65"),)
    moves = (Move("CLINE_DATA_DIR", {".cline/data": ""}),)
    confidences = ("proven", "consistent", "inferred")
    # It publishes no state: the transcript shows the prompt without its answer.
    phases_working = ("working", None)
    phases_waiting = ("waiting", "working", None)
    loses_early_typing = True

    def argv(self, *arguments):
        return [self.binary, "--auto-approve", "false", *arguments]

    def headless_argv(self, prompt):
        return [self.binary, prompt]

    def configure(self, world, directories):
        folder = world.in_home(".cline", "data", "settings")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        provider = {"provider": "openai-compatible", "apiKey": "mock", "model": "mock-model",
                    "baseUrl": world.model_url + "/v1"}
        settings = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {
            "openai-compatible": {"settings": provider, "updatedAt": "2026-11-27T21:15:05.170Z",
                                  "tokenSource": "manual"}}}
        with open(os.path.join(folder, "providers.json"), "w") as file:
            json.dump(settings, file)
        # Offers of its makers, each shown once.
        with open(os.path.join(folder, "cli-notices.json"), "w") as file:
            json.dump({"shown": dict.fromkeys(OFFERS, True)}, file)

    def variables(self, world):
        return {
            "CLINE_NO_AUTO_UPDATE": "1",
            "CLINE_TELEMETRY_DISABLED": "1",
            "DO_NOT_TRACK": "1",
        }

    def is_ready(self, pane):
        return pane.shows("What can I do for you?", "Ask anything...") and pane.shows("mock-model")

    def is_new(self, pane):
        return pane.shows("What can I do for you?")

    def asks_permission(self, pane):
        return pane.shows("Approve tool call?")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates
                     if one and one.comm == "cline" and HUB_ARGUMENT not in one.argv), None)

    def has_session_after_clear(self):
        return False

    def session_of(self, run, before):
        opened = [entry for entry in self.log(run.world) if entry.get("event") == "session.started"
                  and entry.get("pid") == run.process.pid]
        return opened[-1]["properties"]["sessionId"] if opened else None

    def log(self, world):
        """Returns the entries of the log, oldest first; a torn last line is left out."""
        path = world.in_home(".cline", "data", "logs", "cline.log")
        if not os.path.exists(path):
            return []
        with open(path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def is_written(self, world, session):
        # Of a turn that goes on the hub might be the one that serves it.
        path = os.path.join(self.folders(world).get(session, ""), session + ".json")
        try:
            with open(path) as file:
                return json.load(file).get("status") == "idle"
        except (OSError, ValueError):
            return False

    def folders(self, world):
        """Returns the folders of all sessions by their ids."""
        paths = glob.glob(world.in_home(".cline", "data", "sessions", "*_*"))
        return {os.path.basename(path): path for path in paths}

    def session_that_heard(self, world, model, text):
        for session, folder in self.folders(world).items():
            # The messages come with the answer; what was asked stands in the other file before.
            if any(_holds(os.path.join(folder, session + end), text) for end in (".messages.json", ".json")):
                return session
        return None

    def resume_arguments(self, session):
        return ("--id", session)

    def continue_arguments(self):
        return None


def _holds(path, text):
    try:
        with open(path, "rb") as file:
            return text.encode() in file.read(TRANSCRIPT_BYTES_MAX)
    except OSError:
        return False
