"""Explanations of a job and of a workflow, as JSON values."""

from typing import Any, Final

from torc_framework.explain.job_reasons import RANK, JobReason, JobReasons
from torc_framework.explain.workflow_state import WorkflowState
from torc_framework.models.records import JobRecord

MAX_NAMED_JOBS: Final = 5
"""Most jobs of a group that are named."""
_MAX_WAITS_FOR: Final = 100


def explain_job(state: WorkflowState, job: JobRecord) -> dict[str, Any]:
    """Return why one job does not run, with its unfinished dependencies and its root."""
    reasons = JobReasons(state)
    reason, root = reasons.reason_and_root(job)
    waits_for = reasons.unfinished(reasons.direct_dependencies(job)) if job.status == "blocked" else []
    root_reason = reasons.reason_of(root) if root is not None else None
    return {
        "workflow_id": state.id,
        "job_id": job.id,
        "job_name": job.name,
        "status": job.status,
        "reason": reason.code,
        "text": reason.text + _detail(state, job),
        "is_problem": (root_reason or reason).is_problem,
        "waits_for": [_brief(reasons, other) for other in waits_for[:_MAX_WAITS_FOR]],
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


def explain_workflow(state: WorkflowState) -> dict[str, Any]:
    """Return why the jobs of a workflow do not run, in groups of jobs; groups that need a person come first."""
    reasons = JobReasons(state)
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for job in state.jobs.values():
        if job.status == "completed":
            continue
        reason, root = reasons.reason_and_root(job)
        root_reason = None if root is None else reasons.reason_of(root)
        cause = root_reason or reason
        key = job.status, reason.code, reason.text, cause.text, cause.code
        group = groups.get(key)
        if group is None:
            group = groups[key] = _group(reasons, job, reason, root)
        group["count"] += 1
        if len(group["job_ids"]) < MAX_NAMED_JOBS:
            group["job_ids"].append(job.id)
            group["job_names"].append(job.name)
    listed = sorted(
        groups.values(),
        key=lambda each: (not each["is_problem"], RANK[each["cause"]], each["root"] is not None, -each["count"]),
    )
    commands = dict.fromkeys(group["commands"][0] for group in listed if group["is_problem"] and group["commands"])
    return {
        "workflow_id": state.id,
        "workflow_name": state.workflow.name,
        "total_jobs": len(state.jobs),
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
    step = state.next
    own = next((each for each in groups if each["cause"] in _OWN_COMMANDS and each["commands"]), None)
    if own is not None and (step is None or not step.command.startswith(_FIRST)):
        why = "changes what keeps the jobs from running"
        return {"next": {"command": own["commands"][0], "why": why, "first": None}, "next_command": own["commands"][0]}
    return {"next": step and step.as_dict(), "next_command": step and step.command}


def _group(reasons: JobReasons, job: JobRecord, reason: JobReason, root: JobRecord | None) -> dict[str, Any]:
    cause = reason if root is None else reasons.reason_of(root)
    return {
        "status": job.status,
        "is_interrupted": job.is_interrupted,
        "reason": reason.code,
        "cause": cause.code,
        "text": reason.text,
        "is_problem": cause.is_problem,
        "count": 0,
        "job_ids": [],
        "job_names": [],
        "root": None if root is None else _brief(reasons, root),
        "runners": _runners(cause),
        "commands": list(cause.commands),
    }
