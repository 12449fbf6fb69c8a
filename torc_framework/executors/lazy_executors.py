"""The executors of the installed plugins, each of which is imported when it is used."""

from collections.abc import Callable, Collection, Iterable

from torc_framework.executors.base import Executor
from torc_framework.models.lazy_mapping import LazyMapping


class LazyExecutors(LazyMapping[type[Executor]]):
    """Executors by name.

    Args:
        names: Their names.
        find: Returns the executor of a name. KeyError means that it is missing.
        advisers: Names of those that may have a `torc_framework.executors.Allocator.submission_advice`.
    """

    def __init__(self, names: Iterable[str], find: Callable[[str], type[Executor]], advisers: Collection[str]) -> None:
        super().__init__(names, find)
        self.advisers = advisers
