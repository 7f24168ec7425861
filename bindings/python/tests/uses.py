"""What type checkers accept and refuse. `mypy --strict` reads it, which also reports an
`ignore` without an error; nothing runs it."""

from typing import Optional, Union

import whosup
from whosup import Confidence, Liveness, Owner, Phase, ReadErrorCode, Reason, WaitingFor
from whosup import SidecarErrorCode


def reads() -> None:
    answer: Union[Liveness, str] = whosup.liveness("s1")
    if answer == "none":
        return
    if whosup.liveness("s1") == "dead":  # type: ignore[comparison-overlap]
        return
    whosup.list_sessions(agents=["codex"])
    whosup.list_sessions(agents=("codex",))
    whosup.list_sessions(agents={"codex"})
    whosup.list_sessions(agents="codex")  # type: ignore[arg-type]
    try:
        session = whosup.session("s1")["sessions"][0]
    except whosup.ReadError as error:
        code: ReadErrorCode = error.code
        home: str = error.candidates[0]["home"]
        print(code, home, error.code == "gone")  # type: ignore[comparison-overlap]
        return
    phase: Optional[Phase] = session["phase"]
    reason: Reason = session["reason"]
    waiting_for: Optional[WaitingFor] = session["waiting_for"]
    confidence: Optional[Confidence] = session["confidence"]
    print(phase, reason, waiting_for, confidence)
    print(reason == "because")  # type: ignore[comparison-overlap]
    print(session["liveness"] == "none")  # type: ignore[comparison-overlap]
    print(session["phase_at_exit"] == "ended")  # type: ignore[comparison-overlap]


def writes() -> None:
    owner = Owner.establish("my-agent", "s1", "/w", serves="one")
    owner.update("waiting", "question")
    owner.update("ended")  # type: ignore[arg-type]
    owner.update("waiting", "lunch")  # type: ignore[arg-type]
    if owner.last_error is not None:
        code: SidecarErrorCode = owner.last_error.code
        print(code)


async def watches() -> None:
    for change in whosup.watch(agents=["codex"]):
        if change["kind"] == "added":
            liveness: Liveness = change["session"]["liveness"]
            print(liveness)
        elif change["kind"] == "changed":
            print(change["changes"]["phase"]["new"])
        elif change["kind"] == "vanished":  # type: ignore[comparison-overlap]
            return
    async with whosup.watch() as changes:
        async for one in changes:
            cursor: str = one["cursor"]
            print(cursor)
    waited: whosup.Waited = whosup.wait("s1", until="waiting", timeout=1)
    print((await whosup.wait_async(until="exited"))["outcome"] == waited["outcome"])
    whosup.wait("s1", until="lunch")  # type: ignore[arg-type]
