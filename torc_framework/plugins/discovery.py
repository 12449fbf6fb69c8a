"""Discovery of plugins: entry points of installed distributions, built-in plugins, and files of project folders."""

import importlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial

from attrs import Factory, define

from torc_framework.entry_points import HOOKS_GROUP, InstalledEntryPoint, entry_points
from torc_framework.plugins.project_folders import ProjectFolder, import_project_plugin
from torc_framework.plugins.watched_calls import watched_call

_log = logging.getLogger(__name__)


class PluginKind(StrEnum):
    """The origin of a plugin."""

    ENTRY_POINT = "entry-point"
    BUILT_IN = "built-in"
    PROJECT = "project"


@define
class PluginInfo:
    """Description of a plugin.

    Attributes:
        name: Name of the entry point, of the built-in plugin, or of the project file without its suffix.
        kind: Its origin.
        source: Module or path from which it is imported.
        distribution: Distribution that contains it; None for a project file.
        version: Version of the distribution.
        hooks: Names of the hooks that it implements.
        error: Reason why it cannot be used; None if it can.
        enabled: It is not disabled by name.
        refused: It is a project file that was not imported because it may not be trusted.
    """

    name: str
    kind: PluginKind
    source: str
    distribution: str | None = None
    version: str | None = None
    hooks: list[str] = Factory(list)
    error: str | None = None
    enabled: bool = True
    refused: bool = False


@define(eq=False)
class PluginCandidate:
    """A discovered plugin, which may or may not be imported already.

    Attributes:
        info: Its description.
        load: Imports and returns it.
        entry: Its entry point; None if it has none.
        cause: Exception because of which it cannot be used.
    """

    info: PluginInfo
    load: Callable[[], object]
    entry: InstalledEntryPoint | None = None
    cause: BaseException | None = None

    def load_watched(self) -> object:
        """Import and return it; a person may end the wait, and what it changes in the process is restored.

        Raises:
            BaseException: what its import raises; `PluginError` if a person ended the wait.
        """
        if self.info.kind is PluginKind.BUILT_IN:
            return self.load()
        return watched_call(self.info.name, "its import", self.load)

    def fail(self, message: str, cause: BaseException | None = None) -> None:
        """Record why the plugin cannot be used."""
        self.info.error, self.cause = message, cause


def entry_point_plugins() -> Iterator[PluginCandidate]:
    """Yield the plugins of installed distributions, each once, without importing them."""
    seen = set()
    for entry in entry_points(HOOKS_GROUP):
        key = (entry.name, entry.value, entry.distribution)
        if key in seen:
            continue  # a distribution is found twice if two entries of sys.path lead to it
        seen.add(key)
        info = PluginInfo(entry.name, PluginKind.ENTRY_POINT, entry.value, entry.distribution, entry.version)
        yield PluginCandidate(info, entry.load, entry)


def built_in_plugins() -> Iterator[PluginCandidate]:
    """Yield the built-in plugins without importing them."""
    from torc_framework import __version__
    from torc_framework.builtin import PLUGINS

    for name, module in PLUGINS:
        info = PluginInfo(name, PluginKind.BUILT_IN, module, "torc-framework", __version__)
        yield PluginCandidate(info, partial(importlib.import_module, module))


def project_plugins(folders: Sequence[ProjectFolder]) -> Iterator[PluginCandidate]:
    """Yield the plugins of project folders; those that may not be imported have the reason as their error."""
    for folder in folders:
        for name in folder.plugins:
            info = PluginInfo(name, PluginKind.PROJECT, str(folder.path / f"{name}.py"))
            if folder.refusal is not None:
                info.error, info.refused = f"not imported: {folder.refusal}", True
            yield PluginCandidate(info, partial(import_project_plugin, folder, name))


def disabled_by_environment() -> frozenset[str]:
    """Return the names of the plugins that ``TORC_DISABLE_PLUGINS`` disables."""
    names = os.environ.get("TORC_DISABLE_PLUGINS", "").split(",")
    return frozenset(name.strip() for name in names if name.strip())


def registration_order(candidates: Sequence[PluginCandidate]) -> list[PluginCandidate]:
    """Return candidates in the order of registration that makes pluggy call them by name.

    pluggy calls the plugin first that was registered last. Built-in plugins are marked ``trylast``; of these, pluggy
    calls the one last that was registered last.
    """
    built_ins = [candidate for candidate in candidates if candidate.info.kind is PluginKind.BUILT_IN]
    others = [candidate for candidate in candidates if candidate.info.kind is not PluginKind.BUILT_IN]
    return [*reversed(others), *built_ins]


def mark_name_clashes(candidates: Sequence[PluginCandidate]) -> None:
    """Mark all plugins that share a name as unusable, because none of them precedes the others."""
    by_name: dict[str, list[PluginCandidate]] = {}
    for candidate in candidates:
        if candidate.info.refused:  # an untrusted file must not disable a plugin of the same name
            continue
        by_name.setdefault(candidate.info.name, []).append(candidate)
    for name, same in by_name.items():
        if len(same) > 1:
            message = clash_message("plugin", name, [origin_of(candidate.info) for candidate in same])
            _log.warning("%s", message)
            for candidate in same:
                candidate.fail(message)


def clash_message(kind: str, name: str, owners: Sequence[str]) -> str:
    """Return the error message for a name that several plugins provide."""
    return f"{kind} {name!r} comes from {' and from '.join(owners)}; uninstall or switch off all but one"


def origin_of(info: PluginInfo) -> str:
    """Return the distribution of a plugin with its version, or its source."""
    if info.distribution is None:
        return info.source
    return f"{info.distribution} {info.version}" if info.version else info.distribution
