"""Planning of schedulers: from the jobs of a plan and a cluster's partitions to scheduler records and actions.

Jobs with the same requirements share a scheduler, which describes one kind of allocation: partition, walltime and
resources. The number of allocations follows from the jobs that a node runs at the same time, and from the jobs that run
one after another within the walltime. The runner needs a part of the walltime for its start and its end, which is not
available to jobs.

If idle nodes are known, jobs that can start at once are spread over several fitting partitions, as far as these have
idle nodes that the best partition lacks.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import Factory, define, evolve, field, frozen

from torc_framework.errors import UserError
from torc_framework.graph import SchedulerGroup, scheduler_groups
from torc_framework.hpc.partition_matching import alternative_partitions, best_partition
from torc_framework.hpc.walltimes import clock_text
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.plan import Plan, PlannedAction, SchedulerPlan
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.models.resource_fit import requested_resources
from torc_framework.models.resources import Resources, format_memory
from torc_framework.models.walltime_reserve import WalltimeReserve, whole_minutes
from torc_framework.text.quantities import exact_duration_text

RUNNER_MEMORY_BYTES: Final = 256 * 1024**2
"""Memory for the runner itself, which is added to the memory of the jobs on shared nodes."""
MANY_ALLOCATIONS: Final = 100
"""If a scheduler needed more allocations than this at a time, its walltime is extended up to the partition's limit."""
MAX_ALLOCATIONS: Final = 1000
"""Most allocations of one scheduler at a time."""
MANY_STAGES: Final = 50
"""A scheduler with at least this many stages causes a warning."""
_MIB: Final = 1024**2
_SHOWN_JOBS: Final = 5


class GroupBy(StrEnum):
    """What the jobs of a scheduler have in common."""

    RESOURCE_REQUIREMENTS = "resource-requirements"
    PARTITION = "partition"


class WalltimeStrategy(StrEnum):
    """How the walltime of a scheduler is determined."""

    MAX_JOB_RUNTIME = "max-job-runtime"
    MAX_PARTITION_TIME = "max-partition-time"


