"""Chains of jobs, of which a runner may start each one before it has reported the end of the one before.

A job that waits for one other job and for nothing else becomes ready when that one completes, and the runner of that
one is the first to know. So the server sends the chain behind a job with the job (`chains_behind`). When the job has
completed, the runner starts the next one at once and names it in the report of the end; the server claims it in the
transaction that stores the report (`claim_continued`). Until then the job is blocked in the database.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models.exchange import ClaimedJob, EndedReport, ExchangeRequest
from torc_framework.models.statuses import LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number
from torc_framework.store.exchange.claims import describe_jobs
from torc_framework.store.exchange.leases import taken_over
from torc_framework.store.exchange.reports import ExchangeState, reported_jobs_later
from torc_framework.store.job_state import transitions
from torc_framework.store.tables.core import JOB, JOB_DEPENDENCY

SHORTEST_LIMIT: Final = 32
"""Number of jobs behind a job that are sent to a runner whose jobs take long, or that does not know yet how long."""
LONGEST_CHAIN: Final = 64
"""Largest number of jobs behind a job: with it, a chain of very short jobs does not wait for the server."""
MOST_FOLLOWING: Final = 1_024
"""Largest number of jobs in all chains of a reply together, except that one behind each job is always told; and largest
number of jobs for which a request asks, the others are ignored."""
_RECORDED: Final = UNBLOCKING - {JobStatus.CANCELED}
"""Statuses of jobs whose end is stored; they were claimed before."""
_BEFORE: Final = JOB.alias("before")
_MAY_FOLLOW: Final = sa.and_(
    JOB.c.blockers == number(1),
    JOB.c.failed_blockers == number(0),
    JOB.c.resource_requirements_id == _BEFORE.c.resource_requirements_id,
    sa.or_(JOB.c.scheduler_id.is_(None), JOB.c.scheduler_id == _BEFORE.c.scheduler_id),
)
"""A job waits for the one before only, has the same requirements and no other scheduler."""
_DEPENDENTS = Statement(
    sa.select(JOB_DEPENDENCY.c.depends_on_job_id, JOB.c.id, sa.case((_MAY_FOLLOW, number(1)), else_=number(0)))
    .select_from(
        JOB_DEPENDENCY.join(JOB, JOB.c.id == JOB_DEPENDENCY.c.job_id).join(
            _BEFORE, _BEFORE.c.id == JOB_DEPENDENCY.c.depends_on_job_id
        )
    )
    .where(JOB_DEPENDENCY.c.depends_on_job_id.in_(ids_param()), JOB.c.status == number(JobStatus.BLOCKED))
)
"""The blocked jobs that wait for these jobs, and whether each may follow."""


def chains_behind(
    state: ExchangeState, request: ExchangeRequest, claimed: Sequence[int]
) -> dict[int, list[ClaimedJob]]:
    """Return the chains of jobs behind those that the runner has claimed now, and behind those for which it asks."""
    heads = [*claimed, *_begun(state, request)]
    return _chains(state.tx, heads, _chain_limit(request, len(heads)))


def _begun(state: ExchangeState, request: ExchangeRequest) -> list[int]:
    """Return the jobs for whose chains the runner asks and that it runs."""
    asked = state.continued if request.want_following is None else request.want_following[:MOST_FOLLOWING]
    if unknown := [job_id for job_id in asked if job_id not in state.jobs]:
        state.jobs |= reported_jobs_later(state.tx, state.workflow_id, unknown)()
    found = [(job_id, job) for job_id in asked if (job := state.jobs.get(job_id)) is not None]
    return [job_id for job_id, job in found if job.status in LIVE and job.holder == state.node_id]


def _chain_limit(request: ExchangeRequest, heads: int) -> int:
    """Return how many jobs behind a job are sent: as many as the runner asks for in advance, within limits.

    For the jobs of a dead runner (``holding``) it is the largest number, because that one may have begun so many.
    """
    if request.holding is not None:
        return LONGEST_CHAIN
    wanted = min(LONGEST_CHAIN, max(SHORTEST_LIMIT, request.ahead))
    return max(1, min(wanted, MOST_FOLLOWING // max(1, heads)))


def _chains(tx: Tx, heads: Sequence[int], limit: int) -> dict[int, list[ClaimedJob]]:
    """Return the chain of jobs behind each of these unfinished jobs, at most ``limit`` long.

    The first of the jobs that wait for a job follows it, or none. So what is told at one time is told at any later
    time: the next runner hears of a job that a dead one has begun ahead, although others may follow by then.
    """
    chains: dict[int, list[int]] = {}
    ends = {job_id: job_id for job_id in heads}
    for _ in range(limit):
        dependents: dict[int, tuple[int, int]] = {}
        for before, job_id, may_follow in tx.rows_for(_DEPENDENTS, list(ends)):
            dependents[before] = min((job_id, may_follow), dependents.get(before, (job_id, may_follow)))
        first = {before: job_id for before, (job_id, may_follow) in dependents.items() if may_follow}
        if not first:
            break
        for before, follower in first.items():
            chains.setdefault(ends[before], []).append(follower)
        ends = {follower: ends[before] for before, follower in first.items()}
    described = {job.id: job for job in describe_jobs(tx, [job_id for chain in chains.values() for job_id in chain])}
    return {head: [described[job_id] for job_id in chain] for head, chain in chains.items()}


def report_waves(reports: Sequence[EndedReport]) -> Iterator[Sequence[EndedReport]]:
    """Divide reports into waves, to be stored one after the other.

    The end of a job that the runner started early is in a later wave than the end of the job before it.
    """
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


def claim_continued(state: ExchangeState, reports: Sequence[EndedReport]) -> list[int]:
    """Claim the jobs that the runner has started after these ends; return those that it has to stop.

    A job that the runner holds already, or whose end is stored, is not refused: the report was sent twice. A job that a
    dead runner started is claimed for that one, which must have been taken over by this one.
    """
    wanted = {report.next_job_id: report.next_node_id for report in reports if report.next_job_id is not None}
    if not wanted:
        return []
    state.jobs |= reported_jobs_later(state.tx, state.workflow_id, sorted(wanted))()
    named = {node_id for node_id in wanted.values() if node_id is not None}
    holders = {state.node_id, *taken_over(state.tx, state.node_id, named)}
    refused = []
    for job_id, named_id in sorted(wanted.items()):
        job, holder = state.jobs.get(job_id), named_id or state.node_id
        if job is not None and job.status is JobStatus.READY and holder in holders and not state.is_canceled:
            transitions.claimed(state.tx, holder, [job_id])
            job.status, job.holder, job.holder_active = JobStatus.PENDING, holder, True
            state.continued.append(job_id)
        elif job is not None and job.status in LIVE and job.holder == holder:
            state.continued.append(job_id)
        elif job is None or job.status not in _RECORDED:
            refused.append(job_id)
    return refused
