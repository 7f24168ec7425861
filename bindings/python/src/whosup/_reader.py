"""Reads sessions. The native part looks; here its answers get their types."""

import json
import os
from importlib import import_module
from typing import AbstractSet, Any, Collection, List, Literal, Optional, Tuple, Union, cast

from ._document import Explanation, Snapshot
from ._error import ReadError
from ._generated import Liveness

_Path = Union[str, "os.PathLike[str]", None]
# A string is a sequence of strings, and no list of names.
_Names = Union[List[str], Tuple[str, ...], AbstractSet[str]]

_NATIVE_MISSING = (
    "reading sessions needs the native part of whosup, which is not installed here"
    " (writing a sidecar does not): install a wheel for this platform, or, in a"
    " checkout of whosup with a Rust toolchain, `pip install ./bindings/python`"
)


def list_sessions(*, all: bool = False, agents: _Names = (), cwd: _Path = None) -> Snapshot:
    """Lists sessions, as ``whosup list --json`` does.

    Live and unknown sessions, and those that crashed in the last 24 hours; with ``all``
    every session on disk. ``agents`` names the agents to list (``["claude-code",
    "codex"]``), all of them if it is empty. With ``cwd``, only sessions in that directory
    or below it. What could not be read is in ``problems``. Raises `ReadError`.
    """
    return cast(Snapshot, _ask("list_sessions", all, _names("list", agents), _path("cwd", cwd)))


def session(id: str, *, home: _Path = None) -> Snapshot:
    """Describes one session, as ``whosup show ID --json`` does.

    ``id`` is the session ID or a unique prefix, with the agent before it if two agents
    share that: ``codex:01a2``. ``home`` is the agent's home, where several have the
    session. Raises `ReadError`: `code` is ``no_such_session`` if there is none, and
    ``unreadable`` if none was found and some places could not be searched.
    """
    return cast(Snapshot, _ask("session", _id(id), _path("home", home)))


def liveness(id: str, *, home: _Path = None) -> Union[Liveness, Literal["none"]]:
    """Reports whether a session is live.

    ``"exited"`` only if that is proven, and ``"none"`` only if every place was searched
    and there is no such session; ``"unknown"`` if either cannot be decided. Raises
    `ReadError` if the id is malformed or means several sessions.
    """
    return cast(Union[Liveness, Literal["none"]], _ask("liveness", _id(id), _path("home", home)))


def why(id: str, *, home: _Path = None) -> Explanation:
    """Explains the answer about a session, as ``whosup why ID --json`` does:
    ``explanation`` has the evidence in sentences. Raises `ReadError` as `session` does.
    """
    return cast(Explanation, _ask("why", _id(id), _path("home", home)))


def _ask(question: str, *arguments: object) -> Any:
    """Lets the native part look."""
    native = _native()
    try:
        reply = json.loads(getattr(native, question)(*arguments))
    except TypeError as error:
        raise _refused(f"cannot read sessions: {error}") from error
    if "error" in reply:
        raise ReadError(**reply["error"])
    return reply["answer"]


def _native() -> Any:
    """The native part. It is loaded here, so that writers do without it."""
    try:
        return import_module("._native", __package__)
    except ImportError as error:
        raise ReadError(_NATIVE_MISSING, "native_missing") from error


def _refused(message: str) -> ReadError:
    return ReadError(message, "bad_argument")


def _names(what: str, agents: _Names) -> List[str]:
    is_list = isinstance(agents, Collection) and not isinstance(agents, (str, bytes))
    if not is_list or any(not isinstance(name, str) for name in agents):
        raise _refused(f"cannot {what} sessions: `agents` must be a list of names such as ['codex'], not {agents!r}")
    return list(agents)


def _id(id: str) -> str:
    if not isinstance(id, str):
        raise _refused(f"cannot look for a session: `id` is no string: {id!r}")
    return id


def _path(name: str, path: _Path) -> Optional[str]:
    try:
        return None if path is None else os.fsdecode(path)
    except TypeError:
        raise _refused(f"cannot read sessions: `{name}` is no path: {path!r}") from None
