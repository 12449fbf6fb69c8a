"""The kinds of records of files and user data."""

from collections.abc import Callable, Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.store.database.sql import Statement, Tx, ids_param
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.changed_inputs import remember_inputs
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.list_filters import equals, linked_to_job
from torc_framework.store.records.crud import get
from torc_framework.store.records.kind import ListFilter, RecordKind, Values, without_nulls
from torc_framework.store.tables import core as t


def _users(*tables: sa.Table, other: str) -> list[Statement]:
    """Return the queries for the jobs to which the relations in these tables link records."""
    return [Statement(sa.select(table.c.job_id).where(table.c[other].in_(ids_param()))) for table in tables]


_FILE_USERS: Final = _users(t.JOB_INPUT_FILE, t.JOB_OUTPUT_FILE, other="file_id")
_READERS: Final = _users(t.JOB_INPUT_USER_DATA, other="user_data_id")
_USER_DATA_USERS: Final = [*_READERS, *_users(t.JOB_OUTPUT_USER_DATA, other="user_data_id")]


def _remember_inputs(tx: Tx, users: Sequence[Statement], record_ids: Sequence[int]) -> None:
    """Store the hashes of the inputs of jobs before these records change."""
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
    title="File",
    record=r.FileRecord,
    table=t.FILE,
    filters={
        **equals(t.FILE, name=str, path=str),
        "produced_by_job_id": linked_to_job(t.FILE, t.JOB_OUTPUT_FILE, "file_id"),
        "is_output": ListFilter(bool, lambda yes: t.FILE.c.id.in_(_WRITTEN) if yes else t.FILE.c.id.not_in(_WRITTEN)),
    },
    before_update=_file_changes,
    before_delete=_before_delete(_FILE_USERS),
)
USER_DATA: Final = RecordKind(
    path="user_data",
    title="User data",
    record=r.UserDataRecord,
    table=t.USER_DATA,
    filters={
        **equals(t.USER_DATA, is_ephemeral=bool),
        "name": ListFilter(str, lambda text: t.USER_DATA.c.name.icontains(text, autoescape=True)),
        "consumer_job_id": linked_to_job(t.USER_DATA, t.JOB_INPUT_USER_DATA, "user_data_id"),
        "producer_job_id": linked_to_job(t.USER_DATA, t.JOB_OUTPUT_USER_DATA, "user_data_id"),
    },
    before_update=_user_data_changes,
    before_delete=_before_delete(_USER_DATA_USERS),
)


def link_user_data(tx: Tx, user_data: Values, consumer_job_id: int | None, producer_job_id: int | None) -> None:
    """Link a user data record to the jobs that read and write it."""
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
