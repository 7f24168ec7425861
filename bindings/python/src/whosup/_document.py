"""The documents that tell of sessions, as ``schema/whosup.v1.schema.json`` has them.

Times are RFC 3339 in UTC. What is absent is None. New fields may come.
"""

from typing import Dict, List, Optional, TypedDict

from ._generated import Confidence, Liveness, OpenPhase, Phase, Reason, WaitingFor


class Host(TypedDict):
    """Where PIDs mean what they mean here."""

    hostname: Optional[str]
    boot_id: Optional[str]
    pid_namespace: Optional[int]


class Process(TypedDict):
    """A process."""

    pid: int
    start_stamp: str
    start_stamp_kind: str
    started_at: Optional[str]
    executable: Optional[str]
    stopped: bool
    cpu_percent: Optional[float]
    rss_bytes: Optional[int]


class Context(TypedDict):
    """How full a session's context is."""

    tokens: int
    window: Optional[int]
    percent: Optional[float]


class Turn(TypedDict):
    """A session's current turn."""

    started_at: Optional[str]
    tokens: Optional[int]


class Usage(TypedDict):
    """What a session used in all."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class PaneServer(TypedDict):
    """One run of a pane host's server."""

    socket: str
    pid: Optional[int]
    start_stamp: Optional[str]


class Pane(TypedDict):
    """The pane that shows a session."""

    host: str
    server: PaneServer
    session: str
    pane: str


class Files(TypedDict):
    """A session's files."""

    transcript: Optional[str]
    record: Optional[str]


class Command(TypedDict):
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


class Evidence(TypedDict):
    """A piece of what an answer rests on."""

    kind: str
    path: Optional[str]
    says: str
    at: Optional[str]
    verdict: Liveness
    reason: Reason


class _SessionSometimes(TypedDict, total=False):
    work_dir_bytes: str
    end_cause: str
    cpu_seconds_at_least: float


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
    phase_word: Optional[str]
    orphan: bool
    superseded_by: Optional[str]
    parent_session_id: Optional[str]
    owner: Optional[Process]
    owner_shared: bool
    client: Optional[Process]
    client_ambiguous: bool
    other_live_pids: List[int]
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
    context: Optional[Context]
    turn: Optional[Turn]
    usage: Optional[Usage]
    pane: Optional[Pane]
    files: Files
    endpoint: Optional[str]
    home: Optional[str]
    dismissed: bool
    attach: Optional[Command]
    resume: Optional[Resume]
    evidence: List[Evidence]


class Unattributed(TypedDict):
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


class Problem(TypedDict):
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
