"""The checks that every agent must pass, one table.

Each check gets a stage of its own: a world with one home and two projects, the
mock model and whosup in that world. It returns if whosup says the truth and
raises `expect.Failed` otherwise.
"""

import hashlib
import os
import signal
import stat
import time
from dataclasses import dataclass, replace

import expect
import processes
import wait
from agents.agent import Run, Truth, new_mark
from whosup import Whosup

HELD_SECONDS = 45
# How long a tool runs, so that several looks fall into it.
TOOL_SECONDS = 6
FILES_MAX = 20000
HASHED_BYTES_MAX = 8 * 1024 * 1024
QUIET_SECONDS = 1.5
QUIET_WITHIN_SECONDS = 40
# How long after an agent's end what it started last may be there.
EXIT_SECONDS = 5
UNCHANGED_TRIES = 4
APART_SECONDS = 1.0
PROJECTS = ("app", "other")


@dataclass
class Stage:
    """All that one check may use."""

    agent: object
    world: object
    model: object
    whosup: Whosup

    @property
    def app(self):
        return self.world.project(PROJECTS[0])

    @property
    def other(self):
        return self.world.project(PROJECTS[1])

    def look(self, *options):
        """Asks whosup for its list."""
        return self.whosup.look(*options)

    def open(self, *arguments, directory=None, session=None):
        """Starts the agent in a pane."""
        return self.agent.open(self.world, directory or self.app, *arguments, session=session)

    def prompted(self, *arguments, directory=None):
        """Starts the agent in a pane and makes one turn."""
        run = self.open(*arguments, directory=directory)
        run.say(self.model)
        return run


def launched(stage):
    """A session that nobody has prompted yet is live: id, process, directory, pane."""
    run = stage.open()
    expect.live(stage, run.truth(), stage.agent.tells_directory_at_launch)


def prompted(stage):
    """After the first turn it is still that session, and idle; no file of the agent's is a problem."""
    run = stage.prompted()
    expect.live(stage, run.truth())
    expect.phase(stage, run.session, ("idle",))
    expect.no_problems(stage)


def working(stage):
    """While the model is silent in the middle of a turn the session is live and not idle."""
    run = stage.prompted()
    mark = new_mark()
    run.start_turn(stage.model, f"hold-turn{{{mark}}}")
    wait.until("a held turn", lambda: stage.model.is_held(mark), HELD_SECONDS)
    expect.live(stage, run.truth())
    expect.phase(stage, run.session, stage.agent.phases_working)
    stage.model.release(mark)
    wait.until("ready after the turn", lambda: stage.agent.is_ready(run.pane), HELD_SECONDS,
               wait.SLOW_STEP_SECONDS)
    expect.phase(stage, run.session, ("idle",))


def permission(stage):
    """While the agent asks whether it may run a command the session is live and not idle."""
    run = stage.prompted()
    run.start_turn(stage.model, f"run-tool{{touch {new_mark()}}}")
    wait.until("the question", lambda: stage.agent.asks_permission(run.pane), HELD_SECONDS,
               wait.SLOW_STEP_SECONDS)
    expect.live(stage, run.truth())
    expect.phase(stage, run.session, stage.agent.phases_waiting)


def allowed(stage):
    """While a command runs that a person has allowed the session is working, not waiting any more."""
    run = stage.prompted()
    run.start_turn(stage.model, f"run-tool{{touch {new_mark()}; sleep {TOOL_SECONDS}}}")
    wait.until("the question", lambda: stage.agent.asks_permission(run.pane), HELD_SECONDS,
               wait.SLOW_STEP_SECONDS)
    stage.agent.allow(run.pane)
    wait.until("the question gone", lambda: not stage.agent.asks_permission(run.pane), HELD_SECONDS,
               wait.SLOW_STEP_SECONDS)
    expect.phase(stage, run.session, stage.agent.phases_working)
    expect.live(stage, run.truth())
    # Its screen may look ready all the while.
    expect.phase(stage, run.session, ("idle",), HELD_SECONDS)


def cleared(stage):
    """`/clear`: at every moment one session per terminal; the new id live at once (undecided where nothing tells)."""
    run = stage.prompted()
    expect.live(stage, run.truth())
    terminal = run.process
    with expect.Watch(stage) as watch:
        old = run.clear()
    watch.never_two(terminal, (old, run.session))
    watch.never_back(terminal, old, run.session)
    watch.always_accounted(terminal)
    current_after_clear(stage, run, stage.agent.tells_directory_at_launch)
    run.say(stage.model)
    current_after_clear(stage, run)
    left_by(stage, run, old)


