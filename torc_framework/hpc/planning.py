"""From the jobs of a plan and a cluster's partitions to requests for nodes, and to the moments at which they are made.

Jobs that ask for the same share a request: its partition, its walltime, what a node must have. How long and how often
it is made follows from how many of the jobs a node takes at once, and from how many of them follow one another before
the walltime is over. A runner keeps some of the walltime for a clean start and end; jobs are counted by what is left.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import Factory, define, evolve, field, frozen

from torc_framework.errors import UserError
from torc_framework.graph import SchedulerGroup, scheduler_groups
from torc_framework.hpc.matching import best_partition
from torc_framework.hpc.walltimes import clock_text, walltime_text
from torc_framework.models.fit import requested
from torc_framework.models.plan import Plan, PlannedAction, SchedulerPlan
from torc_framework.models.records import SlurmSchedulerRecord, WorkflowRecord
from torc_framework.models.resources import Resources, format_memory
from torc_framework.models.sites import HpcProfile, Partition

SLACK_S: Final = 120
"""Part of the walltime that no job is planned for, seconds: runners begin late; batch systems may end them early."""
RUNNER_BYTES: Final = 256 * 1024**2
"""Memory that is asked for beside that of the jobs, for the runner itself, where nodes are shared."""
MANY_ALLOCATIONS: Final = 100
"""Where one request would be made more often than this, its walltime grows instead, as far as the partition allows."""
MOST_ALLOCATIONS: Final = 1000
"""No request is made more often than this at a time."""
MANY_STAGES: Final = 50
"""From so many stages of one request on, people are told what that means."""
_MIB: Final = 1024**2
_SHOWN_JOBS: Final = 5


class GroupBy(StrEnum):
    """Which jobs share a request."""

    RESOURCE_REQUIREMENTS = "resource-requirements"
    PARTITION = "partition"


class WalltimeStrategy(StrEnum):
    """How the walltime of a request is found."""

    MAX_JOB_RUNTIME = "max-job-runtime"
    MAX_PARTITION_TIME = "max-partition-time"


@frozen
class PlanOptions:
    """How nodes are asked for.

    Attributes:
        account: Who pays.
        executor: The executor that asks, by name.
        walltime_multiplier: Walltime in units of the longest run time of a job, under ``max-job-runtime``.
        single_allocation: Ask for all nodes of a request at once, with a runner on each.
        actions: Say also when to ask.
        suffix: End of every scheduler's name.
        partition: The partition to use; None chooses the best.
        extras: Further fields of every scheduler, such as ``qos``; ``extra`` stands before what is put there.
    """

    account: str
    executor: str
    group_by: GroupBy = field(default=GroupBy.RESOURCE_REQUIREMENTS, converter=GroupBy)
    walltime_strategy: WalltimeStrategy = field(default=WalltimeStrategy.MAX_JOB_RUNTIME, converter=WalltimeStrategy)
    walltime_multiplier: float = 1.5
    single_allocation: bool = False
    actions: bool = True
    suffix: str = ""
    partition: str | None = None
    extras: Mapping[str, Any] = field(factory=dict)


def plan_schedulers(
    plan: Plan,
    profile: HpcProfile,
    options: PlanOptions,
    *,
    only: Collection[int] | None = None,
    preferred: Mapping[int, str] | None = None,
) -> SchedulerPlan:
    """Return the requests for a plan's jobs.

    Args:
        plan: The plan.
        profile: The cluster.
        options: How nodes are asked for.
        only: Positions of the jobs that need nodes; None is all.
        preferred: Partitions to stay with if they fit, by position of the resource requirements.

    Raises:
        UserError: jobs do not say what they ask for, or no partition has it.
    """
    groups = scheduler_groups(plan, only)
    _refuse_unsaid(plan, groups)
    return _Planner(plan, profile, options, preferred or {}).planned(groups)


def _refuse_unsaid(plan: Plan, groups: Iterable[SchedulerGroup]) -> None:
    unsaid = [job for group in groups if group.requirements is None for wave in group.waves.values() for job in wave]
    if unsaid:
        names = ", ".join(plan.jobs[job].name for job in unsaid[:_SHOWN_JOBS])
        more = f" and {len(unsaid) - _SHOWN_JOBS} more" if len(unsaid) > _SHOWN_JOBS else ""
        raise UserError(
            f"jobs without resource_requirements: {names}{more}; a batch system must be told what they need: "
            "define it under resource_requirements and name it in each job"
        )


# --- time -----------------------------------------------------------------------------------------


@frozen
class Reserve:
    """The walltime that a runner keeps from its jobs; see `torc_framework.runner.walltime`. Seconds.

    Attributes:
        end_s: Kept for a clean end; half of a runner's time at most.
        least_s: With less than this left no job begins; a quarter of a runner's time at most.
    """

    end_s: int
    least_s: int

    @classmethod
    def of(cls, workflow: WorkflowRecord) -> "Reserve":
        """Return that of a workflow's runners."""
        return cls(workflow.compute_node_expiration_buffer_seconds, workflow.compute_node_min_time_for_new_jobs_seconds)

    def rounds(self, walltime_s: float, runtime_s: float) -> int:
        """Return how many jobs that take their whole run time follow one another within a walltime."""
        limit = walltime_s - SLACK_S
        left = limit - min(self.end_s, limit / 2)
        last = max(runtime_s, min(self.least_s, limit / 4))
        return 0 if left < last else math.floor((left - last) / runtime_s) + 1

    def most_runtime_s(self, walltime_s: int) -> int:
        """Return the longest run time of a job for which a walltime leaves room."""
        limit = max(0, walltime_s - SLACK_S)
        return limit - min(self.end_s, limit // 2)

    def least_walltime_s(self, runtime_s: float, rounds: int = 1) -> int:
        """Return a walltime, in whole minutes, in which so many jobs follow one another; the shortest for one."""
        if rounds == 1:
            return _whole_minutes(SLACK_S + runtime_s + min(self.end_s, runtime_s))
        last = max(runtime_s, self.least_s)
        return _whole_minutes(SLACK_S + self.end_s + (rounds - 1) * runtime_s + last)


def _whole_minutes(seconds: float) -> int:
    return math.ceil(seconds / 60) * 60


# --- requests -------------------------------------------------------------------------------------


@define
class _Request:
    """Jobs that share a request.

    Attributes:
        asked: The largest of what they ask for.
        waves: The jobs by level; those above the first wait for others.
    """

    name: str
    partition: Partition
    asked: Resources
    waves: dict[int, list[int]] = Factory(dict)

    @property
    def largest_wave(self) -> int:
        """Most jobs that nodes are asked for at a time."""
        return max(map(len, self.waves.values()))


@frozen
class _Size:
    """How long a request is for, and how much of it a node takes.

    Attributes:
        at_once: Jobs that an allocation runs at the same time.
        rounds: How many of them follow one another.
    """

    walltime_s: int
    at_once: int
    rounds: int

    def allocations(self, jobs: int) -> int:
        """Return how many allocations so many jobs take."""
        return math.ceil(jobs / (self.at_once * self.rounds))

    def used_at_once(self, jobs: int) -> int:
        """Return how many jobs each of these allocations runs at the same time if they get the same number."""
        return math.ceil(jobs / (self.allocations(jobs) * self.rounds))


class _Planner:
    """The planning of one workflow."""

    def __init__(self, plan: Plan, profile: HpcProfile, options: PlanOptions, preferred: Mapping[int, str]) -> None:
        self._plan, self._profile, self._options = plan, profile, options
        self._preferred = preferred
        self._reserve = Reserve.of(plan.workflow)
        self._asked: dict[int, tuple[Resources, Partition]] = {}
        self._made = SchedulerPlan([], [None] * len(plan.jobs))
        self._names: set[str] = set()

    def planned(self, groups: Iterable[SchedulerGroup]) -> SchedulerPlan:
        for request in self._requests(groups):
            self._add(request)
        return self._made

    def _requests(self, groups: Iterable[SchedulerGroup]) -> Iterable[_Request]:
        """Return the requests: one for each group, or one for each partition and number of nodes."""
        found: dict[tuple[Any, ...], _Request] = {}
        for group in groups:
            assert group.requirements is not None
            asked, partition = self._placed(group.requirements)
            name = self._plan.resource_requirements[group.requirements].name
            key: tuple[Any, ...] = (name, group.is_deferred)
            if self._options.group_by is GroupBy.PARTITION:
                key, name = (partition.name, asked.num_nodes), partition.name
                name += f"_{asked.num_nodes}_nodes" if asked.num_nodes > 1 else ""
            elif group.is_deferred:
                name += "_deferred"
            request = found.setdefault(key, _Request(f"{name}_scheduler", partition, asked))
            request.asked = _larger(request.asked, asked)
            for level, jobs in group.waves.items():
                request.waves[level] = sorted([*request.waves.get(level, ()), *jobs])
        return found.values()

    def _placed(self, position: int) -> tuple[Resources, Partition]:
        """Return what requirements ask for, and the partition for them."""
        if position not in self._asked:
            record = self._plan.resource_requirements[position]
            asked = requested(record)
            assert asked.runtime_s is not None
            try:
                self._asked[position] = asked, self._partition(asked, self._preferred.get(position))
            except UserError as error:
                raise UserError(f"resource_requirements {record.name!r}: {error}") from None
        return self._asked[position]

    def _partition(self, asked: Resources, preferred: str | None) -> Partition:
        """Return the best partition whose longest walltime leaves a job its whole run time."""
        runtime_s = asked.runtime_s or 0
        wanted = evolve(asked, runtime_s=self._reserve.least_walltime_s(runtime_s))
        if preferred is not None and self._options.partition is None:
            try:
                return best_partition(self._profile, wanted, partition=preferred)
            except UserError:
                pass  # the jobs have outgrown it
        try:
            return best_partition(self._profile, wanted, partition=self._options.partition)
        except UserError as error:
            reserve_s = int(wanted.runtime_s or 0) - int(runtime_s)
            raise UserError(
                f"{error}\nThe walltime holds a run time of {walltime_text(int(runtime_s))}, and "
                f"{walltime_text(reserve_s)} for the start and the end of the runner "
                "(compute_node_expiration_buffer_seconds)"
            ) from None

    def _add(self, request: _Request) -> None:
        size = self._size(request)
        if len(request.waves) >= MANY_STAGES and self._options.actions:
            self._made.warnings.append(
                f"Jobs of {request.name} follow one another in {len(request.waves)} stages, and nodes are asked for at "
                "each. Fewer and longer jobs would spare the queue."
            )
        schedulers: dict[int, int] = {}  # a request for all nodes at once has one for each number of nodes
        for level, jobs in sorted(request.waves.items()):
            nodes, allocations = self._shape(request, size.allocations(len(jobs)))
            if nodes not in schedulers:
                schedulers[nodes] = len(self._made.schedulers)
                self._made.schedulers.append(self._record(request, size, nodes))
            scheduler = schedulers[nodes]
            for job in jobs:
                self._made.bound[job] = scheduler
            if self._options.actions:
                config: dict[str, Any] = {"scheduler_type": self._options.executor, "num_allocations": allocations}
                if nodes > request.asked.num_nodes:
                    config["start_one_worker_per_node"] = True
                trigger = "on_jobs_ready" if level else "on_workflow_start"
                watched = jobs if level else None
                self._made.actions.append(PlannedAction(trigger, "schedule_nodes", config, watched, scheduler))

    def _size(self, request: _Request) -> _Size:
        asked, partition = request.asked, request.partition
        runtime_s = asked.runtime_s or 1
        at_once = _at_once(asked, partition)
        longest = partition.max_walltime_secs
        walltime_s = longest
        if self._options.walltime_strategy is WalltimeStrategy.MAX_JOB_RUNTIME:
            comfortable = _whole_minutes(self._options.walltime_multiplier * runtime_s)
            walltime_s = min(longest, max(comfortable, self._reserve.least_walltime_s(runtime_s)))
        size = self._sized(walltime_s, at_once, runtime_s)
        most = request.largest_wave
        if size.allocations(most) <= MANY_ALLOCATIONS:
            return size
        rounds = math.ceil(most / (at_once * MANY_ALLOCATIONS))
        longer = self._sized(min(longest, self._reserve.least_walltime_s(runtime_s, rounds)), at_once, runtime_s)
        if longer.rounds <= size.rounds:
            return size
        self._made.warnings.append(
            f"{most} jobs of {request.name} would take {size.allocations(most)} allocations of "
            f"{walltime_text(size.walltime_s)}; {longer.allocations(most)} of {walltime_text(longer.walltime_s)} "
            "are planned."
        )
        return longer

    def _sized(self, walltime_s: int, at_once: int, runtime_s: float) -> _Size:
        return _Size(walltime_s, at_once, self._reserve.rounds(walltime_s, runtime_s))

    def _shape(self, request: _Request, allocations: int) -> tuple[int, int]:
        """Return nodes per allocation, and allocations; warn if there are fewer than the jobs take."""
        nodes = request.asked.num_nodes
        if self._options.single_allocation and nodes == 1:
            most = request.partition.max_nodes or allocations
            nodes = min(allocations, most)
            allocations = math.ceil(allocations / nodes)
        if allocations > MOST_ALLOCATIONS:
            self._made.warnings.append(
                f"{request.name} takes {allocations} allocations; {MOST_ALLOCATIONS} are planned. Ask for more "
                "when these are used up, or let 'torc watch --auto-schedule' do it."
            )
            allocations = MOST_ALLOCATIONS
        return nodes, allocations

    def _record(self, request: _Request, size: _Size, nodes: int) -> SlurmSchedulerRecord:
        """Return the request: of a shared node what its jobs use when they are spread evenly, else all but the GPUs."""
        asked, partition = request.asked, request.partition
        at_once = max(size.used_at_once(len(jobs)) for jobs in request.waves.values())
        memory, cpus = partition.memory_mb * _MIB, partition.cpus_per_node
        if partition.shared:
            memory = min(memory, at_once * asked.memory_bytes + RUNNER_BYTES)
            cpus = at_once * asked.num_cpus
        extras = dict(self._options.extras)
        extras["extra"] = " ".join(filter(None, [extras.get("extra"), f"--cpus-per-task={cpus}"]))
        return SlurmSchedulerRecord(
            workflow_id=0,
            name=self._unused(request.name),
            account=self._options.account,
            partition=partition.name,
            nodes=nodes,
            walltime=clock_text(size.walltime_s),
            mem=format_memory(math.ceil(memory / _MIB) * _MIB),
            gres=f"gpu:{at_once * asked.num_gpus}" if asked.num_gpus else None,
            **extras,
        )

    def _unused(self, name: str) -> str:
        wanted, number = name + self._options.suffix, 1
        found = wanted
        while found in self._names:
            number += 1
            found = f"{wanted}_{number}"
        self._names.add(found)
        return found


def _larger(one: Resources, other: Resources) -> Resources:
    """Return the larger of each amount."""
    return Resources(
        max(one.num_cpus, other.num_cpus),
        max(one.memory_bytes, other.memory_bytes),
        max(one.num_gpus, other.num_gpus),
        max(one.num_nodes, other.num_nodes),
        max(one.runtime_s or 0, other.runtime_s or 0),
    )


def _at_once(asked: Resources, partition: Partition) -> int:
    """Return how many such jobs run on an allocation at the same time; one that needs several nodes has them alone."""
    if asked.num_nodes > 1:
        return 1
    amounts = (
        (partition.cpus_per_node, asked.num_cpus),
        (partition.memory_mb * _MIB, asked.memory_bytes),
        (partition.gpus_per_node, asked.num_gpus),
    )
    return max(1, min(has // each for has, each in amounts if each))
