"""Compares whosup's answer with the truth, and says in words where they differ."""

import json
import threading

import wait
from whosup import pane_in, pid_in

# The truth is settled before whosup is asked; this is only for a loaded machine.
SETTLE_SECONDS = 4
# How long "never live" is watched after an end.
WATCH_SECONDS = 1.0
ROWS_SHOWN = 4
FIELDS_SHOWN = ("home", "agent", "session_id", "liveness", "reason", "confidence", "phase", "owner", "owner_shared",
                "client", "client_ambiguous", "detached", "headless", "work_dir", "pane", "superseded_by")


class Failed(Exception):
    """whosup's answer is not the truth."""


class Skipped(Exception):
    """The check has no sense for this agent or machine; says why."""


def shown(look, session=None):
    """Returns the rows of a look in short, for a failure message; this world's own come first."""
    rows = look.rows(session) if session else sorted(look.sessions, key=lambda row: row.get("home") is not None)
    short = [{name: row.get(name) for name in FIELDS_SHOWN if row.get(name) not in (None, False)}
             for row in rows[:ROWS_SHOWN]]
    for row in short:
        for name in ("owner", "client", "pane"):
            if isinstance(row.get(name), dict):
                row[name] = row[name].get("pane") or row[name].get("pid")
    processes = [{name: entry.get(name) for name in ("agent", "pid", "work_dir", "candidates", "reason")}
                 for entry in look.unattributed[:ROWS_SHOWN]]
    return json.dumps({"rows": short, "unattributed": processes, "problems": look.problems[:ROWS_SHOWN]})


def differences(look, truth, agent, directory_known=True, confidences=None):
    """Returns in sentences what is wrong about the live row of this session; none if it is right."""
    row = look.live(truth.session)
    if row is None:
        rows = look.rows(truth.session)
        said = ", ".join(f"{one.get('liveness')} ({one.get('reason')})" for one in rows) or "not listed"
        return [f"session {truth.session} is {said}, but lives in process {truth.owner.pid}"]
    wrong = []
    if len(look.rows(truth.session)) > 1:
        wrong.append(f"session {truth.session} has {len(look.rows(truth.session))} rows")
    wrong += _wrong_process(row, "owner", truth.owner)
    wrong += _wrong_process(row, "client", truth.client)
    wrong += _wrong_fields(row, truth, agent, directory_known)
    sure = confidences or agent.confidences
    if row.get("confidence") not in sure:
        wrong.append(f"confidence is {row.get('confidence')!r}, not {' or '.join(sure)}")
    terminal = truth.client or truth.owner
    for other in look.live_of(terminal.pid):
        if other.get("session_id") != truth.session:
            wrong.append(f"process {terminal.pid} also has the live session {other.get('session_id')}")
    listed = {entry.get("pid") for entry in look.unattributed}
    for process in filter(None, (truth.owner, truth.client)):
        if process.pid in listed:
            wrong.append(f"process {process.pid} is also listed as unattributed")
    return wrong


def _wrong_process(row, field, process):
    said = row.get(field)
    if process is None:
        return [] if said is None else [f"{field} is {pid_in(said)}, but there is none"]
    if pid_in(said) != process.pid:
        return [f"{field} is {pid_in(said)}, not {process.pid}"]
    stamp = said.get("start_stamp") if isinstance(said, dict) else None
    if stamp is not None and str(stamp).rpartition(":")[2] != str(process.start):
        return [f"{field} began at {stamp}, not {process.start}"]
    return []


def _wrong_fields(row, truth, agent, directory_known):
    wrong = []
    directory = row.get("work_dir")
    if directory != truth.directory and (directory_known or directory is not None):
        wrong.append(f"work_dir is {directory}, not {truth.directory}")
    if pane_in(row) != truth.pane:
        wrong.append(f"pane is {pane_in(row)}, not {truth.pane}")
    wanted = {"agent": agent.id, "headless": truth.headless, "resume": None, "detached": truth.detached}
    for name, value in wanted.items():
        if (row.get(name) or None) != (value or None):
            wrong.append(f"{name} is {row.get(name)!r}, not {value!r}")
    return wrong


