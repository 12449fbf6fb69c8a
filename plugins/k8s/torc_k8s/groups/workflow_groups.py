"""The jobs of a workflow as groups of tasks, with the statuses and codes of OSMO.

Source: NVIDIA OSMO, user guide, "Exit Codes" and "Task Lifecycle"; its service's update of a workflow's status for the
order of the checks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from torc_framework.api import ExitClass, JobRecord, ResultRecord
from torc_k8s.groups.statuses import (
    COMPLETED,
    FAILED,
    PROCESSING,
    RUNNING,
    UPSTREAM,
    UPSTREAM_CODE,
    is_finished,
    status_of_class,
)

_BEFORE_END: Final[Mapping[str, str]] = {
    "uninitialized": "SUBMITTING",
    "blocked": "WAITING",
    "ready": PROCESSING,
    "pending": "SCHEDULING",
    "running": RUNNING,
}
"""Status of a job that has not ended, by torc's status."""
CANCELED: Final = "FAILED_CANCELED"
_OF_WORKFLOW: Final = (CANCELED, "FAILED_SERVER_ERROR", "FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT")
"""Statuses that a workflow takes from any of its groups, the first that applies."""


LIVE: Final = ("pending", "running")
"""Statuses of jobs that runners hold."""


def groups_of(
    jobs: Iterable[JobRecord],
    results: Iterable[ResultRecord],
    *,
    is_canceled: bool,
    live: Mapping[tuple[int, int], Sequence[Mapping[str, Any]]] | None = None,
) -> list[dict[str, Any]]:
    """Return a group for each job, in the order of the jobs: its status, and its tasks with statuses and codes.

    A job that is a single pod is a group of one task. A job that was canceled because another one failed is
    ``FAILED_UPSTREAM`` with code 3000, and so are its tasks.

    Args:
        jobs: The jobs of a workflow.
        results: Their results; the newest of each job counts.
        is_canceled: The workflow was canceled.
        live: What the cluster says of the tasks of attempts that runners hold, by job and attempt; a job that is a
            single pod has one task without a name.
    """
    newest: dict[int, ResultRecord] = {}
    for result in results:
        known = newest.get(result.job_id)
        if known is None or (result.run_id, result.attempt_id or 0) > (known.run_id, known.attempt_id or 0):
            newest[result.job_id] = result
    shown = [job for job in jobs if job.status != "disabled"]
    held = {job.id: (live or {}).get((job.id or 0, job.attempt_id), ()) for job in shown if job.status in LIVE}
    return [_group(job, newest.get(job.id or 0), held.get(job.id, ()), is_canceled=is_canceled) for job in shown]


def workflow_status(statuses: Sequence[str]) -> str:
    """Return the status of a workflow by those of its groups."""
    if not all(map(is_finished, statuses)):
        return RUNNING if any(status == RUNNING or is_finished(status) for status in statuses) else "PENDING"
    if (first := next((status for status in _OF_WORKFLOW if status in statuses), None)) is not None:
        return first
    reasons = {status for status in statuses if status not in (COMPLETED, UPSTREAM)}
    if len(reasons) == 1:
        return reasons.pop()
    return FAILED if reasons or UPSTREAM in statuses else COMPLETED


def _group(
    job: JobRecord, result: ResultRecord | None, live: Sequence[Mapping[str, Any]], *, is_canceled: bool
) -> dict[str, Any]:
    status, code = _status(job, result, is_canceled=is_canceled)
    observed = None if result is None or job.status in _BEFORE_END else _observed(result)
    if observed is not None:
        status, tasks = str(observed.get("status", status)), list(observed.get("tasks", ()))
    elif live:
        tasks = [{**task, "name": task["name"] or job.name} for task in live]
    else:
        tasks = [
            {"name": name, "lead": is_lead, "status": status, "code": code, "retries": 0}
            for name, is_lead in _tasks(job)
        ]
    return {"job_id": job.id, "name": job.name, "status": status, "code": code, "tasks": tasks}


def _status(job: JobRecord, result: ResultRecord | None, *, is_canceled: bool) -> tuple[str, int | None]:
    label = job.status or "uninitialized"
    if label in _BEFORE_END:
        return _BEFORE_END[label], None
    if label == "canceled":
        return (CANCELED, None) if is_canceled else (UPSTREAM, UPSTREAM_CODE)
    if result is None:
        return (COMPLETED, 0) if label == "completed" else (FAILED, None)
    try:
        found = status_of_class(ExitClass(result.exit_class or ""))
    except ValueError:  # of a newer server, or a result that no runner reported
        found = None
    if label == "completed":
        return COMPLETED, 0
    return found or (FAILED, result.return_code)


def _observed(result: ResultRecord) -> Mapping[str, Any] | None:
    """Return the statuses of a group that its executor observed; None if the job is a single pod."""
    seen = result.observation if isinstance(result.observation, dict) else {}
    raw = seen.get("raw")
    group = raw.get("group") if isinstance(raw, dict) else None
    return group if isinstance(group, dict) else None


def _tasks(job: JobRecord) -> list[tuple[str, bool]]:
    """Return the names of the tasks that a job declares, with whether they lead; the job itself if it has no group."""
    options = (job.executor_options or {}).get("k8s")
    group = options.get("group") if isinstance(options, dict) else None
    tasks = group.get("tasks") if isinstance(group, dict) else None
    named = [each for each in tasks if isinstance(each, dict)] if isinstance(tasks, list) else []
    if not named:
        return [(job.name, True)]
    return [(str(each.get("name")), bool(each.get("lead")) or len(named) == 1) for each in named]
