"""The reader: the answers of the command line, in the same worlds.

`WHOSUP` names the command; without it, what compares with it is skipped.
"""

import importlib.metadata
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import whosup
from whosup import _document

_native = pytest.importorskip("whosup._native", reason="the native part is not built")

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent
FIXTURES = sorted(ROOT.glob("crates/core/tests/fixtures/*/*/world.json"))
VECTORS = sorted(ROOT.glob("conformance/vectors/*.json"))

in_worlds = pytest.mark.skipif(
    not hasattr(_native, "answer_to_fixture"),
    reason="built without the made-up worlds (WHOSUP_NATIVE_FEATURES=testing)",
)


def key(session: Dict[str, Any]) -> List[str]:
    return [session["agent"], session["session_id"], session.get("home") or ""]


def stated(value: Any) -> Any:
    """What fixtures state, and nothing that says no more than that there is nothing."""
    if isinstance(value, list):
        return [stated(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: stated(field) for name, field in value.items()}
    return {name: field for name, field in fields.items() if field not in (None, [], {}) and field is not False}


@in_worlds
def test_every_fixture_gives_the_answer_beside_it() -> None:
    assert len(FIXTURES) > 100
    for world in FIXTURES:
        answer = json.loads(_native.answer_to_fixture(world.parent))
        expected = json.loads((world.parent / "expected.json").read_text("utf-8"))
        shown = sorted(stated(answer["sessions"]), key=key)
        rows = sorted(stated(expected.pop("sessions", [])), key=key)
        if json.loads(world.read_text("utf-8")).get("depth") != "all":
            # The default view leaves some out, and none that lives.
            keys = [key(session) for session in shown]
            hidden = [row for row in rows if key(row) not in keys]
            assert "live" not in [row["liveness"] for row in hidden], world
            rows = [row for row in rows if row not in hidden]
        assert shown == rows, world
        rest = {name: answer[name] for name in ("unattributed", "problems")}
        assert stated(rest) == stated(expected), world


@in_worlds
def test_every_vector_gives_the_right_verdict() -> None:
    seen = 0
    for file in VECTORS:
        for vector in json.loads(file.read_text("utf-8"))["vectors"]:
            answer = _native.answer_to_vector(json.dumps(vector))
            if answer is None:
                print(f"skipped: only root can give a file away: {vector['name']}")
                continue
            found = json.loads(answer)
            expect = vector["expect"]
            if expect["verdict"] == "problem":
                assert not found["sessions"] and found["problems"], vector["name"]
            else:
                (session,) = found["sessions"]
                assert session["liveness"] == expect["verdict"], vector["name"]
                assert session["reason"] == expect.get("reason"), vector["name"]
                assert session["confidence"] == expect.get("confidence"), vector["name"]
            seen += 1
    assert seen >= 60


def check_type(value: Any, kind: Any, where: str) -> None:
    origin = get_origin(kind)
    if origin is Union:
        for one in get_args(kind):
            if (one is type(None)) == (value is None):
                check_type(value, one, where)
    elif origin is Literal:
        assert value in get_args(kind), where
    elif origin is list:
        assert isinstance(value, list), where
        for item in value:
            check_type(item, get_args(kind)[0], f"{where}[]")
    elif origin is dict:
        assert isinstance(value, dict), where
        for item in value.values():
            check_type(item, get_args(kind)[1], f"{where}.*")
    elif hasattr(kind, "__required_keys__"):
        hints = get_type_hints(kind)
        assert kind.__required_keys__ <= set(value) <= set(hints), where
        for name, item in value.items():
            check_type(item, hints[name], f"{where}.{name}")
    elif kind is float:
        assert type(value) in (int, float), where
    else:
        assert type(value) is kind, f"{where}: {value!r} is no {kind}"


@in_worlds
def test_the_types_say_what_answers_have() -> None:
    for world in FIXTURES:
        answer = json.loads(_native.answer_to_fixture(world.parent))
        check_type(answer, _document.Snapshot, str(world))


class Agent:
    """An agent that announces its session, in a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {**os.environ, "HOME": str(home)}
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, str(PACKAGE / "examples" / "driver.py")],
            cwd=home,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def asked(self, question: str) -> Any:
        """What the reader answers in this home."""
        program = (
            "import json\n"
            "from whosup import ReadError, list_sessions, liveness, session, why\n"
            f"try: answer = {question}\n"
            "except ReadError as error: answer = {'code': error.code, 'candidates': error.candidates}\n"
            "print(json.dumps(answer))"
        )
        output = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.home,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return json.loads(output.stdout)

    def command(self, *arguments: str) -> Any:
        """What the command answers in this home."""
        output = subprocess.run(
            [os.environ["WHOSUP"], *arguments, "--json"],
            cwd=self.home,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return json.loads(output.stdout)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    running = Agent(tmp_path)
    yield running
    running.kill()


def without_moment(document: Any) -> Any:
    """Less what differs from one look to the next, and what others run here."""
    document["taken_at"] = None
    document["sessions"] = [one for one in document["sessions"] if one["agent"] == "driver-py"]
    for session in document["sessions"]:
        if session["owner"] is not None:
            # The start is counted from the clock of each look, to the millisecond.
            session["owner"].update(started_at=None)
        session["resources"] = None
    document["unattributed"] = []
    # Those of no agent are of the machine: of a tmux server that is just ending, say.
    document["problems"] = [one for one in document["problems"] if one["agent"] == "driver-py"]
    return json.dumps(document, sort_keys=True)


@pytest.mark.skipif("WHOSUP" not in os.environ, reason="WHOSUP does not name the command")
def test_the_answers_are_those_of_the_command_line(agent: Agent) -> None:
    agent.ask("start s-één")
    agent.ask("phase waiting")
    for is_over in (False, True):
        if is_over:
            agent.kill()
        for question, arguments in {
            "list_sessions()": ["list"],
            "list_sessions(all=True)": ["list", "--all"],
            "list_sessions(all=True, agents=['driver-py'])": ["list", "--all", "--agent", "driver-py"],
            "list_sessions(all=True, cwd='.')": ["list", "--all", "--cwd", "."],
            "session('s-é')": ["show", "s-é"],
            "session('driver-py:s-één')": ["show", "s-één"],
            "why('s-één')": ["why", "s-één"],
        }.items():
            answer = agent.asked(question)
            assert without_moment(answer) == without_moment(agent.command(*arguments)), question
            if question != "list_sessions()" or not is_over:
                assert answer["sessions"][0]["liveness"] == ("exited" if is_over else "live")


def test_a_session_is_live_or_exited_or_unknown_or_there_is_none(agent: Agent) -> None:
    agent.ask("start s1")
    assert agent.asked("liveness('s1')") == "live"
    agent.ask("switch s2")
    assert agent.asked("liveness('s1')") == "none"
    for question in ("session('s1')", "why('s1')"):
        assert agent.asked(question) == {"code": "no_such_session", "candidates": []}
    # Nothing tells whether a bare PID is still the same process.
    file = agent.home / ".local/state/agent-sessions/driver-py/s2.runtime.json"
    fields = json.loads(file.read_text("utf-8"))
    agent.kill()
    assert agent.asked("liveness('s2')") == "exited"
    fields.update(boot_id=None, pid_namespace=None, hostname="elsewhere")
    fields = {name: value for name, value in fields.items() if value is not None}
    file.write_text(json.dumps(fields), "utf-8")
    assert agent.asked("liveness('s2')") == "unknown"


def test_an_ambiguous_id_raises_with_its_candidates(agent: Agent) -> None:
    agent.ask("start s-a")
    place = agent.home / ".local/state/agent-sessions/driver-py"
    fields = json.loads((place / "s-a.runtime.json").read_text("utf-8"))
    (place / "s-b.runtime.json").write_text(json.dumps({**fields, "session_id": "s-b"}), "utf-8")
    for question in ("liveness('s-')", "session('s-')", "why('s-')"):
        error = agent.asked(question)
        assert error["code"] == "ambiguous", question
        candidates = sorted(error["candidates"], key=key)
        check_type(candidates, List[whosup.Candidate], question)
        assert [one["session_id"] for one in candidates] == ["s-a", "s-b"]
        for one in candidates:
            assert (one["agent"], one["work_dir"]) == ("driver-py", str(agent.home))
            only = f"{one['agent']}:{one['session_id']}"
            assert agent.asked(f"liveness({only!r}, home={one['home']!r})") == one["liveness"]


@pytest.mark.parametrize(
    "question, code, text",
    [
        ("whosup.session('../x')", "bad_argument", "cannot look for the session `../x`: "),
        ("whosup.liveness('')", "bad_argument", "must not be empty"),
        ("whosup.liveness(5)", "bad_argument", "`id` is no string: 5"),
        ("whosup.why('s', home=5)", "bad_argument", "`home` is no path: 5"),
        ("whosup.session('no-such:x')", "no_such_agent", "cannot look for sessions of `no-such`"),
        ("whosup.list_sessions(agents=['no-such'])", "no_such_agent", "sessions of `no-such`"),
        ("whosup.list_sessions(agents='codex')", "bad_argument", "a list of names such as ['codex'], not 'codex'"),
        ("whosup.list_sessions(agents=5)", "bad_argument", "a list of names such as ['codex'], not 5"),
        ("whosup.list_sessions(agents=[5])", "bad_argument", "such as ['codex'], not [5]"),
        ("whosup.list_sessions(all=5)", "bad_argument", "cannot read sessions: "),
        ("whosup.list_sessions(cwd='/no/such')", "bad_argument", "cannot look for sessions in `/no/such`"),
    ],
)
def test_what_cannot_be_asked_is_named(question: str, code: str, text: str) -> None:
    with pytest.raises(whosup.ReadError) as raised:
        eval(question)
    assert text in str(raised.value)
    assert raised.value.code == code


def test_a_broken_configuration_has_a_code(agent: Agent) -> None:
    (agent.home / ".config/whosup").mkdir(parents=True)
    (agent.home / ".config/whosup/config.toml").write_text("homes = 5")
    assert agent.asked("list_sessions()")["code"] == "bad_config"


def test_an_error_survives_a_process_pool() -> None:
    with pytest.raises(whosup.ReadError) as raised:
        whosup.liveness("")
    error = pickle.loads(pickle.dumps(raised.value))
    assert (str(error), error.code, error.candidates) == (str(raised.value), "bad_argument", [])


def test_the_package_is_typed_and_has_its_version() -> None:
    assert (Path(whosup.__file__).parent / "py.typed").is_file()
    try:
        installed = importlib.metadata.version("whosup")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed, its files alone are here")
    assert whosup.__version__ == installed


def test_other_threads_run_while_one_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / ".local/state/agent-sessions/my-agent"
    place.mkdir(parents=True)
    for at in range(2_000):
        (place / f"s{at}.runtime.json").write_text("{}")
    for _ in range(50):
        spans: List[float] = []

        def look() -> None:
            spans.append(time.monotonic())
            whosup.list_sessions(all=True)
            spans.append(time.monotonic())

        thread = threading.Thread(target=look)
        thread.start()
        stamps = []
        while thread.is_alive():
            stamps.append(time.monotonic())
            time.sleep(0.001)
        thread.join()
        quarter = (spans[1] - spans[0]) / 4
        # A thread that waits for the other one has none in the middle.
        if any(spans[0] + quarter < stamp < spans[1] - quarter for stamp in stamps):
            return
    raise AssertionError("no other thread ran")


def test_without_the_native_part_it_writes_and_says_what_reading_needs(tmp_path: Path) -> None:
    source = PACKAGE / "src" / "whosup"
    target = tmp_path / "whosup"
    target.mkdir()
    for file in source.glob("*.py"):
        (target / file.name).write_bytes(file.read_bytes())
    program = (
        "import whosup\n"
        f"assert whosup.__file__.startswith({str(tmp_path)!r})\n"
        "from whosup import *\n"
        f"assert Owner.establish('my-agent', 's1', '/w', directory={str(tmp_path)!r}).path\n"
        "try: liveness('s1')\n"
        "except ReadError as error: print(error.code, error)\n"
    )
    output = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert output.stdout.startswith("native_missing reading sessions needs the native part")
    assert (tmp_path / "s1.runtime.json").is_file()