def live(stage, truth, directory_known=True, confidences=None):
    """Fails unless whosup shows this session live, as it is.

    `directory_known` is false where nothing tells its directory yet;
    `confidences` replaces the agent's own. Without a session yet the process
    must be listed as one that has none.
    """
    seen = {}

    def is_right():
        seen["look"] = stage.look()
        if truth.session is None:
            seen["wrong"] = differences_without_session(seen["look"], truth, stage.agent)
        else:
            seen["wrong"] = differences(seen["look"], truth, stage.agent, directory_known,
                                        confidences)
        return not seen["wrong"]
    try:
        wait.until("the right answer", is_right, stage.agent.settle_seconds, wait.SLOW_STEP_SECONDS)
    except wait.NotSeen:
        raise Failed("; ".join(seen["wrong"]) + " | " + shown(seen["look"])) from None


def differences_without_session(look, truth, agent):
    """Returns in sentences what is wrong about a process whose session nobody can know."""
    ids = {row.get("session_id") for row in look.live_of(truth.owner.pid)}
    if ids - {truth.left}:
        return [f"process {truth.owner.pid} has {ids - {truth.left}}, but has no session yet"]
    entry = next((one for one in look.unattributed if one.get("pid") == truth.owner.pid), None)
    if entry is None:
        return [] if ids else [f"process {truth.owner.pid} lives, but is nowhere in the answer"]
    wanted = {"agent": agent.id, "work_dir": truth.directory}
    wrong = [f"{name} is {entry.get(name)}, not {value}" for name, value in wanted.items()
             if entry.get(name) != value]
    if pane_in(entry) != truth.pane:
        wrong.append(f"pane is {pane_in(entry)}, not {truth.pane}")
    return wrong


def live_or_undecided(stage, truth):
    """Fails unless whosup shows this session live, as it is, or its process as one without a session."""
    look = stage.look()
    wrong = differences(look, truth, stage.agent)
    without = differences_without_session(look, truth, stage.agent)
    if wrong and without:
        raise Failed("; ".join(wrong + without) + " | " + shown(look))


def undecided(stage, truth):
    """Fails unless a session is live as it is, or unknown with its process among its candidates.

    For what nothing on disk decides: never exited, never another process's.
    """
    seen = {}

    def is_right():
        look = seen["look"] = stage.look("--all")
        seen["wrong"] = differences(look, truth, stage.agent)
        if not seen["wrong"]:
            return True
        not_exited(look, truth.session, truth.owner)
        seen["wrong"] += _not_a_candidate(look, truth)
        return not seen["wrong"][-1]
    try:
        wait.until("live or undecided", is_right, stage.agent.settle_seconds, wait.SLOW_STEP_SECONDS)
    except wait.NotSeen:
        raise Failed("; ".join(filter(None, seen["wrong"])) + " | " + shown(seen["look"])) from None


def _not_a_candidate(look, truth):
    """Returns what is wrong about an undecided session, as a list with one text; an empty one if nothing is."""
    rows = look.rows(truth.session)
    if not rows or rows[0].get("liveness") != "unknown":
        return [f"session {truth.session} is not listed as unknown"]
    entry = next((one for one in look.unattributed if one.get("pid") == truth.owner.pid), None)
    if entry is None:
        return [f"process {truth.owner.pid} is not listed as one without a known session"]
    if truth.session not in (entry.get("candidates") or ()):
        return [f"session {truth.session} is not among the candidates of process {truth.owner.pid}"]
    return [""]


def not_exited(look, session, process):
    """Fails if a look calls a session exited that this process serves."""
    for row in look.rows(session):
        if row.get("liveness") == "exited":
            raise Failed(f"session {session} is exited ({row.get('reason')}), but lives in process {process.pid}"
                         f" | {shown(look, session)}")


def no_problems(stage):
    """Fails if whosup calls a file of the agent's a problem: these are whole and in order."""
    look = stage.look("--all")
    below = [one for one in look.problems if str(one.get("path") or "").startswith(stage.world.home)]
    if below:
        raise Failed(f"problems in a home that is in order: {json.dumps(below)[:600]}")


def phase(stage, session, allowed, seconds=SETTLE_SECONDS):
    """Fails unless whosup gives the live session one of these phases."""
    seen = {}

    def is_right():
        seen["look"] = stage.look()
        seen["row"] = seen["look"].live(session)
        return seen["row"] is not None and seen["row"].get("phase") in allowed
    try:
        wait.until("the right phase", is_right, seconds, wait.SLOW_STEP_SECONDS)
    except wait.NotSeen:
        said = repr(seen["row"].get("phase")) if seen["row"] else "not live"
        raise Failed(f"phase is {said}, not {' or '.join(map(repr, allowed))} | "
                     + shown(seen["look"], session)) from None


