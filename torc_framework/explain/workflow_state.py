"""A snapshot of a workflow for explanations, made with a number of requests that hardly grows with its jobs."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import cache
from typing import Any

from attrs import Factory, define

from torc_framework.client import TorcClient
from torc_framework.graph.waiting_graph import WaitingGraph
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.records import (
    HINDRANCE,
    ComputeNodeRecord,
    JobRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    ScheduledComputeNodeRecord,
    WorkflowRecord,
    WorkflowStatusRecord,
)
from torc_framework.models.resource_fit import offered_resources
from torc_framework.models.resources import Resources, parse_duration
from torc_framework.models.waiting_jobs import CountedJobs, JobClass
from torc_framework.next_step import (
    InstalledExecutors,
    NextStep,
    continuing_step,
    next_step,
    runs_on_nodes,
    sites_of_last_run,
)
from torc_framework.system.machine import this_machine


@define
class ActiveRunner:
    """A runner; ``remaining_s`` is its remaining walltime in seconds, None if unlimited."""

    record: ComputeNodeRecord
    remaining_s: float | None

    @property
    def total(self) -> Resources:
        """All resources that it offers."""
        return offered_resources(self.record, self.remaining_s)

    @property
    def hindrance(self) -> str | None:
        """Why it cannot start attempts at present; None if it can."""
        described = self.record.scheduler
        known = described.get(HINDRANCE) if isinstance(described, dict) else None
        if not isinstance(known, dict):
            return None
        return f"on {self.record.hostname}, since {known.get('since')}: {known.get('reason')}"


@define
class WorkflowState:
    """The state of one workflow.

    Attributes:
        classes: The jobs that neither wait for other jobs nor have completed, by what decides whether they run.
        waiting: Returns the jobs that wait for others, with the values that a function gives to the jobs that they
            wait for.
        job: Returns the record of a job.
        runners: Active runners, without those that are known to be dead.
        queued_allocations: Queued allocations.
        result: Returns the present result of a job.
        orphans: Jobs held by dead runners.
        hindered_runners: For jobs held by a runner that cannot start attempts at present, that runner.
        executors: The executors of the plugins here, by name; None if they were not queried.
        next_command: Returns the command that continues the workflow when no runner works on it. It may import
            executors, like ``next_step``.
        next_step: Returns the next step of the workflow, the causes of failures having been shown; None if nothing is
            left to do.
        machine: What this machine offers; None if the workflow runs on nodes of a batch system or on sites.
        sites: What the sites of the last run offered; empty if that had no named sites.
        interrupted: Number of jobs that were interrupted and run again.
        reasons: Why queued allocations wait, as far as their batch systems report it.
    """

    workflow: WorkflowRecord
    status: WorkflowStatusRecord
    classes: Sequence[CountedJobs]
    waiting: Callable[[Callable[[int, JobClass], int]], WaitingGraph]
    job: Callable[[int], JobRecord]
    requirements: dict[int, ResourceRequirementsRecord]
    runners: list[ActiveRunner]
    queued_allocations: list[ScheduledComputeNodeRecord]
    result: Callable[[int], ResultRecord | None]
    orphans: Set[int]
    executors: Mapping[str, Any] | None = None
    next_command: Callable[[], str] = str
    next_step: Callable[[], NextStep | None] = lambda: None
    machine: Resources | None = None
    sites: Collection[ActiveRunner] = ()
    interrupted: int = 0
    counts: dict[str, int] = Factory(dict)
    reasons: Collection[PendingReason] = ()
    hindered_runners: Mapping[int, ActiveRunner] = Factory(dict)

    @property
    def id(self) -> int:
        """The workflow's id."""
        return self.workflow.id or 0

    @staticmethod
    def is_delayed(job: JobRecord) -> bool:
        """Return whether a ready job has to wait for its delay."""
        return job.not_before is not None and datetime.fromisoformat(job.not_before) > datetime.now(UTC)


def read_workflow_state(
    client: TorcClient,
    workflow_id: int,
    *,
    is_dead: Callable[[ComputeNodeRecord], bool] = lambda _: False,
    executors: InstalledExecutors | None = None,
    reasons: Callable[[list[ScheduledComputeNodeRecord]], Collection[PendingReason]] = lambda _: (),
) -> WorkflowState:
    """Query the server for the state of a workflow.

    Args:
        is_dead: Returns whether a runner ended without reporting it.
        executors: Returns the executors of the plugins here; None to leave them out.
        reasons: Returns why queued allocations wait.
    """
    workflow = client.get(WorkflowRecord, workflow_id)
    progress = client.progress(workflow_id)
    requirements = client.find(ResourceRequirementsRecord, workflow_id=workflow_id)
    runners: list[ActiveRunner] = []
    dead: list[ComputeNodeRecord] = []
    buffer_s = workflow.compute_node_expiration_buffer_seconds
    for record in client.iterate(ComputeNodeRecord, workflow_id=workflow_id, is_active=True):
        dead.append(record) if is_dead(record) else runners.append(ActiveRunner(record, _remaining_s(record, buffer_s)))

    def result(job_id: int) -> ResultRecord | None:
        found = client.find(ResultRecord, workflow_id=workflow_id, job_id=job_id, limit=1)
        return found[0] if found else None

    sites = sites_of_last_run(client, workflow_id)
    queued_allocations = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, status="pending")
    return WorkflowState(
        workflow=workflow,
        status=client.workflow_status(workflow_id),
        classes=client.job_classes(workflow_id),
        waiting=lambda value: WaitingGraph(client.waiting_jobs(workflow_id), client.group_members(workflow_id), value),
        job=cache(lambda job_id: client.get(JobRecord, job_id)),
        requirements={record.id or 0: record for record in requirements},
        runners=runners,
        queued_allocations=queued_allocations,
        reasons=reasons(queued_allocations) if queued_allocations else (),
        result=result,
        orphans={job.id or 0 for runner in dead for job in _held_by(client, workflow_id, runner)},
        hindered_runners={
            job.id or 0: runner
            for runner in runners
            if runner.hindrance
            for job in _held_by(client, workflow_id, runner.record)
        },
        executors=executors() if executors else None,
        next_command=cache(lambda: continuing_step(client, progress, executors or dict).command),
        next_step=lambda: next_step(client, progress, executors or dict, causes_shown=True),
        machine=None if sites or runs_on_nodes(client, workflow_id) else _this_machine(requirements),
        sites=[ActiveRunner(record, None) for record in sites],
        interrupted=progress.overview.interrupted,
        counts=progress.overview.counts,
    )


def _this_machine(requirements: Collection[ResourceRequirementsRecord]) -> Resources:
    """Return what this machine offers; its GPUs are counted only if a job may ask for some."""
    return this_machine(count_gpus=any(record.num_gpus for record in requirements))


def _held_by(client: TorcClient, workflow_id: int, runner: ComputeNodeRecord) -> Iterator[JobRecord]:
    return client.iterate(JobRecord, workflow_id=workflow_id, active_compute_node_id=runner.id)


def _remaining_s(runner: ComputeNodeRecord, buffer_s: int) -> float | None:
    if runner.time_limit is None:
        return None
    try:
        began = datetime.fromisoformat(runner.start_time.replace("Z", "+00:00")).timestamp()
        return began + parse_duration(runner.time_limit) - buffer_s - time.time()
    except ValueError:
        return None
