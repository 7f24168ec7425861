"""kimi-cli: one Python process that blanks its arguments and its environment. Seen in 1.50.0, 2026-11.

It writes no PID anywhere. Release 1.52 must not be started: without arguments
it downloads and runs the installer of its successor.
"""

import glob
import os

import install
import processes
from agents.agent import Move, PythonPackage

COMM = "Kimi Code"
INPUT = "── input"
TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024
CONFIGURATION = """\
default_model = "mock"
telemetry = false

[models.mock]
provider = "mock"
model = "mock-model"
max_context_size = 128000

[providers.mock]
type = "kimi"
base_url = "{url}/v1"
api_key = "mock"
"""


class KimiCli(PythonPackage):
    """kimi-cli in a terminal, and `--print` without one."""

    name = "kimi-cli"
    id = "kimi-cli"
    command = "kimi"
    hooks_tell_questions = False
    packages = (install.Package("kimi-cli", "1.50.0"),)
    moves = (Move("KIMI_SHARE_DIR", {".kimi": ""}),)
    confidences = ("consistent", "inferred")
    # It publishes no state: the transcript shows the prompt without its answer.
    phases_working = ("working", None)
    phases_waiting = ("waiting", "working", None)
    tells_continued = False
    tells_resumed = False
    # It reads its keyboard anew for each prompt.
    loses_early_typing = True
    survivor_is_undecided = "its files name no process: what the one that has ended leaves behind fits the other as well"
    stays_pinned = "release 1.52 downloads and runs the installer of its successor when it is started"

    def headless_argv(self, prompt):
        return [self.binary, "--print", "-p", prompt]

    def configure(self, world, directories):
        os.makedirs(world.in_home(".kimi"), mode=0o700, exist_ok=True)
        with open(world.in_home(".kimi", "config.toml"), "w") as file:
            file.write(CONFIGURATION.format(url=world.model_url))

    def variables(self, world):
        return {
            "KIMI_CLI_NO_AUTO_UPDATE": "1",
            "KIMI_DISABLE_TELEMETRY": "1",
        }

    def is_ready(self, pane):
        return pane.shows("context:") and pane.shows(INPUT)

    def asks_permission(self, pane):
        return pane.shows("Approve once")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and one.comm == COMM), None)

    def sessions_before(self, world):
        return frozenset(self.folders(world))

    def session_of(self, run, before):
        new = self.folders(run.world).keys() - before
        session = new.pop() if len(new) == 1 else None
        # Before it asks for a prompt in it, what is typed is lost.
        return session if session and self.shows_session(run.pane, session) else None

    def shows_session(self, pane, session):
        """Whether the greeting of this session is on the screen, and a prompt's place below it."""
        _, found, below = pane.screen().rpartition("Session: " + session)
        return bool(found) and INPUT in below

    def folders(self, world):
        """Returns the folders of all sessions by their ids."""
        paths = glob.glob(world.in_home(".kimi", "sessions", "*", "*", "context.jsonl"))
        return {os.path.basename(os.path.dirname(path)): os.path.dirname(path) for path in paths}

    def session_that_heard(self, world, model, text):
        for session, folder in self.folders(world).items():
            if _holds(os.path.join(folder, "context.jsonl"), text) or _holds(
                    os.path.join(folder, "wire.jsonl"), text):
                return session
        return None

    def resume_arguments(self, session):
        return ("--session", session)


def _holds(path, text):
    try:
        with open(path, "rb") as file:
            return text.encode() in file.read(TRANSCRIPT_BYTES_MAX)
    except OSError:
        return False
