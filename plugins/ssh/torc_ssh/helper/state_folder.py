"""The folder in which a host keeps the journals of its attempts, and the lock of the helper that works there."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import signal
import stat
import time
from typing import Iterator

from torc_ssh.helper.errors import DENIED, FAILED, INVALID, NO_SPACE, RefusedRequestError
from torc_ssh.helper.facts import boot_id, home_folder
from torc_ssh.helper.process_identity import is_same_process, process_state, send_signal

PROBE_BYTES = 256 << 10
"""A folder is used if this much can be written into it."""
TERM_PATIENCE_S = 5.0
KILL_PATIENCE_S = 5.0
"""How long an older helper has to end after each signal."""
LIBRARY_LIFE_S = 30 * 86400
"""How long the sources of another version of torc are kept after their last use."""
_PAUSE_S = 0.02
_NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)
_LIBRARY = "lib-"


def check_name(name: str) -> str:
    """Return a name of files in the folder.

    Raises:
        RefusedRequestError: it is no plain name.
    """
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise RefusedRequestError(INVALID, f"{name!r} is no plain name")
    return name


def choose_state_folder(known: str | None) -> str:
    """Return the folder: the known one if it is still there, else the first one that can be written.

    Raises:
        RefusedRequestError: there is none; its text names each with the reason.
    """
    if known and os.path.isdir(known):
        _check_owner(known)
        return known
    problems: list[OSError] = []
    for folder in _candidates():
        try:
            _prepare(folder)
        except OSError as error:
            problems.append(error)
        else:
            return folder
    kind = NO_SPACE if any(each.errno == 28 for each in problems) else DENIED
    reasons = "; ".join(f"{each.filename}: {each.strerror}" for each in problems)
    raise RefusedRequestError(kind, f"the host has no folder in which the state of jobs can be kept: {reasons}")


def _candidates() -> Iterator[str]:
    """Yield possible folders; each has the host's name, because several hosts may share a home."""
    host = re.sub(r"[^\w.-]", "_", os.uname().nodename) or "host"
    user = f"torc-{os.getuid()}"
    for parent, name in (
        (f"{home_folder()}/.local/state", "torc"),
        ("/var/tmp", user),
        ("/tmp", user),
        ("/dev/shm", user),
    ):
        yield f"{parent}/{name}/{host}"


def _prepare(folder: str) -> None:
    """Make a folder that is the user's alone, and write a probe into it.

    Raises:
        OSError: that is not possible.
    """
    own = os.path.dirname(folder)
    os.makedirs(os.path.dirname(own), exist_ok=True)
    for each in (own, folder):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            _check_owner(each)
            os.chmod(each, 0o700)
    probe = f"{folder}/.probe-{secrets.token_hex(4)}"
    try:
        _write(probe, bytes(PROBE_BYTES))
    finally:
        if os.path.exists(probe):
            os.unlink(probe)


def _check_owner(folder: str) -> None:
    state = os.lstat(folder)
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
        raise PermissionError(1, "it is a link or belongs to another user", folder)


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(fd)


def install_sources(folder: str, sources: dict[str, str]) -> str:
    """Write source files into a folder of their own, named by their content; return that folder.

    Folders of other contents that were not used for `LIBRARY_LIFE_S` are removed.

    Args:
        folder: The state folder.
        sources: Text of each file by its path.
    """
    import hashlib

    digest = hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:16]
    library = f"{folder}/{_LIBRARY}{digest}"
    for path, text in sources.items():
        target = f"{library}/{path}"
        data = text.encode()
        if _read(target) == data:
            continue
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        temporary = f"{target}.{secrets.token_hex(4)}"
        try:
            _write(temporary, data)
            os.rename(temporary, target)
        except OSError:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    os.utime(library)
    _remove_old_libraries(folder)
    return library


def _remove_old_libraries(folder: str) -> None:
    oldest = time.time() - LIBRARY_LIFE_S
    with os.scandir(folder) as entries:
        old = [each for each in entries if each.name.startswith(_LIBRARY) and each.stat().st_mtime < oldest]
    for each in old:
        import shutil

        shutil.rmtree(each.path, ignore_errors=True)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


class HelperLock:
    """The lock of the helper that works with a journal; a newer helper ends the older one that holds it.

    Args:
        path: Path of the lock file. It contains pid, start and boot of the holder.

    Raises:
        RefusedRequestError: the older helper does not end.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            self._acquire()
            own = process_state(os.getpid())
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()} {own.start if own else 0} {boot_id()}\n".encode(), 0)
        except BaseException:
            os.close(self._fd)
            raise

    def _acquire(self) -> None:
        for number, patience_s in ((0, 0.0), (signal.SIGTERM, TERM_PATIENCE_S), (signal.SIGKILL, KILL_PATIENCE_S)):
            self._signal_holder(number)
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        break
                    time.sleep(_PAUSE_S)
                else:
                    return
        raise RefusedRequestError(FAILED, f"an older helper on the host does not end ({self._holder()})")

    def _holder(self) -> str:
        return os.pread(self._fd, 200, 0).decode(errors="replace").strip()

    def _signal_holder(self, number: int) -> None:
        words = self._holder().split()
        if number and len(words) == 3 and words[0].isdigit() and words[1].isdigit():
            pid, start = int(words[0]), int(words[1])
            if pid != os.getpid() and is_same_process(pid, start, words[2]):
                send_signal(pid, number)

    def release(self, *, remove: bool) -> None:
        """Release the lock, and remove its file if it is not used any more."""
        if remove:
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass
        os.close(self._fd)
