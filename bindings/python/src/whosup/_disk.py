"""Files that appear whole or not at all, in one directory."""

import errno
import os
import re
import secrets
import time
from contextlib import contextmanager
from typing import Callable, Iterator, Optional, TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_RETRIES_MAX = 10
_NAMES_MAX = 16
_LOCK_TRIES_MAX = 50
_TEMPORARY = re.compile(r"\.sidecar-[0-9a-f]{16}\.tmp")
_IN_USE = frozenset({5, 32, 33})  # Windows: access denied, sharing and lock violation
BYTES_MAX = 64 * 1024
T = TypeVar("T")


def is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def digits() -> str:
    return secrets.token_hex(8)


def _temporary_in(directory: str) -> str:
    return os.path.join(directory, f".sidecar-{digits()}.tmp")


def _patiently(step: Callable[[], T]) -> T:
    """Waits out a refusal that goes away by itself: a file that a scanner or a
    reader has open."""
    for attempt in range(1, _RETRIES_MAX + 1):
        try:
            return step()
        except OSError as error:
            if getattr(error, "winerror", None) not in _IN_USE:
                raise
            time.sleep(0.005 * attempt)
    return step()


def read(path: str) -> Optional[bytes]:
    """A small regular file, without following a link and without waiting;
    ``None`` if there is nothing. Raises ``OSError`` for anything else."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        # A directory can be opened, and not read.
        return file.read(BYTES_MAX + 1)


def make_directories(path: str) -> None:
    """Makes a directory and those above it that are missing, for ourselves alone
    whatever the umask is."""
    if os.path.isdir(path):
        return
    make_directories(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def is_trusted(path: str) -> bool:
    """Whether only this user or root may have written a file."""
    facts = os.lstat(path)
    is_ours = not hasattr(os, "geteuid") or facts.st_uid in (os.geteuid(), 0)
    return is_ours and (os.name == "nt" or not facts.st_mode & 0o002)


def _write_whole(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
    os.fsync(descriptor)


def _write_temporary(directory: str, data: bytes) -> str:
    path = _temporary_in(directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        try:
            _write_whole(descriptor, data)
        finally:
            os.close(descriptor)
    except BaseException:
        remove(path)
        raise
    return path


def _make_unnamed(path: str, data: bytes) -> bool:
    """Makes a file that has no name before it is whole (Linux); ``False`` where
    that can't be done."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    directory = os.path.dirname(path)
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return False
        raise
    try:
        _write_whole(descriptor, data)
        # With a directory's descriptor the call follows the link (linkat(2)).
        at = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.link(
                f"/proc/self/fd/{descriptor}",
                os.path.basename(path),
                dst_dir_fd=at,
                follow_symlinks=True,
            )
        finally:
            os.close(at)
        return True
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        return False
    finally:
        os.close(descriptor)


def make_new(path: str, data: bytes) -> None:
    """Makes a new file. Raises ``FileExistsError`` if something has that name."""
    if _make_unnamed(path, data):
        return
    temporary = _write_temporary(os.path.dirname(path), data)
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:
            # A file system without links: the name is taken first.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            try:
                _patiently(lambda: os.replace(temporary, path))
            except BaseException:
                remove(path)
                raise
    finally:
        remove(temporary)


def replace(path: str, data: bytes) -> None:
    """Replaces a file, which is ours."""
    temporary = _temporary_in(os.path.dirname(path))
    if not _make_unnamed(temporary, data):
        temporary = _write_temporary(os.path.dirname(path), data)
    try:
        _patiently(lambda: os.replace(temporary, path))
    except BaseException:
        remove(temporary)
        raise


def remove(path: str) -> None:
    """Removes a file; one that is not there is removed."""
    try:
        _patiently(lambda: os.unlink(path))
    except (FileNotFoundError, NotADirectoryError):
        pass


def move_aside(path: str) -> Optional[str]:
    aside = _temporary_in(os.path.dirname(path))
    try:
        _patiently(lambda: os.rename(path, aside))
    except FileNotFoundError:
        return None
    return aside


def put_back(aside: str, path: str) -> None:
    """Gives a file a name that is free.

    If it is gone, a process that has just made a claim removed it: a temporary
    file of the dead.
    """
    try:
        os.link(aside, path)
    except FileNotFoundError:
        return
    remove(aside)


@contextmanager
def locked(directory: str) -> Iterator[None]:
    """Locks a directory among those who take something over in it; without
    waiting for long, and without a file that could stay."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        for _ in range(_LOCK_TRIES_MAX):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.004)
            except OSError:
                break
        yield
    finally:
        os.close(descriptor)
