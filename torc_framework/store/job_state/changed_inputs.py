"""Finds the jobs whose inputs have changed since the last initialize.

The inputs of a job are its command, its own shell and container, its dependencies, its files, and the values of the
user data that it reads. A hash of each is stored with the job, but only once an input is about to change: a function
that changes inputs calls `remember_inputs` before. A job without hashes has the same inputs as at the last initialize.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, numbers, padded, param
from torc_framework.store.job_state.resets import reset_without_dependents
from torc_framework.store.records.crud import require_workflow
from torc_framework.store.records.events import record_user_action
from torc_framework.store.records.kind import without_nulls
from torc_framework.store.tables import core as t

_IN: Final = t.JOB.c.id.in_(ids_param())
_HASHED: Final = frozenset(JobStatus) - {JobStatus.UNINITIALIZED}
_NOT_REMEMBERED = Statement(
    sa.select(t.JOB.c.id).where(_IN, t.JOB.c.input_hash.is_(None), t.JOB.c.status.in_(numbers(_HASHED)))
)
_REMEMBER = Statement(
    sa.update(t.JOB).where(t.JOB.c.id == param("job")).values(input_hash=param("hash")), "hash", "job"
)
_WITH_HASHES_IN_WORKFLOW: Final = sa.and_(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.input_hash.is_not(None))
_FORGET = Statement(sa.update(t.JOB).where(_WITH_HASHES_IN_WORKFLOW).values(input_hash=sa.null()), "workflow")
_RUNNABLE: Final = _HASHED - LIVE - {JobStatus.DISABLED}
_REMEMBERED = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.name, t.JOB.c.input_hash)
    .where(_WITH_HASHES_IN_WORKFLOW, t.JOB.c.status.in_(numbers(_RUNNABLE)))
    .order_by(t.JOB.c.id),
    "workflow",
)
_TEXTS = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.command, t.JOB.c.invocation_script, t.JOB.c.shell, t.JOB.c.container).where(_IN)
)
_MEMBERS = Statement(
    sa.select(t.GROUP_MEMBER.c.group_id, t.GROUP_MEMBER.c.job_id).where(t.GROUP_MEMBER.c.group_id.in_(ids_param()))
)


def _pairs(table: sa.Table, other: str) -> Statement:
    return Statement(sa.select(table.c.job_id, table.c[other]).where(table.c.job_id.in_(ids_param())))


_RELATIONS: Final = {
    "depends_on": _pairs(t.JOB_DEPENDENCY, "depends_on_job_id"),
    "input_files": _pairs(t.JOB_INPUT_FILE, "file_id"),
    "output_files": _pairs(t.JOB_OUTPUT_FILE, "file_id"),
    "output_user_data": _pairs(t.JOB_OUTPUT_USER_DATA, "user_data_id"),
}
_GROUPS: Final = _pairs(t.GROUP_WAITER, "group_id")
_READS: Final = _pairs(t.JOB_INPUT_USER_DATA, "user_data_id")
_USER_DATA_NAMES = Statement(sa.select(t.USER_DATA.c.id, t.USER_DATA.c.name).where(t.USER_DATA.c.id.in_(ids_param())))


@frozen
class ChangedInput:
    """A job whose inputs have changed since the last initialize.

    Attributes:
        cause: What changed, in one word: ``command``, ``user_data``, ...
        reason: The same as a clause, such as ``command changed``.
    """

    job_id: int
    job_name: str
    cause: str
    reason: str


_Hashes = dict[str, str]
"""Hash of each input, by its name; a value of user data is named by `_READS_VALUE` and the id."""
_READS_VALUE: Final = "user_data:"
_CAUSES: Final = {
    "command": ("command", "command changed"),
    "invocation_script": ("invocation_script", "invocation script changed"),
    "shell": ("shell", "shell changed"),
    "container": ("container", "container changed"),
    "depends_on": ("dependencies", "the jobs that it waits for changed"),
    "groups": ("dependencies", "the jobs that it waits for changed"),
    "input_files": ("input_files", "the list of its input files changed"),
    "output_files": ("output_files", "the list of its output files changed"),
    "output_user_data": ("output_user_data", "the list of its output user data changed"),
    "input_user_data": ("input_user_data", "the list of its input user data changed"),
}
"""Cause and reason for each changed input; if several have changed, those of the first are given."""
_UNKNOWN: Final = ("inputs", "its inputs changed")


def remember_inputs(tx: Tx, job_ids: Sequence[int]) -> None:
    """Store the hashes of the inputs of these jobs; to be called before the inputs change."""
    new = [job_id for (job_id,) in tx.rows_for(_NOT_REMEMBERED, job_ids)]
    tx.run_each(_REMEMBER, [(_text(hashes), job_id) for job_id, hashes in _hashes(tx, new).items()])


def forget_inputs(tx: Tx, workflow_id: int) -> None:
    """Delete all stored hashes: the present inputs are those of the last initialize now."""
    tx.run(_FORGET, workflow_id)


def changed_inputs(tx: Tx, workflow_id: int) -> list[ChangedInput]:
    """Return the jobs whose inputs have changed, each with the first changed input; without jobs that a runner holds.

    Raises:
        NotFoundError: there is no such workflow.
    """
    require_workflow(tx, workflow_id)
    remembered = tx.rows(_REMEMBERED, workflow_id)
    present = _hashes(tx, [job_id for job_id, _, _ in remembered])
    found = [
        (job_id, name, _first_difference(_parsed(text), present[job_id]))
        for job_id, name, text in remembered
        if text != _text(present[job_id])
    ]
    names = _names(tx, {part for _, _, part in found})
    return [ChangedInput(job_id, name, *names.get(part) or _CAUSES.get(part, _UNKNOWN)) for job_id, name, part in found]


def reset_changed_jobs(tx: Tx, workflow_id: int, *, dry_run: bool = False, user: str | None = None) -> list[str]:
    """Make the jobs whose inputs have changed uninitialized; return their names.

    Jobs that a runner holds stay as they are. The next initialize resets the dependents of changed jobs.

    Raises:
        NotFoundError: there is no such workflow.
    """
    changed = changed_inputs(tx, workflow_id)
    names = [each.job_name for each in changed]
    if changed and not dry_run:
        reset_without_dependents(tx, workflow_id, [each.job_id for each in changed])
        record_user_action(tx, workflow_id, "process_changed_job_inputs", user, reinitialized_jobs=names[:1000])
    return names


def _text(hashes: _Hashes) -> str:
    return json.dumps(hashes, sort_keys=True)


def _parsed(text: str) -> _Hashes:
    """Return the stored hashes; none if an older version stored a single hash for all inputs."""
    return dict(json.loads(text)) if text.startswith("{") else {}


def _first_difference(before: _Hashes, now: _Hashes) -> str:
    """Return the name of the first input that has changed, "" if it is not known."""
    different = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    ordered = [name for name in _CAUSES if name in different] + sorted(different)
    return ordered[0] if before else ""


def _names(tx: Tx, parts: set[str]) -> dict[str, tuple[str, str]]:
    """Return cause and reason for each changed value of user data."""
    ids = {int(part.removeprefix(_READS_VALUE)): part for part in parts if part.startswith(_READS_VALUE)}
    rows = tx.rows_for(_USER_DATA_NAMES, sorted(ids))
    return {ids[record_id]: ("user_data", f"input user data {name!r} changed") for record_id, name in rows}


def _hashes(tx: Tx, job_ids: Sequence[int]) -> dict[int, _Hashes]:
    """Return the hashes of the inputs of each of these jobs."""
    if not job_ids:
        return {}
    parts: dict[int, dict[str, Any]] = {
        job_id: {
            "command": command,
            "invocation_script": script,
            **without_nulls({"shell": shell, "container": container}),
        }
        for job_id, command, script, shell, container in tx.rows_for(_TEXTS, job_ids)
    }
    for name, statement in _RELATIONS.items():
        for job_id, other in tx.rows_for(statement, job_ids):
            parts[job_id].setdefault(name, set()).add(other)
    groups = tx.rows_for(_GROUPS, job_ids)
    members = _digests_of_groups(tx, sorted({group for _, group in groups}))
    for job_id, group in groups:
        parts[job_id].setdefault("groups", set()).add(members[group])
    hashes = {job_id: {name: _digest(value) for name, value in part.items()} for job_id, part in parts.items()}
    reads = tx.rows_for(_READS, job_ids)
    values = _values(tx, sorted({user_data for _, user_data in reads}))
    read_by: dict[int, set[int]] = defaultdict(set)
    for job_id, user_data in reads:
        hashes[job_id][f"{_READS_VALUE}{user_data}"] = values[user_data]
        read_by[job_id].add(user_data)
    for job_id, read in read_by.items():
        hashes[job_id]["input_user_data"] = _digest(read)
    return hashes


def _digests_of_groups(tx: Tx, groups: Sequence[int]) -> dict[int, str]:
    """Return a hash of the members of each group; each group is hashed once, not for each waiter again."""
    members: dict[int, list[int]] = defaultdict(list)
    for group, job_id in tx.rows_for(_MEMBERS, groups):
        members[group].append(job_id)
    return {group: _digest(sorted(members[group])) for group in groups}


def _values(tx: Tx, user_data_ids: Sequence[int]) -> dict[int, str]:
    """Return a hash of the value of each user data record."""
    query = sa.select(t.USER_DATA.c.id, t.USER_DATA.c.data)
    rows = (
        row
        for chunk in padded(user_data_ids)
        for row in tx.connection.execute(query.where(t.USER_DATA.c.id.in_(chunk)))
    )
    return {id_: _digest(data) for id_, data in rows}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=sorted).encode()).hexdigest()
