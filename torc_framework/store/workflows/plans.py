"""Stores a plan, which is a whole workflow, in one transaction.

The ids of all rows are reserved before the rows are inserted, so that the rows can refer to each other. A plan of
100,000 jobs takes a few ``executemany`` calls.
"""

import gc
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, repeat, zip_longest
from operator import attrgetter, contains
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.barriers import Barrier
from torc_framework.models.executor_options import options_text
from torc_framework.models.plan import USER_DATA_REFERENCE, Plan, PlannedAction
from torc_framework.models.plan_parts import JOB_DEFAULTS, JobColumns, PlanHead, PlanParts, PlanSlice, parts_of
from torc_framework.models.records import FieldAccess, ResourceRequirementsRecord, UserDataRecord, WorkflowRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Insertion, Row, Same, Statement, Tx, insertion, param
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.triggers import required_triggers
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records.crud import get
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.kind import Values, without_nulls
from torc_framework.store.records.requirements import (
    DEFAULT_REQUIREMENTS,
    check_shell,
    check_sort_method,
    default_requirements,
    parsed_requirements,
)
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plan_checks import PlanChecks

_USER_DATA_MARK: Final = "${user_data."


@frozen
class PlanIds:
    """The ids of the records of a stored plan.

    Attributes:
        workflow_id: The workflow.
        first: Id of the first record of each list of the plan; the ids of the others follow it without gaps. The key
            ``default`` has the id of the workflow's default resource requirements.
    """

    workflow_id: int
    first: dict[str, int]


@frozen
class PlanCounts:
    """The workflow of a stored plan, and the number of its records.

    Attributes:
        id: The workflow.
        counts: Number of records of each kind: ``job_count``, ``file_count``, ...
    """

    id: int
    counts: dict[str, int]


def _names(table: sa.Table) -> tuple[str, ...]:
    """Return the names of a table's columns without ``id`` and ``workflow_id``."""
    return tuple(column.name for column in table.columns if column.name not in ("id", "workflow_id"))


def _record_insertion(table: sa.Table) -> tuple[Insertion, Callable[[Any], Row]]:
    """Return the insert of a record, and a function that returns its values without the two ids."""
    names = _names(table)
    special: dict[str, Callable[[Any], Row]] = {
        t.USER_DATA.name: _user_data_values,
        t.RESOURCE_REQUIREMENTS.name: _requirements_values,
    }
    return insertion(table, "id", "workflow_id", *names), special.get(table.name, attrgetter(*names))


def _user_data_values(record: UserDataRecord) -> Row:
    return record.name, record.is_ephemeral, None if record.data is None else _encode(record.data).decode()


def _requirements_values(record: ResourceRequirementsRecord) -> Row:
    parsed = parsed_requirements(record)
    return tuple(parsed[name] if name in parsed else getattr(record, name) for name in _REQUIREMENTS_COLUMNS)


_REQUIREMENTS_COLUMNS: Final = _names(t.RESOURCE_REQUIREMENTS)
_WORKFLOW_COLUMNS: Final = [name for name in _names(t.WORKFLOW) if name not in ("timestamp", "status_id")]
_INSERT_JOBS: Final = insertion(
    t.JOB,
    "id",
    "workflow_id",
    "name",
    "command",
    "invocation_script",
    "status",
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
    "blockers",
    "dependencies_resolved",
)
_STORE_WRITTEN_TEXTS = Statement(
    sa.update(t.JOB).where(t.JOB.c.id == param("job")).values(written_texts=param("texts")), "texts", "job"
)
_REPEATED_NAMES: Final = Statement(
    sa.select(sa.func.count() - sa.func.count(t.JOB.c.name.distinct())).where(t.JOB.c.workflow_id == param("workflow")),
    "workflow",
)
_INSERT_DEPENDENCIES: Final = insertion(t.JOB_DEPENDENCY, "job_id", "depends_on_job_id")
_INSERT_GROUPS: Final = insertion(t.DEPENDENCY_GROUP, "id", "workflow_id", "remaining")
_INSERT_MEMBERS: Final = insertion(t.GROUP_MEMBER, "group_id", "job_id")
_INSERT_WAITERS: Final = insertion(t.GROUP_WAITER, "group_id", "job_id")
_INSERT_ACTION_JOBS: Final = insertion(t.ACTION_JOB, "action_id", "job_id")
_JOB_RECORDS: Final = {
    "resource_requirements": "resource_requirements",
    "scheduler": "slurm_schedulers",
    "failure_handler": "failure_handlers",
}
"""For each field of a job with the position of a record: the list of the plan."""
_JOB_DEFAULTS: Final = {
    name: int(default) if isinstance(default, bool) else default for name, default in JOB_DEFAULTS.items()
}
_JOB_RELATIONS: Final = {
    "input_files": (insertion(t.JOB_INPUT_FILE, "job_id", "file_id"), "files"),
    "output_files": (insertion(t.JOB_OUTPUT_FILE, "job_id", "file_id"), "files"),
    "input_user_data": (insertion(t.JOB_INPUT_USER_DATA, "job_id", "user_data_id"), "user_data"),
    "output_user_data": (insertion(t.JOB_OUTPUT_USER_DATA, "job_id", "user_data_id"), "user_data"),
}
_RECORD_TABLES: Final = {
    "files": t.FILE,
    "user_data": t.USER_DATA,
    "resource_requirements": t.RESOURCE_REQUIREMENTS,
    "failure_handlers": t.FAILURE_HANDLER,
    "slurm_schedulers": t.SLURM_SCHEDULER,
    "local_schedulers": t.LOCAL_SCHEDULER,
}
_RECORD_INSERTIONS: Final = {part: _record_insertion(table) for part, table in _RECORD_TABLES.items()}
_COUNTS: Final = {
    "job_count": "jobs",
    "file_count": "files",
    "user_data_count": "user_data",
    "resource_requirements_count": "resource_requirements",
    "failure_handler_count": "failure_handlers",
    "slurm_scheduler_count": "slurm_schedulers",
    "local_scheduler_count": "local_schedulers",
    "action_count": "actions",
    "dependency_count": "dependencies",
    "barrier_count": "barriers",
}
_encode: Final = msgspec.json.encode


