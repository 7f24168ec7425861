"""qwen-code: a launcher, a relauncher and the agent, all Node. Seen in 0.24.4, 2026-11.

A registry record per PID and a sidecar per session. Its npm package wants Node
22 or later: with an older one npm picks a release that writes neither.
"""

import glob
import json
import os

import install
import processes
from agents.agent import Move, NodeScript

SCRIPT = "/@qwen-code/qwen-code/cli.js"
TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024


class QwenCode(NodeScript):
    """qwen-code in a terminal, and `-p` without one."""

    name = "qwen-code"
    id = "qwen-code"
    command = "qwen"
    packages = (install.Package("@qwen-code/qwen-code", "0.24.4"),)
    moves = (Move("QWEN_HOME", {".qwen": ""}),)
    quit_command = "/quit"
    confidences = ("proven",)
    # It publishes no state: the transcript shows the prompt without its answer.
    interruption_is_untold = "Escape in a turn leaves nothing: a prompt without an answer may be being answered"

    def configure(self, world, directories):
        os.makedirs(world.in_home(".qwen"), mode=0o700, exist_ok=True)
        settings = {
            "$version": 4,
            "security": {"auth": {"selectedType": "openai"}},
            "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
            "tools": {"approvalMode": "default"},
            "ui": {"autoModeAcknowledged": True},
        }
        with open(world.in_home(".qwen", "settings.json"), "w") as file:
            json.dump(settings, file)

    def variables(self, world):
        return {
            "PATH": self.search_path(),
            "OPENAI_API_KEY": "mock",
            "OPENAI_BASE_URL": world.model_url + "/v1",
            "OPENAI_MODEL": "mock-model",
            "QWEN_TELEMETRY_ENABLED": "0",
            "DISABLE_AUTOUPDATER": "1",
        }

    def is_ready(self, pane):
        return pane.shows("Type your message")

    def asks_permission(self, pane):
        return pane.shows("Allow execution of")

    def process_below(self, pid):
        scripts = [one for one in (processes.read(pid), *processes.descendants(pid))
                   if one and any(word.endswith(SCRIPT) for word in one.argv)]
        parents = {one.parent for one in scripts}
        # The deepest one: the others only start it and wait.
        return next((one for one in reversed(scripts) if one.pid not in parents), None)

    def session_of(self, run, before):
        # While it starts, the relauncher has no child yet and looks like the agent.
        run.process = self.process_below(run.pane.shell_pid) or run.process
        record = self.record_of(run.world, run.process)
        session = record.get("sessionId") if record else None
        return session if session and self.has_sidecar(run.world, run.process, session) else None

    def record_of(self, world, process):
        """Returns the registry record of this process, or None while it can't be read."""
        return _read(world.in_home(".qwen", "sessions", f"{process.pid}.json"))

    def has_sidecar(self, world, process, session):
        """Whether the session's sidecar names this process."""
        paths = glob.glob(world.in_home(".qwen", "projects", "*", "chats", f"{session}.runtime.json"))
        return any((_read(path) or {}).get("pid") == process.pid for path in paths)

    def session_that_heard(self, world, model, text):
        for path in glob.glob(world.in_home(".qwen", "projects", "*", "chats", "*.jsonl")):
            with open(path, "rb") as file:
                if text.encode() in file.read(TRANSCRIPT_BYTES_MAX):
                    return os.path.basename(path)[:-len(".jsonl")]
        return None

    def own_checks(self):
        from agents import qwen_code_checks
        return qwen_code_checks.CHECKS


def _read(path):
    try:
        with open(path) as file:
            record = json.load(file)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
