"""The kind of record of jobs: their relations, their creation and deletion, and what may be changed in which status."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.executor_options import options_text
from torc_framework.models.records import JobRecord
from torc_framework.models.statuses import UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, insertion
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.changed_inputs import remember_inputs
from torc_framework.store.job_state.dependency_counters import dependents_of, recount_jobs
from torc_framework.store.job_state.jobs_to_stop import prepare_job_deletion
from torc_framework.store.job_state.propagation import is_finished, propagate_deletion
from torc_framework.store.job_state.structure_changes import count_structure_change
from torc_framework.store.job_state.triggers import count_triggers
from torc_framework.store.records.crud import differs, get, require_workflow
from torc_framework.store.records.events import TransactionEvents
from torc_framework.store.records.kind import ListFilter, RecordKind, RelationTable, Values, without_nulls
from torc_framework.store.records.references import check_references
from torc_framework.store.records.requirements import check_executor_options, check_shell, default_requirements
from torc_framework.store.tables import core as t

MAX_BATCH: Final = 10_000
"""Largest number of jobs in one bulk create."""

_DEPENDS_ON: Final = sa.union_all(
    sa.select(t.JOB_DEPENDENCY.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id),
    sa.select(t.GROUP_WAITER.c.job_id, t.GROUP_MEMBER.c.job_id).where(
        t.GROUP_MEMBER.c.group_id == t.GROUP_WAITER.c.group_id
    ),
).subquery("depends_on")


class _Dependencies(RelationTable):
    """The jobs that a job waits for, directly or as members of a group; a new list is stored as direct dependencies."""

    def query(self) -> Statement:
        """Return the query for the pairs (job, job that it waits for) of several jobs."""
        direct = sa.select(t.JOB_DEPENDENCY.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id).where(
            t.JOB_DEPENDENCY.c.job_id.in_(ids_param())
        )
        grouped = sa.select(t.GROUP_WAITER.c.job_id, t.GROUP_MEMBER.c.job_id).where(
            t.GROUP_WAITER.c.job_id.in_(ids_param()), t.GROUP_MEMBER.c.group_id == t.GROUP_WAITER.c.group_id
        )
        return Statement(sa.union_all(direct, grouped))


_RELATIONS: Final = {
    "depends_on_job_ids": _Dependencies(t.JOB_DEPENDENCY, "job_id", "depends_on_job_id"),
    "input_file_ids": RelationTable(t.JOB_INPUT_FILE, "job_id", "file_id"),
    "output_file_ids": RelationTable(t.JOB_OUTPUT_FILE, "job_id", "file_id"),
    "input_user_data_ids": RelationTable(t.JOB_INPUT_USER_DATA, "job_id", "user_data_id"),
    "output_user_data_ids": RelationTable(t.JOB_OUTPUT_USER_DATA, "job_id", "user_data_id"),
}
_FIXED_ONCE_INITIALIZED: Final[tuple[str, ...]] = ("name", "command", "depends_on_job_ids")
"""Fields that can be changed only while the job is uninitialized; the command also when it is over."""
_TEXTS: Final = ("command", "invocation_script")
COLUMNS: Final = (
    "id",
    "workflow_id",
    "name",
    "command",
    "invocation_script",
    "cancel_on_blocking_job_failure",
    "supports_termination",
    "clean_exit_after_stop",
    "resource_requirements_id",
    "scheduler_id",
    "failure_handler_id",
    "executor",
    "shell",
    "container",
    "executor_options",
    "stdio",
    "delete_stdio_on_success",
)
"""Columns of a job that its creation sets."""
_DEFAULTS: Final = {
    "cancel_on_blocking_job_failure": True,
    "supports_termination": False,
    "clean_exit_after_stop": "auto",
}
_INSERT: Final = insertion(t.JOB, *COLUMNS)
_INSERT_RELATION: Final = {
    name: insertion(relation.table, relation.owner, relation.other) for name, relation in _RELATIONS.items()
}


def check_batch(count: int) -> None:
    """Raise `RuleError` if there are more jobs than one batch may hold."""
    if count > MAX_BATCH:
        raise RuleError(f"a batch holds at most {MAX_BATCH} jobs, this one has {count}")


def create_jobs(tx: Tx, sent: Sequence[Mapping[str, Any]]) -> list[Values]:
    """Store new jobs of one workflow, uninitialized; return them in order.

    Raises:
        NotFoundError: the workflow does not exist.
        RuleError: there are too many, they belong to several workflows, or refer to records that do not exist.
    """
    if not sent:
        return []
    check_batch(len(sent))
    workflows = {job["workflow_id"] for job in sent}
    if len(workflows) > 1:
        raise RuleError(f"All jobs in a batch must have the same workflow_id; found {sorted(workflows)}")
    (workflow_id,) = workflows
    require_workflow(tx, workflow_id)
    check_references(tx, "jobs", workflow_id, sent)
    for shell in {job.get("shell") for job in sent}:
        check_shell(shell)
    for job in sent:
        check_executor_options(job.get("executor_options"))
    default = default_requirements(tx, workflow_id)
    first = tx.new_ids(t.JOB, len(sent))
    jobs = [{**_DEFAULTS, **without_nulls(job), "id": job_id} for job_id, job in enumerate(sent, first)]
    for job in jobs:
        job.setdefault("resource_requirements_id", default)
    tx.run_each(_INSERT, [tuple(_column_value(job, name) for name in COLUMNS) for job in jobs])
    for name, statement in _INSERT_RELATION.items():
        tx.run_each(statement, [(job["id"], other) for job in jobs for other in dict.fromkeys(job.get(name) or ())])
    recount_jobs(tx, [job["id"] for job in jobs if job.get("depends_on_job_ids")])
    count_structure_change(tx, workflow_id)
    shown = set(JOBS.names)
    new = {"status": JobStatus.UNINITIALIZED.label, "attempt_id": 1, "is_interrupted": False}
    return [{k: v for k, v in {**job, **new}.items() if k in shown and v != []} for job in jobs]


def _column_value(job: Values, name: str) -> Any:
    """Return the value of a column for `_INSERT`, whose JSON is text."""
    value = job.get(name)
    return options_text(value) if name == "executor_options" and value is not None else value


def _refused(job_id: int, status: JobStatus, changed: Sequence[str], wanted: str | None) -> RuleError:
    """Return why a job does not take changes of these fields."""
    if "status" in changed:
        return RuleError(
            f"Cannot update job status of job {job_id} from {status.label} to {wanted}: starting and completing the "
            "job change it; only disabled can be set, while the job is uninitialized"
        )
    return RuleError(
        f"Job {job_id} is {status.label}: cannot change {', '.join(changed)}, which needs a job that is uninitialized. "
        "Once initialized, a job takes changes of scheduler_id, resource_requirements_id, failure_handler_id, "
        "invocation_script, executor, shell, container, executor_options, stdio, delete_stdio_on_success, "
        "cancel_on_blocking_job_failure, supports_termination and clean_exit_after_stop, and once it is over of "
        "command."
    )


def _before_update(tx: Tx, before: Values, changes: Values) -> Values:
    given = without_nulls(changes)
    job_id, status = before["id"], JobStatus.from_label(before["status"])
    wanted = given.pop("status", None)
    changed: list[str] = [
        name for name in _FIXED_ONCE_INITIALIZED if name in given and differs(given[name], before.get(name))
    ]
    if wanted is not None and wanted != before["status"] and not _enable_or_disable(tx, job_id, status, wanted):
        changed.append("status")
    if status in UNBLOCKING and changed == ["command"]:
        changed = []  # the next reinitialize finds the changed command
    if changed and (status is not JobStatus.UNINITIALIZED or "status" in changed):
        raise _refused(job_id, status, changed, wanted)
    check_shell(given.get("shell"))
    check_executor_options(given.get("executor_options"))
    remember_inputs(tx, [job_id])
    if "depends_on_job_ids" in changed:
        _set_dependencies(tx, job_id, given["depends_on_job_ids"])
    given.pop("depends_on_job_ids", None)
    if not given.keys().isdisjoint(_TEXTS):
        given["written_texts"] = _still_written(tx, job_id, given)
    count_structure_change(tx, before["workflow_id"])
    tx.workflows_to_wake.add(before["workflow_id"])
    return given


def _still_written(tx: Tx, job_id: int, given: Mapping[str, Any]) -> str | None:
    """Return a job's ``written_texts`` without those of fields that change."""
    found = tx.connection.execute(sa.select(t.JOB.c.written_texts).where(t.JOB.c.id == job_id)).scalar()
    kept = {name: text for name, text in json.loads(found or "{}").items() if name not in given}
    return json.dumps(kept) if kept else None