def current_after_clear(stage, run, directory_known=True):
    """Fails unless the session that `/clear` made is live, or undecided where nothing need tell whose it is."""
    if run.session is not None and stage.agent.clear_is_undecided:
        expect.undecided(stage, run.truth())
    else:
        expect.live(stage, run.truth(), directory_known)


def left_by(stage, run, old):
    """Fails if the session that the run has left is live in its process."""
    look = stage.look("--all")
    row = look.live(old)
    if row is None:
        return
    held = Run(stage.agent, run.world, run.pane, run.directory)
    held.session = old
    if not stage.agent.is_held(held):
        raise expect.Failed(f"session {old} was left, but is live | {expect.shown(look, old)}")
    if row.get("client") is not None:
        raise expect.Failed(f"session {old} was left, but has a client | {expect.shown(look, old)}")


def resumed(stage):
    """A session resumed by its id lives in the new process."""
    first = stage.prompted()
    first.quit()
    again = stage.open(*stage.agent.resume_arguments(first.session), session=first.session)
    live_again(stage, again, stage.agent.tells_resumed)
    again.say(stage.model)
    expect.live(stage, again.truth())


def continued(stage):
    """The newest session of a directory, continued without naming it, lives in the new process."""
    arguments = stage.agent.continue_arguments()
    if arguments is None:
        raise expect.Skipped("it has no option to continue the newest session")
    first = stage.prompted()
    first.quit()
    with expect.Watch(stage) as watch:
        again = stage.open(*arguments, session=first.session)
    for look in watch.looks:
        for row in look.live_of(first.process.pid):
            raise expect.Failed(f"{row.get('session_id')} is live in {first.process.pid}, which has ended")
    live_again(stage, again, stage.agent.tells_continued)
    again.say(stage.model)
    expect.live(stage, again.truth())


def live_again(stage, run, is_told):
    """Fails unless a session is live, or undecided where nothing need tell whose it is."""
    if is_told:
        expect.live(stage, run.truth())
    else:
        expect.live_or_undecided(stage, run.truth())


def headless(stage):
    """A run without a terminal is live while it runs, marked so, and exited after."""
    headless_run(stage)


def headless_run(stage):
    """Makes one run without a terminal, checks it, and returns the session it leaves."""
    mark = new_mark()
    prompt = f"now hold-turn{{{mark}}}"
    agent = stage.agent
    variables = {**agent.variables(stage.world), **stage.world.moving_variables}
    started = stage.world.start(agent.headless_argv(prompt), stage.app, variables, "headless")
    wait.until("a held turn", lambda: stage.model.is_held(mark), HELD_SECONDS)
    process = agent.headless_owner_below(started.pid)
    def heard():
        return agent.session_that_heard(stage.world, stage.model, prompt)
    session = wait.until("its session", heard, HELD_SECONDS) if agent.has_session_before_answer else None
    truth = Truth(session=session, owner=process, directory=stage.app, headless=True)
    # An agent may publish no PID here; then the pairing is inferred.
    expect.live(stage, truth, confidences=("proven", "consistent", "inferred"))
    stage.model.release(mark)
    started.wait(HELD_SECONDS)
    wait.until("the headless run ended", lambda: not processes.is_running(process), HELD_SECONDS)
    session = session or wait.until("its session", heard, HELD_SECONDS)
    expect.not_live(stage, session, (process,))
    return session


def resume_command(stage):
    """The command that whosup gives for a session that was killed brings that session back."""
    if not stage.agent.resumes_alike():
        raise expect.Skipped("its plain command runs it in another way")
    if stage.agent.lingers_seconds:
        session = headless_run(stage)
    else:
        run = stage.prompted()
        wait.until("the turn on disk", lambda: stage.agent.is_written(stage.world, run.session), HELD_SECONDS)
        run.kill()
        session = run.session
    look = stage.look("--all")
    row = next(iter(look.rows(session)), None)
    command = row.get("resume") if row else None
    if not command or command.get("cwd") != stage.app:
        raise expect.Failed(f"resume is {command} | {expect.shown(look, session)}")
    again = stage.agent.open_by(command["argv"], stage.world, command["cwd"], session)
    live_again(stage, again, stage.agent.tells_resumed)
    again.say(stage.model)
    expect.live(stage, again.truth())