def create_workflow(tx: Tx, record: WorkflowRecord) -> int:
    """Store a workflow with its status and its default requirements; return its id."""
    values = {name: getattr(record, name) for name in _WORKFLOW_COLUMNS}
    workflow_id = tx.add(t.WORKFLOW, **values, timestamp=utc_text())
    tx.connection.execute(sa.update(t.WORKFLOW).where(t.WORKFLOW.c.id == workflow_id).values(status_id=workflow_id))
    tx.connection.execute(sa.insert(t.WORKFLOW_STATUS).values(id=workflow_id, run_id=0, is_canceled=False))
    default = ResourceRequirementsRecord(workflow_id=workflow_id, name=DEFAULT_REQUIREMENTS)
    insert_records(tx, "resource_requirements", [default], workflow_id)
    return workflow_id


def new_workflow(tx: Tx, sent: Mapping[str, Any]) -> Values:
    """Store a new workflow with its status and default requirements; return it."""
    check_sort_method(sent.get("jobs_sort_method"))
    check_shell(sent.get("shell"))
    settable = WORKFLOWS.names_with(FieldAccess.WRITE)
    record = WorkflowRecord(**{name: value for name, value in without_nulls(sent).items() if name in settable})
    return get(tx, WORKFLOWS, create_workflow(tx, record))


def create_plan(tx: Tx, plan: Plan | PlanParts, *, initialized: bool = False) -> PlanCounts:
    """Store a plan.

    Args:
        initialized: Store the jobs as blocked or ready; otherwise they are uninitialized.

    Raises:
        RuleError: the plan is inconsistent; the caller must roll the transaction back.
    """
    parts = plan if isinstance(plan, PlanParts) else parts_of(plan)
    placed = store_plan(tx, parts, initialized=initialized)
    return PlanCounts(placed.workflow_id, {name: _count(parts.head, part) for name, part in _COUNTS.items()})


def store_plan(tx: Tx, parts: PlanParts, *, initialized: bool = False) -> PlanIds:
    """Store a plan; return the ids of its records.

    Raises:
        RuleError: the plan is inconsistent; the caller must roll the transaction back.
    """
    head, checks = parts.head, PlanChecks(parts.head)
    checks.check_head()
    with _no_garbage_collection():
        workflow_id = create_workflow(tx, head.workflow)
        first = {part: insert_records(tx, part, getattr(head, part), workflow_id) for part in _RECORD_TABLES}
        first["jobs"] = tx.new_ids(t.JOB, head.job_count)
        first["default"] = default_requirements(tx, workflow_id)
        placed = PlanIds(workflow_id, first)
        _insert_slices(tx, head, checks.checked(parts.slices), placed, _status_of_new_jobs(initialized=initialized))
        if checks.may_repeat_names():
            _refuse_repeated_names(tx, workflow_id)
        _insert_barriers(tx, head.barriers, workflow_id, first["jobs"])
        insert_actions(
            tx, workflow_id, head.actions, first_job=first["jobs"], first_scheduler=first["slurm_schedulers"]
        )
    return placed


