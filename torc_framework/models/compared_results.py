"""The server's responses about results that are compared with resource requirements."""

import msgspec

from torc_framework.models.records import JobRecord, ResultRecord


class ComparedResults(msgspec.Struct):
    """The results of the jobs of a span.

    Attributes:
        jobs: The jobs that have some of the results.
        results: Those that were asked for.
        count: The number of results that are compared; ``results`` may have fewer.
        last_id: Id of the last job of the span.
        has_more: Others follow this job.
    """

    jobs: list[JobRecord]
    results: list[ResultRecord]
    count: int
    last_id: int
    has_more: bool
