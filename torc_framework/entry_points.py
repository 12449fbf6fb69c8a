"""The entry points of installed distributions in the groups of this project, from a file of the user's cache.

importlib-metadata finds them by reading the metadata of every distribution, and its import alone takes half as long as
a help page. So the answer is kept in a file, together with what it depends on: the folders of ``sys.path``, when each
was changed, and when the list of entry points of each distribution in them was changed. When any of that differs,
importlib-metadata is asked again. A file that cannot be read, is damaged or could have been written by another user is
ignored, and so is a folder that cannot be written.
"""

import json
import os
import stat
import sys
import time
import zlib
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

HOOKS_GROUP: Final = "torc_framework"
"""Entry-point group of plugins: the value is a module with hooks."""
COMMANDS_GROUP: Final = "torc_framework.commands"
"""Entry-point group of command groups: the entry's name is the command, its value a Typer app."""
_GROUPS: Final = (HOOKS_GROUP, COMMANDS_GROUP)
_METADATA_ENDS: Final = ("dist-info", "egg-info")
_SETTLED_NS: Final = 2_000_000_000
"""Age of the newest change for which an answer is kept, ns: a file system may give two changes the same time."""
MAX_FILES: Final = 16
"""Files that are kept, one for each ``sys.path``; the one that was written first is removed."""


class InstalledEntryPoint(NamedTuple):
    """An entry point of an installed distribution.

    Attributes:
        name: Its name.
        value: ``module`` or ``module:attribute``.
        group: Its group.
        distribution: Name of the distribution; None if its metadata name none.
        version: Version of the distribution.
    """

    name: str
    value: str
    group: str
    distribution: str | None
    version: str | None

    @property
    def module(self) -> str:
        """The module of the value."""
        return self.value.partition(":")[0].partition("[")[0].strip()

    def load(self) -> Any:
        """Import and return what the value names.

        Raises:
            Exception: what the import of the module raises; AttributeError, if the module lacks the attribute.
        """
        import importlib

        found: Any = importlib.import_module(self.module)
        attributes = self.value.partition(":")[2].partition("[")[0].strip()
        for attribute in filter(None, attributes.split(".")):
            found = getattr(found, attribute)
        return found


def entry_points(group: str) -> list[InstalledEntryPoint]:
    """Return the entry points of a group (`HOOKS_GROUP` or `COMMANDS_GROUP`) in the order of ``sys.path``."""
    return [entry for entry in _entry_points(_state()) if entry.group == group]


@lru_cache(maxsize=1)
def _entry_points(state: str) -> list[InstalledEntryPoint]:
    """Return all entry points, from the file if that was written in the same state."""
    if not _only_path_finders():
        return _from_metadata()
    file = _cache_file()
    kept = None if file is None else _read(file, state)
    if kept is not None:
        return kept
    found = _from_metadata()
    if file is not None and _is_settled(state):
        _write(file, state, found)
    return found


def _only_path_finders() -> bool:
    """Return whether distributions are found by their folders alone, and by no import hook of another program."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return all(finder is PathFinder or type(finder).__module__ == "importlib_metadata" for finder in finders)


def _from_metadata() -> list[InstalledEntryPoint]:
    import importlib_metadata

    return [
        InstalledEntryPoint(
            entry.name,
            entry.value,
            entry.group,
            entry.dist.name if entry.dist else None,
            entry.dist.version if entry.dist else None,
        )
        for group in _GROUPS
        for entry in importlib_metadata.entry_points(group=group)
    ]


# --- what the answer depends on -------------------------------------------------------------------


def _state() -> str:
    """Return what the entry points depend on, as a JSON text."""
    return json.dumps([sys.version, [_folder_state(entry) for entry in sys.path]])


def _folder_state(folder: str) -> list[Any]:
    """Return an entry of ``sys.path``, when it was changed, and when each list of entry points in it was."""
    path = folder or "."
    try:
        changed = os.stat(path).st_mtime_ns  # noqa: PTH116 - pathlib takes twice as long, for each of the folders
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if entry.name.lower().endswith(_METADATA_ENDS))
    except NotADirectoryError:
        return [path, changed]
    except OSError:
        return [path]
    return [path, changed, [[name, _list_changed(f"{path}/{name}/entry_points.txt")] for name in names]]


def _list_changed(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return 0


def _is_settled(state: str) -> bool:
    """Return whether the newest change is old enough that a later one has another time."""
    _, folders = json.loads(state)
    times = [time_ns for folder in folders for time_ns in folder[1:2]]
    times += [time_ns for folder in folders for lists in folder[2:] for _, time_ns in lists]
    return time.time_ns() - max(times, default=0) > _SETTLED_NS


# --- the file -------------------------------------------------------------------------------------


def cache_folder() -> Path | None:
    """Return the folder of cached facts, which may not exist; None without a home folder (XDG Base Directory)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # noqa: PTH117 - "relative paths are to be ignored"
        return Path(named) / "torc"
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises without a home folder
    return Path(home) / ".cache" / "torc" if os.path.isabs(home) else None  # noqa: PTH117 - as above


def _cache_file() -> Path | None:
    folder = cache_folder()
    key = zlib.crc32("\0".join([sys.version, *sys.path]).encode(errors="surrogateescape"))
    return None if folder is None else folder / f"entry-points-{key:08x}.json"


def _read(file: Path, state: str) -> list[InstalledEntryPoint] | None:
    """Return the kept entry points; None if there are none for this state."""
    try:
        with open(file, encoding="utf-8", opener=_open_no_link) as text:
            facts = os.fstat(text.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
                return None
            kept = json.load(text)
        if kept["state"] != state:
            return None
        return [InstalledEntryPoint(*map(str, entry[:3]), *entry[3:5]) for entry in kept["entry_points"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _write(file: Path, state: str, found: list[InstalledEntryPoint]) -> None:
    """Keep the entry points; a folder that cannot be written keeps none."""
    import tempfile
    from contextlib import suppress

    from torc_framework.system.private_files import make_private_folder

    with suppress(OSError):
        make_private_folder(file.parent)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as text:  # with mode 0600
            json.dump({"state": state, "entry_points": found}, text)
        Path(text.name).replace(file)
        written = sorted(file.parent.glob("entry-points-*.json"), key=lambda each: each.stat().st_mtime_ns)
        for old in written[:-MAX_FILES]:
            old.unlink()