def _enable_or_disable(tx: Tx, job_id: int, status: JobStatus, wanted: str) -> bool:
    """Disable or enable a job; return False if the wanted status is another."""
    switches = {
        (JobStatus.UNINITIALIZED, "disabled"): transitions.disabled,
        (JobStatus.DISABLED, "uninitialized"): transitions.enabled,
    }
    switch = switches.get((status, wanted))
    return switch is not None and switch(tx, job_id) == 1


def _set_dependencies(tx: Tx, job_id: int, others: Sequence[int]) -> None:
    """Replace a job's dependencies; the next initialize refuses cycles."""
    if job_id in others:
        raise RuleError(f"Job {job_id} cannot wait for itself")
    execute = tx.connection.execute
    execute(sa.delete(t.JOB_DEPENDENCY).where(t.JOB_DEPENDENCY.c.job_id == job_id))
    execute(sa.delete(t.GROUP_WAITER).where(t.GROUP_WAITER.c.job_id == job_id))
    tx.run_each(_INSERT_RELATION["depends_on_job_ids"], [(job_id, other) for other in dict.fromkeys(others)])
    execute(sa.update(t.JOB).where(t.JOB.c.id == job_id).values(dependencies_resolved=False))
    recount_jobs(tx, [job_id])


def delete_jobs(tx: Tx, workflow_id: int, job_ids: Sequence[int], *, force: bool = True) -> int:
    """Delete jobs; dependents that waited for no other job become ready.

    Args:
        force: Delete also pending and running jobs, which their runners stop.

    Raises:
        ConflictError: without ``force``, some are pending or running.
    """
    prepare_job_deletion(tx, workflow_id, job_ids, force=force)
    waiting = dependents_of(tx, job_ids)
    remember_inputs(tx, waiting.job_ids)
    delete = Statement(sa.delete(t.JOB).where(t.JOB.c.id.in_(ids_param())))
    count = tx.changed_for(delete, job_ids)
    count_structure_change(tx, workflow_id)
    events = TransactionEvents(workflow_id)
    done = propagate_deletion(tx, events, waiting)
    count_triggers(tx, done.ready, done.canceled)
    events.write(tx)
    if done.ready:
        tx.workflows_with_ready_jobs.add(workflow_id)
    elif is_finished(tx, workflow_id):
        tx.workflows_to_wake.add(workflow_id)
    return count


