"""The most that jobs may request: what runners offered, or what the partition of a job's scheduler offers."""

from collections.abc import Iterable, Mapping
from typing import Final

from torc_framework.client import TorcClient
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.records import ComputeNodeRecord, JobRecord, SlurmSchedulerRecord, WorkflowRecord
from torc_framework.models.recovery import Ceiling
from torc_framework.models.resources import parse_duration
from torc_framework.models.walltime_reserve import WalltimeReserve

_GIB: Final = 1024**3
_MIB: Final = 1024**2


class ResourceCeilings:
    """The most that each job of a workflow may request.

    A job that is bound to a scheduler may request what any partition offers that could take it: the partitions of the
    clusters that have one with the scheduler's name, except those that must be named explicitly, and with GPUs only if
    the scheduler's partition has some. Any other job may request what the largest runner of the workflow offered.

    Args:
        reserve: Part of a walltime that runners keep for a clean end; None is nothing.
    """

    def __init__(
        self,
        nodes: Iterable[ComputeNodeRecord],
        schedulers: Iterable[SlurmSchedulerRecord],
        profiles: Mapping[str, HpcProfile],
        reserve: WalltimeReserve | None = None,
    ) -> None:
        self._runner = _of_runners(list(nodes))
        self._schedulers = {each.id: each for each in schedulers}
        self._profiles, self._reserve = profiles, reserve

    @classmethod
    def of_workflow(
        cls, client: TorcClient, workflow_id: int, profiles: Mapping[str, HpcProfile]
    ) -> "ResourceCeilings":
        """Return the ceilings of a workflow's jobs."""
        return cls(
            client.find(ComputeNodeRecord, workflow_id=workflow_id),
            client.find(SlurmSchedulerRecord, workflow_id=workflow_id),
            profiles,
            WalltimeReserve.of(client.get(WorkflowRecord, workflow_id)),
        )

    def of(self, job: JobRecord) -> Ceiling:
        """Return the most that a job may request."""
        scheduler = self._schedulers.get(job.scheduler_id)
        if scheduler is None:
            return self._runner
        several = self._partitions(scheduler.partition)
        if not several:
            return Ceiling(origin=f"scheduler {scheduler.name or scheduler.id}")
        one = f"partition {several[0][1].name}" if len(several) == 1 else "the largest partition"
        longest = max(partition.max_walltime_secs for _, partition in several)
        return Ceiling(
            max(partition.memory_mb for _, partition in several) * _MIB,
            self._reserve.most_runtime_s(longest) if self._reserve else longest,
            f"{one} of {' or '.join(dict.fromkeys(name for name, _ in several))}",
            max(partition.cpus_per_node for _, partition in several),
        )

    def _partitions(self, name: str | None) -> list[tuple[str, Partition]]:
        """Return the partitions that could take a job of the named one, each with the name of its cluster."""
        found = []
        for cluster, profile in self._profiles.items():
            own = next((each for each in profile.partitions if each.name == name), None)
            if own is None:
                continue
            found += [
                (cluster, each)
                for each in profile.partitions
                if each is own
                or (not each.requires_explicit_request and bool(each.gpus_per_node) == bool(own.gpus_per_node))
            ]
        return found


def _of_runners(nodes: list[ComputeNodeRecord]) -> Ceiling:
    if not nodes:
        return Ceiling()
    limits = [None if node.time_limit is None else parse_duration(node.time_limit) for node in nodes]
    known = [limit for limit in limits if limit is not None]
    hosts = sorted({node.hostname for node in nodes})
    return Ceiling(
        int(max(node.memory_gb for node in nodes) * _GIB),
        max(known) if len(known) == len(limits) else None,
        f"the runner on {hosts[0]}" if len(hosts) == 1 else "the largest runner",
        max(node.num_cpus for node in nodes),
    )
