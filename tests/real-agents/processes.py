"""Reads processes, locks and open files from /proc, without asking whosup.

What this module says is the truth that whosup's answers are compared with, so
it shares no code and no idea with it: it is a plain walk over /proc.
"""

import os
import select
import signal
from dataclasses import dataclass

import wait

PROCESSES_MAX = 65536
DESCRIPTORS_MAX = 4096


@dataclass(frozen=True)
class Process:
    """One process as /proc showed it; `start` is field 22 of its stat."""

    pid: int
    parent: int
    tty: int
    state: str
    start: int
    comm: str
    argv: tuple = ()
    exe: str = ""
    cwd: str = ""

    @property
    def is_running(self):
        """Whether its leading thread runs; see the function of this name for all of it."""
        return self.state not in "ZX"


def read(pid):
    """Returns the process with this PID, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            cmdline = file.read()
    except OSError:
        return None
    open_at, close_at = stat.index(b"("), stat.rindex(b")")
    rest = stat[close_at + 2:].split()
    words = cmdline.decode("utf-8", "replace").split("\0")
    return Process(
        pid=pid,
        parent=int(rest[1]),
        tty=int(rest[4]),
        state=rest[0].decode(),
        start=int(rest[19]),
        comm=stat[open_at + 1:close_at].decode("utf-8", "replace"),
        argv=tuple(words[:-1] if words and not words[-1] else words),
        exe=_link(f"/proc/{pid}/exe"),
        cwd=_link(f"/proc/{pid}/cwd"),
    )


def everything():
    """Returns all processes of this machine by PID."""
    found = {}
    for name in os.listdir("/proc")[:PROCESSES_MAX]:
        if name.isdigit():
            process = read(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def descendants(pid):
    """Returns the processes below `pid`, nearest first, without itself."""
    table = everything()
    children = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    found, queue, seen = [], [pid], {pid}
    while queue:
        for child in sorted(children.get(queue.pop(0), []), key=lambda one: one.pid):
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
                queue.append(child.pid)
    return found


def is_running(process):
    """Whether that very process (PID and start) still runs, or a thread of it does."""
    now = read(process.pid)
    if now is None or now.start != process.start:
        return False
    # The leader is a zombie as soon as it has ended itself; its threads may take longer.
    return now.is_running or not _has_exited(process.pid)


def _has_exited(pid):
    """Whether all threads of a process have ended: then its descriptor is readable."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(descriptor)


def environment_value(pid, name):
    """Returns one variable of the process's first environment, or None."""
    prefix = name.encode() + b"="
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            for entry in file.read().split(b"\0"):
                if entry.startswith(prefix):
                    return entry[len(prefix):].decode("utf-8", "replace")
    except OSError:
        return None
    return None


def locked_by(pid):
    """Returns the paths on which `pid` holds a file lock, by its descriptors and their fdinfo."""
    found = []
    for descriptor in _descriptors(pid):
        try:
            with open(f"/proc/{pid}/fdinfo/{descriptor}") as file:
                if any(line.startswith("lock:") for line in file):
                    found.append(_link(f"/proc/{pid}/fd/{descriptor}"))
        except OSError:
            continue
    return found


def _descriptors(pid):
    try:
        return os.listdir(f"/proc/{pid}/fd")[:DESCRIPTORS_MAX]
    except OSError:
        return []


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def send(process, number):
    """Signals that very process, and nothing else that may have its PID by now.

    Returns False if it is gone. The descriptor pins the PID while its start is
    compared, so the signal cannot reach a process that reuses it.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_running(process):
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def end(found, seconds=5):
    """Ends these processes: SIGTERM, then SIGKILL for what is left. Returns those that stay."""
    for process in found:
        send(process, signal.SIGTERM)
    left = _wait_gone(found, seconds)
    for process in left:
        send(process, signal.SIGKILL)
    return _wait_gone(left, seconds)


def _wait_gone(found, seconds):
    try:
        wait.until("processes gone", lambda: not any(map(is_running, found)), seconds)
    except wait.NotSeen:
        pass
    return [process for process in found if is_running(process)]
