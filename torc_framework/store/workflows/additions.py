"""Adds user data and jobs to a stored workflow in one transaction."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from torc_framework.models.plan import AddedJob, Addition
from torc_framework.models.responses import Added
from torc_framework.store.database.sql import Tx, insertion
from torc_framework.store.errors import ConflictError, RuleError
from torc_framework.store.job_state.dependency_counters import Dependents, recount_dependents
from torc_framework.store.record_kinds.jobs import MAX_BATCH, create_jobs
from torc_framework.store.records.crud import require_workflow
from torc_framework.store.records.kind import Values
from torc_framework.store.records.references import check_references
from torc_framework.store.tables import core as t

_INSERT_USER_DATA: Final = insertion(t.USER_DATA, "id", "workflow_id", "name", "is_ephemeral", "data")
_INSERT_GROUP: Final = insertion(t.DEPENDENCY_GROUP, "id", "workflow_id", "remaining")
_INSERT_MEMBERS: Final = insertion(t.GROUP_MEMBER, "group_id", "job_id")
_INSERT_WAITERS: Final = insertion(t.GROUP_WAITER, "group_id", "job_id")


def add_to_workflow(tx: Tx, workflow_id: int, addition: Addition) -> Added:
    """Store an addition; its jobs are uninitialized.

    Raises:
        NotFoundError: the workflow does not exist.
        ConflictError: the workflow has user data of one of the names.
        RuleError: the addition refers to records that do not exist.
    """
    require_workflow(tx, workflow_id)
    check_references(tx, "jobs", workflow_id, [{"depends_on_job_ids": addition.depends_on_job_ids}])
    user_data_ids = _add_user_data(tx, workflow_id, addition)
    jobs = _job_values(workflow_id, addition.jobs, user_data_ids)
    job_ids: list[int] = []
    while batch := list(islice(jobs, MAX_BATCH)):
        job_ids += [job["id"] for job in create_jobs(tx, batch)]
    if addition.depends_on_job_ids and job_ids:
        _add_shared_dependency(tx, workflow_id, job_ids, sorted(set(addition.depends_on_job_ids)))
    return Added(job_ids, user_data_ids)


def _add_user_data(tx: Tx, workflow_id: int, addition: Addition) -> list[int]:
    records = addition.user_data
    names = {record.name for record in records}
    if len(names) < len(records):
        raise RuleError("user data: each name may be used once")
    there = sa.select(t.USER_DATA.c.name).where(t.USER_DATA.c.workflow_id == workflow_id)
    if taken := names.intersection(tx.connection.execute(there).scalars()):
        raise ConflictError(f"User data {min(taken)!r} exists already in workflow {workflow_id}")
    first = tx.new_ids(t.USER_DATA, len(records))
    rows = [
        (id_, workflow_id, record.name, record.is_ephemeral, None if record.data is None else _json(record.data))
        for id_, record in enumerate(records, first)
    ]
    tx.insert(_INSERT_USER_DATA, rows)
    return [id_ for id_, *_ in rows]


def _job_values(workflow_id: int, jobs: Sequence[AddedJob], user_data_ids: Sequence[int]) -> Iterator[Values]:
    for job in jobs:
        values: Values = msgspec.structs.asdict(job)
        values["workflow_id"] = workflow_id
        for relation in ("input_user_data", "output_user_data"):
            values[f"{relation}_ids"] = [
                _id_at_position(user_data_ids, position, job.name) for position in values.pop(relation)
            ]
        yield values


def _id_at_position(ids: Sequence[int], position: int, name: str) -> int:
    if not 0 <= position < len(ids):
        raise RuleError(f"job {name!r} names user data number {position}, but there are {len(ids)}")
    return ids[position]


def _add_shared_dependency(tx: Tx, workflow_id: int, job_ids: Sequence[int], awaited: Sequence[int]) -> None:
    """Make jobs wait for others by one dependency group, which has one row for each job on either side."""
    group = tx.new_ids(t.DEPENDENCY_GROUP, 1)
    tx.insert(_INSERT_GROUP, [(group, workflow_id, len(awaited))])
    tx.insert(_INSERT_MEMBERS, [(group, job_id) for job_id in awaited])
    tx.insert(_INSERT_WAITERS, [(group, job_id) for job_id in job_ids])
    recount_dependents(tx, Dependents([group], list(job_ids)))


def _json(data: Any) -> str:
    return msgspec.json.encode(data).decode()
