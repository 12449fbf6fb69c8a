"""Kinds of jobs: those that are the same for the checks of a whole plan, which then need not look at every job."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from attrs import Factory, define

from torc_framework.models.plan import PlannedJob

_kind_of: Final = attrgetter(
    "scheduler", "resource_requirements", "failure_handler", "stdio", "delete_stdio_on_success"
)


@define
class JobKinds:
    """The kinds of a plan's jobs, in the order of their first jobs.

    Jobs of a kind have the same scheduler, requirements, failure handler and files of output.
    """

    _first: dict[tuple[object, ...], PlannedJob] = Factory(dict)
    _counts: dict[tuple[object, ...], int] = Factory(dict)

    def add(self, jobs: Iterable[PlannedJob]) -> None:
        """Add jobs."""
        for job in jobs:
            key = _kind_of(job)
            self._first.setdefault(key, job)
            self._counts[key] = self._counts.get(key, 0) + 1

    def examples(self) -> Iterable[PlannedJob]:
        """Return the first job of each kind."""
        return self._first.values()

    def count(self, wanted: Callable[[PlannedJob], bool]) -> int:
        """Return the number of jobs of the kinds whose first job is wanted."""
        return sum(self._counts[key] for key, job in self._first.items() if wanted(job))
