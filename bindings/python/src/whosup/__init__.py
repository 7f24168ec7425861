"""Says which process serves which session of a coding agent.

>>> from whosup import Owner
>>> owner = Owner.establish("my-agent", "s1", "/home/dev/app", version="1.2.0")  # doctest: +SKIP
>>> owner.update("working")  # doctest: +SKIP
>>> owner.switch_session("s2")  # doctest: +SKIP
>>> owner.release()  # doctest: +SKIP

Plain Python without dependencies; ``docs/sidecar.md`` describes the file.
"""

from ._error import SidecarError
from ._owner import Owner

__all__ = ["Owner", "SidecarError"]
