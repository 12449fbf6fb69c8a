"""Orphans: jobs that the server takes to be running although their runner is gone.

A runner is gone if its record says that it ended, if it is a dead process of this machine, or if the batch system has
ended its allocation. The ends that a dead runner of this machine observed are reported, and its attempts that still run
are left to the next runner here. A job that no runner runs any more fails with the return code of orphans. A job that
was never begun is released.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define, frozen

from torc_framework.allocations.allocators import ExecutorOptions, context_without_runner
from torc_framework.allocations.records import open_allocations
from torc_framework.allocations.state_queries import find_ended
from torc_framework.allocations.unanswered_requests import resolve_requests
from torc_framework.client import TorcClient
from torc_framework.event_log import muted_log
from torc_framework.executors import AllocationEnding
from torc_framework.models.exchange import ClaimedJob, EndedReport, ExchangeRequest, RetryRequest
from torc_framework.models.exits import ORPHANED_RETURN_CODE, ExitClass, ExitObservation
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ScheduledComputeNodeRecord
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.runner.attempts.ending_classifier import LOST_ATTEMPTS
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.attempts.observation_values import without_defaults
from torc_framework.runner.connection.takeover import Takeover
from torc_framework.runner.process.site_group import SiteGroup
from torc_framework.system.process_identity import is_dead_runner

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager


_INTERRUPTED: Final = SEPARATE_BUDGET_CLASSES - {ExitClass.ORPHANED}
"""Classes of lost attempts whose cause is known and is not the job."""


@define
class Orphan:
    """A job whose runner is gone.

    Attributes:
        status: Its status; after a change the new one.
        reason: Why its runner counts as gone.
    """

    job_id: int
    job_name: str
    status: str
    reason: str


@define
class OrphanFindings:
    """What was found and, unless it was a dry run, ended.

    Attributes:
        compute_node_ids: Runners that are gone and that the server took to be active.
        allocation_ids: Records of allocations that have ended and that the server took to be there.
        notes: What could not be found out, one sentence each.
        reasons: Why queued allocations wait, by id of their records.
    """

    workflow_id: int
    dry_run: bool
    jobs: list[Orphan] = Factory(list)
    compute_node_ids: list[int] = Factory(list)
    allocation_ids: list[int] = Factory(list)
    notes: list[str] = Factory(list)
    reasons: dict[int, PendingReason] = Factory(dict)


@frozen
class _GoneRunner:
    node: ComputeNodeRecord
    reason: str
    is_local: bool = False
    ending: AllocationEnding | None = None


def sync_status(
    client: TorcClient,
    plugins: "PluginManager",
    options: ExecutorOptions,
    workflow_id: int,
    *,
    dry_run: bool = False,
    rerun: bool = False,
) -> OrphanFindings:
    """Find jobs whose runners are gone, and end them.

    Args:
        rerun: Jobs whose loss was not caused by themselves run again, as often as the class of the ending allows;
            otherwise they fail.

    Raises:
        ApiError: the server refused something; what was done before stays done.
    """
    found = OrphanFindings(workflow_id, dry_run)
    if not dry_run:
        found.notes += resolve_requests(client, plugins, options, context_without_runner(client, workflow_id)).notes
    allocations = open_allocations(client, workflow_id)
    ended = (
        find_ended(allocations, plugins, options, context_without_runner(client, workflow_id)) if allocations else None
    )
    if ended is not None:
        found.notes += ended.notes
        found.reasons = ended.reasons
    over = {node.id: node for node in (ended.ended if ended else ())}
    nodes = client.find(ComputeNodeRecord, workflow_id=workflow_id)
    endings = ended.endings if ended else {}
    dead = [each for node in nodes if (each := _why_gone(node, over, endings)) is not None]
    held = _held(client, workflow_id, nodes, dead)
    found.compute_node_ids = [each.node.id or 0 for each in dead if each.node.is_active]
    found.allocation_ids = sorted(node_id for node_id in over if node_id is not None)
    if not dry_run:
        _take_over_local(client, plugins, options, workflow_id, [each for each in dead if each.is_local])
        epochs: dict[int, int] = {}
        for each in _distinct([by for _, by in held if not by.is_local]):
            _end(client, plugins, each, [job for job, by in held if by is each], epochs, rerun=rerun)
        for each in dead:
            if each.node.is_active and not each.is_local:
                client.update(ComputeNodeRecord, each.node.id or 0, {"is_active": False})
        for node_id in found.allocation_ids:
            client.update(ScheduledComputeNodeRecord, node_id, {"status": "complete"})
        held = [(client.get(JobRecord, job.id or 0), by) for job, by in held]
    found.jobs = [Orphan(job.id or 0, job.name, job.status or "", by.reason) for job, by in held]
    return found


def _why_gone(
    node: ComputeNodeRecord,
    over: Mapping[int | None, ScheduledComputeNodeRecord],
    endings: Mapping[int, AllocationEnding],
) -> _GoneRunner | None:
    described: Mapping[str, Any] = node.scheduler if isinstance(node.scheduler, dict) else {}
    if not node.is_active:
        return _GoneRunner(node, f"its runner (compute node {node.id} on {node.hostname}) has ended")
    allocation = over.get(described.get("scheduler_id"))
    if allocation is not None:
        ending = endings.get(allocation.id or 0)
        said = f": {ending.state}" if ending else ""
        name = f"{allocation.scheduler_type.capitalize()} job {allocation.batch_id}{said}"
        return _GoneRunner(node, f"Allocation terminated ({name})", ending=ending)
    if is_dead_runner(node):
        return _GoneRunner(node, f"its runner (process {node.pid} of this machine) is dead", is_local=True)
    return None


def _held(
    client: TorcClient, workflow_id: int, nodes: Sequence[ComputeNodeRecord], dead: Sequence[_GoneRunner]
) -> list[tuple[JobRecord, _GoneRunner]]:
    """Return the jobs of dead runners and, if no runner is alive, every other live job."""
    labels = {status.label for status in LIVE}
    live = [job for label in sorted(labels) for job in client.iterate(JobRecord, workflow_id=workflow_id, status=label)]
    if not live:
        return []
    found: dict[int | None, tuple[JobRecord, _GoneRunner]] = {}
    for each in dead:
        for job in client.iterate(JobRecord, workflow_id=workflow_id, active_compute_node_id=each.node.id):
            if job.status in labels:
                found[job.id] = job, each
    if dead and len(dead) == len(nodes):
        unknown = _GoneRunner(dead[-1].node, "no runner is active")
        found |= {job.id: (job, unknown) for job in live if job.id not in found}
    return sorted(found.values(), key=lambda pair: pair[0].id or 0)


def _end(
    client: TorcClient,
    plugins: "PluginManager",
    each: _GoneRunner,
    jobs: Sequence[JobRecord],
    epochs: dict[int, int],
    *,
    rerun: bool,
) -> None:
    """Report in the name of a dead runner that its jobs are lost, and release those never begun.

    Args:
        epochs: Epochs of the leases that were taken before; those that are taken now are added.
    """
    workflow_id, node_id = each.node.workflow_id, each.node.id or 0
    epochs |= client.take_over(node_id, epochs.get(node_id, each.node.epoch or 0), None)
    running = [job for job in jobs if job.status == JobStatus.RUNNING.label]
    lost = [_lost(job.id or 0, job.attempt_id, each.reason) for job in running]
    if each.ending is not None:
        _explain(lost, each, plugins, rerun=rerun)
    released = [job.id or 0 for job in jobs if job.status == JobStatus.PENDING.label]
    run_id = client.workflow_status(workflow_id).run_id
    request = ExchangeRequest(node_id, run_id, epoch=epochs[node_id], ended=lost, released=released)
    client.exchange(workflow_id, request)


def _explain(lost: Sequence[EndedReport], each: _GoneRunner, plugins: "PluginManager", *, rerun: bool) -> None:
    """Classify lost attempts by the end of their allocation."""
    ending = each.ending or AllocationEnding("")
    seen = ExitObservation(
        executor=str((each.node.scheduler or {}).get("type", each.node.compute_node_type)),
        lost=True,
        scheduler_state=ending.state,
        scheduler_reason=ending.reason,
        raw={**ending.raw, "nodes": list(ending.nodes)},
    )
    verdict = plugins.classify(seen)
    for report in lost:
        report.exit_class, report.observation = verdict.exit_class.value, without_defaults(seen)
        report.reason = f"{each.reason}; {verdict.reason}"
        if rerun and verdict.exit_class in _INTERRUPTED:
            report.retry = RetryRequest(LOST_ATTEMPTS, reason=verdict.reason)


def _distinct(several: Sequence[_GoneRunner]) -> list[_GoneRunner]:
    return list({id(each): each for each in several}.values())


def _lost(job_id: int, attempt_id: int, reason: str) -> EndedReport:
    """Return the report that an attempt is lost and that no other follows."""
    return EndedReport(
        job_id,
        attempt_id,
        JobStatus.FAILED.label,
        ORPHANED_RETURN_CODE,
        exec_time_s=0.0,
        ended_at=time.time(),
        reason=reason,
        lost=True,
        retry=RetryRequest(1),
    )


def _take_over_local(
    client: TorcClient,
    plugins: "PluginManager",
    options: ExecutorOptions,
    workflow_id: int,
    dead: Sequence[_GoneRunner],
) -> None:
    """Take over from the dead runners of this machine as the next runner would, but run nothing."""
    if not dead:
        return
    context = context_without_runner(client, workflow_id)
    reasons = {each.node.id: each.reason for each in dead}

    def lost(job: ClaimedJob, _executor: str) -> EndedReport:
        return _lost(job.id, job.attempt_id, next(iter(reasons.values())))

    launchers = Launchers(plugins, options, context, lambda _launcher: None)
    try:
        with muted_log() as log:
            takeover = Takeover(client, launchers, log, lost, SiteGroup([""]).member(""))
            takeover.take_over(workflow_id, context.run_id, context.hostname, by=None)
            takeover.close_finished()
    finally:
        launchers.close()
