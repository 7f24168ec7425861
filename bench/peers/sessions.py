"""Which sessions are live, as a Python script would find it: glob, json, psutil.

    sessions.py HOME          the live ones: {"live": {session: pid}}
    sessions.py HOME --all    every one: {"live": {session: pid}, "dead": count}

It looks at what Claude Code, qwen-code, kimi-cli and Copilot leave, reads each
file once, looks at each process once, and trusts what fits. It does less than
whosup: no titles, no panes, no reasons.
"""

import glob
import json
import os
import re
import sys

import psutil

CLOCK_SLACK_S = 2.0
TICKS = os.sysconf("SC_CLK_TCK")


def read_json(path):
    try:
        with open(path, "rb") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


class Processes:
    def __init__(self):
        self.known = {}
        self.boot = psutil.boot_time()

    def began(self, pid):
        """When the process began, in seconds since 1970; None if there is none."""
        if pid not in self.known:
            try:
                process = psutil.Process(pid)
                is_zombie = process.status() == psutil.STATUS_ZOMBIE
                self.known[pid] = None if is_zombie else process.create_time()
            except psutil.Error:
                self.known[pid] = None
        return self.known[pid]

    def is_owner(self, pid, said_at, ticks=None):
        began = self.began(pid)
        if began is None:
            return False
        if ticks is not None:
            return abs(began - (self.boot + ticks / TICKS)) < CLOCK_SLACK_S
        return began <= said_at + CLOCK_SLACK_S


def claims(home):
    """(session, pid, said at, ticks) of everything that names a process."""
    for path in glob.glob(f"{home}/.claude/sessions/*.json"):
        record = read_json(path)
        if record:
            ticks = record.get("procStart")
            yield record["sessionId"], record["pid"], record["startedAt"] / 1000, int(ticks) if ticks else None
    for path in glob.glob(f"{home}/.qwen/projects/*/chats/*.runtime.json"):
        sidecar = read_json(path)
        if sidecar:
            yield sidecar["session_id"], sidecar["pid"], sidecar["started_at"], None
    for path in glob.glob(f"{home}/.kimi/sessions/*/*/runtime.json"):
        sidecar = read_json(path)
        if sidecar:
            yield sidecar["session_id"], sidecar["pid"], sidecar["started_at"], None
    for path in glob.glob(f"{home}/.copilot/session-state/*/inuse.*.lock"):
        session, name = path.split(os.sep)[-2:]
        pid = re.fullmatch(r"inuse\.(\d+)\.lock", name)
        if pid:
            yield session, int(pid[1]), os.stat(path).st_mtime, None


def main():
    home = sys.argv[1]
    processes = Processes()
    live, dead = {}, set()
    for session, pid, said_at, ticks in claims(home):
        if processes.is_owner(pid, said_at, ticks):
            live[session] = pid
        else:
            dead.add(session)
    found = {"live": live}
    if "--all" in sys.argv:
        found["dead"] = len(dead - live.keys())
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
