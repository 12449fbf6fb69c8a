"""The server's responses about failed jobs and lost work."""

import msgspec

from torc_framework.models.records import JobRecord, ResultRecord


class FailedJobs(msgspec.Struct):
    """A page of the jobs that failed, in the order of their ids.

    Attributes:
        results: The results of their attempts that did not complete, of all runs.
        has_more: Others follow the last of these jobs.
    """

    jobs: list[JobRecord]
    results: list[ResultRecord]
    has_more: bool


class LostWork(msgspec.Struct):
    """The run time of attempts whose work was lost, of jobs with the same resource requirements."""

    resource_requirements_id: int | None
    exec_time_minutes: float