def moved_home(stage):
    """In a home that the agent's process alone knows of: found there, and brought back there by the given command."""
    if not stage.agent.moves:
        raise expect.Skipped("no variable moves its home")
    for move in stage.agent.moves:
        _moved_by(stage, move)


def _moved_by(stage, move):
    agent, world = stage.agent, stage.world
    root = world.move(move)
    agent.configure(world, [world.project(name) for name in PROJECTS])
    headless_run(stage)
    run = stage.prompted()
    expect.live(stage, run.truth())
    home = None if move.home is None else os.path.normpath(os.path.join(root, move.home))
    look = stage.look()
    if look.live(run.session).get("home") != home:
        raise expect.Failed(f"its home is {home} | {expect.shown(look, run.session)}")
    wait.until("the turn on disk", lambda: agent.is_written(world, run.session), HELD_SECONDS)
    if agent.lingers_seconds or not agent.resumes_alike():
        return
    run.kill()
    # No process leads there any more.
    stage.whosup.variables[move.variable] = root
    look = stage.look("--all")
    row = next(iter(look.rows(run.session)), None)
    command = (row and row.get("resume")) or {}
    if command.get("env") != {move.variable: root}:
        raise expect.Failed(f"resume is {command} | {expect.shown(look, run.session)}")
    del stage.whosup.variables[move.variable]
    argv = ["env", *(f"{name}={value}" for name, value in command["env"].items()), *command["argv"]]
    world.unset_variables()
    again = agent.open_by(argv, world, command["cwd"], run.session)
    again.say(stage.model)
    expect.live(stage, again.truth())


def two_in_one_directory(stage):
    """Two in one directory are never swapped: launched, prompted, and after one's `/clear`."""
    one, two = stage.open(), stage.open()
    with expect.Watch(stage) as watch:
        one.say(stage.model)
        two.say(stage.model)
        old = one.clear()
        one.say(stage.model)
    watch.never_two(one.process, (old, one.session))
    watch.never_two(two.process, (two.session,))
    watch.always_accounted(one.process)
    watch.always_accounted(two.process)
    two.say(stage.model)
    look = stage.look()
    for run in (one, two):
        ids = {row.get("session_id") for row in look.live_of(run.process.pid)}
        if ids - {run.session}:
            raise expect.Failed(f"process {run.process.pid} has {ids}, not {run.session} | {expect.shown(look)}")


def two_launched(stage):
    """Two launched one after the other in one directory are each shown with their process and pane."""
    one = stage.open()
    second_at = time.monotonic() + stage.agent.launches_apart_seconds
    wait.until("time between the launches", lambda: time.monotonic() > second_at, HELD_SECONDS)
    two = stage.open()
    known = stage.agent.tells_directory_at_launch
    expect.live(stage, one.truth(), known)
    expect.live(stage, two.truth(), known)


def two_prompted(stage):
    """The same two, once each has had a turn, the younger one first."""
    one, two = stage.open(), stage.open()
    two.say(stage.model)
    one.say(stage.model)
    for run in (one, two):
        live_again(stage, run, stage.agent.tells_launched_together)


def ended(stage, end):
    """Fails unless a session that was ended in this way is not live any more, and the others are."""
    run, other = stage.prompted(), stage.prompted(directory=stage.other)
    owner = stage.agent.owner_of(run)
    expect.live(stage, run.truth())
    end(run)
    if stage.agent.lingers_seconds:
        expect.lingering(stage, run, owner, (run.process,))
    else:
        expect.not_live(stage, run.session, (run.process,))
    expect.live(stage, other.truth())


def quit_by_user(stage):
    """After a clean exit the session is not live."""
    ended(stage, Run.quit)


def terminated(stage):
    """After SIGTERM to the agent the session is not live."""
    ended(stage, lambda run: run.signal(signal.SIGTERM))


def killed(stage):
    """After SIGKILL of the agent the session is not live."""
    ended(stage, lambda run: run.signal(signal.SIGKILL))


def pane_closed(stage):
    """After its pane was closed the session is not live; live without a pane where the agent lives on."""
    if stage.agent.ends_with_pane:
        ended(stage, Run.close_pane)
    else:
        outlived(stage)


