"""A world of its own for one agent: home, projects, tmux server; all of it ended and removed after.

Every process that is started here inherits one variable (`MARK`) with a value
that no other process has. At the end whatever still carries it, daemons that
left their terminal included, is ended by PID.
"""

import os
import shutil
import subprocess
import tempfile
import uuid

import processes
import tmux

MARK = "WHOSUP_REAL_AGENTS_WORLD"
# Kept short: sockets lie beneath it and their paths may hold 107 bytes only.
PREFIX = "wra-"
# Nothing may leave the machine: every proxy variable names a port nobody listens on.
NOWHERE = "http://127.0.0.1:9"
LOOPBACK = "127.0.0.1,localhost,::1"
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "USER", "LOGNAME")
LEFT_OVER_ROUNDS = 5


class World:
    """One home with its projects and its tmux server; use with `with`."""

    def __init__(self, model_url, keep=False):
        self.model_url = model_url
        self.keep = keep
        self.root = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX))
        self.mark = uuid.uuid4().hex
        # What a variable of the agent's own has moved: from below the home to where.
        self._moved = {}
        # That variable, for agents that are started.
        self.moving_variables = {}
        self.home = self._folder("home")
        # Functions that return paths outside the root which an agent made and which go with it.
        self.outside = []
        self.variables = self._base_variables()
        self.tmux = tmux.Server(os.path.join(self._folder("tmux"), "s"), self.variables)

    def _folder(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def _base_variables(self):
        variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        variables.setdefault("LANG", "C.UTF-8")
        variables.update({
            MARK: self.mark,
            "HOME": self.home,
            "TMPDIR": self._folder("tmp"),
            "SHELL": "/bin/bash",
            "PS1": "$ ",
            "BASH_SILENCE_DEPRECATION_WARNING": "1",
        })
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            variables[name] = variables[name.lower()] = NOWHERE
        variables["NO_PROXY"] = variables["no_proxy"] = LOOPBACK
        return variables

    def __enter__(self):
        try:
            self.tmux.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def project(self, name):
        """Makes a project directory, a Git repository, and returns its path."""
        path = os.path.join(self._folder("w"), name)
        if not os.path.isdir(path):
            os.makedirs(path)
            subprocess.run(["git", "init", "-q", "-b", "main", path], env=self.variables, check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return path

    def in_home(self, *parts):
        """Returns where that is which lies below the home if nothing moves it."""
        path = os.path.join(*parts)
        for below, to in self._moved.items():
            if path == below or path.startswith(below + os.sep):
                return os.path.normpath(os.path.join(to, os.path.relpath(path, below)))
        return os.path.join(self.home, path)

    def move(self, move):
        """Lets a variable move files, in the environment of agents alone; returns the directory."""
        root = self._folder(move.variable.lower())
        self._moved = {below: os.path.join(root, to) for below, to in move.moved.items()}
        self.moving_variables = {move.variable: root}
        return root

    def unset_variables(self):
        """Starts agents without the variable that has moved their files, which stay there."""
        self.moving_variables = {}

    def start(self, argv, directory, variables, output):
        """Starts a program without a terminal; what it prints goes to the file `output` in the root."""
        with open(os.path.join(self.root, output), "ab") as file:
            return subprocess.Popen(argv, cwd=directory, env={**self.variables, **variables},
                                    stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                    start_new_session=True)

    def started(self):
        """Returns the running processes that were started in this world."""
        return [one for one in processes.everything().values()
                if one.is_running and processes.environment_value(one.pid, MARK) == self.mark]

    def close(self):
        """Ends what runs here and removes the root; says what could not be ended."""
        outside = [path for find in self.outside for path in find()]
        self.tmux.stop()
        left = self.started()
        for _ in range(LEFT_OVER_ROUNDS):
            if not left:
                break
            processes.end(left)
            left = self.started()
        if left:
            raise RuntimeError("still running: " + ", ".join(str(one.pid) for one in left))
        if self.keep:
            return
        for path in outside:
            try:
                os.unlink(path)
            except OSError:
                pass
        shutil.rmtree(self.root, ignore_errors=True)
