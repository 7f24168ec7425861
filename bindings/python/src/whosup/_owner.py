"""The writer: one handle that announces which session its process serves."""

import functools
import json
import os
import re
import threading
import time
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVar,
    Union,
    cast,
    get_args,
)

from . import _disk
from ._error import SidecarError
from ._generated import OpenPhase, Serves, WaitingFor
from ._name import checked_agent, checked_session
from ._process import host_name, is_gone, is_same_process, own_identity
from ._sidecar import parse

_SUFFIX = ".runtime.json"
_TAKES_MAX = 8
_SIBLINGS_MAX = 16
_LISTED_MAX = 10_000
_LEFT_OVER_AFTER_S = 3600.0

PathLike = Union[str, "os.PathLike[str]"]
Method = TypeVar("Method", bound=Callable[..., Any])

# The files that live handles of this process own.
_owned: Set[str] = set()
_owned_lock = threading.Lock()


def _forget_all() -> None:
    global _owned_lock
    _owned_lock = threading.Lock()
    _owned.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _best_effort(method: Method) -> Method:
    """Keeps what goes wrong with a sidecar from the agent, unless it asked for it."""

    @functools.wraps(method)
    def called(self: "Owner", *arguments: Any, **named: Any) -> bool:
        try:
            method(self, *arguments, **named)
        except SidecarError as error:
            failed = error
        except OSError as error:
            failed = SidecarError(f"cannot write sidecar: {error}", "io_error")
            failed.__cause__ = error
        else:
            self.last_error = None
            return True
        self.last_error = failed
        if self._strict:
            raise failed
        return False

    return cast(Method, called)


