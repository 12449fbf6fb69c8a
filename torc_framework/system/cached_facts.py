"""Facts that commands keep in files of the user's cache, each with the state of what it depends on.

A file that cannot be read, is damaged, belongs to another state or could have been written by another user is ignored,
and so is a folder that cannot be written.
"""

import json
import os
import stat
import sys
import time
import zlib
from pathlib import Path
from typing import Any, Final

MAX_FILES: Final = 16
"""Files of one kind that are kept, one for each ``sys.path``; the one that was written first is removed."""
_SETTLED_NS: Final = 2_000_000_000
"""Age of the newest change for which facts are kept, ns: a file system may give two changes the same time."""


def cache_folder() -> Path | None:
    """Return the folder of cached facts, which may not exist; None without a home folder (XDG Base Directory)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # noqa: PTH117 - "relative paths are to be ignored"
        return Path(named) / "torc"
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises without a home folder
    return Path(home) / ".cache" / "torc" if os.path.isabs(home) else None  # noqa: PTH117 - as above


def is_settled(newest_ns: int) -> bool:
    """Return whether a change is old enough that a later one has another time.

    Args:
        newest_ns: Time of the newest change, ns since the epoch.
    """
    return time.time_ns() - newest_ns > _SETTLED_NS


def read_facts(kind: str, state: str) -> Any:
    """Return the facts of a kind that were kept for this ``sys.path``; None if there are none for this state."""
    file = _file(kind)
    content = None if file is None else read_own(file)
    if content is None:
        return None
    try:
        kept = json.loads(content)
        return kept["facts"] if kept["state"] == state else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def read_own(file: Path) -> bytes | None:
    """Return the content of a file that only this user can have written; None if there is no such file."""
    try:
        with open(file, "rb", opener=_open_no_link) as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
                return None
            return stream.read()
    except OSError:
        return None


def write_facts(kind: str, state: str, facts: Any) -> None:
    """Keep facts, which JSON can express, for this ``sys.path`` and this state."""
    file = _file(kind)
    if file is not None:
        write_own(file, json.dumps({"state": state, "facts": facts}).encode(), kind)


def write_own(file: Path, content: bytes, kind: str) -> None:
    """Write a file of the cache that only this user can change, and remove the oldest of the same kind and suffix."""
    import tempfile
    from contextlib import suppress

    from torc_framework.system.private_files import make_private_folder

    with suppress(OSError):
        make_private_folder(file.parent)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as stream:  # with mode 0600
            stream.write(content)
        Path(stream.name).replace(file)
        written = sorted(file.parent.glob(f"{kind}-*{file.suffix}"), key=lambda each: each.stat().st_mtime_ns)
        for old in written[:-MAX_FILES]:
            old.unlink()


def _file(kind: str) -> Path | None:
    folder = cache_folder()
    key = zlib.crc32("\0".join([sys.version, *sys.path]).encode(errors="surrogateescape"))
    return None if folder is None else folder / f"{kind}-{key:08x}.json"


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)
