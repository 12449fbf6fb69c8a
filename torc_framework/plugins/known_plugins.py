"""What earlier commands found out about installed plugins, so that a plugin is imported only when it is called.

Of a plugin that was imported without an error a file of the user's cache holds its hooks, the names of its executors
and which of them may have advice, with the state of all files of its package. The file is used while the installation
(the folders of ``sys.path`` and the distributions in them), the specifications of the hooks and the files of the
package stay as they were. So a plugin that is installed, upgraded, edited or removed is imported again at once, and so
is in each command a plugin of which something could not be found out: one that fails, or whose hooks or executors come
from modules outside its package.
"""

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from torc_framework import hookspecs
from torc_framework.entry_points import InstalledEntryPoint, are_found_by_folders, installation_state, newest_change
from torc_framework.system.cached_facts import is_settled, read_facts, write_facts

if TYPE_CHECKING:
    from torc_framework.executors import Executor

_CACHED: Final = "plugins"
"""Kind of the cached facts."""
_SOURCES: Final = (".py", ".so")
MAX_FILES: Final = 500
"""Most files of a package whose state is looked up; a plugin in a larger one is always imported."""
_CORE: Final = "torc_framework"


@frozen
class HookFacts:
    """An implementation of a hook.

    Attributes:
        hook: Name of the hook.
        attribute: Name of the function in the plugin.
        arguments: Names of the arguments that it takes.
        options: Options of pluggy's marker.
        accepts_clean_exits: It has the declaration `torc_framework.hookspecs.accepts_clean_exits`.
    """

    hook: str
    attribute: str
    arguments: tuple[str, ...]
    options: Mapping[str, Any]
    accepts_clean_exits: bool = False


@frozen
class PluginFacts:
    """What is known of a plugin.

    Attributes:
        files: Digest of the state of its package's files.
        hooks: Its implementations of hooks.
        executors: Names of the executors that it offers; None if it was not asked.
        advisers: Names of those of them that may advise a person to request nodes (`Allocator.submission_advice`).
    """

    files: str
    hooks: tuple[HookFacts, ...]
    executors: tuple[str, ...] | None = None
    advisers: tuple[str, ...] = ()

    @property
    def silent_executors(self) -> set[str]:
        """Names of the executors of which it is known that they advise nothing."""
        return set(self.executors or ()).difference(self.advisers)


class KnownPlugins:
    """The facts about installed plugins, as the file has them and as this process changes them."""

    def __init__(self) -> None:
        self._state = _state()
        self._read: dict[str, PluginFacts] = _facts(read_facts(_CACHED, self._state)) if self._state else {}
        self._files: dict[str, str | None] = {}
        self._noted: dict[str, PluginFacts] = {}

    def get(self, plugin: InstalledEntryPoint) -> PluginFacts | None:
        """Return what is known of a plugin; None if the plugin has to be imported.

        The state of its files is looked up, so that `save` can tell whether they change during the import.
        """
        if not self._state:
            return None
        key = _key(plugin)
        if key not in self._files:
            self._files[key] = _state_of_files(plugin.module)
        known = self._read.get(key)
        return known if known is not None and known.files == self._files[key] else None

    def note(self, plugin: InstalledEntryPoint, hooks: Mapping[Any, HookFacts]) -> None:
        """Take in the hooks of a plugin that was imported after `get` was called for it.

        Args:
            plugin: The plugin.
            hooks: Its hooks, by the functions that implement them.
        """
        files = self._files.get(_key(plugin))
        found = tuple(hooks.values())
        if (
            files is None
            or not all(_is_of(plugin, each.__module__) for each in hooks)
            or any(map(_is_warned_of, found))
        ):
            return
        has_executors = any(each.hook == "torc_executors" for each in found)
        self._noted[_key(plugin)] = PluginFacts(files, found, None if has_executors else ())

    def note_executors(self, plugin: InstalledEntryPoint, executors: "Iterable[type[Executor]]") -> None:
        """Take in the executors that a plugin offers, if its hooks were noted."""
        noted, classes = self._noted.get(_key(plugin)), tuple(executors)
        if noted is not None and all(_is_of(plugin, base.__module__) for kind in classes for base in kind.__mro__):
            self._noted[_key(plugin)] = evolve(
                noted,
                executors=tuple(kind.name for kind in classes),
                advisers=tuple(kind.name for kind in classes if _may_advise(kind)),
            )

    def save(self, plugins: Iterable[InstalledEntryPoint]) -> None:
        """Write what was noted and is complete, unless a file changed meanwhile or may be changing now.

        Args:
            plugins: All installed plugins. Facts about other plugins are dropped.
        """
        modules = {_key(plugin): plugin.module for plugin in plugins}
        new = {
            key: facts
            for key, facts in self._noted.items()
            if facts.executors is not None and self._read.get(key) != facts
        }
        self._noted = {key: facts for key, facts in self._noted.items() if key not in new}
        new = {key: facts for key, facts in new.items() if _state_of_files(modules[key]) == facts.files}
        if not new or _state() != self._state:
            return
        self._read = {key: facts for key, facts in self._read.items() if key in modules} | new
        write_facts(_CACHED, self._state, {key: _as_json(facts) for key, facts in self._read.items()})