def delete_job(tx: Tx, job_id: int, *, force: bool = True) -> Values:
    """Delete one job; return the deleted job."""
    job = get(tx, JOBS, job_id)
    delete_jobs(tx, job["workflow_id"], [job_id], force=force)
    return job


def delete_listed_jobs(tx: Tx, workflow_id: int, job_ids: Sequence[int], *, force: bool = True) -> list[Values]:
    """Delete these jobs of a workflow, all or none; return the deleted jobs.

    Raises:
        ConflictError: without ``force``, one of them is pending or running.
        NotFoundError: one of them does not exist, or is another workflow's.
    """
    wanted = list(dict.fromkeys(job_ids))
    jobs = [get(tx, JOBS, job_id) for job_id in wanted]
    for job in jobs:
        if job["workflow_id"] != workflow_id:
            raise NotFoundError(JOBS.title, job["id"])
    delete_jobs(tx, workflow_id, wanted, force=force)
    return jobs


def _needs(table: sa.Table, column: str, value: int) -> sa.ColumnElement[bool]:
    return t.JOB.c.id.in_(sa.select(table.c.job_id).where(table.c[column] == value))


JOBS: Final = RecordKind(
    path="jobs",
    title="Job",
    record=JobRecord,
    table=t.JOB,
    filters={
        "status": ListFilter(JobStatus, lambda label: t.JOB.c.status == _status(label)),
        "needs_file_id": ListFilter(int, lambda value: _needs(t.JOB_INPUT_FILE, "file_id", value)),
        "upstream_job_id": ListFilter(
            int, lambda value: t.JOB.c.id.in_(sa.select(_DEPENDS_ON.c.job_id).where(_DEPENDS_ON.c[1] == value))
        ),
        "active_compute_node_id": ListFilter(int, lambda value: t.JOB.c.active_compute_node_id == value),
        "name": ListFilter(str, lambda value: t.JOB.c.name == value),
    },
    relations=_RELATIONS,
    before_update=_before_update,
)


def _status(label: str) -> JobStatus:
    try:
        return JobStatus.from_label(label)
    except ValueError as error:
        raise RuleError(str(error)) from error
