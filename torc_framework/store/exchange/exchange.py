"""The conversation with a runner: reports in, jobs out, one transaction."""

import time
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from torc_framework.models.exchange import ExchangeReply, ExchangeRequest
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.store.database.sql import Statement, Tx, number, numbers, param
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.exchange import claims, job_chains
from torc_framework.store.exchange.reports import (
    ExchangeState,
    record_ended,
    record_released,
    record_started,
    reported_jobs,
)
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.interruptions import IS_INTERRUPTED, resume_interrupted
from torc_framework.store.job_state.jobs_to_stop import take_stop_requests
from torc_framework.store.job_state.propagation import is_finished, propagate
from torc_framework.store.job_state.triggers import count_due_actions
from torc_framework.store.records.events import EventLog
from torc_framework.store.records.requirements import check_sort_method
from torc_framework.store.runs.lifecycle import job_counts
from torc_framework.store.tables.core import COMPUTE_NODE, JOB, WORKFLOW, WORKFLOW_ACTION, WORKFLOW_STATUS
from torc_framework.store.tables.internal import JOB_TO_STOP

_STATE = Statement(
    sa.select(
        WORKFLOW_STATUS.c.run_id,
        WORKFLOW_STATUS.c.is_canceled,
        WORKFLOW.c.jobs_sort_method,
        sa.exists().where(WORKFLOW_ACTION.c.workflow_id == WORKFLOW.c.id).correlate(WORKFLOW),
        sa.exists()
        .where(COMPUTE_NODE.c.id == param("node"), COMPUTE_NODE.c.workflow_id == WORKFLOW.c.id)
        .correlate(WORKFLOW),
        sa.exists().where(JOB_TO_STOP.c.compute_node_id == param("node")),
        sa.exists().where(IS_INTERRUPTED),
    )
    .select_from(WORKFLOW.join(WORKFLOW_STATUS, WORKFLOW_STATUS.c.id == WORKFLOW.c.id))
    .where(WORKFLOW.c.id == param("workflow")),
    "node",
    "node",
    "workflow",
)
_HELD_BY_RUNNER = Statement(
    sa.select(JOB.c.id).where(
        JOB.c.active_compute_node_id == param("node"),
        JOB.c.workflow_id == param("workflow"),
        JOB.c.status.in_(numbers(LIVE)),
    ),
    "node",
    "workflow",
)
_LIVE = Statement(
    sa.select(sa.exists().where(JOB.c.workflow_id == param("workflow"), JOB.c.status.in_(numbers(LIVE)))),
    "workflow",
)
_READY = Statement(
    sa.select(sa.exists().where(JOB.c.workflow_id == param("workflow"), JOB.c.status == number(JobStatus.READY))),
    "workflow",
)


def exchange(tx: Tx, workflow_id: int, request: ExchangeRequest) -> ExchangeReply:
    """Take a runner's reports and hand out jobs.

    Raises:
        NotFoundError: there is no such workflow or compute node.
        RuleError: the runner serves another run than the present one, or a report makes no sense.
    """
    state = tx.row(_STATE, request.compute_node_id, request.compute_node_id, workflow_id)
    if state is None:
        raise NotFoundError("Workflow", workflow_id)
    run_id, is_canceled, sort_method, has_actions, has_node, has_jobs_to_stop, has_interrupted = state
    if request.run_id != run_id:
        raise RuleError(f"Run ID mismatch: provided {request.run_id} but workflow status has {run_id}")
    if not has_node:
        raise NotFoundError("Compute node", request.compute_node_id)
    events = EventLog(workflow_id)
    named = {r.job_id for r in request.started} | {r.job_id for r in request.ended} | set(request.released)
    jobs = reported_jobs(tx, workflow_id, sorted(named))
    now = ExchangeState(tx, workflow_id, request.compute_node_id, run_id, bool(is_canceled), events, jobs)
    now.has_interrupted = bool(has_interrupted)
    if request.started:
        record_started(now, request.started)
    refused: list[int] = []
    for wave in job_chains.report_waves(request.ended):
        record_ended(now, [report for report in wave if report.job_id not in refused])
        _propagate(now, has_actions=has_actions)
        refused += job_chains.claim_continued(now, wave)
    if now.continued and request.started:
        record_started(now, [report for report in request.started if report.job_id in now.continued])
    if request.released:
        record_released(now, request.released)
        _propagate(now, has_actions=has_actions)
    reply = _reply(now, request, sort_method)
    if has_jobs_to_stop or request.holding:
        refused += take_stop_requests(tx, request.compute_node_id, request.holding)
    reply.refused = refused
    reply.actions_due = count_due_actions(tx, workflow_id) if has_actions else 0
    events.write(tx)
    return reply


