"""Which process this is, and whether another one is provably gone."""

import os
import socket
import sys
from typing import Any, Dict, List, Optional

_INITIAL_PID_NAMESPACE = 0xEFFFFFFC
_INITIAL_TIME_NAMESPACE = 0xEFFFFFFA
_PROCESSES_MAX = 100_000
_SLACK_S = 2.0
_PLATFORMS = {"linux-ticks": "linux", "darwin-tv": "darwin", "darwin-date": "darwin", "filetime": "win32"}
_SHARED_TYPES = frozenset(
    "9p afs beegfs ceph cifs coda drvfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 "
    "orangefs pvfs2 smb3 smbfs vboxsf virtiofs fuse fuseblk".split()
)


def _read(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read(65536)
    except OSError:
        return None


def _namespace(kind: str) -> Optional[int]:
    try:
        text = os.readlink(f"/proc/self/ns/{kind}")
        return int(text.partition(":[")[2].rstrip("]"))
    except (OSError, ValueError):
        return None


def _is_proc_ours() -> bool:
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def _stat(pid: int) -> "Optional[List[bytes]]":
    """The fields of ``/proc/PID/stat`` from the state on: the name before it
    may have anything in it."""
    text = _read(f"/proc/{pid}/stat")
    if text is None:
        return None
    fields = text.rpartition(b")")[2].split()
    return fields if len(fields) > 19 else None


def _start(pid: int) -> Optional[str]:
    stat = _stat(pid)
    return stat[19].decode("ascii", "replace") if stat else None


def _boot_id() -> Optional[str]:
    text = _read("/proc/sys/kernel/random/boot_id")
    return text.decode("ascii", "replace").strip().lower() if text else None


def _is_stamp_for_all() -> bool:
    namespace = _namespace("time")
    return namespace is None or namespace == _INITIAL_TIME_NAMESPACE


def own_identity() -> Dict[str, Any]:
    """What names this process for ever, as far as it can be read."""
    identity: Dict[str, Any] = {}
    if _is_proc_ours():
        start = _start(os.getpid()) if _is_stamp_for_all() else None
        if start is not None:
            identity["process_start"] = start
            identity["process_start_kind"] = "linux-ticks"
    boot_id = _boot_id()
    if boot_id is not None:
        identity["boot_id"] = boot_id
    namespace = _namespace("pid")
    if namespace is not None:
        identity["pid_namespace"] = namespace
    try:
        executable = os.readlink("/proc/self/exe")
        executable.encode()
        if os.path.exists(executable):
            identity["executable"] = executable
    except (OSError, UnicodeEncodeError):
        pass
    return identity


def host_name() -> str:
    try:
        return os.uname().nodename
    except AttributeError:  # Windows
        return socket.gethostname()


def is_same_process(sidecar: Dict[str, Any], identity: Dict[str, Any]) -> bool:
    """Whether a sidecar names this very process."""
    keys = ("process_start", "process_start_kind", "boot_id", "pid_namespace")
    return (
        sidecar["pid"] == os.getpid()
        and identity.get("process_start") is not None
        and all(sidecar.get(key) == identity.get(key) for key in keys)
    )


def is_gone(sidecar: Dict[str, Any], directory: str) -> bool:
    """Whether the process that a sidecar names is provably gone."""
    pid = sidecar["pid"]
    if pid == 0:
        return True
    kind = sidecar.get("process_start_kind")
    if _PLATFORMS.get(kind or "", sys.platform) != sys.platform:
        return False
    is_same_host = _is_same_host(sidecar["hostname"])
    boot, ours = sidecar.get("boot_id"), _boot_id()
    if boot and ours:
        if boot.strip().lower() != ours:
            booted = _booted_at()
            return (
                is_same_host
                and booted is not None
                and sidecar["started_at"] < booted - _SLACK_S
                and not _is_shared(directory)
            )
    elif not is_same_host or _is_shared(directory):
        return False
    if not _is_number_of_here(sidecar.get("pid_namespace")):
        return False
    return _has_exited(pid, sidecar)


def _is_same_host(named: str) -> bool:
    ours = host_name().partition(".")[0].lower()
    return bool(ours) and ours == named.partition(".")[0].lower()


def _booted_at() -> Optional[float]:
    for line in (_read("/proc/stat") or b"").splitlines():
        if line.startswith(b"btime "):
            return float(line.split()[1])
    return None


def _is_number_of_here(named: Optional[int]) -> bool:
    ours = _namespace("pid")
    if named is not None:
        return named == ours
    if ours is None:
        # A system without PID namespaces.
        return not os.path.isdir("/proc/self")
    return ours == _INITIAL_PID_NAMESPACE and not _are_there_others()


def _are_there_others() -> bool:
    """Whether processes of nested PID namespaces may be about."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return True
    for name in names[:_PROCESSES_MAX]:
        if name.isdigit():
            for line in (_read(f"/proc/{name}/status") or b"").splitlines():
                if line.startswith(b"NSpid:") and len(line.split()) > 2:
                    return True
    return False


def _is_thread(pid: int) -> bool:
    """Whether a number is that of a thread, and no process's."""
    for line in (_read(f"/proc/{pid}/status") or b"").splitlines():
        if line.startswith(b"Tgid:"):
            return line.split()[1] != str(pid).encode()
    return False


def _has_exited(pid: int, sidecar: Dict[str, Any]) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        # It exists and is not ours; or nothing can be said.
        pass
    if sidecar.get("process_start_kind") != "linux-ticks" or not _is_proc_ours():
        return False
    stat = _stat(pid)
    if stat is None:
        return False
    # A zombie that has no threads left, or a kernel's thread (PF_KTHREAD).
    if (stat[0] in (b"Z", b"X") and int(stat[17]) <= 1) or int(stat[6]) & 0x200000:
        return True
    if _is_thread(pid):
        return True
    start = sidecar.get("process_start")
    return start is not None and _is_stamp_for_all() and stat[19].decode() != start


def _is_shared(directory: str) -> bool:
    """Whether machines may share the file system of a directory."""
    if os.name == "nt":
        return directory.startswith("\\\\")
    best, kind = "", None
    real = os.path.realpath(directory)
    for line in (_mounts() or b"").splitlines():
        fields = line.split(b" ")
        if len(fields) < 9 or b"-" not in fields:
            continue
        at = fields[4].decode("utf-8", "surrogateescape").encode("latin-1", "replace")
        point = at.decode("unicode_escape") if b"\\" in at else fields[4].decode("utf-8", "replace")
        is_above = real == point or real.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):
            best, kind = point, fields[fields.index(b"-") + 1].decode("ascii", "replace")
    if kind is None:
        return os.path.isdir("/proc/self")
    return kind in _SHARED_TYPES or kind.startswith("fuse.")


def _mounts() -> Optional[bytes]:
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return file.read(8 << 20)
    except OSError:
        return None
