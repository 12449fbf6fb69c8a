"""What the routes need of this machine: plugins, their options, folders, and the program ``torc``."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from torc_framework.errors import TorcError

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

ExecutorOptions = Mapping[str, Mapping[str, Any]]


@define(eq=False)
class WorkContext:
    """The plugins and folders of this process.

    Attributes:
        torc: Command line of the program ``torc``, without arguments.
        folder: Folder in which commands run.
        output_dir: Folder of logs of which no runner's record says where they are.
    """

    _load_plugins: "Callable[[], PluginManager]" = field(alias="load_plugins")
    _read_options: "Callable[[PluginManager], ExecutorOptions]" = field(alias="read_options")
    torc: Sequence[str]
    folder: Path
    output_dir: Path
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _plugins: "PluginManager | None" = field(default=None, init=False)

    @property
    def plugins(self) -> "PluginManager":
        """The plugins; they are loaded at the first use."""
        with self._lock:
            if self._plugins is None:
                self._plugins = self._load_plugins()
            return self._plugins

    def prepare(self) -> None:
        """Import what the first answers need, so that the first reader does not wait for it.

        What cannot be imported is reported by the answer that needs it.
        """
        with suppress(TorcError, ImportError):
            import torc_framework.explain
            import torc_framework.forensics.workflow_report
            import torc_framework.pending  # noqa: F401 - only to have them imported

            _ = self.plugins

    @property
    def executor_options(self) -> ExecutorOptions:
        """The configured options of executors, by executor."""
        return self._read_options(self.plugins)
