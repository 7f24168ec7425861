"""A writer of sidecars in one file, which does all that docs/sidecar.md asks of one.

It understands the lines of docs/conformance.md. `mutants.py` has the changes that make it
wrong, one sentence of docs/sidecar.md at a time; whoever reads it as an example reads the
libraries of `bindings` next, which know more systems than Linux.
"""

import ctypes
import fcntl
import json
import os
import re
import secrets
import stat
import sys
import time

AGENT = "mutant-py"
AT_FDCWD = -100
RENAME_NOREPLACE = 1
BYTES_MAX = 65_536
NAMES_MAX = 10_000
LOCK_TRIES_MAX = 500
LEFT_OVER_AFTER_S = 3600
SLACK_S = 2
DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(\..*)?", re.I)
FORBIDDEN = frozenset('/\\<>:"|?*')
INVISIBLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF9, 0xFFFB), (0xE0000, 0xE0FFF),
)

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """What the agent asked for can't be done."""


# What the process is.


def start_of(pid):
    """The start stamp of a process, in clock ticks, and its state."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return fields[19], fields[0]


def own_identity():
    identity = {}
    if os.readlink("/proc/self/ns/time") == "time:[4026531834]":
        identity["process_start"] = start_of("self")[0]
        identity["process_start_kind"] = "linux-ticks"
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        identity["boot_id"] = file.read().strip()
    identity["pid_namespace"] = os.stat("/proc/self/ns/pid").st_ino
    identity["executable"] = os.readlink("/proc/self/exe")
    return identity


IDENTITY = own_identity()


def booted_at():
    with open("/proc/uptime", encoding="ascii") as file:
        return time.time() - float(file.read().split()[0])


def is_initial_namespace():
    return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"


# Whether a process is gone that a file names.


def is_other_scope(claim):
    """Whether its PID may mean another process than one of here."""
    if claim.get("process_start_kind") not in (None, "linux-ticks"):
        return True
    boot = claim.get("boot_id")
    if boot is None and claim["hostname"].split(".")[0].lower() != os.uname().nodename.split(".")[0].lower():
        return True
    namespace = claim.get("pid_namespace")
    if namespace is None:
        return not is_initial_namespace()
    return namespace != IDENTITY["pid_namespace"]


def is_gone(claim, facts):
    """Whether the process of a claim is provably gone."""
    if claim["pid"] == 0:
        return True
    if facts.st_uid not in (os.geteuid(), 0) or facts.st_mode & stat.S_IWOTH:
        return False
    if claim.get("boot_id") not in (None, IDENTITY["boot_id"]):
        return claim["started_at"] < booted_at() - SLACK_S
    if is_other_scope(claim):
        return False
    return is_gone_here(claim)


def is_gone_here(claim):
    pid = claim["pid"]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    try:
        start, state = start_of(pid)
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            status = file.read()
    except OSError:
        return False
    if state in "ZX" or f"\nTgid:\t{pid}\n" not in status or "\nVmSize:" not in status:
        return True
    stamp = claim.get("process_start")
    return stamp is not None and stamp != start


def is_own(claim):
    keys = ("process_start", "boot_id", "pid_namespace")
    return claim["pid"] == os.getpid() and all(claim.get(key) == IDENTITY.get(key) for key in keys)


# What may be a name.


def check_session(session):
    if not session or len(session.encode()) > 128:
        raise Refused("a session id has 1 to 128 bytes")
    if any(character in FORBIDDEN for character in session):
        raise Refused("a session id must not have characters that file names can't have")
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in session):
        raise Refused("a session id must not have control characters")
    if any(low <= ord(character) <= high for character in session for low, high in INVISIBLE):
        raise Refused("a session id must not have invisible characters")
    if set(session) == {"."}:
        raise Refused("a session id must not be made of dots alone")
    if session[0].isspace() or session[-1].isspace():
        raise Refused("a session id must not begin or end with a space")
    if session[-1] == ".":
        raise Refused("a session id must not end with a dot")
    if session[0] == "-":
        raise Refused("a session id must not begin with a hyphen")
    if DEVICES.fullmatch(session):
        raise Refused("a session id must not be the name of a device")


def directory_of_sessions():
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.environ["HOME"], ".local/state")
    return os.path.join(state, "agent-sessions", AGENT)


# Files.


def make_directories(path):
    if os.path.isdir(path):
        return
    make_directories(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
    except FileExistsError:
        pass


def read(path):
    """A small regular file and its facts. None if there is nothing; OSError if there is anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError("it is no regular file")
        return file.read(BYTES_MAX + 1), facts


def is_as_written(path, data):
    try:
        there = read(path)
    except OSError:
        return False
    return there is not None and there[0] == data


def parse(data):
    """A claim, as far as a writer has to understand it; None if it is none."""
    try:
        claim = json.loads(data)
    except ValueError:
        return None
    if not isinstance(claim, dict) or claim.get("schema_version") != 1:
        return None
    types = {"pid": int, "session_id": str, "work_dir": str, "hostname": str, "started_at": (int, float)}
    is_typed = all(isinstance(claim.get(key), kind) for key, kind in types.items())
    return claim if is_typed and not isinstance(claim["pid"], bool) else None


def temporary_name(path):
    return os.path.join(os.path.dirname(path), f".sidecar-{secrets.token_hex(8)}.tmp")


def write_temporary(path, data):
    temporary = temporary_name(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def rename_new(old, new):
    """A rename that replaces nothing."""
    if libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), RENAME_NOREPLACE):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), new)


def make_new(path, data):
    temporary = write_temporary(path, data)
    try:
        rename_new(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def replace(path, data):
    temporary = write_temporary(path, data)
    try:
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def remove(path, data):
    """Removes our own file."""
    if is_as_written(path, data):
        os.unlink(path)


def lock(directory):
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for _ in range(LOCK_TRIES_MAX):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.004)
    return descriptor