def outlived(stage):
    """Closes the pane of an agent that lives on: live without a pane, and not live once it has ended."""
    # In place of the pane's shell, which would end it.
    run = stage.agent.open_by(["exec", *stage.agent.argv()], stage.world, stage.app)
    run.say(stage.model)
    other = stage.prompted(directory=stage.other)
    expect.live(stage, run.truth())
    run.pane.close()
    wait.until("its terminal gone", lambda: not _has_terminal(run.process), HELD_SECONDS)
    wait.holds_for("alive without its pane", lambda: processes.is_running(run.process), APART_SECONDS)
    truth = replace(run.truth(), pane=None, detached=True)
    expect.live(stage, truth)
    expect.live(stage, other.truth())
    run.signal(signal.SIGTERM)
    expect.not_live(stage, run.session, (run.process,))
    expect.live(stage, other.truth())


def _has_terminal(process):
    now = processes.read(process.pid)
    return now is not None and now.tty != 0


def commands(stage):
    """`check`, `pid`, `show` and `why` say of a session what the list says, live and exited."""
    run = stage.prompted()
    expect.live(stage, run.truth())
    owner = stage.agent.owner_of(run)
    _command(stage, ("check", run.session), 0)
    _command(stage, ("pid", run.session), 0, str(owner.pid))
    _command(stage, ("show", run.session), 0, run.session)
    _command(stage, ("why", run.session), 0, str(owner.pid))
    run.quit()
    if stage.agent.lingers_seconds:
        return
    wait.until("`check` to say that it has exited", lambda: _has_exited(stage, run.session), EXIT_SECONDS)
    _command(stage, ("check", "0" * 8 + run.session[8:]), 4)


def _has_exited(stage, session):
    """What an agent starts while it ends may keep it unknown for a moment; never live."""
    done = stage.whosup.run("check", session)
    if done.returncode not in (1, 3):
        raise expect.Failed(f"whosup check {session} exited with {done.returncode} after its end and said "
                            f"{(done.stdout + done.stderr).strip()[:300]!r}")
    return done.returncode == 1


def _command(stage, words, status, text=""):
    done = stage.whosup.run(*words)
    if done.returncode != status or text not in done.stdout:
        raise expect.Failed(f"whosup {' '.join(words)} exited with {done.returncode} and said "
                            f"{(done.stdout + done.stderr).strip()[:300]!r}; wanted {status} and {text!r}")


def unchanged(stage):
    """Looking changes nothing: no file of the home is made, removed or rewritten by it."""
    run = stage.prompted()
    differing = set()
    for _ in range(UNCHANGED_TRIES):
        before = _when_quiet(stage)
        for words in (("list", "--json"), ("list", "--json", "--all", "--agent", stage.agent.id), ("show", run.session),
                      ("why", run.session), ("agents",)):
            stage.whosup.run(*words)
        after = files_below(stage.world.home)
        differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        if not differing:
            return
    raise expect.Failed("changed by looking: " + ", ".join(sorted(differing)[:8]))


def _when_quiet(stage):
    """Returns the home's files once the agent has stopped writing for a while."""
    last = [None]

    def is_quiet():
        before, last[0] = last[0], files_below(stage.world.home)
        return before == last[0]
    wait.until("a quiet home", is_quiet, QUIET_WITHIN_SECONDS, QUIET_SECONDS)
    return last[0]


def files_below(root):
    """Returns what is below `root`: path -> kind, mode, size, change time and digest."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "packages"]
        for name in folders + names:
            path = os.path.join(folder, name)
            try:
                one = os.lstat(path)
            except OSError:
                continue
            digest = _digest(path) if stat.S_ISREG(one.st_mode) and one.st_size <= HASHED_BYTES_MAX else None
            found[path] = (one.st_mode, one.st_size, one.st_mtime_ns, one.st_ino, digest)
            if len(found) >= FILES_MAX:
                return found
    return found


def _digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(HASHED_BYTES_MAX)).hexdigest()
    except OSError:
        return None


CHECKS = (
    ("launched", launched),
    ("prompted", prompted),
    ("working", working),
    ("permission", permission),
    ("allowed", allowed),
    ("cleared", cleared),
    ("resumed", resumed),
    ("continued", continued),
    ("headless", headless),
    ("resume-command", resume_command),
    ("moved-home", moved_home),
    ("two-never-swapped", two_in_one_directory),
    ("two-launched", two_launched),
    ("two-prompted", two_prompted),
    ("clean-exit", quit_by_user),
    ("sigterm", terminated),
    ("sigkill", killed),
    ("pane-closed", pane_closed),
    ("commands", commands),
    ("unchanged", unchanged),
)
