"""The exchange: stores a runner's reports and claims jobs for it, in one transaction."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from attrs import evolve

from torc_framework.models.exchange import ExchangeReply, ExchangeRequest
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.store.database.sql import Statement, Tx, number, numbers, param
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.exchange import claims, job_chains
from torc_framework.store.exchange.leases import LastAnswer, check_lease, is_superseded, note_exchange, read_answer
from torc_framework.store.exchange.reports import (
    ExchangeState,
    record_ended,
    record_released,
    record_started,
    record_waiting,
    recorded_later,
    reported_jobs_later,
)
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.interruptions import IS_INTERRUPTED, resume_interrupted
from torc_framework.store.job_state.jobs_to_stop import take_stop_requests
from torc_framework.store.job_state.propagation import is_finished, propagate
from torc_framework.store.job_state.triggers import count_due_actions
from torc_framework.store.records.events import TransactionEvents
from torc_framework.store.records.requirements import check_sort_method
from torc_framework.store.runs.workflow_status import job_counts
from torc_framework.store.tables.core import COMPUTE_NODE, JOB, RESULT, WORKFLOW, WORKFLOW_ACTION, WORKFLOW_STATUS
from torc_framework.store.tables.internal import JOB_TO_STOP


class _WorkflowAndRunner(NamedTuple):
    """What the exchange has to know of a workflow and a runner, a row of `_WORKFLOW_AND_RUNNER`."""

    run_id: int
    is_canceled: int
    sort_method: str | None
    has_actions: int
    runner_id: int | None
    is_draining: int | None
    epoch: int | None
    last_seq: int | None
    last_answer: str | None
    has_jobs_to_stop: int
    has_interrupted: int

    @property
    def drains(self) -> bool:
        """Whether the runner is to take no more jobs."""
        return bool(self.is_draining)


_WORKFLOW_AND_RUNNER = Statement(
    sa.select(
        WORKFLOW_STATUS.c.run_id,
        WORKFLOW_STATUS.c.is_canceled,
        WORKFLOW.c.jobs_sort_method,
        sa.exists().where(WORKFLOW_ACTION.c.workflow_id == WORKFLOW.c.id).correlate(WORKFLOW),
        COMPUTE_NODE.c.id,
        COMPUTE_NODE.c.is_draining,
        COMPUTE_NODE.c.epoch,
        COMPUTE_NODE.c.last_seq,
        COMPUTE_NODE.c.last_answer,
        sa.exists().where(JOB_TO_STOP.c.compute_node_id == param("node")),
        sa.exists().where(IS_INTERRUPTED),
    )
    .select_from(
        WORKFLOW.join(WORKFLOW_STATUS, WORKFLOW_STATUS.c.id == WORKFLOW.c.id).outerjoin(
            COMPUTE_NODE, sa.and_(COMPUTE_NODE.c.id == param("node"), COMPUTE_NODE.c.workflow_id == WORKFLOW.c.id)
        )
    )
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


def exchange(
    tx: Tx, workflow_id: int, request: ExchangeRequest, *, do_others_wait: bool = False, waited: bool = False
) -> ExchangeReply:
    """Store a runner's reports and claim jobs for it.

    Args:
        tx: The transaction.
        workflow_id: The workflow.
        request: The reports and the offer.
        do_others_wait: Other runners wait for jobs, so that none is claimed that the runner could not start at once.
        waited: The reports of this call are stored, and it has waited for jobs since.

    Raises:
        NotFoundError: there is no such workflow or compute node.
        RuleError: the runner belongs to another run than the present one, or a report has an impossible value.
        ConflictError: another process holds the lease of the compute node, or none any more.
    """
    found, state = _read_state(tx, workflow_id, request)
    if is_superseded(request, found.last_seq, waited=waited):
        return ExchangeReply(is_superseded=True, is_draining=found.drains)
    if request.started:
        record_started(state, request.started)
    refused: list[int] = []
    for wave in job_chains.report_waves(request.ended):
        record_ended(state, [report for report in wave if report.job_id not in refused])
        _propagate(state, has_actions=found.has_actions)
        refused += job_chains.claim_continued(state, wave)
    if state.continued and request.started:
        record_started(state, [report for report in request.started if report.job_id in state.continued])
    if request.released:
        record_released(state, request.released)
        _propagate(state, has_actions=found.has_actions)
    if request.waiting:
        record_waiting(state, request.waiting)
    offer = evolve(request, slots=0, ahead=0) if found.drains else request
    told = read_answer(found.last_answer) if request.holding is not None else LastAnswer()
    reply = _reply(state, offer, found.sort_method, told, do_others_wait=do_others_wait)
    reply.is_draining = found.drains
    if found.has_jobs_to_stop or request.holding:
        refused += take_stop_requests(tx, request.compute_node_id, request.holding)
    reply.refused = [*dict.fromkeys((*refused, *_not_held(state, told.refused)))]
    reply.actions_due = count_due_actions(tx, workflow_id) if found.has_actions else 0
    note_exchange(tx, request, reply)
    state.events.write(tx)
    return reply


def _read_state(tx: Tx, workflow_id: int, request: ExchangeRequest) -> tuple[_WorkflowAndRunner, ExchangeState]:
    """Return the workflow and the runner, and the exchange before anything is stored; raises as `exchange` does."""
    named = {r.job_id for r in request.started} | {r.job_id for r in request.ended} | set(request.released)
    named.update(r.job_id for r in request.waiting)
    rows = tx.rows_later(_WORKFLOW_AND_RUNNER, request.compute_node_id, request.compute_node_id, workflow_id)
    jobs = reported_jobs_later(tx, workflow_id, sorted(named))
    recorded = recorded_later(tx, request.ended, request.run_id)
    first_result = tx.new_ids(RESULT, len(request.ended))
    found = next(map(_WorkflowAndRunner._make, rows()), None)
    if found is None:
        raise NotFoundError("Workflow", workflow_id)
    if request.run_id != found.run_id:
        raise RuleError(f"Run ID mismatch: provided {request.run_id} but workflow status has {found.run_id}")
    if found.runner_id is None:
        raise NotFoundError("Compute node", request.compute_node_id)
    check_lease(request, found.epoch)
    return found, ExchangeState(
        tx=tx,
        workflow_id=workflow_id,
        node_id=request.compute_node_id,
        run_id=found.run_id,
        is_canceled=bool(found.is_canceled),
        events=TransactionEvents(workflow_id),
        jobs=jobs(),
        recorded=recorded(),
        next_result=first_result,
        has_interrupted=bool(found.has_interrupted),
    )


def _workflow_and_runner(tx: Tx, workflow_id: int, node_id: int) -> _WorkflowAndRunner | None:
    row = tx.row(_WORKFLOW_AND_RUNNER, node_id, node_id, workflow_id)
    return None if row is None else _WorkflowAndRunner(*row)


def _propagate(state: ExchangeState, *, has_actions: int) -> None:
    """Do what follows from the reports that have been stored so far."""
    if state.endings or state.ready:
        propagate(state.tx, state.events, state.endings, state.ready, has_actions=bool(has_actions))
        state.endings, state.ready = {}, []


def has_something_for_runner(tx: Tx, workflow_id: int, request: ExchangeRequest) -> bool:
    """Return whether an exchange now would have something for a waiting runner.

    That is a job to claim or to stop, the end or the cancellation of the workflow, the begin or end of a drain, or a
    refusal.
    """
    found = _workflow_and_runner(tx, workflow_id, request.compute_node_id)
    if found is None or found.run_id != request.run_id or found.is_canceled or found.runner_id is None:
        return True
    if (found.epoch or 0) != request.epoch or found.has_jobs_to_stop or found.drains != request.is_draining:
        return True
    return bool(found.has_interrupted or tx.value(_READY, workflow_id)) or is_finished(tx, workflow_id)


def _reply(
    state: ExchangeState, request: ExchangeRequest, sort_method: str | None, told: LastAnswer, *, do_others_wait: bool
) -> ExchangeReply:
    """Claim jobs and return the reply with them.

    Args:
        told: What the answer before told, if that is lost.
    """
    reply = ExchangeReply(is_canceled=state.is_canceled)
    check_sort_method(request.sort_method or sort_method or "none")
    if not state.is_canceled:
        transitions.claimed(state.tx, state.node_id, state.held)
        claims.delay_jobs(state.tx, {job_id: state.delayed[job_id] for job_id in state.held if job_id in state.delayed})
        if state.has_interrupted and request.slots + request.ahead > 0:
            reply.resumed = len(resume_interrupted(state.tx, state.events))
        offer = evolve(request, ahead=0) if do_others_wait else request
        chosen, requirements = claims.choose_jobs(state.tx, state.workflow_id, offer, sort_method)
        transitions.claimed(state.tx, state.node_id, chosen)
        again = _jobs_missing_on_runner(state, request.holding, {*state.held, *chosen})
        claimed = [*state.held, *again, *chosen]
        reply.held = [*state.held, *(job_id for job_id in again if job_id in told.held)]
        has_room = len(chosen) < request.slots + request.ahead
        ready = (lambda: []) if has_room else state.tx.rows_later(_READY, state.workflow_id)
        reply.jobs = claims.describe_jobs(state.tx, claimed, requirements)
        for job in reply.jobs:
            job.is_early = job.id in state.delayed or job.id in told.early
        if again or not any(is_ready for (is_ready,) in ready()):  # other ready jobs go before those behind a job
            reply.following = job_chains.chains_behind(state, request, claimed)
    if not reply.jobs:
        reply.is_complete = is_finished(state.tx, state.workflow_id)
        reply.due_in_s = _due_in_s(state)
        if request.free is not None and not reply.is_complete and not state.tx.value(_LIVE, state.workflow_id):
            reply.unfit = claims.count_unfit(state.tx, state.workflow_id, request)
    if request.want_counts or reply.is_complete:
        reply.counts = job_counts(state.tx, state.workflow_id)
    return reply


def _not_held(state: ExchangeState, job_ids: Sequence[int]) -> list[int]:
    """Return those of these jobs that the runner does not hold in the database."""
    if not job_ids:
        return []
    jobs = reported_jobs_later(state.tx, state.workflow_id, job_ids)()
    return [
        job_id
        for job_id in job_ids
        if (job := jobs.get(job_id)) is None or job.status not in LIVE or job.holder != state.node_id
    ]


def _due_in_s(state: ExchangeState) -> float | None:
    """Return the seconds until the first delayed attempt may begin, None if no attempt is delayed."""
    first = min(claims.delayed_jobs(state.tx, state.workflow_id).values(), default=None)
    return None if first is None else max(0.0, datetime.fromisoformat(first).timestamp() - time.time())


def _jobs_missing_on_runner(state: ExchangeState, holding: Sequence[int] | None, fresh: set[int]) -> list[int]:
    """Return jobs that the server has claimed for this runner and that the runner does not hold.

    Either the reply with them was lost, or another process asks in the name of a runner that ended.
    """
    if holding is None:
        return []
    known = fresh | set(holding)
    held = state.tx.rows(_HELD_BY_RUNNER, state.node_id, state.workflow_id)
    return [job_id for (job_id,) in held if job_id not in known]
