"""Every kind of record, and what is special about each."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, param
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.changed_inputs import remember_inputs
from torc_framework.store.job_state.triggers import reopen_actions
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.records.crud import ListFilter, RecordKind, Values, get, without_nulls
from torc_framework.store.records.events import EventLog, now_ms, record_user_action
from torc_framework.store.records.failure_rules import check_rules
from torc_framework.store.records.requirements import (
    DEFAULT_REQUIREMENTS,
    check_shell,
    check_sort_method,
    default_requirements,
    parsed_requirements,
)
from torc_framework.store.tables import core as t
from torc_framework.store.tables.allocations import SCHEDULED_COMPUTE_NODE


def _equals(table: sa.Table, **kinds: type[Any]) -> dict[str, ListFilter]:
    """Return filters that compare columns with their value."""

    def equal(column: sa.Column[Any]) -> ListFilter:
        return ListFilter(kinds[column.name], lambda value: column == value)

    return {name: equal(table.c[name]) for name in kinds}


def _written(column: sa.Column[Any]) -> ListFilter:
    """Return a filter that compares a number as it is written: Torc's clients send a text, which may be none."""
    return ListFilter(str, lambda text: sa.cast(column, sa.String) == text)


def _linked(record: sa.Table, table: sa.Table, other: str) -> ListFilter:
    """Return a filter by a job that a relation links to the record."""
    return ListFilter(int, lambda job_id: record.c.id.in_(sa.select(table.c[other]).where(table.c.job_id == job_id)))


# --- workflows -------------------------------------------------------------------------------------

_ARCHIVED: Final = sa.select(t.WORKFLOW_STATUS.c.id).where(t.WORKFLOW_STATUS.c.is_archived)


def _workflow_changes(_tx: Tx, _workflow: Values, changes: Values) -> Values:
    check_sort_method(changes.get("jobs_sort_method"))
    check_shell(changes.get("shell"))
    return without_nulls(changes)


def _notify_listeners(tx: Tx, workflows: Sequence[Values]) -> None:
    ids = {workflow["id"] for workflow in workflows}
    tx.workflows_to_wake |= ids
    tx.workflows_with_events |= ids


WORKFLOWS: Final = RecordKind(
    path="workflows",
    kind="Workflow",
    record=r.WorkflowRecord,
    table=t.WORKFLOW,
    filters={
        **_equals(t.WORKFLOW, name=str, user=str),
        "description": ListFilter(str, lambda text: t.WORKFLOW.c.description.icontains(text, autoescape=True)),
        "is_archived": ListFilter(
            bool, lambda yes: t.WORKFLOW.c.id.in_(_ARCHIVED) if yes else t.WORKFLOW.c.id.not_in(_ARCHIVED)
        ),
    },
    before_update=_workflow_changes,
    before_delete=_notify_listeners,
)


# --- files and user data ---------------------------------------------------------------------------


def _users(*tables: sa.Table, other: str) -> list[Statement]:
    """Return the questions which jobs the relations in these tables link to records."""
    return [Statement(sa.select(table.c.job_id).where(table.c[other].in_(ids_param()))) for table in tables]


_FILE_USERS: Final = _users(t.JOB_INPUT_FILE, t.JOB_OUTPUT_FILE, other="file_id")
_READERS: Final = _users(t.JOB_INPUT_USER_DATA, other="user_data_id")
_USER_DATA_USERS: Final = [*_READERS, *_users(t.JOB_OUTPUT_USER_DATA, other="user_data_id")]


def _remember_inputs(tx: Tx, users: Sequence[Statement], record_ids: Sequence[int]) -> None:
    """Keep what the inputs of jobs were before these records change."""
    remember_inputs(tx, sorted({job_id for statement in users for (job_id,) in tx.rows_for(statement, record_ids)}))


def _before_delete(users: Sequence[Statement]) -> Callable[[Tx, Sequence[Values]], None]:
    return lambda tx, records: _remember_inputs(tx, users, [record["id"] for record in records])


def _user_data_changes(tx: Tx, record: Values, changes: Values) -> Values:
    if changes.get("data") is not None:
        _remember_inputs(tx, _READERS, [record["id"]])
    return without_nulls(changes)


