"""Says which process serves which session of a coding agent, and asks it.

>>> from whosup import Owner
>>> owner = Owner.establish("my-agent", "s1", "/home/dev/app", version="1.2.0")  # doctest: +SKIP
>>> owner.update("working")  # doctest: +SKIP
>>> owner.switch_session("s2")  # doctest: +SKIP
>>> owner.release()  # doctest: +SKIP

>>> from whosup import is_live, list_sessions
>>> for session in list_sessions()["sessions"]:  # doctest: +SKIP
...     print(session["agent"], session["session_id"], session["liveness"])
>>> is_live("s2")  # doctest: +SKIP
True

Writing is plain Python without dependencies; ``docs/sidecar.md`` describes the
file. Reading needs the native part, which is loaded once a reader is imported.
"""

from typing import TYPE_CHECKING, Any

from ._document import Explanation, Problem, Session, Snapshot, Unattributed
from ._error import ReadError, SidecarError
from ._owner import Owner

if TYPE_CHECKING:
    from ._reader import is_live as is_live
    from ._reader import list_sessions as list_sessions
    from ._reader import session as session
    from ._reader import why as why

# Without the readers: `import *` works without the native part.
__all__ = [
    "Explanation",
    "Owner",
    "Problem",
    "ReadError",
    "Session",
    "SidecarError",
    "Snapshot",
    "Unattributed",
]

_READERS = ("is_live", "list_sessions", "session", "why")


def __getattr__(name: str) -> Any:
    if name not in _READERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _reader

    return getattr(_reader, name)