def _may_advise(executor: "type[Executor]") -> bool:
    """Return whether an executor has a `submission_advice` of its own."""
    from torc_framework.executors import Allocator

    own = executor.__mro__[: executor.__mro__.index(Allocator)] if issubclass(executor, Allocator) else ()
    return any("submission_advice" in vars(base) for base in own)


def _is_warned_of(hook: HookFacts) -> bool:
    """Return whether an implementation takes a retired argument, of which its import warns."""
    return not set(hook.arguments).isdisjoint(hookspecs.RETIRED_ARGUMENTS.get(hook.hook, ()))


def _key(plugin: InstalledEntryPoint) -> str:
    return json.dumps([plugin.name, plugin.value, plugin.distribution])


# --- the file -------------------------------------------------------------------------------------


def _as_json(facts: PluginFacts) -> dict[str, Any]:
    hooks = [[h.hook, h.attribute, h.arguments, dict(h.options), h.accepts_clean_exits] for h in facts.hooks]
    return {"files": facts.files, "hooks": hooks, "executors": facts.executors, "advisers": facts.advisers}


def _facts(kept: Any) -> dict[str, PluginFacts]:
    """Return the facts of the file by plugin; none if they have another form."""
    try:
        return {
            str(plugin): PluginFacts(
                str(facts["files"]),
                tuple(
                    HookFacts(str(hook), str(attribute), tuple(map(str, arguments)), dict(options), accepts is True)
                    for hook, attribute, arguments, options, accepts in facts["hooks"]
                ),
                tuple(map(str, facts["executors"])),
                tuple(map(str, facts["advisers"])),
            )
            for plugin, facts in (kept or {}).items()
        }
    except (TypeError, ValueError, KeyError, AttributeError):
        return {}


# --- what the facts depend on ---------------------------------------------------------------------


def _state() -> str:
    """Return what all facts depend on; an empty text if plugins can be changed without a change of it."""
    installed = installation_state()
    specifications = Path(hookspecs.__file__).stat()
    changed = specifications.st_mtime_ns
    if not are_found_by_folders() or not is_settled(max(changed, newest_change(installed))):
        return ""
    return json.dumps([installed, changed, specifications.st_size])


def _state_of_files(module: str) -> str | None:
    """Return a digest of names, times and sizes of all sources of the package that a module belongs to.

    None if it has no such files, or too many, or if one was changed so recently that a later change could have the same
    time.
    """
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
        if spec is None or not spec.has_location or spec.origin is None:
            return None
        sources: list[tuple[str, int, int, int]] = []
        for path, facts in _sources(spec.origin):
            sources.append((path, facts.st_mtime_ns, facts.st_size, facts.st_ino))
            if len(sources) > MAX_FILES:
                return None
    except (OSError, ImportError, ValueError):
        return None
    if not sources or not is_settled(max(changed for _, changed, _, _ in sources)):
        return None
    text = repr(sorted(sources)).encode("utf-8", "surrogateescape")
    return importlib.util.source_hash(text).hex()  # `hashlib` loads OpenSSL, which takes 3 ms


def _sources(origin: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the sources of a package, given its ``__init__.py``, or the source of a module, each with its state."""
    if os.path.basename(origin) != "__init__.py":  # noqa: PTH119 - pathlib takes several times as long
        yield origin, os.stat(origin)  # noqa: PTH116 - as above
        return
    folders = [os.path.dirname(origin)]  # noqa: PTH120 - as above
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(_SOURCES):
                    yield entry.path, entry.stat()
                elif not entry.name.startswith((".", "__")) and entry.is_dir():
                    folders.append(entry.path)


def _is_of(plugin: InstalledEntryPoint, module: str) -> bool:
    """Return whether what a module defines can change only with the package of a plugin or with the core."""
    return module.partition(".")[0] in (plugin.module.partition(".")[0], _CORE, "builtins", "abc", "typing")
