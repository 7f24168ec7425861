"""What an agent of this suite is, and one running copy of it in a pane."""

import os
import signal
import time
import uuid
from dataclasses import dataclass
from typing import Optional

import install
import install_python
import newest
import processes
import wait

LAUNCH_SECONDS = 60
TYPE_SECONDS = 15
TURN_SECONDS = 45
# An agent that took Enter as part of a paste is given it once more after this.
ENTER_SECONDS = 4
STILL_SECONDS = 0.3
SCREEN_LINES_SHOWN = 12
# A key that is pressed as a question is drawn is not taken: it is pressed again after
# so long, for so long.
ANSWER_SECONDS, ANSWER_STEP_SECONDS = 30, 1.5


class SuiteFault(Exception):
    """The suite could not bring the agent where it wanted it; says nothing about whosup."""


@dataclass(frozen=True)
class Truth:
    """What is so, found out from the process tree and the agent's own doings, never from whosup."""

    # None where nothing tells it yet.
    session: Optional[str]
    owner: processes.Process
    directory: str
    client: Optional[processes.Process] = None
    pane: Optional[str] = None
    headless: bool = False
    # Whether its terminal has gone without it.
    detached: bool = False
    # A session that the process has left without a trace: it may still be shown.
    left: Optional[str] = None


@dataclass(frozen=True)
class Move:
    """A variable that moves an agent's files to the directory that it names."""

    variable: str
    # What lies below the home otherwise, and where it lies then below the directory.
    moved: dict
    # What whosup calls the home then, below the directory; None if the home stays.
    home: Optional[str] = ""