def not_live(stage, session, gone, seconds=WATCH_SECONDS):
    """Fails if whosup shows a session live, or unknown, whose processes `gone` have ended."""
    options = [()]

    def is_right():
        look = stage.look(*options[0])
        for row in look.rows(session):
            if row.get("liveness") != "exited":
                raise Failed(f"session {session} is {row.get('liveness')} ({row.get('reason')}), but its "
                             f"process has ended | {shown(look, session)}")
        none_of_gone(look, gone)
        return True
    wait.holds_for("not live", is_right, seconds)
    options[0] = ("--all",)
    is_right()


def none_of_gone(look, gone):
    """Fails if a look shows one of these processes, which have ended, with a live session or without one."""
    for process in gone:
        for row in look.live_of(process.pid):
            raise Failed(f"session {row.get('session_id')} is live in process {process.pid}, which has "
                         f"ended | {shown(look, row.get('session_id'))}")
        if process.pid in {entry.get("pid") for entry in look.unattributed}:
            raise Failed(f"process {process.pid} is listed as unattributed, but has ended")


def lingering(stage, run, owner, gone):
    """Fails unless a session that a daemon keeps is shown detached at most, and ended after.

    While the daemon holds it the session may be live, but without the program that is gone.
    """
    def no_longer_held():
        was_held = stage.agent.is_held(run)
        look = stage.look()
        none_of_gone(look, gone)
        row = look.live(run.session)
        if row is not None:
            if pid_in(row.get("owner")) != owner.pid:
                raise Failed(f"owner is {pid_in(row.get('owner'))}, not the daemon | {shown(look, run.session)}")
            if row.get("client") is not None:
                raise Failed(f"client is {pid_in(row['client'])}, but none is left | {shown(look, run.session)}")
        return not was_held
    wait.until("the daemon lets the session go", no_longer_held, stage.agent.lingers_seconds,
               wait.SLOW_STEP_SECONDS)
    not_live(stage, run.session, gone)


class Watch:
    """Asks whosup again and again in a thread while something changes; judge its looks after.

    Used as `with Watch(stage) as watch:`; `watch.looks` are the answers in order.
    """

    def __init__(self, stage):
        self.stage = stage
        self.looks = []
        self._error = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def _ask(self):
        while not self._stop.is_set():
            try:
                self.looks.append(self.stage.look())
            except Exception as error:  # reported by __exit__, in the check's own thread
                self._error = error
                return
            self._stop.wait(wait.STEP_SECONDS)

    def __enter__(self):
        self._thread.start()
        wait.until("a first look", lambda: self.looks or self._error, SETTLE_SECONDS * 3)
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._see_the_end()
        finally:
            self._stop.set()
            self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _see_the_end(self):
        """Waits for one look that began after now: the next but one."""
        seen = len(self.looks)
        wait.until("a last look", lambda: self._error or len(self.looks) > seen + 1, SETTLE_SECONDS * 3)

    def never_two(self, process, sessions):
        """Fails if a look gave this process a session it never had, or two at once."""
        for look in self.looks:
            live_ids = {row.get("session_id") for row in look.live_of(process.pid)}
            if live_ids - set(sessions):
                raise Failed(f"process {process.pid} has {live_ids - set(sessions)}, which is not its session "
                             f"| {shown(look)}")
            if len(self._in_front(look, process)) > 1:
                raise Failed(f"process {process.pid} has {len(live_ids)} live sessions at once | {shown(look)}")

    def _in_front(self, look, process):
        """Returns the live sessions that a look shows in this process's terminal."""
        rows = look.live_of(process.pid)
        if self.stage.agent.holds_several:
            rows = [row for row in rows if not (row.get("detached") and row.get("owner_shared"))]
        return {row.get("session_id") for row in rows}

    def always_accounted(self, process):
        """Fails if a look left out this process: neither a live session of it nor unattributed."""
        for look in self.looks:
            listed = {entry.get("pid") for entry in look.unattributed}
            if not look.live_of(process.pid) and process.pid not in listed:
                raise Failed(f"process {process.pid} lives, but is nowhere in the answer | {shown(look)}")

    def never_back(self, process, old, new):
        """Fails if the old session came back to this process after the new one was shown."""
        has_moved = False
        for look in self.looks:
            live_ids = self._in_front(look, process)
            has_moved = has_moved or new in live_ids
            if has_moved and old in live_ids:
                raise Failed(f"process {process.pid} is back on {old} after {new} | {shown(look)}")
