"""Kimi Code, the successor of kimi-cli: one Node process that blanks its arguments. Seen in 2.1.0, 2026-11.

It writes no PID anywhere, and no session before the first prompt.
"""

import glob
import hashlib
import json
import os

import install
import processes
from agents.agent import Move, NodeScript

COMM = "kimi-code"
TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024


class KimiCode(NodeScript):
    """Kimi Code in a terminal, and `-p` without one."""

    name = "kimi-code"
    id = "kimi-code"
    command = "kimi"
    packages = (install.Package("@moonshot-ai/kimi-code", "2.1.0"),)
    moves = (Move("KIMI_CODE_HOME", {".kimi-code": ""}),)
    clear_command = "/new"
    confidences = ("consistent", "inferred")
    # It publishes no state: the transcript shows the prompt without its answer.
    phases_working = ("working", None)
    phases_waiting = ("waiting", "working", None)
    has_session_at_launch = False
    tells_continued = False
    tells_resumed = False
    clear_is_undecided = "its files name no process: after `/new` only the use of its terminal may tell which session it is in"
    survivor_is_undecided = "its files name no process: what the one that has ended leaves behind fits the other as well"

    def configure(self, world, directories):
        os.makedirs(world.in_home(".kimi-code"), mode=0o700, exist_ok=True)
        with open(world.in_home(".kimi-code", "config.toml"), "w") as file:
            file.write("telemetry = false\n")
        os.makedirs(world.in_home(".kimi-code", "workspace-trust"), mode=0o700, exist_ok=True)
        for directory in directories:
            digest = hashlib.sha256(directory.encode()).hexdigest()[:12]
            name = f"wd_{os.path.basename(directory)}_{digest}"
            with open(world.in_home(".kimi-code", "workspace-trust", name), "w") as file:
                json.dump({"root": directory, "trustedAt": 1}, file)

    def variables(self, world):
        return {
            "PATH": self.search_path(),
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
            "KIMI_DISABLE_TELEMETRY": "1",
            "KIMI_MODEL_NAME": "mock-model",
            "KIMI_MODEL_API_KEY": "mock",
            "KIMI_MODEL_BASE_URL": world.model_url + "/v1",
            "KIMI_MODEL_PROVIDER_TYPE": "openai",
        }

    def is_ready(self, pane):
        return pane.shows("│ > │") and pane.shows("context:")

    def asks_permission(self, pane):
        return pane.shows("Run this command?")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and one.comm == COMM), None)

    def has_session_after_clear(self):
        return True

    def sessions_before(self, world):
        return frozenset(self.folders(world))

    def session_of(self, run, before):
        new = self.folders(run.world).keys() - before
        return new.pop() if len(new) == 1 else None

    def folders(self, world):
        """Returns the folders of all sessions by their ids."""
        paths = glob.glob(world.in_home(".kimi-code", "sessions", "wd_*", "session_*"))
        return {os.path.basename(path): path for path in paths}

    def session_that_heard(self, world, model, text):
        for session, folder in self.folders(world).items():
            if _holds(os.path.join(folder, "agents", "main", "wire.jsonl"), text):
                return session
        return None

    def resume_arguments(self, session):
        return ("-r", session)

    def continue_arguments(self):
        return ("-c",)


def _holds(path, text):
    try:
        with open(path, "rb") as file:
            return text.encode() in file.read(TRANSCRIPT_BYTES_MAX)
    except OSError:
        return False