def _file_changes(_tx: Tx, _record: Values, changes: Values) -> Values:
    return {**without_nulls(changes), "st_mtime": changes.get("st_mtime")}


_WRITTEN: Final = sa.select(t.JOB_OUTPUT_FILE.c.file_id)

FILES: Final = RecordKind(
    path="files",
    kind="File",
    record=r.FileRecord,
    table=t.FILE,
    filters={
        **_equals(t.FILE, name=str, path=str),
        "produced_by_job_id": _linked(t.FILE, t.JOB_OUTPUT_FILE, "file_id"),
        "is_output": ListFilter(bool, lambda yes: t.FILE.c.id.in_(_WRITTEN) if yes else t.FILE.c.id.not_in(_WRITTEN)),
    },
    before_update=_file_changes,
    before_delete=_before_delete(_FILE_USERS),
)
USER_DATA: Final = RecordKind(
    path="user_data",
    kind="User data",
    record=r.UserDataRecord,
    table=t.USER_DATA,
    filters={
        **_equals(t.USER_DATA, is_ephemeral=bool),
        "name": ListFilter(str, lambda text: t.USER_DATA.c.name.icontains(text, autoescape=True)),
        "consumer_job_id": _linked(t.USER_DATA, t.JOB_INPUT_USER_DATA, "user_data_id"),
        "producer_job_id": _linked(t.USER_DATA, t.JOB_OUTPUT_USER_DATA, "user_data_id"),
    },
    before_update=_user_data_changes,
    before_delete=_before_delete(_USER_DATA_USERS),
)


def link_user_data(tx: Tx, user_data: Values, consumer_job_id: int | None, producer_job_id: int | None) -> None:
    """Say which jobs read and write a user data record."""
    links = ((t.JOB_INPUT_USER_DATA, consumer_job_id), (t.JOB_OUTPUT_USER_DATA, producer_job_id))
    for table, job_id in links:
        if job_id is None:
            continue
        job = get(tx, JOBS, job_id)
        if job["workflow_id"] != user_data["workflow_id"]:
            raise RuleError(f"Job {job_id} is not in workflow {user_data['workflow_id']}")
        remember_inputs(tx, [job_id])
        tx.connection.execute(sa.insert(table).values(job_id=job_id, user_data_id=user_data["id"]))
        tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == job_id).values(dependencies_resolved=False))


# --- what jobs ask for -----------------------------------------------------------------------------


def _new_requirements(_tx: Tx, values: Values) -> Values:
    if values["name"] == DEFAULT_REQUIREMENTS:
        raise RuleError("Resource requirements cannot be named 'default': every workflow has its own")
    record = r.ResourceRequirementsRecord(**values)
    return {**values, **parsed_requirements(record)}


def _requirements_changes(_tx: Tx, before: Values, changes: Values) -> Values:
    given = without_nulls(changes)
    renamed = given.get("name", before["name"]) != before["name"]
    if renamed and DEFAULT_REQUIREMENTS in (before["name"], given["name"]):
        raise RuleError("Resource requirements cannot be renamed to or from 'default'")
    return {**given, **parsed_requirements(r.ResourceRequirementsRecord(**{**before, **given}))}


def _requirements_changed(tx: Tx, before: Values, after: Values) -> None:
    changes = {name: value for name, value in after.items() if value != before.get(name)}
    record_user_action(
        tx,
        after["workflow_id"],
        "update_resource_requirements",
        resource_requirements_id=after["id"],
        name=after["name"],
        changes=changes,
    )


def _free_requirements(tx: Tx, records: Sequence[Values]) -> None:
    for record in records:
        if record["name"] == DEFAULT_REQUIREMENTS:
            raise RuleError("The default resource requirements of a workflow cannot be deleted")
        mine = sa.and_(t.JOB.c.workflow_id == record["workflow_id"], t.JOB.c.resource_requirements_id == record["id"])
        default = default_requirements(tx, record["workflow_id"])
        tx.connection.execute(sa.update(t.JOB).where(mine).values(resource_requirements_id=default))


def _runs_for(text: str) -> sa.ColumnElement[bool]:
    """Compare a runtime as it is written, or its seconds: Torc's Python client can send an integer only."""
    columns = t.RESOURCE_REQUIREMENTS.c
    seconds = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
    return columns.runtime == text if seconds is None else columns.runtime_s == seconds


