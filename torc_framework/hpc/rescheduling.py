"""New schedulers for the jobs of a stored workflow that are still to run.

Looked at are jobs that run or will run; schedulers are for those that nobody runs yet. Whatever asked for nodes before
asks no more. Nodes for jobs that wait are asked for by actions, once these are ready; for jobs that can start, by the
caller, or by actions that are due.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import UserError
from torc_framework.graph import plan_of_records
from torc_framework.hpc.scheduler_planning import PlanOptions, plan_schedulers
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.plan import Barrier, Plan, SchedulerOrder, SchedulerPlan
from torc_framework.models.records import (
    JobRecord,
    ResourceRequirementsRecord,
    SlurmSchedulerRecord,
    WorkflowRecord,
)
from torc_framework.models.statuses import JobStatus

_WAITING_STATUSES: Final = frozenset(
    each.label for each in (JobStatus.UNINITIALIZED, JobStatus.BLOCKED, JobStatus.READY)
)
"""Statuses of jobs that nobody runs yet."""
_ACTIVE_STATUSES: Final = frozenset(
    each.label for each in (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.PENDING_FAILED)
)
_KEPT_FIELDS: Final = ("qos", "tmp")
"""Fields of schedulers that new ones take over."""
_CPUS_OPTION: Final = re.compile(r"\s*--cpus-per-task=\d+")
_DEFAULT_REQUIREMENTS: Final = "default"


def is_waiting(job: JobRecord) -> bool:
    """Say whether a job is still to run and nobody runs it; an interrupted one runs again on the next runner."""
    return job.is_interrupted or job.status in _WAITING_STATUSES


@frozen
class ImmediateRequest:
    """Nodes to be asked for at once.

    Attributes:
        scheduler_id: Id of the scheduler; 0 in a dry run.
        job_count: Jobs that are bound to it and can start.
    """

    scheduler_id: int
    name: str
    allocations: int
    start_one_worker_per_node: bool
    job_count: int


@frozen
class Rescheduling:
    """What became, or would become, of a workflow's jobs.

    Attributes:
        planned: The plan; its jobs are those in ``jobs``.
        jobs: Jobs that run or will run.
        at_once: What is to be asked for now.
        scheduler_ids: Ids of the new schedulers; none in a dry run.
        retired_action_ids: Actions that ask no more.
    """

    planned: SchedulerPlan
    jobs: Sequence[JobRecord]
    at_once: Sequence[ImmediateRequest] = ()
    scheduler_ids: Sequence[int] = ()
    retired_action_ids: Sequence[int] = ()


class Rescheduler:
    """Gives new schedulers to the jobs of one workflow.

    Args:
        client: The server.
        include: Ids of jobs to plan for whatever their status.
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
        """Say whether there are jobs that nobody runs yet."""
        return bool(self._only)

    @property
    def has_uninitialized(self) -> bool:
        """Say whether some of these wait for a run to begin."""
        return any(self.jobs[n].status == JobStatus.UNINITIALIZED.label for n in self._only)

    def account(self) -> str | None:
        """Return the account of the newest scheduler, else that of the workflow's defaults."""
        if self.schedulers:
            return max(self.schedulers, key=lambda each: each.id or 0).account
        defaults = json.loads(self.workflow.slurm_defaults or "{}")
        return str(defaults["account"]) if defaults.get("account") else None

    def plan(self, profile: HpcProfile, options: PlanOptions) -> Rescheduling:
        """Return what would be done; changes nothing.

        Raises:
            UserError: jobs do not say what they ask for, or no partition has it.
        """
        plan = self._plan()
        bound = {n: self.jobs[n].scheduler_id for n in self._only}
        options = evolve(options, suffix=self._suffix(options.suffix), extras={**self._extras(), **options.extras})
        planned = plan_schedulers(plan, profile, options, only=self._only, preferred=self._partitions(plan, bound))
        return Rescheduling(planned, self.jobs, self._at_once(planned))

    def carry_out(self, rescheduling: Rescheduling, *, at_once: bool = False) -> Rescheduling:
        """Do what was planned, all of it or nothing; return it with the ids of what was made.

        Args:
            at_once: Make actions for the jobs that can start, too; they are due, for whoever carries out actions.

        Raises:
            ApiError: the server refused, as when another run has begun.
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
        """Return the jobs with the dependencies that they still wait for."""
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
        """Return an ending that none of the workflow's schedulers has."""
        suffix, number = wanted or f"_r{self.run_id}", 1
        found = suffix
        while any((each.name or "").endswith(found) for each in self.schedulers):
            number += 1
            found = f"{suffix}_{number}"
        return found

    def _extras(self) -> dict[str, Any]:
        """Return what all schedulers so far agree on, besides what is planned anew."""
        found: dict[str, Any] = {}
        for name in _KEPT_FIELDS:
            if (value := _common(getattr(each, name) for each in self.schedulers)) is not None:
                found[name] = value
        extra = _common(_CPUS_OPTION.sub("", each.extra or "").strip() for each in self.schedulers)
        return {**found, "extra": extra} if extra else found

    def _partitions(self, plan: Plan, bound: Mapping[int, int | None]) -> dict[int, str]:
        """Return the partition of the jobs so far by their requirements, where they agree on one.

        A job that is bound to no scheduler runs on the nodes of any.
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
    """Return the value that all are; None if they differ, or there are none."""
    several = set(values)
    return several.pop() if len(several) == 1 else None
