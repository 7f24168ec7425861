"""The smallest agent: it does what ``whosup conformance`` tells it on standard
input (see docs/conformance.md), and announces its sessions."""

import os
import sys
from typing import cast

from whosup import OpenPhase, Owner, SidecarError


def fork(owner: Owner, session_id: str) -> None:
    """Lets a child try to use the handle, and reports what it got."""
    child = os.fork()
    if child == 0:
        try:
            owner.switch_session(session_id)
        except SidecarError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise SidecarError("the child was refused", "forked")


def main() -> None:
    owner = None
    for line in iter(sys.stdin.readline, ""):
        command, _, rest = line.rstrip("\n").partition(" ")
        try:
            if command == "start":
                owner = Owner.establish("driver-py", rest, os.getcwd(), version="0.1.0", strict=True)
            elif command == "exit":
                return
            elif command == "crash":
                os.abort()
            elif command not in ("switch", "phase", "release", "fork"):
                print("unsupported", flush=True)
                continue
            elif owner is None:
                raise SidecarError("nothing was started", "not_established")
            elif command == "switch":
                owner.switch_session(rest, work_dir=os.getcwd())
            elif command == "phase":
                # A word that is no phase is refused.
                phase = cast(OpenPhase, rest)
                owner.update(phase, "permission" if rest == "waiting" else None)
            elif command == "fork":
                fork(owner, rest)
            else:
                owner.release()
            print("ok", flush=True)
        except SidecarError as error:
            print("error", str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
