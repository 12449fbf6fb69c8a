"""Jobs of a spec in slices: the resolution reads them several times, and they may be made again each time."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, Protocol

from attrs import frozen

from torc_framework.spec.language.model import JobSpec
from torc_framework.spec.language.plain_job import ShortJob

SLICE_LENGTH: Final = 10_000
"""Jobs of one slice, if they are made from parameters."""


@frozen
class JobSlice:
    """Some consecutive jobs, all of the same class.

    Attributes:
        jobs: The jobs.
        origins: For each the position of its entry in the file.
        have_options: False if all are plain jobs with no more than a name, a command and ``depends_on``.
    """

    jobs: Sequence[JobSpec | ShortJob]
    origins: Sequence[int]
    have_options: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether its jobs are no `JobSpec`."""
        return bool(self.jobs) and not isinstance(self.jobs[0], JobSpec)


class JobSlices(Protocol):
    """The jobs of a spec, in order."""

    def slices(self, *, with_dependencies: bool = True) -> Iterator[JobSlice]:
        """Yield all jobs; each call begins from the first.

        Args:
            with_dependencies: False if the caller does not use ``depends_on``, which jobs then may lack.
        """


@frozen
class JobsMadeAgain:
    """Jobs of which only one slice is in memory at a time.

    Attributes:
        make: Yields all jobs, with their dependencies if the argument is true; each call makes them again.
    """

    make: Callable[[bool], Iterator[JobSlice]]

    def slices(self, *, with_dependencies: bool = True) -> Iterator[JobSlice]:
        """Yield all jobs."""
        return self.make(with_dependencies)


def job_at(jobs: JobSlices, position: int) -> JobSpec | ShortJob:
    """Return the job at a position."""
    for part in jobs.slices():
        if position < len(part.jobs):
            return part.jobs[position]
        position -= len(part.jobs)
    raise IndexError(position)


def origins_of(jobs: JobSlices) -> Iterator[int]:
    """Yield for each job the position of its entry in the file."""
    return chain.from_iterable(part.origins for part in jobs.slices())