def _count(head: PlanHead, part: str) -> int:
    counts = {"jobs": head.job_count, "dependencies": head.dependency_count}
    return counts[part] if part in counts else len(getattr(head, part))


def _insert_slices(
    tx: Tx, head: PlanHead, slices: Iterable[PlanSlice], placed: PlanIds, status: tuple[int, int]
) -> None:
    """Insert jobs and dependencies; the dependencies come first in the slices, and refer to rows of jobs."""
    first_job = start = placed.first["jobs"]
    positions = array("i")
    blockers = array("i")
    rows = _JobRows(head, placed, status)
    for part in slices:
        positions.extend(part.dependencies)
        if part.jobs is None or not part.jobs.name:
            continue
        blockers = blockers or _blockers(head, positions)
        jobs, following = part.jobs, start + len(part.jobs.name)
        tx.insert_columns(_INSERT_JOBS, rows.of(jobs, start, blockers[start - first_job : following - first_job]))
        for relation, (statement, records) in _JOB_RELATIONS.items():
            if (lists := getattr(jobs, relation)) is not None:
                tx.insert(statement, _relation_rows(lists, start, placed.first[records]))
        tx.run_each(_STORE_WRITTEN_TEXTS, _written_texts(jobs, start))
        start = following
    ids = (map(first_job.__add__, positions[place::2]) for place in (0, 1))
    tx.insert_columns(_INSERT_DEPENDENCIES, [*ids])


def insert_records(tx: Tx, part: str, records: Sequence[Any], workflow_id: int) -> int:
    """Insert records of one kind; return the id of the first.

    Args:
        part: Name of the list in a plan.
    """
    start = tx.new_ids(_RECORD_TABLES[part], len(records))
    if records:
        statement, values = _RECORD_INSERTIONS[part]
        rows = ((record_id, workflow_id, *values(record)) for record_id, record in enumerate(records, start))
        tx.insert(statement, rows)
    return start


def _refuse_repeated_names(tx: Tx, workflow_id: int) -> None:
    """Raise `RuleError` if jobs of a workflow have the same name."""
    repeated = tx.value(_REPEATED_NAMES, workflow_id)
    if repeated:
        raise RuleError(f"{repeated} job name(s) occur more than once")


def _blockers(head: PlanHead, positions: Sequence[int]) -> "array[int]":
    """Return the number of blockers of each job."""
    blockers = array("i", bytes(4 * head.job_count))
    for job in chain(positions[0::2], *(barrier.downstream for barrier in head.barriers)):
        blockers[job] += 1
    return blockers


def _status_of_new_jobs(*, initialized: bool) -> tuple[int, int]:
    """Return the statuses of new jobs without and with blockers."""
    new = JobStatus.UNINITIALIZED
    free, waiting = (JobStatus.READY, JobStatus.BLOCKED) if initialized else (new, new)
    return int(free), int(waiting)


class _JobRows:
    """The rows of jobs, made from one plan's head and the ids of its records."""

    def __init__(self, head: PlanHead, placed: PlanIds, status: tuple[int, int]) -> None:
        self._status = status
        self._insert_ids = _user_data_ids(head.user_data, placed.first["user_data"])
        self._same = {"workflow_id": placed.workflow_id, "dependencies_resolved": 1}
        self._default = placed.first["default"]
        self._first = {name: placed.first[records] for name, records in _JOB_RECORDS.items()}

    def of(self, jobs: JobColumns, start: int, blockers: Sequence[int]) -> list[Iterable[Any] | Same]:
        """Return the columns of `_INSERT_JOBS`.

        Args:
            jobs: The jobs.
            start: Id of the first.
            blockers: The number of blockers of each.
        """
        free, waiting = self._status
        made: dict[str, Iterable[Any]] = {
            "id": range(start, start + len(jobs.name)),
            "command": self._with_ids(jobs.command),
            "blockers": blockers,
        }
        if free != waiting:
            made["status"] = [waiting if waits_for else free for waits_for in blockers]
        if jobs.invocation_script is not None:
            made["invocation_script"] = self._with_ids(jobs.invocation_script)
        if jobs.executor_options is not None:
            made["executor_options"] = [None if each is None else options_text(each) for each in jobs.executor_options]
        for name, first in self._first.items():
            if (positions := getattr(jobs, name)) is not None:
                absent = self._default if name == "resource_requirements" else None
                made[f"{name}_id"] = [absent if place is None else first + place for place in positions]
        for name in ("cancel_on_blocking_job_failure", "supports_termination"):
            if (flags := getattr(jobs, name)) is not None:
                made[name] = map(int, flags)
        same = {**self._same, "status": free, "resource_requirements_id": self._default}
        return [
            made.get(name) or _given(jobs, name) or Same(same.get(name, _JOB_DEFAULTS.get(name)))
            for name in _INSERT_JOBS.columns
        ]

    def _with_ids(self, texts: Sequence[str | None]) -> Iterable[str | None]:
        """Return texts with the ids of user data in place of names."""
        if not _any_refers(texts):
            return texts
        return [text if text is None or _USER_DATA_MARK not in text else self._insert_ids(text) for text in texts]