@frozen
class PlanOptions:
    """Options of the planning.

    Attributes:
        account: The account to charge.
        executor: Name of the executor that requests the allocations.
        group_by: What the jobs of a scheduler have in common.
        walltime_strategy: How the walltime is determined.
        walltime_multiplier: Walltime in units of the longest run time of a job, under ``max-job-runtime``.
        single_allocation: Request all nodes of a scheduler in one allocation, with a runner on each.
        actions: Also plan the actions that request the allocations.
        suffix: End of every scheduler's name.
        partition: The partition to use; None chooses the best.
        extras: Further fields of every scheduler, such as ``qos``; the planner appends its options to ``extra``.
        idle: Names of the idle nodes by partition; a node may be in several. Empty if they are unknown.
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
    idle: Mapping[str, Collection[str]] = field(factory=dict)


def plan_schedulers(
    plan: Plan,
    profile: HpcProfile,
    options: PlanOptions,
    *,
    only: Collection[int] | None = None,
    preferred: Mapping[int, str] | None = None,
) -> SchedulerPlan:
    """Return the schedulers for a plan's jobs, and the actions that request their allocations.

    Args:
        plan: The plan.
        profile: The cluster.
        options: Options of the planning.
        only: Positions of the jobs that need schedulers; None is all.
        preferred: Partitions to keep if they fit, by position of the resource requirements.

    Raises:
        UserError: a job has no resource requirements, or no partition fits them.
    """
    groups = scheduler_groups(plan, only)
    _check_requirements(plan, groups)
    return _SchedulerPlanner(plan, profile, options, preferred or {}).planned(groups)


def _check_requirements(plan: Plan, groups: Iterable[SchedulerGroup]) -> None:
    missing = [job for group in groups if group.requirements is None for wave in group.waves.values() for job in wave]
    if missing:
        names = ", ".join(plan.jobs[job].name for job in missing[:_SHOWN_JOBS])
        more = f" and {len(missing) - _SHOWN_JOBS} more" if len(missing) > _SHOWN_JOBS else ""
        raise UserError(
            f"jobs without resource_requirements: {names}{more}; a batch system needs to know their resources: "
            "define it under resource_requirements and name it in each job"
        )


# --- schedulers ----------------------------------------------------------------------------------


@define
class _SchedulerRequest:
    """Jobs that share a scheduler.

    Attributes:
        kind: What the jobs have in common, as the first part of the scheduler's name; unique.
        partition: The partition of the scheduler.
        requested: The largest requirements of the jobs.
        is_settled: The jobs are not spread over other partitions.
        waves: The jobs by level; jobs of levels above 0 depend on others.
    """

    kind: str
    partition: Partition
    requested: Resources
    is_settled: bool = False
    waves: dict[int, list[int]] = Factory(dict)

    @property
    def name(self) -> str:
        """Name of the scheduler."""
        return f"{self.kind}_scheduler"

    @property
    def largest_wave(self) -> int:
        """Most jobs for which nodes are requested at a time."""
        return max(map(len, self.waves.values()))


@frozen
class _RequestSize:
    """The walltime of an allocation, and how many jobs it runs.

    Attributes:
        walltime_s: The walltime, seconds.
        at_once: Jobs that an allocation runs at the same time.
        rounds: Jobs that run one after another within the walltime.
    """

    walltime_s: int
    at_once: int
    rounds: int

    def allocations(self, jobs: int) -> int:
        """Return how many allocations a number of jobs needs."""
        return math.ceil(jobs / (self.at_once * self.rounds))

    def used_at_once(self, jobs: int) -> int:
        """Return how many jobs an allocation runs at the same time if all allocations get equally many jobs."""
        return math.ceil(jobs / (self.allocations(jobs) * self.rounds))


class _SchedulerPlanner:
    """The planning for one workflow."""

    def __init__(self, plan: Plan, profile: HpcProfile, options: PlanOptions, preferred: Mapping[int, str]) -> None:
        self._plan, self._profile, self._options = plan, profile, options
        self._preferred = preferred
        self._idle = {name: sorted(nodes) for name, nodes in options.idle.items()}
        self._planned_on: set[str] = set()
        self._reserve = WalltimeReserve.of(plan.workflow)
        self._requested: dict[int, tuple[Resources, Partition]] = {}
        self._result = SchedulerPlan([], [None] * len(plan.jobs))
        self._names: set[str] = set()

    def planned(self, groups: Iterable[SchedulerGroup]) -> SchedulerPlan:
        for request in self._requests(groups):
            for part in self._spread(request):
                self._add(part)
        return self._result

    def _requests(self, groups: Iterable[SchedulerGroup]) -> Iterable[_SchedulerRequest]:
        """Return the planned schedulers: one for each group, or one for each partition and number of nodes."""
        found: dict[tuple[Any, ...], _SchedulerRequest] = {}
        options = self._options
        may_spread = not options.single_allocation and options.partition is None
        may_spread = may_spread and options.group_by is GroupBy.RESOURCE_REQUIREMENTS
        for group in groups:
            assert group.requirements is not None
            requested, partition = self._resources_and_partition(group.requirements)
            name = self._plan.resource_requirements[group.requirements].name
            key: tuple[Any, ...] = (name, group.is_deferred)
            if self._options.group_by is GroupBy.PARTITION:
                key, name = (partition.name, requested.num_nodes), partition.name
                name += f"_{requested.num_nodes}_nodes" if requested.num_nodes > 1 else ""
            elif group.is_deferred:
                name += "_deferred"
            settled = not may_spread or group.requirements in self._preferred
            request = found.setdefault(key, _SchedulerRequest(name, partition, requested, settled))
            request.requested = _larger(request.requested, requested)
            for level, jobs in group.waves.items():
                request.waves[level] = sorted([*request.waves.get(level, ()), *jobs])
        return found.values()

    def _spread(self, request: _SchedulerRequest) -> Iterable[_SchedulerRequest]:
        """Spread the jobs of a planned scheduler over the partitions with idle nodes; return one scheduler for each.

        Only jobs that can start at once are spread, because later idle nodes are unknown. The best partition gets the
        jobs for which no partition has idle nodes.
        """
        if request.is_settled or set(request.waves) != {0}:
            return [request]
        left, nodes, shares = request.waves[0], request.requested.num_nodes, dict[Partition, list[int]]()
        others = alternative_partitions(self._profile, self._wanted(request.requested))
        for partition in [request.partition, *(each for each in others if each != request.partition)]:
            size = self._usual_size(request.requested, partition)
            idle = [node for node in self._idle.get(partition.name, ()) if node not in self._planned_on]
            room = len(idle) // nodes * size.at_once * size.rounds
            shares[partition], left = left[:room], left[room:]
            self._planned_on.update(idle[: size.allocations(len(shares[partition])) * nodes])
        shares[request.partition] += left
        return [self._part(request, partition, jobs) for partition, jobs in shares.items() if jobs]

    @staticmethod
    def _part(request: _SchedulerRequest, partition: Partition, jobs: list[int]) -> _SchedulerRequest:
        kind = request.kind if partition == request.partition else f"{request.kind}_{partition.name}"
        return evolve(request, kind=kind, partition=partition, waves={0: jobs})

    def _resources_and_partition(self, position: int) -> tuple[Resources, Partition]:
        """Return the resources of requirements, and the partition for them."""
        if position not in self._requested:
            record = self._plan.resource_requirements[position]
            requested = requested_resources(record)
            assert requested.runtime_s is not None
            try:
                self._requested[position] = requested, self._partition(requested, self._preferred.get(position))
            except UserError as error:
                raise UserError(f"resource_requirements {record.name!r}: {error}") from None
        return self._requested[position]

    def _partition(self, requested: Resources, preferred: str | None) -> Partition:
        """Return the best partition whose longest walltime contains a job's run time and the runner's reserve."""
        wanted, runtime_s = self._wanted(requested), requested.runtime_s or 0
        if preferred is not None and self._options.partition is None:
            try:
                return best_partition(self._profile, wanted, partition=preferred)
            except UserError:
                pass  # the preferred partition does not fit any more
        try:
            return best_partition(self._profile, wanted, partition=self._options.partition)
        except UserError as error:
            reserve_s = int(wanted.runtime_s or 0) - int(runtime_s)
            raise UserError(
                f"{error}\nThe walltime holds a run time of {exact_duration_text(int(runtime_s))}, and "
                f"{exact_duration_text(reserve_s)} for the start and the end of the runner "
                "(compute_node_expiration_buffer_seconds)"
            ) from None

    def _wanted(self, requested: Resources) -> Resources:
        """Return what a partition must have: a job's resources, with the runner's reserve in the walltime."""
        return evolve(requested, runtime_s=self._reserve.least_walltime_s(requested.runtime_s or 0))

    def _add(self, request: _SchedulerRequest) -> None:
        size = self._size(request)
        if len(request.waves) >= MANY_STAGES and self._options.actions:
            self._result.warnings.append(
                f"Jobs of {request.name} run in {len(request.waves)} consecutive stages, and nodes are requested for "
                "each. Fewer and longer jobs would need fewer allocations."
            )
        schedulers: dict[int, int] = {}  # by number of nodes
        for level, jobs in sorted(request.waves.items()):
            nodes, allocations = self._shape(request, size.allocations(len(jobs)))
            if nodes not in schedulers:
                schedulers[nodes] = len(self._result.schedulers)
                self._result.schedulers.append(self._record(request, size, nodes))
            scheduler = schedulers[nodes]
            for job in jobs:
                self._result.bound[job] = scheduler
            if self._options.actions:
                config: dict[str, Any] = {"scheduler_type": self._options.executor, "num_allocations": allocations}
                if nodes > request.requested.num_nodes:
                    config["start_one_worker_per_node"] = True
                trigger = "on_jobs_ready" if level else "on_workflow_start"
                watched = jobs if level else None
                self._result.actions.append(PlannedAction(trigger, "schedule_nodes", config, watched, scheduler))

    def _usual_size(self, requested: Resources, partition: Partition) -> _RequestSize:
        """Return the size of allocations by the walltime strategy."""
        runtime_s, longest = requested.runtime_s or 1, partition.max_walltime_secs
        walltime_s = longest
        if self._options.walltime_strategy is WalltimeStrategy.MAX_JOB_RUNTIME:
            comfortable = whole_minutes(self._options.walltime_multiplier * runtime_s)
            walltime_s = min(longest, max(comfortable, self._reserve.least_walltime_s(runtime_s)))
        return self._size_with(walltime_s, _jobs_per_allocation(requested, partition), runtime_s)

    def _size(self, request: _SchedulerRequest) -> _RequestSize:
        requested, partition = request.requested, request.partition
        size = self._usual_size(requested, partition)
        runtime_s, at_once, longest = requested.runtime_s or 1, size.at_once, partition.max_walltime_secs
        most = request.largest_wave
        if size.allocations(most) <= MANY_ALLOCATIONS:
            return size
        rounds = math.ceil(most / (at_once * MANY_ALLOCATIONS))
        longer = self._size_with(min(longest, self._reserve.least_walltime_s(runtime_s, rounds)), at_once, runtime_s)
        if longer.rounds <= size.rounds:
            return size
        self._result.warnings.append(
            f"{most} jobs of {request.name} would take {size.allocations(most)} allocations of "
            f"{exact_duration_text(size.walltime_s)}; {longer.allocations(most)} of "
            f"{exact_duration_text(longer.walltime_s)} are planned."
        )
        return longer

    def _size_with(self, walltime_s: int, at_once: int, runtime_s: float) -> _RequestSize:
        return _RequestSize(walltime_s, at_once, self._reserve.rounds(walltime_s, runtime_s))

    def _shape(self, request: _SchedulerRequest, allocations: int) -> tuple[int, int]:
        """Return the nodes per allocation and the allocations; warn if these are fewer than the jobs need."""
        nodes = request.requested.num_nodes
        if self._options.single_allocation and nodes == 1:
            most = request.partition.max_nodes or allocations
            nodes = min(allocations, most)
            allocations = math.ceil(allocations / nodes)
        if allocations > MAX_ALLOCATIONS:
            self._result.warnings.append(
                f"{request.name} takes {allocations} allocations; {MAX_ALLOCATIONS} are planned. Request more "
                "when these are used up, or let 'torc watch --auto-schedule' do it."
            )
            allocations = MAX_ALLOCATIONS
        return nodes, allocations

    def _record(self, request: _SchedulerRequest, size: _RequestSize, nodes: int) -> SlurmSchedulerRecord:
        """Return the scheduler's record.

        On shared nodes it requests what evenly spread jobs use, otherwise all CPUs and memory. The GPUs are always
        those that the jobs use.
        """
        requested, partition = request.requested, request.partition
        at_once = max(size.used_at_once(len(jobs)) for jobs in request.waves.values())
        memory, cpus = partition.memory_mb * _MIB, partition.cpus_per_node
        if partition.shared:
            memory = min(memory, at_once * requested.memory_bytes + RUNNER_MEMORY_BYTES)
            cpus = at_once * requested.num_cpus
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
            gres=f"gpu:{at_once * requested.num_gpus}" if requested.num_gpus else None,
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
    """Return the larger amount of each resource."""
    return Resources(
        max(one.num_cpus, other.num_cpus),
        max(one.memory_bytes, other.memory_bytes),
        max(one.num_gpus, other.num_gpus),
        max(one.num_nodes, other.num_nodes),
        max(one.runtime_s or 0, other.runtime_s or 0),
    )


def _jobs_per_allocation(requested: Resources, partition: Partition) -> int:
    """Return how many such jobs an allocation runs at the same time: one if a job needs several nodes."""
    if requested.num_nodes > 1:
        return 1
    amounts = (
        (partition.cpus_per_node, requested.num_cpus),
        (partition.memory_mb * _MIB, requested.memory_bytes),
        (partition.gpus_per_node, requested.num_gpus),
    )
    return max(1, min(has // each for has, each in amounts if each))
