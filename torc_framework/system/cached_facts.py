"""Facts that commands keep in files of the user's cache, each with the state of what it depends on.

The files hold data only. One that cannot be read, is damaged, belongs to another state or could have been written by
another user is ignored and written again, and so is a folder of files that is not the user's alone.
"""

import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

MAX_FILES: Final = 16
"""Files of one kind that are kept, one for each ``sys.path``; the one that was written first is removed."""
MAX_BYTES: Final = 8 << 20
"""Largest file that is read; the facts about a hundred plugins take a tenth of a megabyte."""
_SETTLED_NS: Final = 2_000_000_000
"""Age of the newest change for which facts are kept, ns: a file system may give two changes the same time."""


def is_settled(newest_ns: int) -> bool:
    """Return whether a change is old enough that a later one has another time.

    Args:
        newest_ns: Time of the newest change, ns since the epoch.
    """
    return time.time_ns() - newest_ns > _SETTLED_NS


def read_facts(kind: str, state: str) -> Any:
    """Return the facts of a kind that were kept for this ``sys.path``; None if there are none for this state."""
    try:
        with _folder() as folder, os.fdopen(_open(_name(kind), os.O_RDONLY | os.O_CLOEXEC, folder), "rb") as file:
            digest, _, text = file.read(MAX_BYTES).partition(b"\n")
        kept = json.loads(text) if digest == _digest(text) else {}
        return kept["facts"] if kept["state"] == state else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def write_facts(kind: str, state: str, facts: Any) -> None:
    """Keep facts, which JSON can express, for this ``sys.path`` and this state; remove the oldest files of the kind."""
    from torc_framework.system.private_files import FILE_MODE, make_private_folder

    text, name = json.dumps({"state": state, "facts": facts}).encode(), _name(kind)
    with suppress(OSError):
        make_private_folder(_path())
        with _folder() as folder:
            unfinished = f"{name}.{os.urandom(8).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(unfinished, flags, FILE_MODE, dir_fd=folder), "wb") as file:
                    file.write(_digest(text) + b"\n" + text)
                os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                _remove_oldest(kind, folder)


def _remove_oldest(kind: str, folder: int) -> None:
    """Remove the oldest files of a kind, also those that were never finished."""
    same = [name for name in os.listdir(folder) if name.startswith(f"{kind}-")]
    same.sort(key=lambda name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns)
    for name in same[:-MAX_FILES]:
        os.unlink(name, dir_fd=folder)


def _digest(text: bytes) -> bytes:
    """Return what finds damage of a file; whether another user wrote it, its owner and mode tell."""
    return b"%08x" % zlib.crc32(text)


def _path() -> Path:
    """Return the folder of cached facts, which may not exist (XDG Base Directory).

    Raises:
        FileNotFoundError: there is no home folder.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # noqa: PTH117 - "relative paths are to be ignored"
        return Path(named) / "torc"
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises without a home folder
    if not os.path.isabs(home):  # noqa: PTH117 - as above
        raise FileNotFoundError("there is no home folder")
    return Path(home) / ".cache" / "torc"


@contextmanager
def _folder() -> Iterator[int]:
    """Yield a descriptor of the folder.

    Raises:
        OSError: there is none, or another user could have written into it.
    """
    fd = _open(str(_path()), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None)
    try:
        yield fd
    finally:
        os.close(fd)


def _open(path: str, flags: int, folder: int | None) -> int:
    """Return a descriptor of a file or folder that only this user can have written.

    Raises:
        OSError: there is none.
    """
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)  # the open of a pipe would wait
    facts = os.fstat(fd)
    is_kind = stat.S_ISDIR(facts.st_mode) if flags & os.O_DIRECTORY else stat.S_ISREG(facts.st_mode)
    if not is_kind or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        os.close(fd)
        raise PermissionError(f"another user could have written {path}")
    return fd


def _name(kind: str) -> str:
    key = zlib.crc32("\0".join([sys.version, *sys.path]).encode(errors="surrogateescape"))
    return f"{kind}-{key:08x}.json"
