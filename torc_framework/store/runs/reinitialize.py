"""Running a workflow again where something changed, and saying of each job why it runs again.

A job runs again if it did not come to an end of its own, if its inputs are not those of the last
initialize, if a file that it reads is not as old as it was, if something that it wrote is gone, or if
it waits for a job that runs again. A job that failed stays failed otherwise, and so does what was
canceled because of it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa
from attrs import define

from torc_framework.models.responses import Reinitialized, RerunJob
from torc_framework.models.statuses import LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number, param
from torc_framework.store.job_state.changed_inputs import changed_inputs
from torc_framework.store.job_state.implied_dependencies import add_implied_dependencies, dependency_edges
from torc_framework.store.records.events import record_user_action
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t

MTIME_SLACK_S: Final = 0.010
"""Modification times that differ by less than this are the same; file systems round them."""
_EVENT_JOBS: Final = 1000
"""Most jobs that the event of a reinitialize names."""

_JOBS = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.name, t.JOB.c.status, t.JOB.c.cancel_on_blocking_job_failure, t.JOB.c.is_interrupted)
    .where(t.JOB.c.workflow_id == param("workflow"))
    .order_by(t.JOB.c.id),
    "workflow",
)
_FILES = Statement(
    sa.select(t.FILE.c.id, t.FILE.c.path, t.FILE.c.st_mtime).where(t.FILE.c.workflow_id == param("workflow")),
    "workflow",
)
_READERS = Statement(
    sa.select(t.JOB_INPUT_FILE.c.job_id, t.JOB_INPUT_FILE.c.file_id)
    .where(t.JOB_INPUT_FILE.c.file_id.in_(ids_param()))
    .order_by(t.JOB_INPUT_FILE.c.job_id, t.JOB_INPUT_FILE.c.file_id)
)
_WRITERS = Statement(
    sa.select(t.JOB_OUTPUT_FILE.c.job_id, t.JOB_OUTPUT_FILE.c.file_id)
    .where(t.JOB_OUTPUT_FILE.c.file_id.in_(ids_param()))
    .order_by(t.JOB_OUTPUT_FILE.c.job_id, t.JOB_OUTPUT_FILE.c.file_id)
)
_UNWRITTEN = Statement(
    sa.select(t.JOB.c.id, t.USER_DATA.c.name)
    .select_from(
        t.JOB.join(t.JOB_OUTPUT_USER_DATA, t.JOB_OUTPUT_USER_DATA.c.job_id == t.JOB.c.id).join(
            t.USER_DATA, t.USER_DATA.c.id == t.JOB_OUTPUT_USER_DATA.c.user_data_id
        )
    )
    .where(
        t.JOB.c.workflow_id == param("workflow"),
        t.JOB.c.status == number(JobStatus.COMPLETED),
        t.USER_DATA.c.data.is_(None),
    )
    .order_by(t.JOB.c.id, t.USER_DATA.c.id),
    "workflow",
)
_UNENDED: Final = {
    JobStatus.CANCELED: "it was canceled",
    JobStatus.TERMINATED: "it was terminated",
    JobStatus.PENDING_FAILED: "its failure waited for a verdict",
    JobStatus.PENDING: "its runner took it and did not start it",
    JobStatus.RUNNING: "its runner did not say how it ended",
}
"""Statuses in which a job did not come to an end of its own, and what is said of them."""
_INTERRUPTED: Final = "it was interrupted: its runner had to end"
_ENDED: Final = {JobStatus.COMPLETED, JobStatus.FAILED}
_HAS_RUN: Final = UNBLOCKING | LIVE | {JobStatus.PENDING_FAILED}
"""Statuses of jobs of which it is news that they run again."""


@define
class _RerunCandidate:
    name: str
    status: JobStatus
    gives_up: bool
    """It is canceled when a job that it waits for fails."""
    is_interrupted: bool


@define
class _RerunCause:
    """Why a job runs again."""

    cause: str
    reason: str
    because_of: int | None = None


def reinitialize(
    tx: Tx,
    workflow_id: int,
    file_mtimes: Mapping[int, float | None],
    *,
    dry_run: bool = False,
    force: bool = False,
    user: str | None = None,
) -> Reinitialized:
    """Begin the next run: reset what has to run again and nothing else.

    Args:
        file_mtimes: Present modification times of the files that were looked at, by file id; None is
            "not there". Files that are left out have not changed.
        dry_run: Only say what would run again.
        force: Take jobs even from runners that are active.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: it is archived, an active runner holds jobs of it, or its dependencies have a cycle.
    """
    lifecycle.check_may_begin(tx, workflow_id, force=force)
    with tx.connection.begin_nested() as changes:
        add_implied_dependencies(tx, workflow_id)
        jobs = {
            row[0]: _RerunCandidate(row[1], JobStatus(row[2]), bool(row[3]), bool(row[4]))
            for row in tx.rows(_JOBS, workflow_id)
        }
        why = _rerun_causes(tx, workflow_id, jobs, file_mtimes)
        if dry_run:
            changes.rollback()
    found = [
        RerunJob(job_id, job.name, job.status.label, why[job_id].cause, why[job_id].reason, why[job_id].because_of)
        for job_id, job in jobs.items()
        if job_id in why and job.status in _HAS_RUN
    ]
    if dry_run:
        return Reinitialized(workflow_id, workflow_status(tx, workflow_id).run_id, True, len(found), found)
    names = [each.name for each in found[:_EVENT_JOBS]]
    record_user_action(tx, workflow_id, "reinitialize", user, job_count=len(found), job_names=names)
    status = lifecycle.begin_rerun(tx, workflow_id, [each.id for each in found], file_mtimes)
    return Reinitialized(workflow_id, status.run_id, False, len(found), found)


def _rerun_causes(
    tx: Tx, workflow_id: int, jobs: Mapping[int, _RerunCandidate], file_mtimes: Mapping[int, float | None]
) -> dict[int, _RerunCause]:
    """Return why jobs run again, the first cause of each; some of them have not run yet."""
    waiting = _DependentsGraph(dependency_edges(tx, workflow_id))
    why: dict[int, _RerunCause] = {}
    for job_id, job in jobs.items():
        if job.status in _UNENDED:
            why[job_id] = _RerunCause("status", _INTERRUPTED if job.is_interrupted else _UNENDED[job.status])
    for changed in changed_inputs(tx, workflow_id):
        if jobs[changed.job_id].status in _ENDED:
            why.setdefault(changed.job_id, _RerunCause(changed.cause, changed.reason))
    for job_id, found in (*_changed_files(tx, workflow_id, jobs, file_mtimes), *_unwritten(tx, workflow_id)):
        if jobs[job_id].status in _ENDED:
            why.setdefault(job_id, found)
    for job_id in _staying_canceled(jobs, why, waiting):
        del why[job_id]
    new = [job_id for job_id, job in jobs.items() if job.status is JobStatus.UNINITIALIZED]
    for job_id, before in waiting.behind([*why, *new]):
        why.setdefault(
            job_id, _RerunCause("dependency", f"it waits for {jobs[before].name!r}, which runs again", before)
        )
    return why


def _changed_files(
    tx: Tx, workflow_id: int, jobs: Mapping[int, _RerunCandidate], file_mtimes: Mapping[int, float | None]
) -> Iterable[tuple[int, _RerunCause]]:
    """Yield jobs that read a changed file, then jobs that completed and whose output is not there."""
    rows = [row for row in tx.rows(_FILES, workflow_id) if row[0] in file_mtimes]
    paths = {file_id: path for file_id, path, _ in rows}
    changed = {
        file_id: change
        for file_id, _, before in rows
        if (change := _difference(before, file_mtimes[file_id])) is not None
    }
    missing = sorted(file_id for file_id in paths if file_mtimes[file_id] is None)
    writers = tx.rows_for(_WRITERS, missing)
    made = {file_id for _, file_id in writers}  # whoever writes it will write it again, and its readers follow
    for job_id, file_id in tx.rows_for(_READERS, sorted(changed.keys() - made)):
        yield job_id, _RerunCause("input_file", f"input file {paths[file_id]} {changed[file_id]}")
    for job_id, file_id in writers:
        if jobs[job_id].status is JobStatus.COMPLETED:
            yield job_id, _RerunCause("output_file", f"output file {paths[file_id]} is missing")


def _difference(before: float | None, now: float | None) -> str | None:
    """Say what became of a file, by its modification times; None if nothing did."""
    if before is None or now is None:
        return None if before is now else "is missing" if now is None else "is new"
    if abs(now - before) <= MTIME_SLACK_S:
        return None
    return "is newer" if now > before else "is older"


def _unwritten(tx: Tx, workflow_id: int) -> Iterable[tuple[int, _RerunCause]]:
    """Yield jobs that completed and whose user data has no value."""
    for job_id, name in tx.rows(_UNWRITTEN, workflow_id):
        yield job_id, _RerunCause("output_user_data", f"output user data {name!r} has no value")


def _staying_canceled(
    jobs: Mapping[int, _RerunCandidate], why: Collection[int], waiting: "_DependentsGraph"
) -> list[int]:
    """Return canceled jobs that stay so: a job that they wait for failed, and does not run again."""
    failed = [job_id for job_id, job in jobs.items() if job.status is JobStatus.FAILED and job_id not in why]

    def is_canceled(job_id: int) -> bool:
        return jobs[job_id].status is JobStatus.CANCELED and jobs[job_id].gives_up

    return [job_id for job_id, _ in waiting.behind(failed, is_canceled)]


class _DependentsGraph:
    """Who waits for whom; groups are nodes too, minus their ids."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._waiting: dict[int, list[int]] = defaultdict(list)
        for node, on in pairs:
            self._waiting[on].append(node)

    def behind(self, job_ids: Iterable[int], through: Any = lambda _job_id: True) -> list[tuple[int, int]]:
        """Return the jobs that wait, directly or not, for any of these, nearest first, each with one it waits for.

        Args:
            through: Says of a job whether it counts, and what waits for it in turn.
        """
        found: list[tuple[int, int]] = []
        frontier = sorted((job_id, job_id) for job_id in job_ids)
        seen = {node for node, _ in frontier}
        for node, job in frontier:  # grows while it is walked
            for next_node in sorted(self._waiting.get(node, ())):
                if next_node in seen or (next_node > 0 and not through(next_node)):
                    continue
                seen.add(next_node)
                frontier.append((next_node, next_node if next_node > 0 else job))
                if next_node > 0:
                    found.append((next_node, job))
        return found