RESOURCE_REQUIREMENTS: Final = RecordKind(
    path="resource_requirements",
    kind="Resource requirements",
    record=r.ResourceRequirementsRecord,
    table=t.RESOURCE_REQUIREMENTS,
    filters={
        **_equals(t.RESOURCE_REQUIREMENTS, name=str, memory=str, num_cpus=int, num_gpus=int, num_nodes=int),
        "runtime": ListFilter(str, _runs_for),
        "job_id": ListFilter(
            int,
            lambda job_id: t.RESOURCE_REQUIREMENTS.c.id.in_(
                sa.select(t.JOB.c.resource_requirements_id).where(t.JOB.c.id == job_id)
            ),
        ),
    },
    before_create=_new_requirements,
    before_update=_requirements_changes,
    after_update=_requirements_changed,
    before_delete=_free_requirements,
    kept=t.RESOURCE_REQUIREMENTS.c.name == DEFAULT_REQUIREMENTS,
)


def _checked_handler(_tx: Tx, values: Values) -> Values:
    if "rules" in values:
        check_rules("", values["rules"])
    return values


def _free_handler(tx: Tx, records: Sequence[Values]) -> None:
    for record in records:
        mine = sa.and_(t.JOB.c.workflow_id == record["workflow_id"], t.JOB.c.failure_handler_id == record["id"])
        tx.connection.execute(sa.update(t.JOB).where(mine).values(failure_handler_id=None))


FAILURE_HANDLERS: Final = RecordKind(
    path="failure_handlers",
    kind="Failure handler",
    record=r.FailureHandlerRecord,
    table=t.FAILURE_HANDLER,
    filters=_equals(t.FAILURE_HANDLER, name=str),
    before_create=_checked_handler,
    before_update=lambda tx, _record, changes: _checked_handler(tx, without_nulls(changes)),
    before_delete=_free_handler,
)
SLURM_SCHEDULERS: Final = RecordKind(
    path="slurm_schedulers",
    kind="Slurm scheduler",
    record=r.SlurmSchedulerRecord,
    table=t.SLURM_SCHEDULER,
    filters=_equals(
        t.SLURM_SCHEDULER,
        name=str,
        account=str,
        gres=str,
        mem=str,
        nodes=int,
        partition=str,
        qos=str,
        tmp=str,
        walltime=str,
    ),
)
LOCAL_SCHEDULERS: Final = RecordKind(
    path="local_schedulers",
    kind="Local scheduler",
    record=r.LocalSchedulerRecord,
    table=t.LOCAL_SCHEDULER,
    filters=_equals(t.LOCAL_SCHEDULER, memory=str, num_cpus=int),
)


# --- runners and allocations -----------------------------------------------------------------------


def _add_node_event(tx: Tx, node: Values, event_type: str) -> None:
    events = EventLog(node["workflow_id"])
    events.add(
        event_type,
        compute_node_id=node["id"],
        hostname=node["hostname"],
        compute_node_type=node["compute_node_type"],
    )
    events.write(tx)


def _node_changed(tx: Tx, before: Values, after: Values) -> None:
    if before.get("is_active") and not after.get("is_active"):
        reopen_actions(tx, after["id"])
        _add_node_event(tx, after, "compute_node_stopped")


COMPUTE_NODES: Final = RecordKind(
    path="compute_nodes",
    kind="Compute node",
    record=r.ComputeNodeRecord,
    table=t.COMPUTE_NODE,
    filters={
        **_equals(t.COMPUTE_NODE, hostname=str),
        "is_active": ListFilter(
            bool,
            lambda yes: t.COMPUTE_NODE.c.is_active if yes else sa.func.coalesce(t.COMPUTE_NODE.c.is_active, False) == 0,
        ),
        "scheduled_compute_node_id": ListFilter(
            int, lambda value: sa.cast(t.COMPUTE_NODE.c.scheduler["scheduler_id"].as_string(), sa.String) == str(value)
        ),
    },
    after_create=lambda tx, node: _add_node_event(tx, node, "compute_node_started"),
    after_update=_node_changed,
)


