"""The writer, on real files and with real processes."""

import asyncio
import ctypes
import json
import os
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from whosup import Owner, SidecarError

DRIVER = Path(__file__).parent.parent / "examples" / "driver.py"
LINUX = sys.platform == "linux"


def establish(directory: Path, session: str, **more: Any) -> Owner:
    return Owner.establish("my-agent", session, "/home/dev/app", directory=directory, **more)


def names(directory: Path) -> List[str]:
    return sorted(os.listdir(directory))


def sidecar(path: Path) -> Dict[str, Any]:
    fields = json.loads(path.read_text("utf-8"))
    assert isinstance(fields, dict)
    return fields


class Driver:
    """A process that does what lines tell it."""

    def __init__(self, state: Path) -> None:
        environment = {**os.environ, "XDG_STATE_HOME": str(state)}
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    process = Driver(tmp_path)
    yield process
    process.kill()


def test_a_session_is_announced_switched_updated_and_released(tmp_path: Path) -> None:
    owner = establish(tmp_path, "s1", version="1.2.0", resume=["my-agent", "--resume", "s1"])
    first = sidecar(tmp_path / "s1.runtime.json")
    assert first["pid"] == os.getpid()
    assert first["hostname"] == os.uname().nodename
    assert first["my_agent_version"] == "1.2.0"
    assert first["resume"] == ["my-agent", "--resume", "s1"]
    assert stat.S_IMODE(os.stat(tmp_path / "s1.runtime.json").st_mode) == 0o600
    assert owner.update("waiting", "question")
    assert sidecar(tmp_path / "s1.runtime.json")["waiting_for"] == "question"
    assert owner.update("idle")
    assert "waiting_for" not in sidecar(tmp_path / "s1.runtime.json")
    assert owner.switch_session("séance-会話")
    assert names(tmp_path) == ["séance-会話.runtime.json"]
    assert "phase" not in sidecar(tmp_path / "séance-会話.runtime.json")
    assert owner.release()
    assert names(tmp_path) == []
    assert not owner.update("idle") and not owner.switch_session("s3")
    assert names(tmp_path) == [] and owner.path is None


@pytest.mark.skipif(not LINUX, reason="process stamps are read on Linux alone")
def test_how_many_sessions_the_process_serves_is_in_every_file_if_it_is_announced(
    tmp_path: Path,
) -> None:
    for serves in ("one", "many"):
        owner = establish(tmp_path, "s1", serves=serves, strict=True)
        assert sidecar(tmp_path / "s1.runtime.json")["serves"] == serves
        owner.update("working")
        assert sidecar(tmp_path / "s1.runtime.json")["serves"] == serves
        owner.switch_session("s2")
        assert sidecar(tmp_path / "s2.runtime.json")["serves"] == serves
        owner.release()
    several = [establish(tmp_path, session) for session in ("s1", "s2")]
    assert names(tmp_path) == ["s1.runtime.json", "s2.runtime.json"]
    assert "serves" not in sidecar(tmp_path / "s1.runtime.json")
    for owner in several:
        owner.release()
    wrong: List[Any] = ["few", 1, ["one"], ""]
    for serves in wrong:
        with pytest.raises(SidecarError, match="serves"):
            establish(tmp_path, "s1", serves=serves, strict=True)
    assert names(tmp_path) == []


