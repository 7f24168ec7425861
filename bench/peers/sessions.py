"""Which sessions are live, as a Python script would find it: glob, json, psutil.

    sessions.py HOME          the live ones: {"live": {session: pid}}
    sessions.py HOME --all    every one: {"sessions": [{agent, session_id, liveness, pid,
                              work_dir, path}]}

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
    """Everything that names a process: agent, session, pid, said at, ticks, work dir, path."""
    for path in glob.glob(f"{home}/.claude/sessions/*.json"):
        record = read_json(path)
        if record:
            ticks = record.get("procStart")
            ticks = int(ticks) if ticks else None
            said_at = record["startedAt"] / 1000
            yield "claude-code", record["sessionId"], record["pid"], said_at, ticks, record.get("cwd"), path
    sidecars = [
        ("qwen-code", f"{home}/.qwen/projects/*/chats/*.runtime.json"),
        ("kimi-cli", f"{home}/.kimi/sessions/*/*/runtime.json"),
    ]
    for agent, pattern in sidecars:
        for path in glob.glob(pattern):
            sidecar = read_json(path)
            if sidecar:
                said_at = sidecar["started_at"]
                yield agent, sidecar["session_id"], sidecar["pid"], said_at, None, sidecar["work_dir"], path
    for path in glob.glob(f"{home}/.copilot/session-state/*/inuse.*.lock"):
        session, name = path.split(os.sep)[-2:]
        pid = re.fullmatch(r"inuse\.(\d+)\.lock", name)
        if pid:
            yield "copilot", session, int(pid[1]), os.stat(path).st_mtime, None, None, path


def main():
    home = sys.argv[1]
    processes = Processes()
    found = {}
    for agent, session, pid, said_at, ticks, work_dir, path in claims(home):
        is_live = processes.is_owner(pid, said_at, ticks)
        key = (agent, session)
        if is_live or key not in found:
            found[key] = {
                "agent": agent,
                "session_id": session,
                "liveness": "live" if is_live else "exited",
                "pid": pid,
                "work_dir": work_dir,
                "path": path,
            }
    if "--all" in sys.argv:
        json.dump({"sessions": list(found.values())}, sys.stdout)
    else:
        live = (row for row in found.values() if row["liveness"] == "live")
        json.dump({"live": {row["session_id"]: row["pid"] for row in live}}, sys.stdout)


if __name__ == "__main__":
    main()
