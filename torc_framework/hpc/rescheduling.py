"""Rescheduling: new schedulers for the jobs of a stored workflow that are still to run.

The plan covers running and waiting jobs; only waiting jobs get new schedulers. The actions that requested nodes so far
are retired. New actions request nodes for blocked jobs once these are ready. For jobs that can start at once, the
caller requests the nodes, or actions do that are due at once.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import UserError
from torc_framework.graph import plan_of_records
from torc_framework.hpc.scheduler_planning import PlanOptions, plan_schedulers
from torc_framework.models.barriers import Barrier
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.plan import Plan, SchedulerOrder, SchedulerPlan
from torc_framework.models.records import (
    JobRecord,
    ResourceRequirementsRecord,
    SlurmSchedulerRecord,
    WorkflowRecord,
)
from torc_framework.models.scheduler_defaults import scheduler_defaults
from torc_framework.models.statuses import JobStatus

_WAITING_STATUSES: Final = frozenset(
    each.label for each in (JobStatus.UNINITIALIZED, JobStatus.BLOCKED, JobStatus.READY)
)
"""Statuses of jobs that no runner has."""
_ACTIVE_STATUSES: Final = frozenset(
    each.label for each in (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.PENDING_FAILED)
)
_KEPT_FIELDS: Final = ("qos", "tmp")
"""Fields that new schedulers take over from the present ones."""
_CPUS_OPTION: Final = re.compile(r"\s*--cpus-per-task=\d+")
_DEFAULT_REQUIREMENTS: Final = "default"


def is_waiting(job: JobRecord) -> bool:
    """Return whether a job is still to run and no runner has it; an interrupted job runs again on the next runner."""
    return job.is_interrupted or job.status in _WAITING_STATUSES


@frozen
class ImmediateRequest:
    """Allocations that are to be requested at once.

    Attributes:
        scheduler_id: Id of the scheduler; 0 in a dry run.
        name: Name of the scheduler.
        allocations: Number of allocations.
        start_one_worker_per_node: Start a runner on each node of an allocation.
        job_count: Jobs that are bound to the scheduler and can start.
    """

    scheduler_id: int
    name: str
    allocations: int
    start_one_worker_per_node: bool
    job_count: int


@frozen
class Rescheduling:
    """A planned or completed rescheduling.

    Attributes:
        planned: The plan; its jobs are those in ``jobs``.
        jobs: Running and waiting jobs.
        at_once: Requests for the jobs that can start.
        scheduler_ids: Ids of the new schedulers; none before they are stored.
        retired_action_ids: Ids of the actions that will not request nodes any more.
    """

    planned: SchedulerPlan
    jobs: Sequence[JobRecord]
    at_once: Sequence[ImmediateRequest] = ()
    scheduler_ids: Sequence[int] = ()
    retired_action_ids: Sequence[int] = ()


class Rescheduler:
    """Plans and stores new schedulers for the jobs of one workflow.

    Args:
        client: The server.
        workflow_id: The workflow.
        include: Ids of jobs that get new schedulers in any status.
    """

    def __init__(self, client: TorcClient, workflow_id: int, include: Collection[int] = ()) -> None:
        self._client, self._workflow_id = client, workflow_id
        self.run_id = client.workflow_status(workflow_id).run_id
        self.workflow = client.get(WorkflowRecord, workflow_id)
        self.schedulers = client.find(SlurmSchedulerRecord, workflow_id=workflow_id)
        found = client.find(JobRecord, workflow_id=workflow_id)
        if unknown := set(include).difference(job.id for job in found):
            raise UserError(f"workflow {workflow_id} has no job {min(unknown)}")
        self.jobs = [job for job in found if is_waiting(job) or job.status in _ACTIVE_STATUSES or job.id in include]
        self._only = {n for n, job in enumerate(self.jobs) if is_waiting(job) or job.id in include}

    @property
    def has_waiting(self) -> bool:
        """Whether any job needs a new scheduler."""
        return bool(self._only)

    @property
    def has_uninitialized(self) -> bool:
        """Whether some of these jobs are uninitialized: the workflow's run has not begun."""
        return any(self.jobs[n].status == JobStatus.UNINITIALIZED.label for n in self._only)

    def account(self) -> str | None:
        """Return the account of the newest scheduler, else that of the workflow's defaults."""
        if self.schedulers:
            return max(self.schedulers, key=lambda each: each.id or 0).account
        defaults = scheduler_defaults(self.workflow.slurm_defaults)
        return str(defaults["account"]) if defaults.get("account") else None

    def plan(self, profile: HpcProfile, options: PlanOptions) -> Rescheduling:
        """Return the plan; nothing is changed.

        Raises:
            UserError: a job has no resource requirements, or no partition fits them.
        """
        plan = self._plan()
        bound = {n: self.jobs[n].scheduler_id for n in self._only}
        options = evolve(options, suffix=self._suffix(options.suffix), extras={**self._extras(), **options.extras})
        planned = plan_schedulers(plan, profile, options, only=self._only, preferred=self._partitions(plan, bound))
        return Rescheduling(planned, self.jobs, self._at_once(planned))

    def carry_out(self, rescheduling: Rescheduling, *, at_once: bool = False) -> Rescheduling:
        """Store a plan in one transaction; return it with the ids of the new records.

        Args:
            at_once: Also store actions for the jobs that can start; they are due at once.

        Raises:
            ApiError: the server refused the plan, for example because another run has begun; nothing is changed.
        """
        planned = rescheduling.planned
        ids = [job.id or 0 for job in self.jobs]
        bound: list[list[int]] = [[] for _ in planned.schedulers]
        for job_id, scheduler in zip(ids, planned.bound, strict=True):
            if scheduler is not None:
                bound[scheduler].append(job_id)
        actions = [
            evolve(each, jobs=[ids[n] for n in each.jobs] if each.jobs else None)
            for each in planned.actions
            if at_once or each.jobs
        ]
        order = SchedulerOrder(self.run_id, planned.schedulers, bound, actions)
        done = self._client.reschedule(self._workflow_id, order)
        return evolve(
            rescheduling,
            at_once=self._at_once(planned, done.scheduler_ids),
            scheduler_ids=done.scheduler_ids,
            retired_action_ids=done.retired_action_ids,
        )

    def _plan(self) -> Plan:
        """Return the running and waiting jobs with the dependencies between them."""
        here = {job.id for job in self.jobs}
        graph = self._client.dependency_graph(self._workflow_id)
        groups = [
            Barrier([job for job in group.upstream if job in here], [job for job in group.downstream if job in here])
            for group in graph.groups
        ]
        plan = plan_of_records(
            self.workflow,
            self.jobs,
            [(job, on) for job, on in graph.dependencies if job in here and on in here],
            groups=[group for group in groups if group.upstream and group.downstream],
        )
        records = self._client.find(ResourceRequirementsRecord, workflow_id=self._workflow_id)
        plan.resource_requirements = [record for record in records if record.name != _DEFAULT_REQUIREMENTS]
        position = {record.id: n for n, record in enumerate(plan.resource_requirements)}
        for planned, job in zip(plan.jobs, self.jobs, strict=True):
            planned.resource_requirements = position.get(job.resource_requirements_id)
        return plan

    def _at_once(self, planned: SchedulerPlan, ids: Sequence[int] = ()) -> list[ImmediateRequest]:
        found = []
        for action in planned.actions:
            if not action.jobs and action.scheduler is not None:
                found.append(
                    ImmediateRequest(
                        ids[action.scheduler] if ids else 0,
                        planned.schedulers[action.scheduler].name or "",
                        action.config["num_allocations"],
                        bool(action.config.get("start_one_worker_per_node")),
                        planned.bound.count(action.scheduler),
                    )
                )
        return found

    def _suffix(self, wanted: str) -> str:
        """Return a suffix that no scheduler of the workflow has; without schedulers the wanted one."""
        if not self.schedulers:
            return wanted
        suffix, number = wanted or f"_r{self.run_id}", 1
        found = suffix
        while any((each.name or "").endswith(found) for each in self.schedulers):
            number += 1
            found = f"{suffix}_{number}"
        return found

    def _extras(self) -> dict[str, Any]:
        """Return the further fields in which all present schedulers agree."""
        found: dict[str, Any] = {}
        for name in _KEPT_FIELDS:
            if (value := _common(getattr(each, name) for each in self.schedulers)) is not None:
                found[name] = value
        extra = _common(_CPUS_OPTION.sub("", each.extra or "").strip() for each in self.schedulers)
        return {**found, "extra": extra} if extra else found

    def _partitions(self, plan: Plan, bound: Mapping[int, int | None]) -> dict[int, str]:
        """Return the present partition by the position of resource requirements, where their jobs agree on one.

        A job without a scheduler may run in the partition of any.
        """
        by_id = {each.id: each.partition for each in self.schedulers}
        by_id[None] = _common(each.partition for each in self.schedulers)
        found: dict[int, set[str | None]] = {}
        for job, scheduler_id in bound.items():
            requirements = plan.jobs[job].resource_requirements
            if requirements is not None:
                found.setdefault(requirements, set()).add(by_id.get(scheduler_id))
        return {
            position: name for position, names in found.items() if len(names) == 1 and (name := min(names, key=str))
        }


def _common(values: Iterable[Any]) -> Any:
    """Return the value that all have; None if they differ or there are none."""
    several = set(values)
    return several.pop() if len(several) == 1 else None
