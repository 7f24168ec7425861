"""pi: one Node process that blanks its arguments. Seen in 0.73.1 and 1.6.0, 2026-11.

It writes no PID anywhere, and (0.73.1) no session before the first answer.
"""

import glob
import json
import os

import expect
import install
import processes
from agents.agent import Move, NodeScript

COMM = "pi"
TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024


class Pi(NodeScript):
    """pi in a terminal, and `-p` without one."""

    name = "pi"
    id = "pi"
    command = "pi"
    has_hooks = False
    packages = (install.Package("@mariozechner/pi-coding-agent", "0.73.1"),)
    # pi's documents name this package; npm does not call the older one deprecated.
    newest_name = "@earendil-works/pi-coding-agent"
    moves = (Move("PI_CODING_AGENT_DIR", {".pi/agent": ""}),)
    quit_command = "/quit"
    clear_command = "/new"
    confidences = ("consistent", "inferred")
    # It publishes no state: the transcript shows the prompt without its answer.
    phases_working = ("working", None)
    has_session_at_launch = False
    has_session_before_answer = False
    tells_continued = False
    tells_resumed = False
    # Births a second or so apart fit both, where a busy machine was slow to launch them.
    tells_launched_together = False
    reads_seconds = 1.5
    clear_is_undecided = "its files name no process: after `/new` only the use of its terminal may tell which session it is in"
    survivor_is_undecided = "its files name no process: what the one that has ended leaves behind fits the other as well"

    def take_newest(self):
        said = super().take_newest()
        # 1.6.0 writes a session down when it is prompted, 0.73.1 with the first answer.
        self.has_session_before_answer = True
        return said

    def own_checks(self):
        from agents import pi_checks
        return pi_checks.CHECKS

    def configure(self, world, directories):
        os.makedirs(world.in_home(".pi", "agent"), mode=0o700, exist_ok=True)
        cost = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
        model = {"id": "mock-model", "name": "mock-model", "reasoning": False, "input": ["text"],
                 "contextWindow": 128000, "maxTokens": 8000, "cost": cost}
        provider = {"baseUrl": world.model_url + "/v1", "api": "openai-completions", "apiKey": "mock",
                    "models": [model]}
        settings = {"defaultProvider": "mock", "defaultModel": "mock-model",
                    "lastChangelogVersion": self.packages[0].version}
        for name, value in (("models.json", {"providers": {"mock": provider}}), ("settings.json", settings)):
            with open(world.in_home(".pi", "agent", name), "w") as file:
                json.dump(value, file)

    def variables(self, world):
        return {
            "PATH": self.search_path(),
            "PI_SKIP_VERSION_CHECK": "1",
            "PI_OFFLINE": "1",
            "PI_TELEMETRY": "0",
        }

    def is_ready(self, pane):
        return pane.shows("mock-model")

    def is_new(self, pane):
        return pane.shows("New session started")

    def asks_permission(self, pane):
        raise expect.Skipped("it runs commands without asking")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and one.comm == COMM), None)

    def sessions_before(self, world):
        return frozenset(self.transcripts(world))

    def session_of(self, run, before):
        new = self.transcripts(run.world).keys() - before
        return new.pop() if len(new) == 1 else None

    def transcripts(self, world):
        """Returns the transcripts of all sessions by their ids."""
        paths = glob.glob(world.in_home(".pi", "agent", "sessions", "--*--", "*_*.jsonl"))
        return {os.path.basename(path)[:-len(".jsonl")].rpartition("_")[2]: path for path in paths}

    def session_that_heard(self, world, model, text):
        for session, path in self.transcripts(world).items():
            with open(path, "rb") as file:
                if text.encode() in file.read(TRANSCRIPT_BYTES_MAX):
                    return session
        return None

    def resume_arguments(self, session):
        return ("--session", session)

    def continue_arguments(self):
        return ("-c",)
