"""Jobs that a runner may go on with before it has told the server that their predecessor completed.

A job that waits for one other job and nothing else will be ready the moment that one completes, and
the runner of that one is the first to know. So it is told in advance what follows (`chains_behind`),
begins it at once, and names it in the report of the end: `claim_continued` claims it in the same
transaction. Until then the job is blocked like any other, whoever looks.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models.exchange import ClaimedJob, EndedReport
from torc_framework.models.statuses import LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number
from torc_framework.store.exchange.claims import describe_jobs
from torc_framework.store.exchange.reports import ExchangeState, reported_jobs
from torc_framework.store.job_state import transitions
from torc_framework.store.tables.core import JOB, JOB_DEPENDENCY

LONGEST_CHAIN: Final = 8
"""Jobs that follow one another, at most: enough that a chain of the shortest jobs need not wait for the server."""
_RECORDED: Final = UNBLOCKING - {JobStatus.CANCELED}
"""Statuses in which the end of a job was recorded; it was claimed before then."""
_BEFORE: Final = JOB.alias("before")
_FOLLOWERS = Statement(
    sa.select(JOB_DEPENDENCY.c.depends_on_job_id, JOB.c.id)
    .select_from(
        JOB_DEPENDENCY.join(JOB, JOB.c.id == JOB_DEPENDENCY.c.job_id).join(
            _BEFORE, _BEFORE.c.id == JOB_DEPENDENCY.c.depends_on_job_id
        )
    )
    .where(
        JOB_DEPENDENCY.c.depends_on_job_id.in_(ids_param()),
        JOB.c.status == number(JobStatus.BLOCKED),
        JOB.c.blockers == number(1),
        JOB.c.failed_blockers == number(0),
        JOB.c.resource_requirements_id == _BEFORE.c.resource_requirements_id,
        sa.or_(JOB.c.scheduler_id.is_(None), JOB.c.scheduler_id == _BEFORE.c.scheduler_id),
    )
)
"""Jobs that wait for one of these jobs alone and ask for the same as it."""


def chains_behind(tx: Tx, job_ids: Sequence[int]) -> dict[int, list[ClaimedJob]]:
    """Return the jobs that follow each of these unfinished jobs, one after the other, `LONGEST_CHAIN` at most."""
    chains: dict[int, list[int]] = {}
    ends = {job_id: job_id for job_id in job_ids}
    for _ in range(LONGEST_CHAIN):
        first: dict[int, int] = {}
        for before, follower in tx.rows_for(_FOLLOWERS, list(ends)):
            first[before] = min(follower, first.get(before, follower))
        if not first:
            break
        for before, follower in first.items():
            chains.setdefault(ends[before], []).append(follower)
        ends = {follower: ends[before] for before, follower in first.items()}
    described = {job.id: job for job in describe_jobs(tx, [job_id for chain in chains.values() for job_id in chain])}
    return {head: [described[job_id] for job_id in chain] for head, chain in chains.items()}


def report_waves(reports: Sequence[EndedReport]) -> Iterator[Sequence[EndedReport]]:
    """Cut reports so that the end of a job that was gone on with comes after the wave that lets it."""
    wave: list[EndedReport] = []
    awaited: set[int] = set()
    for report in reports:
        if report.job_id in awaited:
            yield wave
            wave, awaited = [], set()
        wave.append(report)
        if report.next_job_id is not None:
            awaited.add(report.next_job_id)
    if wave:
        yield wave


def claim_continued(now: ExchangeState, reports: Sequence[EndedReport]) -> list[int]:
    """Claim the jobs that the runner has gone on with after these ends; return those that it may not have.

    A job that it has already, or whose end is recorded, is not refused: the report was sent twice.
    """
    wanted = sorted({report.next_job_id for report in reports if report.next_job_id is not None})
    if not wanted:
        return []
    now.jobs |= reported_jobs(now.tx, now.workflow_id, wanted)
    refused = []
    for job_id in wanted:
        job = now.jobs.get(job_id)
        if job is not None and job.status is JobStatus.READY and not now.is_canceled:
            transitions.claimed(now.tx, now.node_id, [job_id])
            job.status, job.holder, job.holder_active = JobStatus.PENDING, now.node_id, True
            now.continued.append(job_id)
        elif job is not None and job.status in LIVE and job.holder == now.node_id:
            now.continued.append(job_id)
        elif job is None or job.status not in _RECORDED:
            refused.append(job_id)
    return refused
