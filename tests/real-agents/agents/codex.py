"""Codex: a TUI over a shared daemon, or alone. Seen in 0.171.0, 2026-11.

A thread's lock file is locked by the process that serves it, from its start:
the daemon, or the TUI itself where no daemon may be started.
"""

import glob
import os

import install
import processes
import wait
from agents.agent import Agent, Move, SuiteFault

CONFIGURATION = """\
model = "gpt-5-codex"
model_provider = "mock"
check_for_update_on_startup = false
approval_policy = "on-request"
sandbox_mode = "workspace-write"

[analytics]
enabled = false

[tui]
notifications = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_API_KEY"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
"""
LOCK_SUFFIX = ".lock"
REVIEW = "Hooks need review"
REVIEW_SECONDS = 60
KEY_STEP_SECONDS = 0.5
# Seen: 60 s after the last terminal program left, the daemon unloads a thread.
LINGERS_SECONDS = 75


def sockets_outside(world):
    """Returns the daemon's sockets and their locks, which lie in the system's temporary folder."""
    found = []
    for folder, _, names in os.walk(world.in_home(".codex")):
        for path in (os.path.join(folder, name) for name in names if name.endswith(".sock")):
            if os.path.islink(path):
                target = os.readlink(path)
                found += [target, target + ".lock"]
    return found


class Codex(Agent):
    """Codex as it runs by default: its TUI is a client of one daemon for all."""

    name = "codex-daemon"
    id = "codex"
    command = "codex"
    packages = (install.Package("@openai/codex", "0.171.0"),)
    moves = (Move("CODEX_HOME", {".codex": ""}),)
    lingers_seconds = LINGERS_SECONDS
    tells_directory_at_launch = False
    # The log of what terminals opened is written seconds later, and is believed once it is sure to be.
    settle_seconds = 20
    switches = ()
    # Names of its program that a check has given it.
    other_names = ()

    def argv(self, *arguments):
        return [self.binary, *self.switches, *arguments]

    def program(self):
        """Returns the file that holds the native program, which its command starts."""
        package = os.path.dirname(os.path.dirname(os.path.realpath(self.binary)))
        found = glob.glob(os.path.join(os.path.dirname(package), "codex-*", "vendor", "*", "bin", "codex"))
        if len(found) != 1:
            raise SuiteFault(f"not one native program of Codex beside {package}: {found}")
        return found[0]

    def headless_argv(self, prompt):
        return [self.binary, "exec", "--skip-git-repo-check", prompt]

    def configure(self, world, directories):
        os.makedirs(world.in_home(".codex"), mode=0o700, exist_ok=True)
        trust = "".join(f'\n[projects."{directory}"]\ntrust_level = "trusted"\n' for directory in directories)
        with open(world.in_home(".codex", "config.toml"), "w") as file:
            file.write(CONFIGURATION.format(url=world.model_url) + trust)
        world.outside.append(lambda: sockets_outside(world))

    def variables(self, world):
        return {"MOCK_API_KEY": "sk-mock"}

    def is_ready(self, pane):
        return pane.shows("? for shortcuts") and pane.shows("gpt-5-codex default ·")

    def asks_permission(self, pane):
        return pane.shows("Would you like to run the following command?")

    def trust_hooks(self, pane):
        # It asks where hooks are new or changed; the answer is kept in its configuration.
        def asks_or_is_ready():
            return self.is_ready(pane) or pane.shows(REVIEW)
        wait.until("the review of hooks", asks_or_is_ready, REVIEW_SECONDS, wait.SLOW_STEP_SECONDS)
        if pane.shows(REVIEW):
            wait.until("the second answer", lambda: self._chose_second(pane), REVIEW_SECONDS, KEY_STEP_SECONDS)
            pane.key("Enter")

    def _chose_second(self, pane):
        """Moves to the second answer; a key pressed as the screen is drawn may be lost."""
        if pane.shows("› 1. Review hooks"):
            pane.key("Down")
        return pane.shows("› 2. Trust all")

    def process_below(self, pid):
        candidates = [processes.read(pid), *processes.descendants(pid)]
        return next((one for one in candidates if one and self.is_named(one)
                     and one.argv[1:2] != ("app-server",)), None)

    def is_named(self, process):
        """Whether a process is Codex's native program."""
        return os.path.basename(process.exe) == "codex" or any(
            other in process.argv[:2] for other in self.other_names)

    def daemon(self, world):
        """Returns the shared daemon of this world, or None."""
        return next((one for one in world.started() if "--managed-daemon" in one.argv), None)

    def held_by(self, world, process):
        """Returns the threads whose lock this process holds."""
        held = set()
        for path in processes.locked_by(process.pid):
            folder, name = os.path.split(path)
            if folder == world.in_home(".codex", "thread-writer-locks") and not name.startswith("."):
                held.add(name[:-len(LOCK_SUFFIX)])
        return frozenset(held)

    def sessions_before(self, world):
        daemon = self.daemon(world)
        return self.held_by(world, daemon) if daemon else frozenset()

    def session_of(self, run, before):
        owner = self.owner_of(run)
        new = self.held_by(run.world, owner) - before if owner else frozenset()
        return next(iter(new)) if len(new) == 1 else None

    def session_that_heard(self, world, model, text):
        asked = model.asked(text)
        return asked[-1].headers.get("thread-id") if asked else None

    def owner_of(self, run):
        return self.daemon(run.world)

    def client_of(self, run):
        return run.process

    def is_held(self, run):
        daemon = self.daemon(run.world)
        return daemon is not None and run.session in self.held_by(run.world, daemon)

    def resume_arguments(self, session):
        return ("resume", session)

    def continue_arguments(self):
        return ("resume", "--last")

    def own_checks(self):
        from agents import codex_checks
        return codex_checks.DAEMON_CHECKS


class CodexAlone(Codex):
    """Codex with no daemon: its TUI serves its own threads."""

    name = "codex-alone"
    lingers_seconds = 0
    tells_directory_at_launch = True
    settle_seconds = Agent.settle_seconds
    switches = ("--disable", "daemon_auto_start")

    def sessions_before(self, world):
        held = [self.held_by(world, one) for one in world.started() if self.is_named(one)]
        return frozenset().union(*held)

    def owner_of(self, run):
        return run.process

    def client_of(self, run):
        return None

    def is_held(self, run):
        return False

    def resumes_alike(self):
        return False

    def own_checks(self):
        from agents import codex_checks
        return codex_checks.ALONE_CHECKS
