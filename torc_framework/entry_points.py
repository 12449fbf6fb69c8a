"""The entry points of installed distributions in the groups of this project, from a file of the user's cache.

importlib-metadata finds them by reading the metadata of every distribution, and its import alone takes half as long as
a help page. So the answer is kept in a file, together with what it depends on: the folders of ``sys.path``, when each
was changed, and when the list of entry points of each distribution in them was changed. When any of that differs,
importlib-metadata is asked again.
"""

import json
import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from typing import Any, Final, NamedTuple

from torc_framework.system.cached_facts import is_settled, read_facts, write_facts

HOOKS_GROUP: Final = "torc_framework"
"""Entry-point group of plugins: the value is a module with hooks."""
COMMANDS_GROUP: Final = "torc_framework.commands"
"""Entry-point group of command groups: the entry's name is the command, its value a Typer app."""
_GROUPS: Final = (HOOKS_GROUP, COMMANDS_GROUP)
_METADATA_ENDS: Final = ("dist-info", "egg-info")
_CACHED: Final = "entry-points"
"""Kind of the cached facts."""


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
    return [entry for entry in _entry_points(installation_state()) if entry.group == group]


@lru_cache(maxsize=1)
def _entry_points(state: str) -> list[InstalledEntryPoint]:
    """Return all entry points, from the file if that was written in the same state."""
    if not are_found_by_folders():
        return _from_metadata()
    kept = _read(state)
    if kept is not None:
        return kept
    found = _from_metadata()
    if is_settled(newest_change(state)):
        write_facts(_CACHED, state, found)
    return found


def _read(state: str) -> list[InstalledEntryPoint] | None:
    """Return the kept entry points; None if there are none for this state."""
    try:
        return [InstalledEntryPoint(*map(str, entry[:3]), *entry[3:5]) for entry in read_facts(_CACHED, state)]
    except (TypeError, ValueError, KeyError):
        return None


def are_found_by_folders() -> bool:
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


def installation_state() -> str:
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


def newest_change(state: str) -> int:
    """Return the time of the newest change of the installation in a state, ns since the epoch."""
    _, folders = json.loads(state)
    times = [time_ns for folder in folders for time_ns in folder[1:2]]
    times += [time_ns for folder in folders for lists in folder[2:] for _, time_ns in lists]
    return max(times, default=0)
