"""Errors: a text for people, and a stable code for programs."""

from typing import Sequence

from ._document import Candidate
from ._generated import ReadErrorCode, SidecarErrorCode


class SidecarError(Exception):
    """A sidecar could not be written. Nothing else is wrong: an agent can go on."""

    def __init__(self, message: str, code: SidecarErrorCode) -> None:
        super().__init__(message, code)
        self.code: SidecarErrorCode = code

    def __str__(self) -> str:
        return str(self.args[0])


class ReadError(Exception):
    """A question about sessions has no answer.

    If the code is ``ambiguous``, ``candidates`` has the sessions that the id may mean, at
    most 20 of them.
    """

    def __init__(
        self, message: str, code: ReadErrorCode, candidates: Sequence[Candidate] = ()
    ) -> None:
        super().__init__(message, code, candidates)
        self.code: ReadErrorCode = code
        self.candidates = list(candidates)

    def __str__(self) -> str:
        return str(self.args[0])