class Owner:
    """Announces which session this process serves, by a sidecar.

    Every thread, and every task of an event loop, may use it: calls take effect
    one after the other. A call returns whether it was done. If it was not,
    ``last_error`` says why; with ``strict=True`` the call raises that
    :class:`SidecarError`. The next call that is done clears it. In a forked child it
    does nothing; the child establishes a session of its own.

    The end of the process leaves the file where it is: readers judge by the
    process. Whoever ends a session on purpose calls :meth:`release`.
    """

    def __init__(
        self, agent: str, version: Optional[str], strict: bool, serves: Optional[Serves] = None
    ) -> None:
        self._agent = agent
        self._version = version
        self._serves = serves
        self._strict = strict
        self._maker = os.getpid()
        self._lock = threading.RLock()
        self._identity = own_identity()
        self._session: Dict[str, Any] = {}
        self._place: Tuple[str, str] = ("", "")
        self._phase: "Tuple[Optional[str], Optional[str]]" = (None, None)
        self._started_at = 0.0
        self._written: Optional[Tuple[str, bytes]] = None
        self._left: List[Tuple[str, bytes]] = []
        self._is_behind = True
        self._is_released = False
        self.last_error: Optional[SidecarError] = None

    @classmethod
    def establish(
        cls,
        agent: str,
        session_id: str,
        work_dir: PathLike,
        *,
        version: Optional[str] = None,
        serves: Optional[Serves] = None,
        directory: Optional[PathLike] = None,
        session_directory: Optional[PathLike] = None,
        transcript: Optional[PathLike] = None,
        client_pid: Optional[int] = None,
        resume: Union[str, Sequence[str], None] = None,
        endpoint: Optional[str] = None,
        strict: bool = False,
    ) -> "Owner":
        """Announces that this process serves a session from now on.

        The file goes to the common place, or to ``directory``, which sessions
        share, or to ``session_directory``, which is the session's alone.

        ``serves`` announces how many sessions a process of the agent serves at once:
        ``one`` if it leaves a session when it takes up another, ``many`` if it is a
        daemon. Without it, readers take every session that the process announces for
        current.
        """
        owner = cls(agent, version, strict, serves)
        owner._establish(
            session_id,
            work_dir=work_dir,
            directory=directory,
            session_directory=session_directory,
            transcript=transcript,
            client_pid=client_pid,
            resume=resume,
            endpoint=endpoint,
        )
        return owner

    @_best_effort
    def _establish(self, session_id: str, **more: Any) -> None:
        checked_agent(self._agent)
        if self._serves is not None:
            _check_word("serves", self._serves, get_args(Serves))
        with self._lock:
            self._take(session_id, **more)
            self._write_new()
            self._clear_left_overs()

    @_best_effort
    def switch_session(
        self,
        session_id: str,
        *,
        work_dir: Optional[PathLike] = None,
        directory: Optional[PathLike] = None,
        session_directory: Optional[PathLike] = None,
        transcript: Optional[PathLike] = None,
        client_pid: Optional[int] = None,
        resume: Union[str, Sequence[str], None] = None,
        endpoint: Optional[str] = None,
    ) -> bool:
        """Announces that the process has left its session for another one.

        What is not said about the directories is as it was.
        """
        self._require_open()
        with self._lock:
            self._require_open()
            before = self._place
            if directory is None and session_directory is None:
                directory = self._directory
            self._take(
                session_id,
                work_dir=self._session.get("work_dir") if work_dir is None else work_dir,
                directory=directory,
                session_directory=session_directory,
                transcript=transcript,
                client_pid=client_pid,
                resume=resume,
                endpoint=endpoint,
            )
            if self._place == before:
                self._write()
            else:
                old, self._written = self._written, None
                try:
                    self._write_new()
                finally:
                    if old is not None:
                        self._left.append(old)
                    self._remove_left()
        return True

    @_best_effort
    def update(self, phase: OpenPhase, waiting_for: Optional[WaitingFor] = None) -> bool:
        """Announces what the conversation is doing: ``starting``, ``idle``,
        ``working`` or ``waiting`` (for ``permission``, ``question``, ``auth`` or
        ``prompt``). The same again costs nothing."""
        self._require_open()
        _check_word("phase", phase, get_args(OpenPhase))
        news = (phase, waiting_for if phase == "waiting" else None)
        if news[1] is not None:
            _check_word("waiting_for", news[1], get_args(WaitingFor))
        with self._lock:
            self._require_open()
            self._is_behind = self._is_behind or news != self._phase
            self._phase = news
            if self._is_behind:
                self._write()
            self._remove_left()
        return True

    @_best_effort
    def release(self) -> bool:
        """Announces that the process serves its session no longer: its file goes,
        and nothing is written any more."""
        self._require_maker()
        with self._lock:
            self._is_released = True
            if self._written is not None:
                self._left.append(self._written)
                self._written = None
            self._remove_left()
        return True

    @property
    def path(self) -> Optional[str]:
        """Where the sidecar is; ``None`` after a release, or if it could not be
        written."""
        if os.getpid() != self._maker:
            return None
        with self._lock:
            return self._written[0] if self._written else None

    def __repr__(self) -> str:
        return f"<Owner of {self._agent}:{self._session.get('id')}, file: {self.path}>"

    def __enter__(self) -> "Owner":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        written = getattr(self, "_written", None)
        if written is not None and os.getpid() == self._maker:
            _owned.discard(written[0])

    # Asked before the lock: a forked child may have inherited it locked.
    def _require_maker(self) -> None:
        if os.getpid() != self._maker:
            raise SidecarError(
                f"cannot write the sidecar of process {self._maker} from process {os.getpid()}",
                "forked",
            )

    def _require_open(self) -> None:
        self._require_maker()
        if self._is_released:
            raise SidecarError("cannot write a sidecar: it was released", "released")
        if not self._session:
            raise SidecarError(
                "cannot write a sidecar: no session was announced", "not_established"
            )

    def _take(self, session_id: str, **more: Any) -> None:
        """Takes a session for the current one, if it can be announced."""
        checked_session(session_id)
        session: Dict[str, Any] = {"id": session_id}
        work_dir = more["work_dir"]
        session["work_dir"] = _path("work_dir", work_dir if work_dir is not None else "")
        if more["transcript"] is not None:
            session["transcript"] = _text("transcript", more["transcript"])
        if more["resume"] is not None:
            resume = more["resume"]
            session["resume"] = resume if isinstance(resume, str) else list(resume)
        for key in ("client_pid", "endpoint"):
            if more[key] is not None:
                session[key] = more[key]
        own = more["session_directory"]
        self._directory = more["directory"]
        if own is not None:
            place = (_path("session_directory", own), "runtime.json")
        elif more["directory"] is not None:
            place = (_path("directory", more["directory"]), session_id + _SUFFIX)
        else:
            place = (os.path.join(_common_place(), self._agent), session_id + _SUFFIX)
        self._session, self._place = session, place
        self._phase = (None, None)
        self._started_at = time.time()
        self._is_behind = True

    def _bytes(self) -> bytes:
        session = self._session
        fields: Dict[str, Any] = {
            "schema_version": 1,
            "pid": self._maker,
            "session_id": session["id"],
            "work_dir": session["work_dir"],
            "hostname": host_name(),
            "started_at": round(self._started_at, 3),
            self._agent.replace("-", "_") + "_version": self._version,
        }
        fields.update(self._identity)
        fields.update({"serves": self._serves} if self._serves else {})
        phase, waiting_for = self._phase
        fields.update({"phase": phase} if phase else {})
        fields.update({"waiting_for": waiting_for} if waiting_for else {})
        for key in ("transcript", "client_pid", "resume", "endpoint"):
            if key in session:
                fields[key] = session[key]
        try:
            data = (json.dumps(fields, ensure_ascii=False) + "\n").encode()
        except (TypeError, ValueError) as error:
            raise SidecarError(f"cannot write a sidecar: {error}", "bad_argument") from error
        if len(data) > _disk.BYTES_MAX or parse(data) is None:
            raise SidecarError("cannot write a sidecar that readers would refuse", "bad_argument")
        return data

    def _write(self) -> None:
        """Writes what is announced, in place of what we wrote before."""
        data = self._bytes()
        if self._written is not None and _is_in_place(self._written):
            _disk.replace(self._written[0], data)
            self._written = (self._written[0], data)
            self._is_behind = False
            return
        # It was removed, or written over it.
        lost, self._written = self._written, None
        try:
            self._write_new()
        finally:
            if lost is not None and (self._written is None or self._written[0] != lost[0]):
                with _owned_lock:
                    _owned.discard(lost[0])

    def _write_new(self) -> None:
        directory, name = self._place
        data = self._bytes()
        _disk.make_directories(directory)
        path = self._claim(directory, name, data)
        with _owned_lock:
            _owned.add(path)
        self._written = (path, data)
        self._is_behind = False

    def _claim(self, directory: str, name: str, data: bytes) -> str:
        path = os.path.join(directory, name)
        for _ in range(_TAKES_MAX):
            there = self._what_is_there(path)
            try:
                if there is None:
                    _disk.make_new(path, data)
                    return path
                if there == "own":
                    _disk.replace(path, data)
                    return path
                if isinstance(there, bytes):
                    self._take_away(path, there)
                    continue
                break
            except FileExistsError:
                continue
        for _ in range(_SIBLINGS_MAX):
            path = os.path.join(directory, self._sibling())
            try:
                _disk.make_new(path, data)
                return path
            except FileExistsError:
                continue
        raise SidecarError(f"cannot write sidecar `{path}`: its names are taken", "io_error")

    def _sibling(self) -> str:
        return f"{self._session['id']}.claim-{_disk.digits()}{_SUFFIX}"

    def _what_is_there(self, path: str) -> Union[None, str, bytes]:
        """``None``: nothing. Bytes: a claim of a process that is gone. ``own``: one
        of this process that no handle owns. ``other``: another process's."""
        try:
            data = _disk.read(path)
        except OSError:
            return "other"
        if data is None:
            return None
        sidecar = parse(data)
        if sidecar is None:
            return "other"
        is_own_directory = self._place[1] == "runtime.json"
        if sidecar["session_id"] != self._session["id"] and not is_own_directory:
            return "other"
        if is_same_process(sidecar, self._identity):
            with _owned_lock:
                return "other" if path in _owned else "own"
        return data if _is_stale(sidecar, path) else "other"

    def _take_away(self, path: str, stale: bytes) -> None:
        """Takes a stale claim out of the way. Nothing is removed by a name that
        others use: it gets a name of ours first."""
        directory = os.path.dirname(path)
        with _disk.locked(directory):
            if _read(path) != stale:
                return
            aside = _disk.move_aside(path)
            if aside is None:
                return
            if _read(aside) == stale:
                _disk.remove(aside)
                return
            try:
                _disk.put_back(aside, path)
            except FileExistsError:
                _disk.put_back(aside, os.path.join(directory, self._sibling()))

    def _remove_left(self) -> None:
        failed = None
        still: List[Tuple[str, bytes]] = []
        for path, data in self._left:
            try:
                if _is_in_place((path, data)):
                    _disk.remove(path)
                with _owned_lock:
                    if self._written is None or self._written[0] != path:
                        _owned.discard(path)
            except OSError as error:
                still.append((path, data))
                failed = error
        self._left = still
        if failed is not None:
            raise SidecarError(
                f"cannot remove sidecar `{still[0][0]}`: {failed}", "io_error"
            ) from failed

    def _clear_left_overs(self) -> None:
        """Removes what dead writers left behind, and nothing else."""
        if self._written is None:
            return
        directory = os.path.dirname(self._written[0])
        sibling = re.compile(re.escape(self._session["id"]) + r"\.claim-[0-9a-fA-F]+\.runtime\.json")
        try:
            now = os.stat(self._written[0]).st_mtime
            with os.scandir(directory) as entries:
                names = [entry.name for _, entry in zip(range(_LISTED_MAX), entries)]
        except OSError:
            return
        for name in names:
            is_temporary = _disk.is_temporary(name)
            if not is_temporary and not sibling.fullmatch(name):
                continue
            path = os.path.join(directory, name)
            try:
                data = _disk.read(path)
                sidecar = parse(data or b"")
                if sidecar is not None:
                    is_left = _is_stale(sidecar, path)
                else:
                    age = now - os.lstat(path).st_mtime
                    is_left = is_temporary and age > _LEFT_OVER_AFTER_S
                if is_left:
                    _disk.remove(path)
            except OSError:
                continue


def _read(path: str) -> Optional[bytes]:
    try:
        return _disk.read(path)
    except OSError:
        return None


def _is_stale(sidecar: Dict[str, Any], path: str) -> bool:
    try:
        return _disk.is_trusted(path) and is_gone(sidecar, os.path.dirname(path))
    except OSError:
        return False


def _is_in_place(written: Tuple[str, bytes]) -> bool:
    return _read(written[0]) == written[1]


def _refused(why: str) -> SidecarError:
    return SidecarError(f"cannot announce a session: {why}", "bad_argument")


def _check_word(field: str, word: object, words: Tuple[str, ...]) -> None:
    if word not in words:
        raise _refused(f"`{field}` is none of {', '.join(words)}: {word!r}")


def _text(field: str, path: object) -> str:
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise _refused(f"`{field}` is no path: {path!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(f"`{field}` is not Unicode: {text!r}") from None
    return text


def _path(field: str, path: object) -> str:
    text = _text(field, path)
    if not os.path.isabs(text) or "\0" in text:
        raise _refused(f"`{field}` is not absolute: {text!r}")
    return text


def _common_place() -> str:
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            raise SidecarError(
                "cannot find the common place of sidecars: there is no home directory", "no_home"
            )
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "agent-sessions")
