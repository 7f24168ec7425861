"""Claude Code: one native process, a registry file per PID. Seen in 2.1.197 and 2.1.332, 2026-11."""

import glob
import json
import os

import install
import processes
from agents.agent import Agent, Move

TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024
API_KEY = "sk-ant-api03-mock-model-of-whosup-0123456789-AAAA"


class ClaudeCode(Agent):
    """Claude Code in a terminal, and `-p` without one."""

    name = "claude-code"
    id = "claude-code"
    packages = (install.Package("@anthropic-ai/claude-code", "2.1.197"),)
    moves = (Move("CLAUDE_CONFIG_DIR", {".claude": "", ".claude.json": ".claude.json"}),)
    confidences = ("proven",)
    # Names of its executable that a check has given it.
    other_names = ()
    command = "claude"
    # It loads nothing.
    install_script = os.path.join("@anthropic-ai", "claude-code", "install.cjs")
    switches = ()

    def program(self):
        """Returns the file that holds the program itself."""
        return os.path.realpath(self.binary)

    def is_at_least(self, version):
        """Whether the installed version is this one or a later one."""
        numbers = lambda text: tuple(int(part) for part in text.split("."))  # noqa: E731
        return numbers(self.packages[0].version) >= numbers(version)

    def configure(self, world, directories):
        os.makedirs(world.in_home(".claude"), mode=0o700, exist_ok=True)
        trusted = {"hasTrustDialogAccepted": True, "allowedTools": [], "projectOnboardingSeenCount": 5}
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "numStartups": 1,
            "autoUpdates": False,
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {directory: trusted for directory in directories},
        }
        with open(world.in_home(".claude.json"), "w") as file:
            json.dump(settings, file)
        # In auto mode, the default since a version before 2.1.332, it asks about hardly any command.
        with open(world.in_home(".claude", "settings.json"), "w") as file:
            json.dump({"disableAutoMode": "disable"}, file)

    def variables(self, world):
        return {
            "ANTHROPIC_BASE_URL": world.model_url,
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_BUG_COMMAND": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }

    def is_ready(self, pane):
        # The second one is the footer of auto mode, which is there in a turn too.
        return pane.shows("? for shortcuts", "⏵⏵ auto mode on") and not pane.shows("esc to interrupt")

    def asks_permission(self, pane):
        return pane.shows("Do you want to proceed?")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and self.is_named(one)), None)

    def is_named(self, process):
        """Whether a process is Claude Code by its executable."""
        name = os.path.basename(process.exe)
        return name.startswith("claude") or any(other in process.argv[:2] for other in self.other_names)

    def session_of(self, run, before):
        record = self.record_of(run.world, run.process)
        # At launch the first write may name a throw-away id; it has no status yet.
        return record.get("sessionId") if record and "status" in record else None

    def record_of(self, world, process):
        """Returns the registry record of this process, or None while it can't be read."""
        try:
            with open(world.in_home(".claude", "sessions", f"{process.pid}.json")) as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def background_record(self, world):
        """Returns the record of the one background session of this world, or None."""
        for path in glob.glob(world.in_home(".claude", "sessions", "*.json")):
            try:
                with open(path) as file:
                    record = json.load(file)
            except (OSError, ValueError):
                continue
            if record.get("kind") == "bg" and record.get("jobId"):
                return record
        return None

    def session_that_heard(self, world, model, text):
        asked = model.asked(text)
        return asked[-1].headers.get("x-claude-code-session-id") if asked else None

    def is_written(self, world, session):
        # Lines are written some time after the screen shows them.
        for path in glob.glob(world.in_home(".claude", "projects", "*", f"{session}.jsonl")):
            with open(path, "rb") as file:
                return b'"type":"assistant"' in file.read(TRANSCRIPT_BYTES_MAX)
        return False

    def own_checks(self):
        from agents import claude_code_checks
        return claude_code_checks.CHECKS
