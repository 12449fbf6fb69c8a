"""Begins a run in which only those jobs run again that have to, each with its cause.

A job runs again if it neither completed nor failed, if its inputs have changed since the last initialize, if the
modification time of a file that it reads has changed, if a file or user data that it wrote is missing, or if it waits
for a job that runs again. A file is missing if it was seen before: one that neither the runner saw when its job ended
nor the caller sees now may be on a file system of the executor's. All other failed jobs stay failed, and the jobs that
were canceled because of them stay canceled.
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
"""Modification times that differ by no more than this are equal, because file systems round them."""
_EVENT_JOBS: Final = 1000
"""Largest number of job names in the event of a reinitialize."""

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
_REASONS_BY_STATUS: Final = {
    JobStatus.CANCELED: "it was canceled",
    JobStatus.TERMINATED: "it was terminated",
    JobStatus.PENDING_FAILED: "its failure waited for a verdict",
    JobStatus.PENDING: "its runner claimed it and did not start it",
    JobStatus.RUNNING: "its runner did not report how it ended",
}
"""Statuses of jobs that run again because they neither completed nor failed, with the reason that is given."""
_IS_MISSING: Final = "is missing"
_INTERRUPTED: Final = "it was interrupted: its runner had to end"
_ENDED: Final = {JobStatus.COMPLETED, JobStatus.FAILED}
_HAS_RUN: Final = UNBLOCKING | LIVE | {JobStatus.PENDING_FAILED}
"""Statuses of jobs that are listed when they run again; all others have not run before."""


@define
class _RerunCandidate:
    name: str
    status: JobStatus
    cancels_with_blocker: bool
    """Its ``cancel_on_blocking_job_failure``."""
    is_interrupted: bool


@define
class _RerunCause:
    """The cause for which a job runs again."""

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
    """Begin the next run: reset only the jobs that have to run again.

    Args:
        file_mtimes: Present modification times of files, by file id; None for a file that does not exist. Files that
            are not in it have not changed.
        dry_run: Only return the jobs that would run again.
        force: Begin also if active runners hold jobs; these are taken from them.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: it is archived, an active runner holds jobs of it, or its dependencies have a cycle.
    """
    lifecycle.check_may_begin(tx, workflow_id, force=force)
    with tx.connection.begin_nested() as changes:
        add_implied_dependencies(tx, workflow_id)
        jobs = {
            id_: _RerunCandidate(name, JobStatus(status), bool(cancels_with_blocker), bool(is_interrupted))
            for id_, name, status, cancels_with_blocker, is_interrupted in tx.rows(_JOBS, workflow_id)
        }
        causes = _rerun_causes(tx, workflow_id, jobs, file_mtimes)
        if dry_run:
            changes.rollback()
    found = [
        RerunJob(
            job_id, job.name, job.status.label, causes[job_id].cause, causes[job_id].reason, causes[job_id].because_of
        )
        for job_id, job in jobs.items()
        if job_id in causes and job.status in _HAS_RUN
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
    """Return the first cause of each job that runs again, also of jobs that have not run before."""
    waiting = _DependentsGraph(dependency_edges(tx, workflow_id))
    causes: dict[int, _RerunCause] = {}
    for job_id, job in jobs.items():
        if job.status in _REASONS_BY_STATUS:
            causes[job_id] = _RerunCause(
                "status", _INTERRUPTED if job.is_interrupted else _REASONS_BY_STATUS[job.status]
            )
    for changed in changed_inputs(tx, workflow_id):
        if jobs[changed.job_id].status in _ENDED:
            causes.setdefault(changed.job_id, _RerunCause(changed.cause, changed.reason))
    for job_id, found in (*_changed_files(tx, workflow_id, jobs, file_mtimes), *_unwritten(tx, workflow_id)):
        if jobs[job_id].status in _ENDED:
            causes.setdefault(job_id, found)
    for job_id in _staying_canceled(jobs, causes, waiting):
        del causes[job_id]
    new = [job_id for job_id, job in jobs.items() if job.status is JobStatus.UNINITIALIZED]
    for job_id, before in waiting.behind([*causes, *new]):
        causes.setdefault(
            job_id, _RerunCause("dependency", f"it waits for {jobs[before].name!r}, which runs again", before)
        )
    return causes


def _changed_files(
    tx: Tx, workflow_id: int, jobs: Mapping[int, _RerunCandidate], file_mtimes: Mapping[int, float | None]
) -> Iterable[tuple[int, _RerunCause]]:
    """Yield jobs that read a changed file, then completed jobs whose output file is missing."""
    rows = [(id_, path, before) for id_, path, before in tx.rows(_FILES, workflow_id) if id_ in file_mtimes]
    paths = {file_id: path for file_id, path, _ in rows}
    changed = {
        file_id: change
        for file_id, _, before in rows
        if (change := _difference(before, file_mtimes[file_id])) is not None
    }
    missing = sorted(file_id for file_id, change in changed.items() if change == _IS_MISSING)
    writers = tx.rows_for(_WRITERS, missing)
    made = {file_id for _, file_id in writers}  # its writers run again, and the readers after them
    for job_id, file_id in tx.rows_for(_READERS, sorted(changed.keys() - made)):
        yield job_id, _RerunCause("input_file", f"input file {paths[file_id]} {changed[file_id]}")
    for job_id, file_id in writers:
        if jobs[job_id].status is JobStatus.COMPLETED:
            yield job_id, _RerunCause("output_file", f"output file {paths[file_id]} is missing")


def _difference(before: float | None, now: float | None) -> str | None:
    """Return how a file has changed, by its modification times; None if it has not."""
    if before is None or now is None:
        return None if before is now else _IS_MISSING if now is None else "is new"
    if abs(now - before) <= MTIME_SLACK_S:
        return None
    return "is newer" if now > before else "is older"


def _unwritten(tx: Tx, workflow_id: int) -> Iterable[tuple[int, _RerunCause]]:
    """Yield completed jobs that write user data without a value."""
    for job_id, name in tx.rows(_UNWRITTEN, workflow_id):
        yield job_id, _RerunCause("output_user_data", f"output user data {name!r} has no value")


def _staying_canceled(
    jobs: Mapping[int, _RerunCandidate], causes: Collection[int], waiting: "_DependentsGraph"
) -> list[int]:
    """Return jobs that stay canceled, because a job that they wait for failed and does not run again."""
    failed = [job_id for job_id, job in jobs.items() if job.status is JobStatus.FAILED and job_id not in causes]

    def is_canceled(job_id: int) -> bool:
        return jobs[job_id].status is JobStatus.CANCELED and jobs[job_id].cancels_with_blocker

    return [job_id for job_id, _ in waiting.behind(failed, is_canceled)]


class _DependentsGraph:
    """The dependents of each job; a dependency group is a node, too, minus its id."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._waiting: dict[int, list[int]] = defaultdict(list)
        for node, on in pairs:
            self._waiting[on].append(node)

    def behind(self, job_ids: Iterable[int], through: Any = lambda _job_id: True) -> list[tuple[int, int]]:
        """Return the jobs that wait, directly or not, for any of these, nearest first, each with one that it waits for.

        Args:
            through: Returns whether a job is returned and its dependents are followed.
        """
        found: list[tuple[int, int]] = []
        frontier = sorted((job_id, job_id) for job_id in job_ids)
        seen = {node for node, _ in frontier}
        for node, job in frontier:  # the loop below appends to it
            for next_node in sorted(self._waiting.get(node, ())):
                if next_node in seen or (next_node > 0 and not through(next_node)):
                    continue
                seen.add(next_node)
                frontier.append((next_node, next_node if next_node > 0 else job))
                if next_node > 0:
                    found.append((next_node, job))
        return found
