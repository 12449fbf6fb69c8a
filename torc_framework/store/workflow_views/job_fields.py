"""The fields of the filter language and of the columns of jobs, as SQL expressions on the table of jobs.

A value from another table is a subquery that finds its row by the primary key. So the same expression serves
conditions, orders and columns.
"""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import number
from torc_framework.store.tables import core as t

SECONDS_A_MINUTE: Final = 60.0
_J, _R, _N, _Q = t.JOB.c, t.RESULT.c, t.COMPUTE_NODE.c, t.RESOURCE_REQUIREMENTS.c


def _of_result(expression: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return an expression on the present result of a job."""
    return sa.select(expression).where(_R.id == _J.result_id).correlate(t.JOB).scalar_subquery()


_RUNNER: Final = sa.func.coalesce(_J.active_compute_node_id, _of_result(_R.compute_node_id))


def _of_requirements(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.select(column).where(_Q.id == _J.resource_requirements_id).correlate(t.JOB).scalar_subquery()


def _same(value: Any) -> Any:
    return value


def _label(value: Any) -> str:
    return JobStatus(value).label


@frozen
class JobField:
    """One field of jobs that the database can compute.

    Attributes:
        shown: Returns the value in an answer for that of the database, which is not None.
    """

    expression: sa.ColumnElement[Any]
    shown: Callable[[Any], Any] = _same


JOB_FIELDS: Final = {
    "id": JobField(_J.id),
    "name": JobField(_J.name),
    "status": JobField(sa.type_coerce(_J.status, sa.SmallInteger), _label),
    "attempt": JobField(_J.attempt_id),
    "exit": JobField(_of_result(sa.func.coalesce(_R.exit_code, _R.return_code))),
    "exit_code": JobField(_of_result(_R.exit_code)),
    "return_code": JobField(_of_result(_R.return_code)),
    "signal": JobField(_of_result(_R.signal)),
    "class": JobField(_of_result(_R.exit_class)),
    "reason": JobField(_of_result(_R.reason)),
    "run": JobField(_of_result(_R.run_id)),
    "seconds": JobField(_of_result(_R.exec_time_minutes * sa.literal_column("60.0", sa.Float)), lambda v: round(v, 3)),
    "peak_mem": JobField(_of_result(_R.peak_memory_bytes)),
    "cpu": JobField(_of_result(_R.avg_cpu_percent)),
    "peak_cpu": JobField(_of_result(_R.peak_cpu_percent)),
    "ended": JobField(_of_result(_R.completion_time)),
    "runner": JobField(_RUNNER),
    "node": JobField(sa.select(_N.hostname).where(_N.id == _RUNNER).correlate(t.JOB).scalar_subquery()),
    "executor": JobField(_J.executor),
    "requirements": JobField(_of_requirements(_Q.name)),
    "memory": JobField(_of_requirements(_Q.memory_bytes)),
    "cpus": JobField(_of_requirements(_Q.num_cpus)),
    "gpus": JobField(_of_requirements(_Q.num_gpus)),
    "nodes": JobField(_of_requirements(_Q.num_nodes)),
    "runtime": JobField(_of_requirements(_Q.runtime_s)),
    "waiting": JobField(_J.waiting_reason),
    "not_before": JobField(_J.not_before),
    "interrupted": JobField(sa.case((_J.is_interrupted != number(0), number(1)), else_=number(0)), bool),
    "command": JobField(_J.command),
}
"""The fields by name; `group`, `stage` and `started` are computed from the structure, and from other fields."""

COMPUTED_FIELDS: Final = ("group", "stage", "started")
"""Fields that the database cannot compute."""
FIELD_NAMES: Final = (*JOB_FIELDS, *COMPUTED_FIELDS)
"""The fields by which jobs can be sorted."""
DEPENDENCIES: Final = "dependencies"
"""The field with what a job waits for, `JobDependencies`."""
COLUMN_NAMES: Final = (*FIELD_NAMES, DEPENDENCIES)
"""The fields that columns of jobs may have."""
