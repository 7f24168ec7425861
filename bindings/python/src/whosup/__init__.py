"""Says which process serves which session of a coding agent, and asks it.

>>> from whosup import Owner
>>> owner = Owner.establish("my-agent", "s1", "/home/dev/app", version="1.2.0")  # doctest: +SKIP
>>> owner.update("working")  # doctest: +SKIP
>>> owner.switch_session("s2")  # doctest: +SKIP
>>> owner.release()  # doctest: +SKIP

>>> from whosup import list_sessions, liveness
>>> for session in list_sessions()["sessions"]:  # doctest: +SKIP
...     print(session["agent"], session["session_id"], session["liveness"])
>>> liveness("s2")  # doctest: +SKIP
'live'

Writing is plain Python without dependencies; ``docs/sidecar.md`` describes the
file. Reading needs the native part, which is loaded at the first question.
"""

from ._document import Candidate, Explanation, Problem, Session, Snapshot, Unattributed
from ._error import ReadError, SidecarError
from ._generated import (
    Confidence,
    Liveness,
    OpenPhase,
    Phase,
    ReadErrorCode,
    Reason,
    Serves,
    SidecarErrorCode,
    WaitingFor,
    __version__,
)
from ._owner import Owner
from ._reader import list_sessions, liveness, session, why

__all__ = [
    "Candidate",
    "Confidence",
    "Explanation",
    "Liveness",
    "OpenPhase",
    "Owner",
    "Phase",
    "Problem",
    "ReadError",
    "ReadErrorCode",
    "Reason",
    "Serves",
    "Session",
    "SidecarError",
    "SidecarErrorCode",
    "Snapshot",
    "Unattributed",
    "WaitingFor",
    "__version__",
    "list_sessions",
    "liveness",
    "session",
    "why",
]
