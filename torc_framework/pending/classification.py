"""Verdicts of plugins on jobs that wait for one: asked for, checked and carried out."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

from attrs import define, frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import JobRecord
from torc_framework.models.recovery import Ceiling, PendingContext, PendingVerdict, RecoveryAction
from torc_framework.models.resources import format_duration, format_memory
from torc_framework.models.verdicts import JudgeKind, Verdict, VerdictOrder, VerdictRecord
from torc_framework.pending.pending_jobs import WaitingJob, waiting_jobs
from torc_framework.plugins.manager import PluginManager

MIN_CONFIDENCE: Final = 0.8
"""Verdicts with less confidence than this are left to a person."""
_DECISIVE: Final = {RecoveryAction.RETRY, RecoveryAction.FAIL}


@frozen
class UndecidedJob:
    """A job that still waits for a verdict.

    Attributes:
        reason: Why nothing was decided, in one sentence.
        verdict: The verdict of a plugin that was not carried out, if there is one.
    """

    job_id: int
    job_name: str
    reason: str
    verdict: PendingVerdict | None = None


@define
class PendingClassification:
    """The outcome for all jobs that waited.

    Attributes:
        verdicts: Those that were given, also those that an agent gave itself; in a dry run, those that would be given.
        ready_job_ids: Jobs that may run because of verdicts of plugins.
        canceled_job_ids: Jobs that were canceled because of verdicts of plugins.
        left: Jobs that still wait.
    """

    dry_run: bool
    verdicts: list[VerdictRecord]
    ready_job_ids: list[int]
    canceled_job_ids: list[int]
    left: list[UndecidedJob]


def classify_pending(
    client: TorcClient,
    plugins: PluginManager,
    workflow_id: int,
    *,
    output_dir: Path,
    ai_agent: str | None = None,
    min_confidence: float = MIN_CONFIDENCE,
    settings: Mapping[str, Any] | None = None,
    ceiling_of: Callable[[JobRecord], Ceiling] = lambda _: Ceiling(),
    job_ids: Collection[int] | None = None,
    dry_run: bool = False,
) -> PendingClassification:
    """Ask plugins for a verdict on every job that waits for one, and carry the verdicts out.

    Args:
        output_dir: Folder of the runners' logs.
        ai_agent: Name of an agent that a plugin may ask about failures that its rules do not cover; None is none.
        min_confidence: A verdict with less confidence leaves the job waiting.
        settings: Further options for the plugins.
        ceiling_of: Returns the most that a job may request; a verdict that requests more leaves the job waiting.
        job_ids: Only these jobs.
        dry_run: Find out what would be done, and change nothing.
    """
    waiting = waiting_jobs(client, workflow_id, output_dir, job_ids)
    if not waiting:
        return PendingClassification(dry_run, [], [], [], [])
    run_id = client.workflow_status(workflow_id).run_id
    before = max((verdict.id or 0 for verdict in client.verdicts(workflow_id)), default=0)
    own = {"ai_agent": ai_agent, "min_confidence": min_confidence, "dry_run": dry_run}
    context = PendingContext(workflow_id, str(output_dir), {**(settings or {}), **own}, dict(client.environment))
    verdicts = plugins.classify_pending([each.failure for each in waiting], context)
    if ai_agent is not None:  # the agent may have given verdicts itself
        still = {each.failure.job_id: each.failure.attempt_id for each in waiting_jobs(client, workflow_id, output_dir)}
        waiting = [each for each in waiting if still.get(each.failure.job_id) == each.failure.attempt_id]
    done = PendingClassification(dry_run, [], [], [], [])
    orders: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for each in waiting:
        verdict = verdicts.get(each.failure.job_id)
        if reason := _why_left(verdict, min_confidence, ceiling_of(each.job)):
            done.left.append(UndecidedJob(each.failure.job_id, each.job.name, reason, verdict))
        elif verdict is not None:
            orders[verdict.judge, verdict.judge_kind].append(_order(each, verdict))
    for (judge, kind), given in orders.items():
        receipt = client.judge(workflow_id, VerdictOrder(given, judge, JudgeKind(kind), run_id, dry_run))
        done.verdicts += receipt.verdicts
        done.ready_job_ids += receipt.ready_job_ids
        done.canceled_job_ids += receipt.canceled_job_ids
    if not dry_run:
        done.verdicts = [verdict for verdict in client.verdicts(workflow_id) if (verdict.id or 0) > before]
    return done


def _why_left(verdict: PendingVerdict | None, min_confidence: float, ceiling: Ceiling) -> str | None:
    """Return why a job still waits; None if the verdict decides."""
    if verdict is None:
        return "no plugin had an opinion"
    if verdict.action not in _DECISIVE:
        return f"{verdict.judge} leaves it to a person: {verdict.reason}"
    if not verdict.confidence >= min_confidence:
        sure = f"{verdict.confidence:.2f} sure, {min_confidence:.2f} is asked for"
        return f"{verdict.judge} would {verdict.action} it ({sure}): {verdict.reason}"
    amounts = {"memory_bytes": verdict.memory_bytes, "runtime_s": verdict.runtime_s, "num_cpus": verdict.num_cpus}
    if verdict.action is RecoveryAction.RETRY and (objection := ceiling.excess(**amounts)):
        return f"{verdict.judge} would retry it with more than there is: {objection}"
    return None


def _order(waiting: WaitingJob, verdict: PendingVerdict) -> Verdict:
    retries = verdict.action is RecoveryAction.RETRY
    return Verdict(
        job_id=waiting.failure.job_id,
        action=cast("Literal['retry', 'fail']", verdict.action.value),
        reason=verdict.reason,
        attempt_id=waiting.failure.attempt_id,
        confidence=min(verdict.confidence, 1.0),
        evidence=list(verdict.evidence),
        memory=format_memory(verdict.memory_bytes) if retries and verdict.memory_bytes is not None else None,
        runtime=format_duration(verdict.runtime_s) if retries and verdict.runtime_s is not None else None,
        num_cpus=verdict.num_cpus if retries else None,
    )
