"""Explanations of a job and of a workflow, as JSON values."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from attrs import define

from torc_framework.explain.job_reasons import RANK, JobReason, JobReasons
from torc_framework.explain.job_roots import FIRST_JOBS, JobRoots, job_of_class
from torc_framework.explain.workflow_state import WorkflowState
from torc_framework.models.records import JobRecord

_MAX_WAITS_FOR: Final = 100


def explain_job(state: WorkflowState, job: JobRecord) -> dict[str, Any]:
    """Return why one job does not run, with its unfinished dependencies and its root."""
    reasons = JobReasons(state)
    roots = JobRoots(state, reasons)
    reason, root = roots.reason_and_root(job)
    waits_for = roots.unfinished_dependencies(job) if job.status == "blocked" else []
    root_reason = reasons.reason_of(root) if root is not None else None
    return {
        "workflow_id": state.id,
        "job_id": job.id,
        "job_name": job.name,
        "status": job.status,
        "reason": reason.code,
        "text": reason.text + _detail(state, job),
        "is_problem": (root_reason or reason).is_problem,
        "waits_for": [_brief(reasons, state.job(other)) for other in waits_for[:_MAX_WAITS_FOR]],
        "waits_for_count": len(waits_for),
        "root": None if root is None else _brief(reasons, root),
        "runners": _runners(root_reason or reason),
        "commands": list((root_reason or reason).commands),
        "next_command": next(iter((root_reason or reason).commands), None),
    }


def _runners(reason: JobReason) -> list[dict[str, Any]]:
    """Return what each runner lacks for a job that fits none."""
    return [{"hostname": each.hostname, "lacking": list(each.lacking)} for each in reason.shortfalls]


def _brief(reasons: JobReasons, job: JobRecord) -> dict[str, Any]:
    reason = reasons.reason_of(job)
    text = reason.text + _detail(reasons.state, job)
    return {"job_id": job.id, "job_name": job.name, "status": job.status, "reason": reason.code, "text": text}


def _detail(state: WorkflowState, job: JobRecord) -> str:
    """Return the part of a reason that differs between jobs: the end of the delay, or how the job failed."""
    if job.status == "ready" and state.is_delayed(job):
        return f" (until {job.not_before})"
    if job.status not in ("failed", "terminated", "pending_failed"):
        return ""
    result = state.result(job.id or 0)
    return f" ({result.reason or f'return code {result.return_code}'})" if result is not None else ""


@define
class _Part:
    """Jobs with the same reason and roots of the same reason.

    Attributes:
        root_id: Id of the root of the first of them; None without a root.
        names: Names of the first of them; None if they are not known yet.
    """

    status: str
    is_interrupted: bool
    reason: JobReason
    cause: JobReason
    root_id: int | None
    count: int
    first_ids: list[int]
    names: list[str] | None


def _parts(state: WorkflowState) -> Iterator[_Part]:
    """Yield all jobs that have not completed, in parts."""
    reasons = JobReasons(state)
    for counted in state.classes:
        first = job_of_class(state, counted.job_class, counted.first_ids[0], counted.first_names[0])
        reason = reasons.reason_of(first)
        jobs = counted.count, counted.first_ids, counted.first_names
        yield _Part(counted.job_class.status, first.is_interrupted, reason, reason, None, *jobs)
    if not any(state.counts.get(status) for status in ("blocked", "canceled")):
        return
    roots = JobRoots(state, reasons)
    for group in roots.waiting_groups():
        job = JobRecord(id=group.first_ids[0], workflow_id=state.id, name="", command="", status=group.status)
        reason, root = roots.with_root(reasons.reason_of(job), group.root)
        cause = reason if root is None else reasons.reason_of(job_of_class(state, *root))
        root_id = None if root is None else root[1]
        yield _Part(group.status, job.is_interrupted, reason, cause, root_id, group.count, group.first_ids, None)


def _groups(state: WorkflowState) -> list[dict[str, Any]]:
    """Return all jobs that have not completed in groups of one reason, in the order of their first jobs."""
    groups: dict[tuple[Any, ...], list[_Part]] = {}
    for part in sorted(_parts(state), key=lambda each: each.first_ids[0]):
        key = part.status, part.reason.code, part.reason.text, part.cause.text, part.cause.code
        groups.setdefault(key, []).append(part)
    return [_group(state, parts) for parts in groups.values()]


def explain_workflow(state: WorkflowState) -> dict[str, Any]:
    """Return why the jobs of a workflow do not run, in groups of jobs; groups that need a person come first."""
    listed = sorted(
        _groups(state),
        key=lambda each: (not each["is_problem"], RANK[each["cause"]], each["root"] is not None, -each["count"]),
    )
    commands = dict.fromkeys(group["commands"][0] for group in listed if group["is_problem"] and group["commands"])
    return {
        "workflow_id": state.id,
        "workflow_name": state.workflow.name,
        "total_jobs": sum(state.counts.values()),
        "job_counts": state.counts,
        "active_runners": len(state.runners),
        "queued_allocations": len(state.queued_allocations),
        "groups": listed,
        "commands": list(commands),
        "interrupted_jobs": state.interrupted,
        "is_canceled": state.status.is_canceled,
        **_next_values(state, listed),
    }


_OWN_COMMANDS: Final = frozenset(
    {"disabled", "unknown_executor", "lacks_resources", "allocation_never_starts", "scheduler_mismatch", "stale"}
)
"""Codes of reasons whose commands only an explanation names."""
_FIRST: Final = ("torc pending", "torc workflows archive")
"""Commands that come before those."""


def _next_values(state: WorkflowState, groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the next step: that of the workflow, unless a reason has a command of its own."""
    step = state.next_step()
    own = next((each for each in groups if each["cause"] in _OWN_COMMANDS and each["commands"]), None)
    if own is not None and (step is None or not step.command.startswith(_FIRST)):
        why = "changes what keeps the jobs from running"
        return {"next": {"command": own["commands"][0], "why": why, "first": None}, "next_command": own["commands"][0]}
    return {"next": step and step.as_dict(), "next_command": step and step.command}


def _group(state: WorkflowState, parts: Sequence[_Part]) -> dict[str, Any]:
    """Return a group of jobs with one reason; the parts are in the order of their first jobs."""
    first = parts[0]
    names = {job_id: name for part in parts for job_id, name in zip(part.first_ids, part.names or (), strict=False)}
    ids = sorted(job_id for part in parts for job_id in part.first_ids)[:FIRST_JOBS]
    return {
        "status": first.status,
        "is_interrupted": first.is_interrupted,
        "reason": first.reason.code,
        "cause": first.cause.code,
        "text": first.reason.text,
        "is_problem": first.cause.is_problem,
        "count": sum(part.count for part in parts),
        "job_ids": ids,
        "job_names": [names[job_id] if job_id in names else state.job(job_id).name for job_id in ids],
        "root": None if first.root_id is None else _brief(JobReasons(state), state.job(first.root_id)),
        "runners": _runners(first.cause),
        "commands": list(first.cause.commands),
    }
