"""Asks the whosup binary, and reads its answer.

The suite knows whosup by its command line and its JSON only.
"""

import json
import os
import subprocess
from dataclasses import dataclass

LOOK_SECONDS = 60
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


class BadAnswer(Exception):
    """whosup failed, or what it printed is not its JSON."""


@dataclass
class Look:
    """One answer of `whosup list --json`."""

    sessions: list
    unattributed: list
    problems: list

    def rows(self, session):
        """Returns the rows of one session id."""
        return [row for row in self.sessions if row.get("session_id") == session]

    def live(self, session):
        """Returns the live row of one session id, or None."""
        return next((row for row in self.rows(session) if row.get("liveness") == "live"), None)

    def unattributed_pids(self):
        """Returns the processes that are listed without a session."""
        return {entry.get("pid") for entry in self.unattributed}

    def live_of(self, pid):
        """Returns the live rows that name this process as owner or client."""
        return [row for row in self.sessions if row.get("liveness") == "live"
                and pid in (pid_in(row.get("owner")), pid_in(row.get("client")))]


def pid_in(process):
    """Returns the PID of an `owner` or `client` field, or None."""
    if isinstance(process, dict):
        return process.get("pid")
    return process if isinstance(process, int) else None


def pane_in(row):
    """Returns the pane id of a row, or None."""
    pane = row.get("pane")
    return pane.get("pane") if isinstance(pane, dict) else None


class Whosup:
    """The binary, run in one world: its home and its tmux server.

    A look at every session is one at those of one agent: the processes of others
    on this machine lead to their own homes, which may be of any size.
    """

    def __init__(self, binary, world, agent_id):
        self.binary = binary
        self.agent_id = agent_id
        self.variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        self.variables["HOME"] = world.home
        self.variables["TMUX"] = world.tmux.variable
        self.directory = world.root

    def run(self, *arguments):
        """Runs one whosup command and returns it when done, with its output."""
        try:
            return subprocess.run([self.binary, *arguments], env=self.variables, cwd=self.directory,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, errors="replace",
                                  timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BadAnswer(f"whosup {' '.join(arguments)}: no answer in {LOOK_SECONDS} s") from error

    def look(self, *options):
        """Returns the answer of `whosup list --json`."""
        if "--all" in options:
            options += ("--agent", self.agent_id)
        done = self.run("list", "--json", *options)
        if done.returncode != 0:
            raise BadAnswer(f"whosup list exited with {done.returncode}: {done.stderr.strip()[-400:]}")
        try:
            answer = json.loads(done.stdout)
            return Look(sessions=answer["sessions"], unattributed=answer["unattributed"], problems=answer["problems"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadAnswer(f"whosup list --json: {error!r} in {done.stdout[:200]!r}") from error