def _propagate(now: ExchangeState, *, has_actions: bool) -> None:
    """Do what follows from the reports taken so far."""
    if now.endings or now.ready:
        propagate(now.tx, now.events, now.endings, now.ready, has_actions=has_actions)
        now.endings, now.ready = {}, []


def has_something_for_runner(tx: Tx, workflow_id: int, node_id: int, run_id: int) -> bool:
    """Say whether a waiting runner has anything to hear: a job to run or to stop, the end, another run."""
    state = tx.row(_STATE, node_id, node_id, workflow_id)
    if state is None or state[0] != run_id or state[1] or not state[4] or state[5]:
        return True
    has_interrupted = state[6]
    return bool(has_interrupted or tx.value(_READY, workflow_id)) or is_finished(tx, workflow_id)


def _reply(now: ExchangeState, request: ExchangeRequest, sort_method: str | None) -> ExchangeReply:
    reply = ExchangeReply(is_canceled=now.is_canceled)
    check_sort_method(request.sort_method or sort_method or "none")
    if not now.is_canceled:
        transitions.claimed(now.tx, now.node_id, now.held)
        claims.delay_jobs(now.tx, {job_id: now.delayed[job_id] for job_id in now.held if job_id in now.delayed})
        reply.held = now.held
        if now.has_interrupted and request.slots + request.ahead > 0:
            reply.resumed = len(resume_interrupted(now.tx, now.events))
        chosen = claims.choose_jobs(now.tx, now.workflow_id, request, sort_method)
        transitions.claimed(now.tx, now.node_id, chosen)
        again = _jobs_missing_on_runner(now, request.holding, {*now.held, *chosen})
        handed = [*now.held, *again, *chosen]
        reply.jobs = claims.describe_jobs(now.tx, handed)
        for job in reply.jobs:
            job.is_early = job.id in now.delayed
        if again or len(chosen) < request.slots + request.ahead:  # nothing else is left to do meanwhile
            in_hand = [job_id for job_id in now.continued if now.jobs[job_id].status in LIVE]
            reply.following = job_chains.chains_behind(now.tx, [*handed, *in_hand])
    if not reply.jobs:
        reply.is_complete = is_finished(now.tx, now.workflow_id)
        reply.due_in_s = _due_in_s(now)
        if request.free is not None and not reply.is_complete and not now.tx.value(_LIVE, now.workflow_id):
            reply.unfit = claims.count_unfit(now.tx, now.workflow_id, request)
    if request.want_counts:
        reply.counts = job_counts(now.tx, now.workflow_id)
    return reply


def _due_in_s(now: ExchangeState) -> float | None:
    """Return the seconds until the first wait before an attempt is over, None if there is no such wait."""
    first = min(claims.delayed_jobs(now.tx, now.workflow_id).values(), default=None)
    return None if first is None else max(0.0, datetime.fromisoformat(first).timestamp() - time.time())


def _jobs_missing_on_runner(now: ExchangeState, holding: Sequence[int] | None, fresh: set[int]) -> list[int]:
    """Return jobs that this runner has but does not name: their answer got lost, or it is gone and another asks."""
    if holding is None:
        return []
    known = fresh | set(holding)
    return [row[0] for row in now.tx.rows(_HELD_BY_RUNNER, now.node_id, now.workflow_id) if row[0] not in known]
