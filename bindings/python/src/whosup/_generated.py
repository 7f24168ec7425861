"""Generated from the Rust enums by crates/core/tests/bindings.rs."""

from typing import Literal

__version__ = "0.1.0"

# What became of the process that serves a session.
Liveness = Literal[
    "live",
    "unknown",
    "exited",
]

# Why a session has its liveness.
Reason = Literal[
    "start-stamp",
    "started-before-claim",
    "lock-held",
    "arguments",
    "launch",
    "run",
    "terminal",
    "parent-live",
    "released",
    "process-gone",
    "rebooted",
    "namespace-gone",
    "no-such-process",
    "zombie",
    "pid-is-a-thread",
    "pid-reused",
    "lock-not-held",
    "superseded",
    "no-process",
    "parent-exited",
    "proc-not-ours",
    "untrusted-claim",
    "other-host",
    "other-pid-namespace",
    "ambiguous",
    "probe-failed",
    "hidden",
    "incomplete-view",
    "unreadable",
    "other-time-namespace",
    "program-changed",
    "boot-not-known",
    "younger-than-claim",
    "unrecognized-program",
    "bare-pid",
    "may-be-served-by",
    "held-by-other",
    "owner-not-found",
    "parent-unknown",
]

# How a live session is known to be live.
Confidence = Literal[
    "proven",
    "consistent",
    "inferred",
]

# What a conversation is doing.
Phase = Literal[
    "starting",
    "idle",
    "working",
    "waiting",
    "ended",
]

# A phase of a conversation that has not ended.
OpenPhase = Literal[
    "starting",
    "idle",
    "working",
    "waiting",
]

# What a waiting session waits for.
WaitingFor = Literal[
    "permission",
    "question",
    "auth",
    "prompt",
]

# What can be waited for.
Until = Literal[
    "starting",
    "idle",
    "working",
    "waiting",
    "ended",
    "exited",
]

# How many sessions a process serves at once.
Serves = Literal[
    "one",
    "many",
]

# Why a question about sessions has no answer.
ReadErrorCode = Literal[
    "ambiguous",
    "bad_argument",
    "bad_config",
    "no_such_agent",
    "no_such_session",
    "unreadable",
    "native_missing",
]

# Why a sidecar was not written.
SidecarErrorCode = Literal[
    "bad_argument",
    "forked",
    "io_error",
    "no_home",
    "not_established",
    "released",
]
