"""From the jobs of a plan and a cluster's partitions to requests for nodes, and to the moments at which they are made.

Jobs that ask for the same share a request: its partition, its walltime, what a node must have. How long and how often
it is made follows from how many of the jobs a node takes at once, and from how many of them follow one another before
the walltime is over. A runner keeps some of the walltime for a clean start and end; jobs are counted by what is left.

Where it is known which nodes are idle, jobs that can start at once and would not all find one in their best partition
are spread over the others that fit, as far as there are idle nodes.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import Factory, define, evolve, field, frozen

from torc_framework.errors import UserError
from torc_framework.graph import SchedulerGroup, scheduler_groups
from torc_framework.hpc.partition_matching import alternative_partitions, best_partition
from torc_framework.hpc.walltimes import clock_text, walltime_text
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.plan import Plan, PlannedAction, SchedulerPlan
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.models.resource_fit import requested_resources
from torc_framework.models.resources import Resources, format_memory
from torc_framework.models.walltime_reserve import WalltimeReserve, whole_minutes

RUNNER_MEMORY_BYTES: Final = 256 * 1024**2
"""Memory that is asked for beside that of the jobs, for the runner itself, where nodes are shared."""
MANY_ALLOCATIONS: Final = 100
"""Where one request would be made more often than this, its walltime grows instead, as far as the partition allows."""
MAX_ALLOCATIONS: Final = 1000
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
        idle: Names of the nodes that are idle now, by partition; a node may be in several. Empty if that is not known.
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
    _check_requirements(plan, groups)
    return _SchedulerPlanner(plan, profile, options, preferred or {}).planned(groups)


def _check_requirements(plan: Plan, groups: Iterable[SchedulerGroup]) -> None:
    unsaid = [job for group in groups if group.requirements is None for wave in group.waves.values() for job in wave]
    if unsaid:
        names = ", ".join(plan.jobs[job].name for job in unsaid[:_SHOWN_JOBS])
        more = f" and {len(unsaid) - _SHOWN_JOBS} more" if len(unsaid) > _SHOWN_JOBS else ""
        raise UserError(
            f"jobs without resource_requirements: {names}{more}; a batch system must be told what they need: "
            "define it under resource_requirements and name it in each job"
        )


# --- requests -------------------------------------------------------------------------------------


@define
class _SchedulerRequest:
    """Jobs that share a request.

    Attributes:
        kind: What they have in common; no other request has it.
        asked: The largest of what they ask for.
        is_settled: No other partition is to have any of them.
        waves: The jobs by level; those above the first wait for others.
    """

    kind: str
    partition: Partition
    asked: Resources
    is_settled: bool = False
    waves: dict[int, list[int]] = Factory(dict)

    @property
    def name(self) -> str:
        """Name of its scheduler."""
        return f"{self.kind}_scheduler"

    @property
    def largest_wave(self) -> int:
        """Most jobs that nodes are asked for at a time."""
        return max(map(len, self.waves.values()))


@frozen
class _RequestSize:
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


class _SchedulerPlanner:
    """The planning of one workflow."""

    def __init__(self, plan: Plan, profile: HpcProfile, options: PlanOptions, preferred: Mapping[int, str]) -> None:
        self._plan, self._profile, self._options = plan, profile, options
        self._preferred = preferred
        self._idle = {name: sorted(nodes) for name, nodes in options.idle.items()}
        self._planned_on: set[str] = set()
        self._reserve = WalltimeReserve.of(plan.workflow)
        self._asked: dict[int, tuple[Resources, Partition]] = {}
        self._made = SchedulerPlan([], [None] * len(plan.jobs))
        self._names: set[str] = set()

    def planned(self, groups: Iterable[SchedulerGroup]) -> SchedulerPlan:
        for request in self._requests(groups):
            for part in self._spread(request):
                self._add(part)
        return self._made

    def _requests(self, groups: Iterable[SchedulerGroup]) -> Iterable[_SchedulerRequest]:
        """Return the requests: one for each group, or one for each partition and number of nodes."""
        found: dict[tuple[Any, ...], _SchedulerRequest] = {}
        options = self._options
        may_spread = not options.single_allocation and options.partition is None
        may_spread = may_spread and options.group_by is GroupBy.RESOURCE_REQUIREMENTS
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
            settled = not may_spread or group.requirements in self._preferred
            request = found.setdefault(key, _SchedulerRequest(name, partition, asked, settled))
            request.asked = _larger(request.asked, asked)
            for level, jobs in group.waves.items():
                request.waves[level] = sorted([*request.waves.get(level, ()), *jobs])
        return found.values()

    def _spread(self, request: _SchedulerRequest) -> Iterable[_SchedulerRequest]:
        """Return a request, or in its place several for parts of its jobs: where idle nodes are, and the rest.

        Only jobs that can start at once are spread: which nodes are idle later is not known. The best partition gets
        what finds no idle node anywhere.
        """
        if request.is_settled or set(request.waves) != {0}:
            return [request]
        left, nodes, shares = request.waves[0], request.asked.num_nodes, dict[Partition, list[int]]()
        others = alternative_partitions(self._profile, self._wanted(request.asked))
        for partition in [request.partition, *(each for each in others if each != request.partition)]:
            size = self._usual_size(request.asked, partition)
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

    def _placed(self, position: int) -> tuple[Resources, Partition]:
        """Return what requirements ask for, and the partition for them."""
        if position not in self._asked:
            record = self._plan.resource_requirements[position]
            asked = requested_resources(record)
            assert asked.runtime_s is not None
            try:
                self._asked[position] = asked, self._partition(asked, self._preferred.get(position))
            except UserError as error:
                raise UserError(f"resource_requirements {record.name!r}: {error}") from None
        return self._asked[position]

    def _partition(self, asked: Resources, preferred: str | None) -> Partition:
        """Return the best partition whose longest walltime leaves a job its whole run time."""
        wanted, runtime_s = self._wanted(asked), asked.runtime_s or 0
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

    def _wanted(self, asked: Resources) -> Resources:
        """Return what a partition must have for such jobs: a walltime that leaves one of them its whole run time."""
        return evolve(asked, runtime_s=self._reserve.least_walltime_s(asked.runtime_s or 0))

    def _add(self, request: _SchedulerRequest) -> None:
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

    def _usual_size(self, asked: Resources, partition: Partition) -> _RequestSize:
        """Return the size that the strategy gives to requests of such jobs."""
        runtime_s, longest = asked.runtime_s or 1, partition.max_walltime_secs
        walltime_s = longest
        if self._options.walltime_strategy is WalltimeStrategy.MAX_JOB_RUNTIME:
            comfortable = whole_minutes(self._options.walltime_multiplier * runtime_s)
            walltime_s = min(longest, max(comfortable, self._reserve.least_walltime_s(runtime_s)))
        return self._sized(walltime_s, _jobs_per_allocation(asked, partition), runtime_s)

    def _size(self, request: _SchedulerRequest) -> _RequestSize:
        asked, partition = request.asked, request.partition
        size = self._usual_size(asked, partition)
        runtime_s, at_once, longest = asked.runtime_s or 1, size.at_once, partition.max_walltime_secs
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

    def _sized(self, walltime_s: int, at_once: int, runtime_s: float) -> _RequestSize:
        return _RequestSize(walltime_s, at_once, self._reserve.rounds(walltime_s, runtime_s))

    def _shape(self, request: _SchedulerRequest, allocations: int) -> tuple[int, int]:
        """Return nodes per allocation, and allocations; warn if there are fewer than the jobs take."""
        nodes = request.asked.num_nodes
        if self._options.single_allocation and nodes == 1:
            most = request.partition.max_nodes or allocations
            nodes = min(allocations, most)
            allocations = math.ceil(allocations / nodes)
        if allocations > MAX_ALLOCATIONS:
            self._made.warnings.append(
                f"{request.name} takes {allocations} allocations; {MAX_ALLOCATIONS} are planned. Ask for more "
                "when these are used up, or let 'torc watch --auto-schedule' do it."
            )
            allocations = MAX_ALLOCATIONS
        return nodes, allocations

    def _record(self, request: _SchedulerRequest, size: _RequestSize, nodes: int) -> SlurmSchedulerRecord:
        """Return the request: of a shared node what its jobs use when they are spread evenly, else all but the GPUs."""
        asked, partition = request.asked, request.partition
        at_once = max(size.used_at_once(len(jobs)) for jobs in request.waves.values())
        memory, cpus = partition.memory_mb * _MIB, partition.cpus_per_node
        if partition.shared:
            memory = min(memory, at_once * asked.memory_bytes + RUNNER_MEMORY_BYTES)
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


def _jobs_per_allocation(asked: Resources, partition: Partition) -> int:
    """Return how many such jobs run on an allocation at the same time; one that needs several nodes has them alone."""
    if asked.num_nodes > 1:
        return 1
    amounts = (
        (partition.cpus_per_node, asked.num_cpus),
        (partition.memory_mb * _MIB, asked.memory_bytes),
        (partition.gpus_per_node, asked.num_gpus),
    )
    return max(1, min(has // each for has, each in amounts if each))
