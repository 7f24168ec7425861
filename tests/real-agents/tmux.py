"""A tmux server of the suite's own, and panes in it.

The server listens on a socket that only the suite knows (`-S`), reads no
configuration and is ended by `kill-server` on that socket alone.
"""

import os
import shlex
import subprocess

import wait

COMMAND_SECONDS = 20
SERVER_SECONDS = 15
WIDTH, HEIGHT = 150, 45


class TmuxError(Exception):
    """tmux is not there or refused a command."""


class Server:
    """One tmux server."""

    def __init__(self, socket, environment):
        self.socket = socket
        self.environment = environment
        self._foreground = None
        self._launched = False

    def start(self):
        """Starts the server; where a sandbox forbids a daemon, in the foreground of a child."""
        started = self._run("new-session", "-d", "-s", "main", "-x", str(WIDTH), "-y", str(HEIGHT),
                            "-n", "idle", "sleep", "86400")
        self._launched = True
        if started.returncode == 0:
            return
        self._foreground = subprocess.Popen(
            ["tmux", "-S", self.socket, "-f", "/dev/null", "-D"],
            env=self.environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait.until("tmux server in the foreground", lambda: os.path.exists(self.socket), SERVER_SECONDS)
        self.ask("new-session", "-d", "-s", "main", "-x", str(WIDTH), "-y", str(HEIGHT),
                 "-n", "idle", "sleep", "86400")

    def _run(self, *words, path=None):
        environment = dict(self.environment, PATH=path) if path else self.environment
        try:
            return subprocess.run(
                ["tmux", "-S", self.socket, "-f", "/dev/null", *words],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace", timeout=COMMAND_SECONDS)
        except FileNotFoundError as error:
            raise TmuxError("tmux is not installed") from error

    def ask(self, *words, path=None):
        """Runs one tmux command and returns what it printed."""
        done = self._run(*words, path=path)
        if done.returncode != 0:
            raise TmuxError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")

    @property
    def pid(self):
        return int(self.ask("display-message", "-p", "#{pid}"))

    @property
    def variable(self):
        """The value of TMUX for a command that runs inside this server."""
        return f"{self.socket},{self.pid},0"

    def open_pane(self, directory, environment):
        """Opens a window whose one pane runs an interactive shell in `directory`.

        A pane takes its PATH from the client that asked for it, whatever `-e`
        says (tmux 3.3a), so that one is given to the client.
        """
        words = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "-c", directory]
        for name, value in sorted(environment.items()):
            words += ["-e", f"{name}={value}"]
        words += ["bash", "--norc", "--noprofile", "-i"]
        pane = Pane(self, self.ask(*words, path=environment.get("PATH")))
        wait.until("shell in the pane", lambda: "$ " in pane.screen() + " ", SERVER_SECONDS,
                   wait.SLOW_STEP_SECONDS)
        return pane

    def stop(self):
        """Ends the server on this socket, with everything in its panes."""
        if not self._launched:
            return
        self._run("kill-server")
        if self._foreground is not None:
            try:
                self._foreground.wait(SERVER_SECONDS)
            except subprocess.TimeoutExpired:
                self._foreground.kill()
                self._foreground.wait(SERVER_SECONDS)


class Pane:
    """One pane, by tmux's own id (`%3`)."""

    def __init__(self, server, identifier):
        self.server = server
        self.id = identifier

    @property
    def shell_pid(self):
        return int(self.server.ask("display-message", "-p", "-t", self.id, "#{pane_pid}"))

    def screen(self):
        """Returns the visible text."""
        return self.server.ask("capture-pane", "-p", "-t", self.id)

    def shows(self, *texts):
        """Whether one of the texts is on the screen, however wide its gaps are."""
        seen = " ".join(self.screen().split())
        return any(" ".join(text.split()) in seen for text in texts)

    def key(self, *names):
        """Presses keys by their tmux names."""
        self.server.ask("send-keys", "-t", self.id, *names)

    def text(self, text):
        """Types text, without Enter."""
        self.server.ask("send-keys", "-t", self.id, "-l", text)

    def command(self, argv):
        """Types a command line into the pane's shell and starts it."""
        self.text(" ".join(map(shlex.quote, argv)))
        self.key("Enter")

    def close(self):
        """Closes the pane as `kill-pane` does: SIGHUP to what runs in it."""
        self.server.ask("kill-pane", "-t", self.id)
