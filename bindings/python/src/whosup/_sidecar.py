"""Reads a sidecar as strictly as a writer must, to know whose file it is."""

import json
from typing import Any, Dict, List, Optional, Tuple

from ._disk import BYTES_MAX
from ._error import SidecarError
from ._name import checked_session

_STRINGS = (
    "process_start",
    "process_start_kind",
    "boot_id",
    "executable",
    "serves",
    "phase",
    "waiting_for",
    "transcript",
    "endpoint",
)


def _once(pairs: "List[Tuple[str, Any]]") -> Dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key is there twice")
    return fields


def parse(data: bytes) -> Optional[Dict[str, Any]]:
    """The fields of a sidecar; ``None`` if it is none."""
    if len(data) > BYTES_MAX:
        return None
    try:
        fields = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
        if not isinstance(fields, dict) or not _is_right(fields):
            return None
        checked_session(fields["session_id"])
    except (ValueError, RecursionError, SidecarError):
        return None
    return fields


def _is_integer(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_right(fields: Dict[str, Any]) -> bool:
    started_at = fields.get("started_at")
    return (
        _is_integer(fields.get("schema_version"), 1, 1)
        and _is_integer(fields.get("pid"), 0, 2**31 - 1)
        and isinstance(fields.get("session_id"), str)
        and isinstance(fields.get("work_dir"), str)
        and bool(fields["work_dir"])
        and isinstance(fields.get("hostname"), str)
        and isinstance(started_at, (int, float))
        and not isinstance(started_at, bool)
        and 1 <= started_at <= 253_370_764_800
        and all(isinstance(fields.get(key), (str, type(None))) for key in _STRINGS)
        and (
            fields.get("pid_namespace") is None
            or _is_integer(fields["pid_namespace"], 1, 2**63 - 1)
        )
    )
