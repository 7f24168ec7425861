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
>>> for change in watch():  # doctest: +SKIP
...     print(change["kind"])
>>> wait("s2", until="waiting")["outcome"]  # doctest: +SKIP
'reached'

Writing is plain Python without dependencies; ``docs/sidecar.md`` describes the
file. Reading needs the native part, which is loaded at the first question.
"""

from ._document import (
    Added,
    Candidate,
    Change,
    Changed,
    Explanation,
    FieldChange,
    Problem,
    ProblemsChange,
    Removed,
    Session,
    Snapshot,
    SnapshotChange,
    Unattributed,
    UnattributedChange,
    Waited,
)
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
    Until,
    WaitingFor,
    __version__,
)
from ._live import Watch, wait, wait_async, watch
from ._owner import Owner
from ._reader import list_sessions, liveness, session, why

__all__ = [
    "Added",
    "Candidate",
    "Change",
    "Changed",
    "Confidence",
    "Explanation",
    "FieldChange",
    "Liveness",
    "OpenPhase",
    "Owner",
    "Phase",
    "Problem",
    "ProblemsChange",
    "ReadError",
    "ReadErrorCode",
    "Reason",
    "Removed",
    "Serves",
    "Session",
    "SidecarError",
    "SidecarErrorCode",
    "Snapshot",
    "SnapshotChange",
    "Unattributed",
    "UnattributedChange",
    "Until",
    "Waited",
    "WaitingFor",
    "Watch",
    "__version__",
    "list_sessions",
    "liveness",
    "session",
    "wait",
    "wait_async",
    "watch",
    "why",
]