class Agent:
    """One column of the table: an agent, in one way of running it."""

    # The column's name, as typed on the command line.
    name = ""
    # The agent's id in whosup's answers.
    id = ""
    # Why this suite cannot run it; empty if it can.
    not_run = ""
    # The program that a person types.
    command = ""
    # The install script of its package, where that is run: it puts the binary of this machine in place of a stub.
    install_script = None
    # npm packages at the versions they are pinned to; the first is the agent.
    packages = ()
    # The package that its newer versions are published as, where that is another one.
    newest_name = ""
    # Why no other version than the pinned one is ever run; empty if any may be.
    stays_pinned = ""
    quit_command = "/exit"
    clear_command = "/clear"
    # How whosup may call the phase in which the model works or a human is asked.
    phases_working = ("working",)
    phases_waiting = ("waiting",)
    # How sure whosup must be of a running terminal program.
    confidences = ("proven", "consistent", "inferred")
    # How long a shared daemon keeps a session after its terminal program is gone.
    lingers_seconds = 0
    # Whether a session's directory is written down before its first prompt.
    tells_directory_at_launch = True
    # Whether a new session has an id before its first prompt.
    has_session_at_launch = True
    # Whether a session is on disk before its first answer.
    has_session_before_answer = True
    # Whether something tells, before a prompt, which session was continued without naming it.
    tells_continued = True
    # The same for a session that was named on the command line.
    tells_resumed = True
    # How long after one is ready another has to be launched in its directory so that something
    # tells which session each has. Where dates alone do, those of one moment are ambiguous.
    launches_apart_seconds = 1.0
    # Whether something tells which of two that were launched at one moment has which session.
    tells_launched_together = True
    # Why nothing need tell which session a process serves after `clear_command`: then the
    # new session is live or unknown, with the process among its candidates. Empty where
    # something tells.
    clear_is_undecided = ""
    # The same for the session of the one that lives on, of two in one directory.
    survivor_is_undecided = ""
    # Why nothing tells that a turn was interrupted: then it may be shown without a phase.
    interruption_is_untold = ""
    # What is pressed to interrupt a turn.
    interrupt_key = "Escape"
    # Whether one process may serve further sessions that its terminal does not show.
    holds_several = False
    # Whether what is typed just after it has drawn its screen may be lost.
    loses_early_typing = False
    # Whether whosup can set hooks in it.
    has_hooks = True
    # Whether its hooks tell that it asks for leave.
    hooks_tell_questions = True
    # How long it may take until its files tell of a moment what they tell.
    settle_seconds = 4
    # How long a person takes to prompt a new conversation, where a prompt that
    # comes at once looks like one of the command line.
    reads_seconds = 0
    # The ways in which a variable moves its files.
    moves = ()
    # Whether its process goes with its pane.
    ends_with_pane = True

    def take_newest(self):
        """Turns to the newest installable versions; returns what is to be said of that."""
        if self.stays_pinned:
            raise install.CannotInstall(f"it stays pinned: {self.stays_pinned}")
        first = self.packages[0]
        found, said = newest.npm(install.Package(self.newest_name or first.name, first.version))
        if found.name != first.name:
            said = "; ".join(filter(None, (f"newer versions are {found.name}", said)))
        # Further packages are parts of the first one, and have its version.
        self.packages = (found, *(install.Package(one.name, found.version) for one in self.packages[1:]))
        return said

    def install(self):
        """Installs what the agent needs, or raises `install.CannotInstall`."""
        folder = install.install(self.packages[0], self.install_script)
        self.binary = install.binary(folder, self.command)

    def search_path(self):
        """Returns the PATH the agent is started with; its own command is on it."""
        return os.path.dirname(self.argv()[0]) + os.pathsep + os.environ["PATH"]

    def argv(self, *arguments):
        """Returns the command line that a person would type."""
        return [self.binary, *arguments]

    def headless_argv(self, prompt):
        """Returns the command line that runs one prompt without a terminal."""
        return [self.binary, "-p", prompt]

    def configure(self, world, directories):
        """Writes the configuration that lets the agent start without an account or a question."""
        raise NotImplementedError

    def variables(self, world):
        """Returns the variables the agent is started with, beyond the world's own."""
        raise NotImplementedError

    def is_ready(self, pane):
        """Whether the agent waits for a prompt."""
        raise NotImplementedError

    def typed(self, text):
        """Returns how the screen shows this line while it is typed."""
        return text

    def is_new(self, pane):
        """Whether the screen shows a conversation without a prompt."""
        return self.is_ready(pane)

    def asks_permission(self, pane):
        """Whether the agent asks whether it may run a command."""
        raise NotImplementedError

    # The keys that allow a command this once.
    allow_keys = ("Enter",)

    def allow(self, pane):
        """Answers the question whether a command may be run: this once."""
        self.press_until("the question answered", pane, self.allow_keys,
                         lambda: not self.asks_permission(pane))

    def refuse(self, pane):
        """Answers that question: the command may not be run."""
        self.press_until("the question refused", pane, ("Escape",), lambda: not self.asks_permission(pane))

    def press_until(self, what, pane, keys, is_done):
        """Presses keys in turn, again and again, until `is_done`; none once it is."""
        def is_taken():
            for key in keys:
                if not is_done():
                    pane.key(key)
            return is_done()
        wait.until(what, is_taken, ANSWER_SECONDS, ANSWER_STEP_SECONDS)

    def process_below(self, pid):
        """Returns the agent's own program at or below `pid`, by the process tree, or None."""
        raise NotImplementedError

    def sessions_before(self, world):
        """Returns what `session_of` needs to tell a new session from those that were there."""
        return frozenset()

    def has_session_after_clear(self):
        """Whether the new session that `clear_command` makes has an id before its first prompt."""
        return self.has_session_at_launch

    def session_of(self, run, before):
        """Returns the session this run serves by the agent's own files, once settled, else None."""
        raise NotImplementedError

    def session_that_heard(self, world, model, text):
        """Returns the session whose model request or transcript holds `text`, or None."""
        raise NotImplementedError

    def owner_of(self, run):
        """Returns the process that serves the run's session."""
        return run.process

    def parts_of(self, run):
        """Returns the processes that go when this run ends."""
        return (run.process,)

    def headless_owner_below(self, pid):
        """Returns the process at or below `pid` that serves a session without a terminal, or None."""
        return self.process_below(pid)

    def client_of(self, run):
        """Returns the process with the terminal where that is another one than the owner."""
        return None

    def is_recorded(self, run):
        """Whether anything on disk tells of the run's session."""
        return True

    def is_held(self, run):
        """Whether a daemon still keeps the session of a run whose program is gone."""
        return False

    def resume_arguments(self, session):
        """Returns the arguments that resume a session by its id."""
        return ("--resume", session)

    def continue_arguments(self):
        """Returns the arguments that continue the newest session of the directory, or None."""
        return ("--continue",)

    def is_written(self, world, session):
        """Whether the session's last turn is on disk, so that it could be resumed after a crash."""
        return True

    def resumes_alike(self):
        """Whether the plain command that resumes a session runs the agent in this column's way."""
        return True

    def trust_hooks(self, pane):
        """Lets the agent run the hooks that were just set, where it asks."""

    def undecided_checks(self):
        """Returns the checks that expect `undecided` of this agent, with the reason."""
        reasons = (("cleared", self.clear_is_undecided), ("two-one-ends", self.survivor_is_undecided),
                   ("esc-in-turn", self.interruption_is_untold))
        return [(name, reason) for name, reason in reasons if reason]

    def own_checks(self):
        """Returns checks that only this agent has, as (name, what it proves, function)."""
        return ()

    def open(self, world, directory, *arguments, session=None):
        """Starts the agent in a new pane and returns the run once its session is settled.

        `session` is the id it is known to have (a resumed one).
        """
        return self.open_by(self.argv(*arguments), world, directory, session)

    def open_by(self, argv, world, directory, session=None):
        """Starts the agent by this command line in a new pane, as `open` does."""
        before = self.sessions_before(world) - {session}
        run = self.start(argv, world, directory)
        run.wait_ready()
        run.settle(before, session)
        return run

    def start(self, argv, world, directory):
        """Starts the agent in a new pane and returns the run at once: no process, no session yet."""
        variables = {"PATH": self.search_path(), **self.variables(world), **world.moving_variables}
        pane = world.tmux.open_pane(directory, variables)
        pane.command(argv)
        return Run(self, world, pane, directory)


