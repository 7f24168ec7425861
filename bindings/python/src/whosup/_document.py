"""The documents that tell of sessions, as the schemas in ``schema/`` have them.

Times are RFC 3339 in UTC. What is absent is None. New fields may come.
"""

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

from ._generated import Confidence, Liveness, OpenPhase, Phase, Reason, WaitingFor


class Host(TypedDict):
    """Where PIDs mean what they mean here."""

    hostname: Optional[str]
    boot_id: Optional[str]
    pid_namespace: Optional[int]


class _ProcessSometimes(TypedDict, total=False):
    executable_bytes: str


class Process(_ProcessSometimes):
    """A process."""

    pid: int
    start_stamp: str
    start_stamp_kind: str
    started_at: Optional[str]
    executable: Optional[str]
    stopped: bool
    tty: Optional[str]


class Context(TypedDict):
    """How full a session's context is."""

    tokens: int
    window: Optional[int]
    percent: Optional[float]
    window_assumed: bool


class Turn(TypedDict):
    """A session's current or last turn."""

    started_at: Optional[str]
    output_tokens: Optional[int]


class Cost(TypedDict):
    """A sum of money."""

    amount: float
    currency: str
    source: str


class Usage(TypedDict):
    """The tokens that a session used in all, its sub-agents left out."""

    input_tokens: Optional[int]
    cached_input_tokens: Optional[int]
    cache_write_tokens: Optional[int]
    output_tokens: Optional[int]
    reasoning_tokens: Optional[int]
    cost: Optional[Cost]
    tokens_without_price: int


class ProcessResources(TypedDict):
    """What one process uses."""

    cpu_percent: Optional[float]
    cpu_seconds: Optional[float]
    rss_bytes: Optional[int]
    pss_bytes: Optional[int]
    read_bytes: Optional[int]
    write_bytes: Optional[int]
    threads: Optional[int]


class TreeResources(TypedDict):
    """What a process and those below it use."""

    processes: int
    cpu_percent: Optional[float]
    cpu_seconds: Optional[float]
    rss_bytes: Optional[int]


class Resources(TypedDict):
    """What the processes of a session use."""

    shared: bool
    owner: Optional[ProcessResources]
    tree: Optional[TreeResources]


class WaitingOn(TypedDict):
    """What is asked of the person that a session waits for."""

    tool: Optional[str]
    text: Optional[str]


class _PaneServerSometimes(TypedDict, total=False):
    socket_bytes: str


class PaneServer(_PaneServerSometimes):
    """One run of a pane host's server."""

    socket: str
    pid: Optional[int]
    start_stamp: Optional[str]


class Pane(TypedDict):
    """The pane that shows a session."""

    host: str
    server: Optional[PaneServer]
    session: Optional[str]
    window: Optional[str]
    pane: Optional[str]
    outer: Optional["Pane"]


class OtherLive(TypedDict):
    """A live process of a session beside its owner."""

    pid: int
    start_stamp: str
    pane: Optional[Pane]


class _FilesSometimes(TypedDict, total=False):
    transcript_bytes: str
    record_bytes: str


class Files(_FilesSometimes):
    """A session's files."""

    transcript: Optional[str]
    record: Optional[str]


class _CommandSometimes(TypedDict, total=False):
    cwd_bytes: str
    env_bytes: Dict[str, str]


class Command(_CommandSometimes):
    """A command, for a person or a program to run."""

    argv: List[str]
    cwd: Optional[str]
    env: Dict[str, str]


class Resume(Command):
    """A command that continues a session.

    It is not trusted if it stands in a file that anybody may have written: run it only
    after a person has read it.
    """

    trusted: bool


class _PathSometimes(TypedDict, total=False):
    path_bytes: str


class Evidence(_PathSometimes):
    """A piece of what an answer rests on."""

    kind: str
    path: Optional[str]
    says: str
    at: Optional[str]
    verdict: Liveness
    reason: Reason


class _SessionSometimes(TypedDict, total=False):
    work_dir_bytes: str
    home_bytes: str


