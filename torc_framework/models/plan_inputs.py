"""Which files and user data the jobs of a plan read and write, without the jobs."""

from collections.abc import Iterable
from typing import Self

from attrs import Factory, define

from torc_framework.models.plan import PlannedJob


@define
class PlanInputs:
    """Positions in the lists of a plan.

    Attributes:
        read_files: Files that jobs read, by the executor of these jobs.
        written_files: Files that jobs write.
        read_data: User data that jobs read.
        written_data: User data that jobs write.
    """

    read_files: dict[str | None, set[int]] = Factory(dict)
    written_files: set[int] = Factory(set)
    read_data: set[int] = Factory(set)
    written_data: set[int] = Factory(set)

    @classmethod
    def of(cls, jobs: Iterable[PlannedJob]) -> Self:
        """Return what jobs read and write."""
        inputs = cls()
        for job in jobs:
            inputs.add(job)
        return inputs

    def add(self, job: PlannedJob) -> None:
        """Add what a job reads and writes."""
        if job.input_files:
            self.read_files.setdefault(job.executor, set()).update(job.input_files)
        self.written_files.update(job.output_files or ())
        self.read_data.update(job.input_user_data or ())
        self.written_data.update(job.output_user_data or ())
