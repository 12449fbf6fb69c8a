"""Verdicts on jobs in ``pending_failed``: retry or fail; stored, and carried out with all that follows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from attrs import asdict, evolve, fields_dict

from torc_framework.models.events import EVENT_FACTS
from torc_framework.models.statuses import JobStatus
from torc_framework.models.verdicts import REQUESTS, Verdict, VerdictOrder, VerdictReceipt, VerdictRecord
from torc_framework.store.database.sql import Statement, Tx, ids_param, number
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.dependency_counters import downstream
from torc_framework.store.job_state.propagation import propagate
from torc_framework.store.record_kinds.requirements import RESOURCE_REQUIREMENTS
from torc_framework.store.records.crud import create, get, require_workflow
from torc_framework.store.records.events import TransactionEvents, utc_text
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.records.requirements import DEFAULT_REQUIREMENTS
from torc_framework.store.runs.workflow_status import check_run, workflow_status
from torc_framework.store.tables import core as t
from torc_framework.store.tables.verdicts import VERDICT

_JOBS = Statement(
    sa.select(
        t.JOB.c.id,
        t.JOB.c.name,
        t.JOB.c.status,
        t.JOB.c.attempt_id,
        t.JOB.c.blockers,
        t.JOB.c.result_id,
        t.JOB.c.resource_requirements_id,
        t.JOB.c.workflow_id,
    ).where(t.JOB.c.id.in_(ids_param()))
)
_ENDINGS = Statement(
    sa.select(t.RESULT.c.id, t.RESULT.c.return_code, t.RESULT.c.exit_class).where(t.RESULT.c.id.in_(ids_param()))
)
_FAILED = Statement(sa.update(t.RESULT).where(t.RESULT.c.id.in_(ids_param())).values(status=number(JobStatus.FAILED)))
_STATUSES = Statement(sa.select(t.JOB.c.id, t.JOB.c.status).where(t.JOB.c.id.in_(ids_param())))
_COLUMNS: Final = [VERDICT.c[name] for name in fields_dict(VerdictRecord) if name != "job_name"]


class _JudgedJob(NamedTuple):
    """A job in ``pending_failed``, with the ending that the verdict is about."""

    id: int
    name: str
    status: JobStatus
    attempt_id: int
    blockers: int
    result_id: int | None
    requirements_id: int | None
    workflow_id: int
    return_code: int | None = None
    exit_class: str | None = None


def judge(tx: Tx, workflow_id: int, order: VerdictOrder, user: str | None = None) -> VerdictReceipt:
    """Carry out an order; a dry run returns what would happen and changes nothing.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: a job is another workflow's, is not in ``pending_failed``, is at another attempt or occurs twice; a
            requirement has a wrong value; or the run is not the present one.
    """
    require_workflow(tx, workflow_id)
    if order.run_id is not None:
        check_run(tx, workflow_id, order.run_id)
    jobs = _jobs(tx, workflow_id, order.verdicts)
    with tx.connection.begin_nested() as changes:
        receipt = _carry_out(tx, workflow_id, order, jobs, user)
        if order.dry_run:
            changes.rollback()
            tx.discard_notifications()
            receipt.verdicts = [evolve(verdict, id=None) for verdict in receipt.verdicts]
    return receipt


def find_verdicts(
    tx: Tx, workflow_id: int, wanted: PageRequest, job_id: int | None = None
) -> tuple[list[VerdictRecord], int]:
    """Return one page of a workflow's verdicts, oldest first, and their number, from ``after_id`` on.

    Raises:
        NotFoundError: there is no such workflow.
    """
    require_workflow(tx, workflow_id)
    mine = [VERDICT.c.workflow_id == workflow_id, VERDICT.c.id > (wanted.after_id or 0)]
    if job_id is not None:
        mine.append(VERDICT.c.job_id == job_id)
    total = tx.connection.execute(sa.select(sa.func.count()).select_from(VERDICT).where(*mine)).scalar_one()
    query = (
        sa.select(*_COLUMNS, t.JOB.c.name.label("job_name"))
        .join(t.JOB, t.JOB.c.id == VERDICT.c.job_id)
        .where(*mine)
        .order_by(VERDICT.c.id)
        .offset(wanted.offset)
        .limit(wanted.limit)
    )
    return [VerdictRecord(**row) for row in tx.connection.execute(query).mappings()], int(total)


# --- the jobs ---------------------------------------------------------------------------------


def _jobs(tx: Tx, workflow_id: int, verdicts: Sequence[Verdict]) -> dict[int, _JudgedJob]:
    """Return the jobs of the verdicts by id; raise `RuleError` if a verdict cannot be carried out."""
    ids = [verdict.job_id for verdict in verdicts]
    if twice := sorted({job_id for job_id in ids if ids.count(job_id) > 1}):
        raise RuleError(f"Each job may have one verdict; several were sent for {_listed(twice)}")
    found = (_JudgedJob(*row) for row in tx.rows_for(_JOBS, ids))
    jobs = {job.id: job._replace(status=JobStatus(job.status)) for job in found if job.workflow_id == workflow_id}
    wrong = [text for verdict in verdicts if (text := _refusal(verdict, jobs.get(verdict.job_id), workflow_id))]
    if wrong:
        raise RuleError("; ".join(wrong))
    results = [job.result_id for job in jobs.values() if job.result_id is not None]
    endings = {result_id: ending for result_id, *ending in tx.rows_for(_ENDINGS, results)}
    for job in jobs.values():
        if job.result_id in endings:
            return_code, exit_class = endings[job.result_id]
            jobs[job.id] = job._replace(return_code=return_code, exit_class=exit_class)
    return jobs


def _refusal(verdict: Verdict, job: _JudgedJob | None, workflow_id: int) -> str | None:
    """Return why a verdict cannot be carried out; None if it can."""
    if job is None:
        return f"Job {verdict.job_id} is not in workflow {workflow_id}"
    if job.status is not JobStatus.PENDING_FAILED:
        return f"Job {job.id} is {job.status.label}: only a job that is pending_failed waits for a verdict"
    if verdict.attempt_id not in (None, job.attempt_id):
        return f"The verdict is on attempt {verdict.attempt_id}, but job {job.id} is at attempt {job.attempt_id}"
    if verdict.confidence is not None and not 0 <= verdict.confidence <= 1:
        return f"Job {job.id}: confidence is {verdict.confidence}; expected 0 to 1"
    if verdict.action == "fail" and _requests(verdict):
        return f"Job {job.id}: {', '.join(_requests(verdict))} can be changed with a retry only"
    return None


def _requests(verdict: Verdict) -> dict[str, Any]:
    """Return the requirements that a verdict changes."""
    return {name: value for name in REQUESTS if (value := getattr(verdict, name)) is not None}


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(f"job {job_id}" for job_id in ids)


# --- the changes ----------------------------------------------------------------------------------


def _carry_out(
    tx: Tx, workflow_id: int, order: VerdictOrder, jobs: Mapping[int, _JudgedJob], user: str | None
) -> VerdictReceipt:
    run_id, events = workflow_status(tx, workflow_id).run_id, TransactionEvents(workflow_id)
    _assign_requirements(tx, order.verdicts, jobs)
    tx.run_for(_FAILED, [job.result_id for job in jobs.values() if job.result_id is not None])
    facts = {"run_id": run_id, "user": user, "judge": order.judge, "judge_kind": str(order.judge_kind)}
    kept = [_store_verdict(tx, verdict, jobs[verdict.job_id], **facts) for verdict in order.verdicts]
    ready, failed = list[int](), dict[int, bool]()
    for record in kept:
        job = jobs[record.job_id]
        events.add("job_judged", **_event_data(record))
        if record.action == "retry":
            _retry(tx, events, job, record)
            ready += [] if job.blockers else [job.id]
        else:
            transitions.judged(tx, job.id, JobStatus.FAILED)
            failed[job.id] = True
            events.job_ended(
                job.id,
                job.name,
                JobStatus.FAILED,
                job.return_code,
                attempt_id=job.attempt_id,
                run_id=run_id,
                exit_class=job.exit_class,
                reason=record.reason,
            )
    waiting = downstream(tx, failed, through={JobStatus.BLOCKED})
    propagate(tx, events, failed, ready)
    events.write(tx)
    now: dict[int, int] = dict(tx.rows_for(_STATUSES, waiting))
    ready += [job_id for job_id in waiting if now[job_id] == JobStatus.READY]
    return VerdictReceipt(order.dry_run, kept, ready, [id_ for id_ in waiting if now[id_] == JobStatus.CANCELED])


def _retry(tx: Tx, events: TransactionEvents, job: _JudgedJob, record: VerdictRecord) -> None:
    """Make a job ready for another attempt, or blocked if jobs that it waits for run again themselves."""
    transitions.judged(tx, job.id, JobStatus.READY)
    if job.blockers:
        transitions.found_blocked(tx, [job.id])
    events.add(
        "job_retried",
        job_id=job.id,
        job_name=job.name,
        previous_attempt=job.attempt_id,
        new_attempt=1 if job.blockers else job.attempt_id + 1,
        run_id=record.run_id,
        return_code=job.return_code,
        reason=record.reason,
    )


def _event_data(record: VerdictRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in EVENT_FACTS["job_judged"].keys}


def _store_verdict(tx: Tx, verdict: Verdict, job: _JudgedJob, **facts: Any) -> VerdictRecord:
    """Store a verdict; return its record.

    Args:
        facts: Fields that all verdicts of an order have in common.
    """
    given = {**asdict(verdict), "attempt_id": job.attempt_id, "job_name": job.name}
    record = VerdictRecord(id=None, workflow_id=job.workflow_id, judged_at=utc_text(), **given, **facts)
    values = {name: value for name, value in asdict(record).items() if name not in ("id", "job_name")}
    return evolve(record, id=tx.add(VERDICT, **values))


def _assign_requirements(tx: Tx, verdicts: Sequence[Verdict], jobs: Mapping[int, _JudgedJob]) -> None:
    """Give jobs whose verdict changes requirements new records of requirements; jobs with equal ones share a record."""
    made: dict[tuple[Any, ...], int] = {}
    for verdict in verdicts:
        changes, job = _requests(verdict), jobs[verdict.job_id]
        if not changes or job.requirements_id is None:
            continue
        key = job.requirements_id, *changes.items()
        if key not in made:
            made[key] = _new_requirements(tx, job, changes)
        tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == job.id).values(resource_requirements_id=made[key]))


def _new_requirements(tx: Tx, job: _JudgedJob, changes: Mapping[str, Any]) -> int:
    old = get(tx, RESOURCE_REQUIREMENTS, job.requirements_id or 0)
    if old["name"] == DEFAULT_REQUIREMENTS and not {"memory", "runtime"} <= changes.keys():
        raise RuleError(f"Job {job.id} has no resource requirements of its own: give memory and runtime together")
    name = f"{old['name']}_j{job.id}_a{job.attempt_id + 1}"
    return int(create(tx, RESOURCE_REQUIREMENTS, {**old, **changes, "name": name})["id"])