class NodeScript(Agent):
    """An agent whose command is a script, which the Node.js of this suite runs."""

    def install(self):
        super().install()
        self.node = install.node_binary()

    def search_path(self):
        return os.path.dirname(self.node) + os.pathsep + super().search_path()


class PythonPackage(Agent):
    """An agent from PyPI."""

    def take_newest(self):
        if self.stays_pinned:
            raise install.CannotInstall(f"it stays pinned: {self.stays_pinned}")
        found, said = newest.pypi(self.packages[0])
        self.packages = (found,)
        return said

    def install(self):
        self.binary = install_python.binary(self.packages[0], self.command)


class Run:
    """One running copy of an agent in a pane."""

    def __init__(self, agent, world, pane, directory):
        self.agent = agent
        self.world = world
        self.pane = pane
        self.directory = directory
        self.process = None
        self.session = None
        self.left = None

    def wait_ready(self):
        """Waits until the agent waits for a prompt, and notes its process."""
        try:
            wait.until(f"{self.agent.name} ready for a prompt", lambda: self.agent.is_ready(self.pane),
                       LAUNCH_SECONDS, wait.SLOW_STEP_SECONDS)
        except wait.Interrupted:
            raise
        except wait.NotSeen as error:
            raise SuiteFault(f"{error}; {self.screen_end()}") from error
        self.process = wait.until(f"process of {self.agent.name}",
                                  lambda: self.agent.process_below(self.pane.shell_pid), LAUNCH_SECONDS)

    def screen_end(self):
        """Returns the last lines of the screen, for a report."""
        lines = [line.strip() for line in self.pane.screen().splitlines() if line.strip()]
        return f"its screen ends: {' / '.join(lines[-SCREEN_LINES_SHOWN:])}"

    def settle(self, before, session=None):
        """Waits until the agent's own files tell which session this is, if there is one yet."""
        if session is None and not self.agent.has_session_at_launch:
            return

        def look():
            found = self.agent.session_of(self, before)
            return found if found and session in (None, found) else None
        self.session = wait.until(f"session of {self.agent.name}", look, LAUNCH_SECONDS)

    def truth(self):
        """Returns what is so now."""
        session = self.session if self.session and self.agent.is_recorded(self) else None
        return Truth(session=session, owner=self.agent.owner_of(self), directory=self.directory,
                     client=self.agent.client_of(self), pane=self.pane.id, left=self.left)

    def enter(self, text):
        """Types a line, waits until the screen shows it and stands still, and presses Enter."""
        self.pane.text(text)
        if self.agent.loses_early_typing:
            self._type_again_if_lost(text)
        wait.until(f"`{text}` on the screen", lambda: self._shows_typed(text), TYPE_SECONDS, wait.SLOW_STEP_SECONDS)
        self._wait_still()
        self.pane.key("Enter")

    def _shows_typed(self, text):
        return self.pane.shows(text, self.agent.typed(text))

    def _type_again_if_lost(self, text):
        """Types a line once more that was lost, or that only the terminal showed before the agent read it."""
        try:
            wait.until("the text", lambda: self._shows_typed(text), ENTER_SECONDS, wait.SLOW_STEP_SECONDS)
            self._wait_still()
        except wait.NotSeen:
            pass
        if not self._shows_typed(text):
            # A part of it may be there.
            self.pane.key("C-u")
            self.pane.text(text)

    def _wait_still(self):
        last = [None]

        def stands_still():
            before, last[0] = last[0], self.pane.screen()
            return before == last[0]
        wait.until("a screen that stands still", stands_still, TYPE_SECONDS, STILL_SECONDS)

    def start_turn(self, model, text):
        """Enters a prompt and returns once the model was asked."""
        self.enter(text)
        try:
            wait.until("the model asked", lambda: model.asked(text), ENTER_SECONDS)
        except wait.NotSeen:
            self.pane.key("Enter")
            wait.until("the model asked", lambda: model.asked(text), TURN_SECONDS)

    def say(self, model, words="say something"):
        """Makes one whole turn, and makes sure that this run's session heard it."""
        text = f"{words} {new_mark()}"
        answers = model.answers_to(text)
        self.start_turn(model, text)
        wait.until("the model's answer", lambda: model.answers_to(text) > answers, TURN_SECONDS)
        self.check_heard(model, text)
        wait.until("ready after the turn", lambda: self.agent.is_ready(self.pane), TURN_SECONDS,
                   wait.SLOW_STEP_SECONDS)

    def check_heard(self, model, text):
        """Makes sure that the text went to the session that this run is held to serve."""
        heard = wait.until("the session that heard the prompt",
                           lambda: self.agent.session_that_heard(self.world, model, text), TURN_SECONDS)
        if self.session is None:
            self.session, self.left = heard, None
        if heard != self.session:
            raise SuiteFault(f"{self.agent.name}: {heard} heard the prompt, not {self.session}")

    def clear(self):
        """Leaves the conversation for a new one; returns the id that was left."""
        left = self.session
        before = self.agent.sessions_before(self.world)
        self.enter(self.agent.clear_command)
        if not self.agent.has_session_after_clear():
            self.session, self.left = None, left
            wait.until("a new conversation", lambda: self.agent.is_new(self.pane), TURN_SECONDS,
                       wait.SLOW_STEP_SECONDS)
            shown = time.monotonic()
            wait.until("a person to have read it", lambda: time.monotonic() > shown + self.agent.reads_seconds,
                       TURN_SECONDS)
            return left
        def has_left():
            return self.agent.session_of(self, before) not in (None, left)
        try:
            wait.until("another session after /clear", has_left, TYPE_SECONDS)
        except wait.NotSeen:
            if self.agent.loses_early_typing:
                self.enter(self.agent.clear_command)
            try:
                wait.until("another session after /clear", has_left, LAUNCH_SECONDS)
            except wait.NotSeen as error:
                raise SuiteFault(f"{error}; {self.screen_end()}") from error
        self.session = self.agent.session_of(self, before)
        return left

    def quit(self):
        """Ends the agent as a person does."""
        parts = self.agent.parts_of(self)
        self.enter(self.agent.quit_command)
        if self.agent.loses_early_typing:
            try:
                wait.until("its end", lambda: not any(map(processes.is_running, parts)), TYPE_SECONDS)
            except wait.NotSeen:
                self.enter(self.agent.quit_command)
        self.wait_gone(parts)

    def signal(self, number):
        """Signals the agent's own program."""
        parts = self.agent.parts_of(self)
        processes.send(self.process, number)
        self.wait_gone(parts)

    def kill(self):
        """Ends the agent's own program with SIGKILL."""
        self.signal(signal.SIGKILL)

    def close_pane(self):
        """Closes the pane the agent runs in."""
        parts = self.agent.parts_of(self)
        self.pane.close()
        self.wait_gone(parts)

    def wait_gone(self, parts):
        """Waits until the agent's own program has ended, with all that goes with it."""
        wait.until(f"{self.agent.name} ended", lambda: not any(map(processes.is_running, parts)),
                   LAUNCH_SECONDS)


def new_mark():
    """Returns a word that occurs nowhere else."""
    return "mark-" + uuid.uuid4().hex[:10]