class Session(_SessionSometimes):
    """One session."""

    agent: str
    session_id: str
    liveness: Liveness
    reason: Reason
    confidence: Optional[Confidence]
    phase: Optional[Phase]
    phase_since: Optional[str]
    phase_at_exit: Optional[OpenPhase]
    waiting_for: Optional[WaitingFor]
    waiting_on: Optional[WaitingOn]
    phase_word: Optional[str]
    orphan: bool
    superseded_by: Optional[str]
    parent_session_id: Optional[str]
    owner: Optional[Process]
    owner_shared: bool
    client: Optional[Process]
    client_ambiguous: bool
    other_live: List[OtherLive]
    detached: bool
    headless: bool
    work_dir: Optional[str]
    git_branch: Optional[str]
    title: Optional[str]
    model: Optional[str]
    agent_version: Optional[str]
    started_at: Optional[str]
    last_activity_at: Optional[str]
    ended_at: Optional[str]
    end_cause: Optional[str]
    cpu_seconds_at_least: Optional[float]
    context: Optional[Context]
    turn: Optional[Turn]
    usage: Optional[Usage]
    resources: Optional[Resources]
    pane: Optional[Pane]
    files: Files
    endpoint: Optional[str]
    home: Optional[str]
    dismissed: bool
    attach: Optional[Command]
    resume: Optional[Resume]
    evidence: List[Evidence]


class _UnattributedSometimes(TypedDict, total=False):
    work_dir_bytes: str


class Unattributed(_UnattributedSometimes):
    """An agent's process that no session is known of."""

    agent: str
    pid: int
    start_stamp: str
    started_at: Optional[str]
    work_dir: Optional[str]
    pane: Optional[Pane]
    candidates: List[str]
    candidate_titles: List[Optional[str]]
    reason: str


class Problem(_PathSometimes):
    """Something that could not be read."""

    agent: Optional[str]
    path: Optional[str]
    message: str


class Snapshot(TypedDict):
    """One look at one machine."""

    schema_version: int
    taken_at: Optional[str]
    host: Host
    sessions: List[Session]
    unattributed: List[Unattributed]
    problems: List[Problem]


class Explanation(Snapshot):
    """One session, and what the answer about it rests on, in sentences."""

    explanation: List[str]


class Candidate(TypedDict):
    """A session that an ambiguous id may mean: ``AGENT:SESSION_ID`` and the home together
    mean it alone."""

    agent: str
    session_id: str
    home: str
    liveness: Liveness
    work_dir: Optional[str]


class _InItsPlace(TypedDict):
    # The place behind it, `EPOCH-SEQUENCE`, and when the look was taken that shows it.
    cursor: str
    as_of: Optional[str]


class SnapshotChange(Snapshot, _InItsPlace):
    """All that is shown. It comes first, and again for a reader that was too slow."""

    kind: Literal["snapshot"]


class Added(_InItsPlace):
    """A session is shown that was not shown before."""

    kind: Literal["added"]
    session: Session


class FieldChange(TypedDict):
    """A field as it was and as it is."""

    old: Any
    new: Any


class Changed(_InItsPlace):
    """A session is another than before; ``changes`` has each field that is."""

    kind: Literal["changed"]
    agent: str
    session_id: str
    home: Optional[str]
    changes: Dict[str, FieldChange]


class Removed(_InItsPlace):
    """A session is no longer shown; ``session`` is as it is now."""

    kind: Literal["removed"]
    why: Literal["exited", "filtered", "hidden"]
    session: Session


class UnattributedChange(_InItsPlace):
    """Other processes are without a known session: all of them."""

    kind: Literal["unattributed"]
    unattributed: List[Unattributed]


class ProblemsChange(_InItsPlace):
    """Something else could not be read: all of it."""

    kind: Literal["problems"]
    problems: List[Problem]


Change = Union[SnapshotChange, Added, Changed, Removed, UnattributedChange, ProblemsChange]


class Waited(TypedDict):
    """What came of waiting, and of which sessions."""

    outcome: Literal["reached", "exited", "unknown", "timed_out"]
    sessions: List[Session]
