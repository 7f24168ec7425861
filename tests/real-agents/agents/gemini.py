"""Gemini CLI: a Node launcher and the agent, Node as well. Seen in 0.61.0, 2026-11.

Nothing on disk names a process: the chat made at launch (or at `/clear`) is a
process's by being new. A chat in which nothing was said is removed by the next
start in its directory. An agent that is its pane's own program lives on when the
pane is closed; one that a shell has started ends with the shell.
"""

import glob
import json
import os

import install
import processes
from agents.agent import Move, NodeScript

SCRIPT = "/gemini"
SHORT_LENGTH = 8
CHAT_BYTES_MAX = 4 * 1024 * 1024


class Gemini(NodeScript):
    """Gemini CLI in a terminal, and `-p` without one."""

    name = "gemini"
    id = "gemini"
    command = "gemini"
    packages = (install.Package("@google/gemini-cli", "0.61.0"),)
    moves = (Move("GEMINI_CLI_HOME", {".gemini": ".gemini"}, home=".gemini"),)
    quit_command = "/quit"
    loses_early_typing = True
    confidences = ("inferred",)
    ends_with_pane = False
    # A start removes the chats in which nothing was said, and with them when the processes that run were launched.
    tells_launched_together = False
    # For the same reason only the first one's terminal tells whose the chat that is left is:
    # nothing was shown there when it was made. Linux notes that in steps of eight seconds.
    launches_apart_seconds = 10.0
    # A resumed chat gets a second file, but not within the minute of its first.
    tells_continued = False

    def __init__(self):
        # The first characters of a session's id, which its files are named by -> the id.
        self.known = {}

    def configure(self, world, directories):
        os.makedirs(world.in_home(".gemini"), mode=0o700, exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "model": {"name": "gemini-2.5-pro"},
        }
        with open(world.in_home(".gemini", "settings.json"), "w") as file:
            json.dump(settings, file)

    def variables(self, world):
        return {
            "PATH": self.search_path(),
            "GEMINI_API_KEY": "mock-key",
            "GOOGLE_GEMINI_BASE_URL": world.model_url,
            "GEMINI_TELEMETRY_ENABLED": "false",
            "NO_BROWSER": "1",
        }

    def is_ready(self, pane):
        return pane.shows("Type your message") and not pane.shows("esc to cancel")

    def asks_permission(self, pane):
        return pane.shows("Allow execution of")

    def process_below(self, pid):
        scripts = [one for one in (processes.read(pid), *processes.descendants(pid))
                   if one and any(word.endswith(SCRIPT) for word in one.argv[1:])]
        pids = {one.pid for one in scripts}
        # The deeper one: the launcher only starts it and waits.
        return next((one for one in scripts if one.parent in pids), None)

    def chats(self, world):
        """Returns the chats of this home: path -> session."""
        found = {}
        for path in glob.glob(world.in_home(".gemini", "tmp", "*", "chats", "session-*.jsonl")):
            short = path[-len(".jsonl") - SHORT_LENGTH:-len(".jsonl")]
            session = _session_in(path)
            if session:
                self.known[short] = session
            # One that was removed comes back without its first line.
            session = session or self.known.get(short)
            if session:
                found[path] = session
        return found

    def sessions_before(self, world):
        return frozenset(self.chats(world).values())

    def session_of(self, run, before):
        new = self.sessions_before(run.world) - before
        return next(iter(new)) if len(new) == 1 else None

    def session_that_heard(self, world, model, text):
        for path, session in self.chats(world).items():
            with open(path, "rb") as file:
                if text.encode() in file.read(CHAT_BYTES_MAX):
                    return session
        return None

    def is_recorded(self, run):
        return run.session in self.sessions_before(run.world)

    def continue_arguments(self):
        return ("--resume", "latest")

    def own_checks(self):
        from agents import gemini_checks
        return gemini_checks.CHECKS


def _session_in(path):
    """Returns the session that the first line of a chat names, or None."""
    try:
        with open(path) as file:
            return json.loads(file.readline()).get("sessionId")
    except (OSError, ValueError, AttributeError):
        return None