def test_it_names_its_process_so_that_no_other_can_be_meant(tmp_path: Path) -> None:
    establish(tmp_path, "s1")
    said = sidecar(tmp_path / "s1.runtime.json")
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    assert said["process_start"] == fields[19].decode()
    assert said["process_start_kind"] == "linux-ticks"
    assert said["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert said["executable"] == os.readlink("/proc/self/exe")


class Follower:
    """Follows what comes and goes in a directory by the system's own events."""

    MOVED_FROM, MOVED_TO, CREATED, DELETED, OVERFLOW = 0x40, 0x80, 0x100, 0x200, 0x4000

    def __init__(self, directory: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK)
        mask = self.MOVED_FROM | self.MOVED_TO | self.CREATED | self.DELETED
        assert libc.inotify_add_watch(self.descriptor, os.fsencode(directory), mask) >= 0
        self.names = {name for name in os.listdir(directory) if not name.startswith(".")}
        self.counts: List[int] = []

    def follow(self) -> None:
        """Takes what has happened since."""
        while True:
            try:
                events = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(events):
                _, mask, _, length = struct.unpack_from("iIII", events, at)
                name = events[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                at += 16 + length
                assert not mask & self.OVERFLOW, "events were lost"
                if not name.startswith("."):
                    change = self.names.add if mask & (self.MOVED_TO | self.CREATED) else self.names.discard
                    change(name)
                    self.counts.append(len(self.names))


@pytest.mark.skipif(not LINUX, reason="follows a directory by inotify")
def test_ten_thousand_switches_by_two_threads_leave_one_file_and_never_none() -> None:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        place = Path(directory)
        owner = establish(place, "first")
        follower = Follower(place)
        failures: List[object] = []

        def switch(thread: int) -> None:
            for at in range(5_000):
                if not owner.switch_session(f"t{thread}-{at}"):
                    failures.append(owner.last_error)

        threads = [threading.Thread(target=switch, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            follower.follow()
            time.sleep(0.001)
        follower.follow()
        os.close(follower.descriptor)
        assert not failures
        assert (min(follower.counts), max(follower.counts)) == (1, 2)
        assert len(follower.counts) == 20_000, "a file came and one went, 10,000 times"
        assert owner.path is not None
        assert names(place) == [os.path.basename(owner.path)]
        assert names(place)[0].endswith("-4999.runtime.json")


def test_tasks_of_an_event_loop_leave_one_file(tmp_path: Path) -> None:
    owner = establish(tmp_path, "first")

    async def switch(at: int) -> None:
        await asyncio.sleep(0)
        owner.switch_session(f"s{at}")

    async def switch_all() -> None:
        await asyncio.gather(*(switch(at) for at in range(50)))

    asyncio.run(switch_all())
    assert len(names(tmp_path)) == 1


@pytest.mark.parametrize(
    "session",
    ["", "../x", "a/b", "..", "a\nb", "con", "NUL.txt", "x ", "x.", "a\u200bb", "x" * 129, "\ud800"],
)
def test_what_cannot_be_a_session_is_refused(tmp_path: Path, session: str) -> None:
    assert isinstance(establish(tmp_path, session).last_error, SidecarError)
    with pytest.raises(SidecarError):
        establish(tmp_path, session, strict=True)
    assert names(tmp_path) == []


def check_refused(owner: Owner, code: str) -> SidecarError:
    error = owner.last_error
    assert error is not None and error.code == code and owner.path is None
    return error


def test_what_cannot_be_announced_is_refused(tmp_path: Path) -> None:
    place: Any = tmp_path
    number: Any = 5
    for agent in ("schema", "My Agent", ""):
        with pytest.raises(SidecarError):
            Owner.establish(agent, "s1", "/work", directory=place, strict=True)
    for refused in (
        Owner.establish("My Agent", "s1", "/work", directory=place),
        Owner.establish("my-agent", "s1", "relative", directory=place),
        Owner.establish("my-agent", "s1", number, directory=place),
        Owner.establish("my-agent", "s1", "/work", directory=number),
        establish(place, "s1", transcript=number),
        establish(place, "s1", endpoint="x" * 70_000),
        establish(place, "s1", serves="few"),
    ):
        check_refused(refused, "bad_argument")
    assert names(tmp_path) == []


def test_a_handle_without_a_session_announces_nothing(tmp_path: Path) -> None:
    owner = establish(tmp_path, "../x")
    assert not owner.update("idle") and not owner.switch_session("s1", work_dir="/work")
    check_refused(owner, "not_established")
    assert names(tmp_path) == []


def test_a_disk_that_refuses_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    owner = establish(tmp_path / "file", "s1")
    assert isinstance(check_refused(owner, "io_error").__cause__, OSError)
    assert names(tmp_path) == ["file"]


def test_the_last_error_is_that_of_the_last_call(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("")
    owner = establish(tmp_path / "sessions", "s1")
    check_refused(owner, "io_error")
    (tmp_path / "sessions").unlink()
    assert owner.update("working") and owner.last_error is None
    wrong: List[Any] = [("lunch", None), ("waiting", "lunch")]
    for phase, waiting_for in wrong:
        assert not owner.update(phase, waiting_for)
        assert owner.last_error is not None and owner.last_error.code == "bad_argument"
        assert sidecar(tmp_path / "sessions/s1.runtime.json")["phase"] == "working"
    assert owner.release() and owner.last_error is None
    assert not owner.update("idle")
    check_refused(owner, "released")


def test_a_handle_is_shown_with_its_session_and_file(tmp_path: Path) -> None:
    owner = establish(tmp_path, "s1")
    assert repr(owner) == f"<Owner of my-agent:s1, file: {tmp_path}/s1.runtime.json>"
    owner.release()
    assert repr(owner) == "<Owner of my-agent:s1, file: None>"
    owner.update("idle")
    assert repr(owner.last_error) == "SidecarError('cannot write a sidecar: it was released', 'released')"


def test_a_file_of_another_live_process_is_left_alone(tmp_path: Path, driver: Driver) -> None:
    assert driver.ask("start s1") == "ok"
    place = tmp_path / "agent-sessions" / "driver-py"
    before = (place / "s1.runtime.json").read_bytes()
    owner = establish(place, "s1")
    assert (place / "s1.runtime.json").read_bytes() == before
    assert owner.path is not None and ".claim-" in owner.path
    owner.release()
    assert names(place) == ["s1.runtime.json"]
    driver.kill()
    following = establish(place, "s1")
    assert following.path == str(place / "s1.runtime.json")
    assert names(place) == ["s1.runtime.json"]


def test_a_file_that_somebody_else_wrote_is_theirs(tmp_path: Path) -> None:
    owner = establish(tmp_path, "s1")
    (tmp_path / "s1.runtime.json").write_text("theirs")
    assert owner.update("working")
    assert len(names(tmp_path)) == 2
    owner.release()
    assert (tmp_path / "s1.runtime.json").read_text() == "theirs"


def test_temporary_files_of_the_dead_go_and_others_stay(tmp_path: Path, driver: Driver) -> None:
    assert driver.ask("start s1") == "ok"
    driver.kill()
    left = (tmp_path / "agent-sessions" / "driver-py" / "s1.runtime.json").read_bytes()
    temporary = [tmp_path / f".sidecar-{digit * 16}.tmp" for digit in "123"]
    temporary[0].write_bytes(left)
    temporary[1].write_text('{"schema_ver')
    temporary[2].write_text('{"schema_ver')
    old = time.time() - 7200
    os.utime(temporary[2], (old, old))
    establish(tmp_path, "s2").release()
    assert names(tmp_path) == [temporary[1].name, "agent-sessions"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_not_the_owner(tmp_path: Path) -> None:
    owner = establish(tmp_path, "s1")
    child = os.fork()
    if child == 0:
        is_refused = not owner.update("working") and not owner.release() and owner.path is None
        is_refused = is_refused and owner.last_error is not None and owner.last_error.code == "forked"
        mine = establish(tmp_path, "s2")
        os._exit(0 if is_refused and mine.path is not None else 1)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0
    assert names(tmp_path) == ["s1.runtime.json", "s2.runtime.json"]
    assert sidecar(tmp_path / "s2.runtime.json")["pid"] == child
    assert owner.update("idle")


def test_the_common_place_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Owner.establish("my-agent", "s1", "/work") as owner:
        assert owner.path == str(tmp_path / "state/agent-sessions/my-agent/s1.runtime.json")
        mode = os.stat(tmp_path / "state/agent-sessions/my-agent").st_mode
        assert stat.S_IMODE(mode) == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    owner = Owner.establish("my-agent", "s1", "/work")
    assert owner.path == str(tmp_path / ".local/state/agent-sessions/my-agent/s1.runtime.json")
    monkeypatch.setenv("HOME", "relative")
    check_refused(Owner.establish("my-agent", "s1", "/work"), "no_home")