def _add_allocation_event(tx: Tx, node: Values) -> None:
    if node.get("request") is not None and node.get("allocation_id") is None:
        return  # a request: what came of it has records of its own
    events = EventLog(node["workflow_id"])
    events.add(
        "scheduler_node_created",
        scheduled_compute_node_id=node["id"],
        scheduler_id=node["scheduler_id"],
        scheduler_type=node["scheduler_type"],
    )
    events.write(tx)


SCHEDULED_COMPUTE_NODES: Final = RecordKind(
    path="scheduled_compute_nodes",
    kind="Scheduled compute node",
    record=r.ScheduledComputeNodeRecord,
    table=SCHEDULED_COMPUTE_NODE,
    filters={
        **_equals(SCHEDULED_COMPUTE_NODE, status=str, scheduler_type=str, allocation_id=str),
        "scheduler_id": _written(SCHEDULED_COMPUTE_NODE.c.scheduler_id),
        "scheduler_config_id": _written(SCHEDULED_COMPUTE_NODE.c.scheduler_config_id),
    },
    after_create=_add_allocation_event,
)


# --- results and events ----------------------------------------------------------------------------


def status_number(label: str) -> JobStatus:
    """Return the status of that name.

    Raises:
        RuleError: there is none.
    """
    try:
        return JobStatus.from_label(label)
    except ValueError as error:
        raise RuleError(str(error)) from error


def _new_result(tx: Tx, values: Values) -> Values:
    job = get(tx, JOBS, values["job_id"])
    if job["workflow_id"] != values["workflow_id"]:
        raise RuleError(f"Job {job['id']} is not in workflow {values['workflow_id']}")
    status_number(values["status"])
    return values


def _result_changes(_tx: Tx, _record: Values, changes: Values) -> Values:
    if changes.get("status") is not None:
        status_number(changes["status"])
    return without_nulls(changes)


_NO_RESULT = Statement(
    sa.update(t.JOB)
    .where(t.JOB.c.id == param("job"), t.JOB.c.result_id == param("result"))
    .values(result_id=sa.null()),
    "job",
    "result",
)


def _forget_results(tx: Tx, records: Sequence[Values]) -> None:
    tx.run_each(_NO_RESULT, [(record["job_id"], record["id"]) for record in records])


_CURRENT: Final = sa.exists().where(t.JOB.c.id == t.RESULT.c.job_id, t.JOB.c.result_id == t.RESULT.c.id)
"""The result is the current one of its job."""

RESULTS: Final = RecordKind(
    path="results",
    kind="Result",
    record=r.ResultRecord,
    table=t.RESULT,
    filters={
        **_equals(t.RESULT, job_id=int, run_id=int, return_code=int, compute_node_id=int),
        "status": ListFilter(str, lambda label: t.RESULT.c.status == status_number(label)),
        "all_runs": ListFilter(bool, lambda yes: sa.true() if yes else _CURRENT, default=False),
    },
    before_create=_new_result,
    before_update=_result_changes,
    before_delete=_forget_results,
)


def _new_event(_tx: Tx, values: Values) -> Values:
    if values.get("data") is None:
        raise RuleError("data is missing: an event without it says nothing")
    return {**values, "timestamp": now_ms()}


_CATEGORY: Final = t.EVENT.c.data["category"].as_string()
_EVENT_TYPE: Final = t.EVENT.c.data["event_type"].as_string()

EVENTS: Final = RecordKind(
    path="events",
    kind="Event",
    record=r.EventRecord,
    table=t.EVENT,
    filters={
        "category": ListFilter(str, lambda value: sa.or_(value == _CATEGORY, value == _EVENT_TYPE)),
        "after_timestamp": ListFilter(int, lambda value: t.EVENT.c.timestamp > value),
    },
    before_create=_new_event,
    after_create=lambda tx, event: tx.workflows_with_events.add(event["workflow_id"]),
)


IN_WORKFLOWS: Final = (
    JOBS,
    FILES,
    USER_DATA,
    RESOURCE_REQUIREMENTS,
    FAILURE_HANDLERS,
    SLURM_SCHEDULERS,
    LOCAL_SCHEDULERS,
    COMPUTE_NODES,
    SCHEDULED_COMPUTE_NODES,
    RESULTS,
    EVENTS,
)
"""Kinds of records that belong to a workflow and have a path of their own."""