def take_away(path, stale, session):
    """Takes a stale claim out of the way."""
    locked = lock(os.path.dirname(path))
    try:
        if not is_as_written(path, stale):
            return
        aside = temporary_name(path)
        os.rename(path, aside)
        if is_as_written(aside, stale):
            os.unlink(aside)
            return
        try:
            rename_new(aside, path)
        except FileExistsError:
            rename_new(aside, sibling_of(path, session))
    finally:
        os.close(locked)


def sibling_of(path, session):
    return os.path.join(os.path.dirname(path), f"{session}.claim-{secrets.token_hex(8)}.runtime.json")


# The one claim of this process.


class Owner:
    def __init__(self):
        self.maker = os.getpid()
        self.session = None
        self.phase = None
        self.started_at = 0.0
        self.path = None
        self.data = b""
        self.is_released = False
        # What was written since the program began: there nothing of ours is left over.
        self.owned = set()

    def require_open(self):
        if os.getpid() != self.maker:
            raise Refused("a forked child does not own its parent's session")
        if self.session is None:
            raise Refused("nothing was started")
        if self.is_released:
            raise Refused("the session was released")

    def text(self):
        fields = {
            "schema_version": 1,
            "pid": os.getpid(),
            "session_id": self.session,
            "work_dir": os.getcwd(),
            "hostname": os.uname().nodename,
            "started_at": self.started_at,
            AGENT.replace("-", "_") + "_version": "1.0",
            "serves": "one",
        }
        fields.update(IDENTITY)
        if self.phase is not None:
            fields["phase"] = self.phase
        if self.phase == "waiting":
            fields["waiting_for"] = "permission"
        return json.dumps(fields, ensure_ascii=False).encode("utf-8")

    def begin(self, session):
        check_session(session)
        try:
            os.getcwd().encode()
        except UnicodeEncodeError:
            raise Refused("the directory is no Unicode") from None
        self.session = session
        self.phase = None
        self.started_at = time.time()

    def start(self, session):
        self.begin(session)
        self.write_new()
        self.clear_left_overs()

    def switch(self, session):
        self.require_open()
        if session == self.session:
            self.begin(session)
            self.write()
            return
        self.begin(session)
        old, self.path = (self.path, self.data), None
        try:
            self.write_new()
        finally:
            if old[0] is not None:
                remove(*old)
                self.owned.discard(old[0])

    def update(self, phase):
        self.require_open()
        self.phase = phase
        self.write()

    def release(self):
        self.require_open()
        self.is_released = True
        if self.path is not None:
            remove(self.path, self.data)

    def write(self):
        """Writes over our own file; where that is not ours any more, beside it."""
        if self.path is None or not is_as_written(self.path, self.data):
            self.write_new()
            return
        data = self.text()
        replace(self.path, data)
        self.data = data

    def write_new(self):
        directory = directory_of_sessions()
        make_directories(directory)
        path = os.path.join(directory, f"{self.session}.runtime.json")
        data = self.text()
        self.path, self.data = self.claim(path, data), data
        self.owned.add(self.path)

    def claim(self, path, data):
        for _ in range(8):
            there, stale = self.what_is_there(path)
            try:
                if there == "nothing":
                    make_new(path, data)
                    return path
                if there == "own":
                    replace(path, data)
                    return path
            except FileExistsError:
                continue
            if there != "stale":
                break
            take_away(path, stale, self.session)
        path = sibling_of(path, self.session)
        make_new(path, data)
        return path

    def what_is_there(self, path):
        try:
            there = read(path)
        except OSError:
            return "another's", b""
        if there is None:
            return "nothing", b""
        data, facts = there
        claim = parse(data)
        if claim is None:
            return "another's", b""
        if claim["session_id"] != self.session:
            return "another's", b""
        if is_own(claim):
            return ("another's" if path in self.owned else "own"), b""
        return ("stale", data) if is_gone(claim, facts) else ("another's", b"")

    def clear_left_overs(self):
        directory = os.path.dirname(self.path)
        now = os.stat(self.path).st_mtime
        sibling = re.compile(re.escape(self.session) + r"\.claim-[0-9a-f]{16}\.runtime\.json")
        for name in sorted(os.listdir(directory))[:NAMES_MAX]:
            is_temporary = re.fullmatch(r"\.sidecar-[0-9a-f]{16}\.tmp", name) is not None
            if not is_temporary and not sibling.fullmatch(name):
                continue
            path = os.path.join(directory, name)
            try:
                data, facts = read(path) or (b"", None)
                claim = parse(data)
                if facts is None:
                    continue
                if claim is not None:
                    is_left = is_gone(claim, facts)
                else:
                    is_left = is_temporary and now - facts.st_mtime > LEFT_OVER_AFTER_S
                if is_left:
                    os.unlink(path)
            except OSError:
                continue


def fork(owner, session):
    """Lets a child use the handle, and tells what it got."""
    child = os.fork()
    if child == 0:
        try:
            owner.switch(session)
        except (Refused, OSError):
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise Refused("the child was refused")


def main():
    owner = Owner()
    for line in iter(sys.stdin.readline, ""):
        command, _, rest = line.rstrip("\n").partition(" ")
        try:
            if command == "start":
                owner.start(rest)
            elif command == "switch":
                owner.switch(rest)
            elif command == "phase":
                owner.update(rest)
            elif command == "release":
                owner.release()
            elif command == "fork":
                fork(owner, rest)
            elif command == "exit":
                return
            elif command == "crash":
                os.abort()
            else:
                print("unsupported", flush=True)
                continue
            print("ok", flush=True)
        except (Refused, OSError) as error:
            print("error", str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
