"""Reads sessions. The native part looks; here its answers get their types."""

import json
import os
from typing import Any, Optional, Sequence, Union, cast

from ._document import Explanation, Snapshot

try:
    from . import _native
except ImportError as error:
    raise ImportError(
        "reading sessions needs the native part of whosup, which is not installed here"
        " (writing a sidecar does not): install a wheel for this platform, or, in a"
        " checkout of whosup with a Rust toolchain, `pip install ./bindings/python`"
    ) from error

_Path = Union[str, "os.PathLike[str]", None]


def list_sessions(
    *, all: bool = False, agents: Sequence[str] = (), cwd: _Path = None
) -> Snapshot:
    """Lists sessions, as ``whosup list --json`` does.

    Those that are live or unknown, and those that died without an end in the
    last day; with ``all`` every session on disk. Of these agents only
    (``["claude-code", "codex"]``), if any are named; in the directory ``cwd``
    or below it only, if there is one. What could not be read is in the answer's
    ``problems``. Raises `ReadError`.
    """
    return cast(Snapshot, _parse(_native.list_sessions(all, list(agents), _path(cwd))))


def session(id: str, *, home: _Path = None) -> Optional[Snapshot]:
    """Tells all that is known of one session, as ``whosup show ID --json`` does.

    The id may be a beginning that no other session has, and may say the agent:
    ``codex:01a2``. ``home`` is the agent's home, where several have the session.
    None if there is no such session. Raises `ReadError`, also where the session
    was not found and not every place could be looked at.
    """
    return cast(Optional[Snapshot], _parse(_native.session(id, _path(home))))


def is_live(id: str, *, home: _Path = None) -> Optional[bool]:
    """Tells whether a session is live.

    False only if it is known to have exited. None if that can't be told, or if
    no such session is known. Raises `ReadError` if the id is malformed or means
    several sessions.
    """
    return cast(Optional[bool], _parse(_native.is_live(id, _path(home))))


def why(id: str, *, home: _Path = None) -> Optional[Explanation]:
    """Tells what the answer about a session rests on, as ``whosup why ID --json``
    does: ``explanation`` has it in sentences.

    None if there is no such session. Raises `ReadError` as `session` does.
    """
    return cast(Optional[Explanation], _parse(_native.why(id, _path(home))))


def _parse(answer: str) -> Any:
    return json.loads(answer)


def _path(path: _Path) -> Optional[str]:
    return None if path is None else os.fspath(path)