def _given(jobs: JobColumns, name: str) -> Sequence[Any] | None:
    """Return the values of a column of the table that jobs have as well; None if they have its default."""
    found: Sequence[Any] | None = getattr(jobs, name, None)
    return found


def _any_refers(texts: Sequence[str | None]) -> bool:
    """Return whether a text may name user data."""
    return any(map(contains, filter(None, texts), repeat(_USER_DATA_MARK)))


def _user_data_ids(records: Sequence[UserDataRecord], first: int) -> Callable[[str], str]:
    """Return a function that replaces the names of user data in a text by ids."""
    ids = {record.name: record_id for record_id, record in enumerate(records, first)}

    def replace(match: re.Match[str]) -> str:
        if match[1] not in ids:
            raise RuleError(f"{match[0]!r} names user data that the plan does not have")
        return str(ids[match[1]])

    return lambda text: USER_DATA_REFERENCE.sub(replace, text)


def _written_texts(jobs: JobColumns, start: int) -> list[Row]:
    """Return the texts that name user data, as they were written, of jobs that have such texts."""
    scripts = jobs.invocation_script or ()
    if not _any_refers(jobs.command) and not _any_refers(scripts):
        return []
    found: list[Row] = []
    for job_id, (command, script) in enumerate(zip_longest(jobs.command, scripts), start):
        texts = {"command": command, "invocation_script": script}
        named = {name: text for name, text in texts.items() if text is not None and _USER_DATA_MARK in text}
        if named:
            found.append((_encode(named).decode(), job_id))
    return found


def _relation_rows(lists: Sequence[Sequence[int] | None], start: int, first: int) -> Iterator[Row]:
    return ((job_id, first + n) for job_id, several in enumerate(lists, start) for n in several or ())


def _insert_barriers(tx: Tx, barriers: Sequence[Barrier], workflow_id: int, first_job: int) -> None:
    if not barriers:
        return
    groups = list(enumerate(barriers, tx.new_ids(t.DEPENDENCY_GROUP, len(barriers))))
    tx.insert(_INSERT_GROUPS, [(group, workflow_id, len(barrier.upstream)) for group, barrier in groups])
    tx.insert(_INSERT_MEMBERS, [(group, first_job + job) for group, b in groups for job in b.upstream])
    tx.insert(_INSERT_WAITERS, [(group, first_job + job) for group, b in groups for job in b.downstream])


def insert_actions(
    tx: Tx,
    workflow_id: int,
    actions: Sequence[PlannedAction],
    *,
    first_job: int,
    first_scheduler: int,
    is_recovery: bool = False,
) -> list[int]:
    """Insert planned actions; return their ids.

    Args:
        first_job: Id of the job at position 0.
        first_scheduler: Id of the scheduler at position 0.
        is_recovery: The actions are deleted when a new run begins.
    """
    if not actions:
        return []
    numbered = list(enumerate(actions, tx.new_ids(t.WORKFLOW_ACTION, len(actions))))
    rows = []
    for action_id, action in numbered:
        config = dict(action.config)
        if action.scheduler is not None:
            config["scheduler_id"] = first_scheduler + action.scheduler
        rows.append(
            {
                "id": action_id,
                "workflow_id": workflow_id,
                "trigger_type": action.trigger_type,
                "action_type": action.action_type,
                "action_config": config,
                "required_triggers": required_triggers(action.trigger_type, action.jobs),
                "persistent": action.persistent,
                "is_recovery": is_recovery,
            }
        )
    tx.connection.execute(sa.insert(t.WORKFLOW_ACTION), rows)
    watched = [(action_id, first_job + job) for action_id, action in numbered for job in action.jobs or ()]
    tx.insert(_INSERT_ACTION_JOBS, watched)
    return [action_id for action_id, _ in numbered]


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Switch garbage collection off during the block: it creates a million tuples, and no reference cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
