"""Watches sessions and waits for them. The engine looks, in a thread of its own, and only
when something happened; nothing here polls."""

import asyncio
import json
import time
from types import TracebackType
from typing import Any, Optional, Tuple, Type, cast

from ._document import Change, Waited
from ._error import ReadError
from ._generated import Until
from ._reader import _Names, _Path, _id, _names, _native, _path, _refused


class Watch:
    """The changes of what `whosup list` shows: an iterator, and one for ``async for``.

    First a ``snapshot``, then each change. It begins with the first one that is asked for,
    and ends when it is closed, left (``with``, ``async with``, `contextlib.aclosing`) or
    dropped, or when the task that waits for it is cancelled.
    """

    def __init__(self, agents: _Names, cwd: _Path) -> None:
        self._asked = (_names("watch", agents), _path("cwd", cwd))
        self._live: Any = None
        self._is_closed = False

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> Change:
        if self._is_closed:
            raise StopIteration
        if self._live is None:
            self._live = _begin("watch", *self._asked)
        live = self._live
        while not live.is_closed:
            change = _taken(live)
            if change is not None:
                return cast(Change, change)
            live.ring()
        raise StopIteration

    def close(self) -> None:
        """Ends it, from whatever thread. Whoever waits for a change gets no more."""
        self._is_closed = True
        if self._live is not None:
            self._live.close()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self, _type: Optional[Type[BaseException]], _error: Optional[BaseException], _at: Optional[TracebackType]
    ) -> None:
        self.close()

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> Change:
        try:
            if self._live is None and not self._is_closed:
                self._live = await asyncio.to_thread(_begin, "watch", *self._asked)
                if self._is_closed:
                    self._live.close()
            live = self._live
            while live is not None and not live.is_closed:
                change = _taken(live)
                if change is not None:
                    return cast(Change, change)
                await _rung(live)
        except asyncio.CancelledError:
            self.close()
            raise
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends it, as `close` does."""
        self.close()

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(
        self, _type: Optional[Type[BaseException]], _error: Optional[BaseException], _at: Optional[TracebackType]
    ) -> None:
        self.close()


def watch(*, agents: _Names = (), cwd: _Path = None) -> Watch:
    """Watches sessions, as ``whosup watch`` does, with the same filters as `list_sessions`.

    >>> for change in whosup.watch():  # doctest: +SKIP
    ...     print(change["kind"])

    Raises `ReadError` with the first change if nothing can be watched.
    """
    return Watch(agents, cwd)


def wait(
    id: Optional[str] = None,
    *,
    until: Until,
    home: _Path = None,
    agents: _Names = (),
    cwd: _Path = None,
    next: bool = False,
    timeout: Optional[float] = None,
) -> Waited:
    """Waits until a session has come to a phase or has exited, as ``whosup wait`` does.

    Without an ``id`` it waits for any session, of ``agents`` and in ``cwd`` if they are given.
    What is so already counts, unless ``next`` asks for a change. ``timeout`` is in seconds.
    The ``outcome`` is ``reached``, ``exited`` (before that), ``unknown`` (and nothing that runs
    can change that) or ``timed_out``. Raises `ReadError` as `session` does.
    """
    until_s = None if timeout is None else time.monotonic() + timeout
    live = _begin("wait", *_asked(id, home, until, next, agents, cwd))
    try:
        while True:
            waited = _taken(live)
            if waited is not None:
                return cast(Waited, waited)
            rest_s = None if until_s is None else until_s - time.monotonic()
            if rest_s is not None and rest_s <= 0:
                return {"outcome": "timed_out", "sessions": []}
            live.ring(rest_s)
    finally:
        live.close()


async def wait_async(
    id: Optional[str] = None,
    *,
    until: Until,
    home: _Path = None,
    agents: _Names = (),
    cwd: _Path = None,
    next: bool = False,
    timeout: Optional[float] = None,
) -> Waited:
    """The same as `wait` for a task: it can be cancelled, and others run meanwhile."""
    live: Any = None

    async def waits() -> Waited:
        nonlocal live
        live = await asyncio.to_thread(_begin, "wait", *_asked(id, home, until, next, agents, cwd))
        while True:
            waited = _taken(live)
            if waited is not None:
                return cast(Waited, waited)
            await _rung(live)

    try:
        return await asyncio.wait_for(waits(), timeout)
    except asyncio.TimeoutError:
        return {"outcome": "timed_out", "sessions": []}
    finally:
        if live is not None:
            live.close()


def _asked(
    id: Optional[str], home: _Path, until: str, is_next: bool, agents: _Names, cwd: _Path
) -> Tuple[object, ...]:
    known = None if id is None else _id(id)
    return (known, _path("home", home), until, is_next, _names("wait for", agents), _path("cwd", cwd))


def _begin(what: str, *arguments: object) -> Any:
    begin = getattr(_native(), what, None)
    if begin is None:
        raise ReadError("cannot watch sessions on this system", "native_missing")
    try:
        live, reply = begin(*arguments)
    except (TypeError, ValueError) as error:
        raise _refused(f"cannot watch sessions: {error}") from error
    if live is None:
        raise ReadError(**json.loads(reply)["error"])
    return live


def _taken(live: Any) -> Any:
    """What there is to read; None if there is nothing."""
    reply = live.take()
    if reply is None:
        return None
    reply = json.loads(reply)
    if "error" in reply:
        live.close()
        raise ReadError(**reply["error"])
    return reply["answer"]


async def _rung(live: Any) -> None:
    """Waits until there may be something to read, while the event loop does other things."""
    loop = asyncio.get_running_loop()
    rung = loop.create_future()

    def hear() -> None:
        if not rung.done():
            rung.set_result(None)

    loop.add_reader(live.fileno(), hear)
    try:
        await rung
    finally:
        loop.remove_reader(live.fileno())
