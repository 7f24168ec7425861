"""Watching and waiting, beside a real agent that starts, works and is killed."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from test_reader import Agent

_native = pytest.importorskip("whosup._native", reason="the native part is not built")
if not hasattr(_native, "watch"):
    pytest.skip("nothing can be watched on this system", allow_module_level=True)

BEGIN = """
import _thread, asyncio, json, os, signal, sys, threading, time
import whosup
def tell(value): print(json.dumps(value), flush=True)
def engines():
    names = []
    for task in os.listdir("/proc/self/task"):
        try: names.append(open(f"/proc/self/task/{task}/comm").read().strip())
        except OSError: pass
    return names.count("whosup-live")
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    running = Agent(tmp_path)
    yield running
    running.kill()


class Watcher:
    """A program in the home of an agent, of which each line is JSON."""

    def __init__(self, agent: Agent, program: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN + program],
            cwd=agent.home,
            env=agent.environment,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def line(self) -> Any:
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, f"it ended: {self.process.wait()}"
        return json.loads(text)

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def check_that_changes_are_seen(agent: Agent, watcher: Watcher) -> None:
    snapshot = watcher.line()
    assert snapshot["kind"] == "snapshot"
    assert [one["liveness"] for one in snapshot["sessions"]] == ["live"]
    agent.ask("phase waiting")
    changed = watcher.line()
    assert changed["changes"]["phase"]["new"] == "waiting", changed
    agent.ask("start s2")
    while True:
        added = watcher.line()
        if added["kind"] == "added":
            break
    assert added["session"]["session_id"] == "s2"
    agent.kill()
    gone = watcher.line()
    while gone["kind"] not in ("removed", "changed") or "waiting_for" in gone.get("changes", {}):
        gone = watcher.line()
    session = gone.get("session") or {"liveness": gone["changes"]["liveness"]["new"]}
    assert session["liveness"] == "exited", gone


SEES = """
def of_session(change): return change["kind"] in ("snapshot", "added", "changed", "removed")
def is_over(change):
    gone = change["kind"] == "removed" and change["session"]["liveness"] == "exited"
    return gone or change.get("changes", {}).get("liveness", {}).get("new") == "exited"
"""


def test_each_change_is_seen_in_a_loop_that_ends_when_it_is_left(agent: Agent) -> None:
    agent.ask("start s1")
    program = SEES + """
with whosup.watch(agents=["driver-py"]) as changes:
    for change in changes:
        if of_session(change): tell(change)
        if is_over(change): break
tell(engines())
for change in whosup.watch(): break
tell(engines())
"""
    with Watcher(agent, program) as watcher:
        check_that_changes_are_seen(agent, watcher)
        line = watcher.line()
        while line != 0:
            line = watcher.line()
        # Without `with`, the loop's end drops it.
        assert watcher.line() == 0


def test_each_change_is_seen_by_a_task_and_a_cancellation_ends_it(agent: Agent) -> None:
    agent.ask("start s1")
    program = SEES + """
async def main():
    async with whosup.watch(agents=["driver-py"]) as changes:
        async for change in changes:
            if of_session(change): tell(change)
            if is_over(change): break
    tell(engines())
    changes = whosup.watch(cwd="/proc")
    await changes.__anext__()
    waiting = asyncio.ensure_future(changes.__anext__())
    await asyncio.sleep(0.1)
    waiting.cancel()
    began = time.monotonic()
    await asyncio.gather(waiting, return_exceptions=True)
    tell([waiting.cancelled(), engines(), time.monotonic() - began])
    try: await changes.__anext__()
    except StopAsyncIteration: tell("over")
asyncio.run(main())
"""
    with Watcher(agent, program) as watcher:
        check_that_changes_are_seen(agent, watcher)
        line = watcher.line()
        while line != 0:
            line = watcher.line()
        is_cancelled, engines, took = watcher.line()
        assert (is_cancelled, engines) == (True, 0)
        assert took < 20
        assert watcher.line() == "over"


def test_closing_from_another_thread_ends_it_and_so_does_a_signal(agent: Agent) -> None:
    program = """
changes = whosup.watch(cwd="/proc")
next(changes)
closing = threading.Timer(0.2, changes.close)
closing.start()
tell([change for change in changes])
closing.join()
tell(engines())
# Who runs the tests in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    changes = whosup.watch(cwd="/proc")
    next(changes)
    tell("waiting")
    # Others may change what they run on this machine.
    for _ in changes: pass
except KeyboardInterrupt: tell("interrupted")
# As a signal does that comes just before the wait, this one ends no wait.
threading.Timer(0.05, _thread.interrupt_main).start()
try:
    for _ in whosup.watch(cwd="/proc"): pass
except KeyboardInterrupt: tell("interrupted before")
"""
    with Watcher(agent, program) as watcher:
        assert [change for change in watcher.line() if change["kind"] not in ("unattributed", "problems")] == []
        assert watcher.line() == 0
        assert watcher.line() == "waiting"
        watcher.process.send_signal(signal.SIGINT)
        assert watcher.line() == "interrupted"
        assert watcher.line() == "interrupted before"


def test_waiting_ends_when_it_has_come_or_cannot_come_or_in_time(agent: Agent) -> None:
    agent.ask("start s1")
    program = """
tell(whosup.wait("s1", until="ended", timeout=0.3))
tell("begun")
tell(whosup.wait("s1", until="waiting"))
tell(asyncio.run(whosup.wait_async("s1", until="waiting")))
tell(asyncio.run(whosup.wait_async("s1", until="ended", timeout=0.3)))
for wrong in ({"id": "s-none", "until": "idle"}, {"until": "lunch"}, {"until": "idle", "agents": "codex"}):
    try: whosup.wait(**wrong)
    except whosup.ReadError as error: tell(error.code)
tell("begun")
tell(whosup.wait("s1", until="exited"))
tell(engines())
"""
    with Watcher(agent, program) as watcher:
        assert watcher.line() == {"outcome": "timed_out", "sessions": []}
        assert watcher.line() == "begun"
        agent.ask("phase waiting")
        for _ in range(2):
            waited = watcher.line()
            assert waited["outcome"] == "reached"
            assert [one["phase"] for one in waited["sessions"]] == ["waiting"]
        assert watcher.line()["outcome"] == "timed_out"
        assert [watcher.line() for _ in range(3)] == ["no_such_session", "bad_argument", "bad_argument"]
        assert watcher.line() == "begun"
        agent.kill()
        waited = watcher.line()
        assert (waited["outcome"], waited["sessions"][0]["liveness"]) == ("reached", "exited")
        assert watcher.line() == 0


def test_a_fault_is_raised_with_the_first_change(agent: Agent) -> None:
    program = """
for wrong in ({"agents": ["no-such-agent"]}, {"cwd": "/no/such"}):
    try: next(whosup.watch(**wrong))
    except whosup.ReadError as error: tell(error.code)
"""
    with Watcher(agent, program) as watcher:
        assert [watcher.line() for _ in range(2)] == ["no_such_agent", "bad_argument"]
