"""Continue CLI (`cn`): one Node process that keeps its arguments. Written for 1.5.47, 2026-11.

It writes no PID anywhere, no session before the first prompt, and with `-p` none before the end.
"""

import glob
import json
import os

import expect
import install
import processes
from agents.agent import Move, NodeScript

SCRIPT = "/cn"
INDEX = "/sessions.json"
TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024
CONFIG = """name: mock
version: 1.0.0
schema: v1
models:
  - name: mock-model
    provider: openai
    model: mock-model
    apiBase: {url}/v1
    apiKey: mock
    roles: [chat]
"""


class Continue(NodeScript):
    """Continue in a terminal, and `-p` without one."""

    name = "continue"
    id = "continue"
    command = "cn"
    has_hooks = False
    packages = (install.Package("@continuedev/cli", "1.5.47"),)
    moves = (Move("CONTINUE_GLOBAL_DIR", {".continue": ""}),)
    confidences = ("inferred",)
    # A prompt without an answer, and a tool's answer, may be of a turn that was interrupted.
    phases_working = ("working", None)
    has_session_at_launch = False
    has_session_before_answer = False
    tells_continued = False
    tells_resumed = False
    # Two prompts in one directory within seconds fit the use of both terminals.
    tells_launched_together = False
    clear_is_undecided = "its files name no process: after `/clear` only the use of its terminal may tell which session it is in"
    survivor_is_undecided = "its files name no process: what the one that has ended leaves behind fits the other as well"
    interruption_is_untold = "Escape in a turn leaves nothing: a prompt without an answer may be being answered"

    def configure(self, world, directories):
        os.makedirs(world.in_home(".continue"), mode=0o700, exist_ok=True)
        for name, text in (("config.yaml", CONFIG.format(url=world.model_url)), (".onboarding_complete", "done\n")):
            with open(world.in_home(".continue", name), "w") as file:
                file.write(text)

    def variables(self, world):
        return {"PATH": self.search_path(), "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}

    def is_ready(self, pane):
        return pane.shows("Ask anything, @ for context")

    def asks_permission(self, pane):
        return pane.shows("Would you like to continue?")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates
                     if one and any(word.endswith(SCRIPT) for word in one.argv[1:2])), None)

    def sessions_before(self, world):
        return frozenset(self.documents(world))

    def session_of(self, run, before):
        new = self.documents(run.world).keys() - before
        return new.pop() if len(new) == 1 else None

    def documents(self, world):
        """Returns the documents of all sessions by their ids."""
        paths = glob.glob(world.in_home(".continue", "sessions", "*.json"))
        return {os.path.basename(path)[:-len(".json")]: path for path in paths if not path.endswith(INDEX)}

    def session_that_heard(self, world, model, text):
        # A JSON document has quotation marks and the like in another form.
        wanted = json.dumps(text)[1:-1].encode()
        for session, path in self.documents(world).items():
            with open(path, "rb") as file:
                if wanted in file.read(TRANSCRIPT_BYTES_MAX):
                    return session
        return None

    def resume_arguments(self, session):
        raise expect.Skipped("it resumes no session by its id: `--fork ID` goes on in a new one")

    def resumes_alike(self):
        return False

    def continue_arguments(self):
        return ("--resume",)
