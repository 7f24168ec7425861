"""Vibe, of Mistral: an interface in Rust and, below it, a Python process that runs the session. Seen in 3.0.2, 2026-11.

The session's process holds a lease, a locked file named after the session.
"""

import glob
import os

import install
import processes
from agents.agent import Move, PythonPackage

INTERFACE, SERVER = "vibe-rs", "vibe-app-server"
ID_LENGTH = 36
FILE_BYTES_MAX = 4 * 1024 * 1024
CONFIGURATION = """\
active_model = "mock"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "mock"
api_base = "{url}/v1"
api_key_env_var = "MOCK_API_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "mock-model"
provider = "mock"
alias = "mock"
"""


class Vibe(PythonPackage):
    """Vibe in a terminal, and `-p` without one."""

    name = "vibe"
    id = "vibe"
    command = "vibe"
    hooks_tell_questions = False
    packages = (install.Package("mistral-vibe", "3.0.2"),)
    moves = (Move("VIBE_HOME", {".vibe": ""}),)
    confidences = ("proven",)
    # It publishes no state: the transcript shows the prompt without its answer.
    phases_working = ("working", None)
    phases_waiting = ("waiting", "working", None)
    # Enter alone chooses nothing.
    allow_keys = ("1", "Enter")

    def configure(self, world, directories):
        os.makedirs(world.in_home(".vibe"), mode=0o700, exist_ok=True)
        with open(world.in_home(".vibe", "config.toml"), "w") as file:
            file.write(CONFIGURATION.format(url=world.model_url))

    def variables(self, world):
        return {
            "MOCK_API_KEY": "mock",
            "MISTRAL_API_KEY": "mock",
            "VIBE_ENABLE_TELEMETRY": "false",
            "VIBE_ENABLE_UPDATE_CHECKS": "false",
        }

    def is_ready(self, pane):
        return pane.shows("[PID") and not pane.shows("Initializing", "interrupt)")

    def typed(self, text):
        # A slash takes the place of the prompt's sign.
        return "/ " + text[1:] if text.startswith("/") else text

    def asks_permission(self, pane):
        return pane.shows("Permission for the")

    def process_below(self, pid):
        candidates = [one for one in (processes.read(pid), *processes.descendants(pid)) if one]
        return next((one for one in candidates if one.comm in (INTERFACE, SERVER)), None)

    def server_of(self, run):
        """Returns the process below the interface that runs its session."""
        below = processes.descendants(run.process.pid)
        return next((one for one in below if one.comm == SERVER and one.is_running), None)

    def session_of(self, run, before):
        server = self.server_of(run)
        names = [os.path.basename(path) for path in processes.locked_by(server.pid)] if server else []
        ids = [name[:-len(".lock")] for name in names if name.endswith(".lock")]
        ids = [one for one in ids if len(one) == ID_LENGTH and one.count("-") == 4]
        return ids[0] if len(ids) == 1 else None

    def owner_of(self, run):
        return self.server_of(run)

    def parts_of(self, run):
        return tuple(filter(None, (run.process, self.server_of(run))))

    def headless_owner_below(self, pid):
        return next((one for one in processes.descendants(pid) if one.comm == SERVER), None)

    def client_of(self, run):
        return run.process

    def session_that_heard(self, world, model, text):
        root = world.in_home(".vibe", "logs", "session", "unified")
        for path in glob.glob(os.path.join(root, "*", "**"), recursive=True):
            if os.path.isfile(path) and _holds(path, text):
                return os.path.relpath(path, root).split(os.sep)[0]
        return None

    def resume_arguments(self, session):
        return ("--resume", session[:8])


def _holds(path, text):
    try:
        with open(path, "rb") as file:
            return text.encode() in file.read(FILE_BYTES_MAX)
    except OSError:
        return False
