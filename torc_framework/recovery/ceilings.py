"""The most that jobs may ask for: what runners offered, or what the partition of a job's scheduler gives."""

from collections.abc import Iterable, Mapping
from typing import Final

from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord, JobRecord, SlurmSchedulerRecord
from torc_framework.models.recovery import Ceiling
from torc_framework.models.resources import parse_duration
from torc_framework.models.sites import HpcProfile, Partition

_GIB: Final = 1024**3
_MIB: Final = 1024**2


class Ceilings:
    """Knows what each job of a workflow may ask for.

    A job that is bound to a scheduler may ask for what the scheduler's partition has; of several profiles with a
    partition of that name the largest counts. Any other may ask for what the largest runner of the workflow
    offered so far.
    """

    def __init__(
        self,
        nodes: Iterable[ComputeNodeRecord],
        schedulers: Iterable[SlurmSchedulerRecord],
        profiles: Mapping[str, HpcProfile],
    ) -> None:
        self._runner = _of_runners(list(nodes))
        self._schedulers = {each.id: each for each in schedulers}
        self._partitions: dict[str, list[tuple[str, Partition]]] = {}
        for name, profile in profiles.items():
            for partition in profile.partitions:
                self._partitions.setdefault(partition.name, []).append((name, partition))

    @classmethod
    def of_workflow(cls, client: TorcClient, workflow_id: int, profiles: Mapping[str, HpcProfile]) -> "Ceilings":
        """Return those of a workflow's jobs."""
        return cls(
            client.find(ComputeNodeRecord, workflow_id=workflow_id),
            client.find(SlurmSchedulerRecord, workflow_id=workflow_id),
            profiles,
        )

    def of(self, job: JobRecord) -> Ceiling:
        """Return the most that a job may ask for."""
        scheduler = self._schedulers.get(job.scheduler_id)
        if scheduler is None:
            return self._runner
        offered = self._partitions.get(scheduler.partition or "", [])
        if not offered:
            return Ceiling(origin=f"scheduler {scheduler.name or scheduler.id}")
        return Ceiling(
            max(partition.memory_mb for _, partition in offered) * _MIB,
            max(partition.max_walltime_secs for _, partition in offered),
            f"partition {scheduler.partition} of {' or '.join(name for name, _ in offered)}",
            max(partition.cpus_per_node for _, partition in offered),
        )


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
