"""Matching of partitions: which partition of a cluster fits the resources that a job requests.

A partition fits if its nodes have the CPUs, the memory and the GPUs, and if the walltime and the number of nodes lie
within its limits. A partition that requires an explicit request fits only when it is named.

The best of the fitting partitions is the first in this order:

1. without GPUs, if the job requests none, so that GPUs remain for other jobs;
2. not meant for debugging (``debug`` is part of its name);
3. nodes of the right size: less than twice the memory and the GPUs of the smallest that fit;
4. the shorter longest walltime, where queues are usually shorter;
5. nodes that are not shared with other jobs;
6. less memory, then fewer CPUs, then the order of the profile.
"""

from collections.abc import Sequence
from typing import Final

from torc_framework.errors import UnknownNameError, UserError
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.resources import Resources
from torc_framework.text.quantities import exact_duration_text, exact_size_text

_MIB: Final = 1024**2
_OVERSIZE_FACTOR: Final = 2
"""Nodes that are at least this many times larger than the smallest fitting ones are only used if no others fit."""


def best_partition(profile: HpcProfile, wanted: Resources, *, partition: str | None = None) -> Partition:
    """Return the partition that fits best, or the named one.

    Raises:
        UserError: none fits, or the named one does not; the message has the reason for each.
        UnknownNameError: there is no partition of that name.
    """
    if partition is not None:
        named = partition_named(profile, partition)
        if reason := mismatch_reason(named, wanted, named=True):
            raise UserError(f"partition {partition} of {profile.name} does not fit {resources_text(wanted)}: {reason}")
        return named
    if matching := matching_partitions(profile, wanted):
        return matching[0]
    raise UserError(_no_match_message(profile, wanted))


def partition_named(profile: HpcProfile, name: str) -> Partition:
    """Return the partition of that name.

    Raises:
        UnknownNameError: there is none.
    """
    for partition in profile.partitions:
        if partition.name == name:
            return partition
    kind = f"partition of {profile.name}"
    raise UnknownNameError(kind, name, [partition.name for partition in profile.partitions])


def matching_partitions(profile: HpcProfile, wanted: Resources) -> list[Partition]:
    """Return the fitting partitions that do not require an explicit request, the best first."""
    fitting = [partition for partition in profile.partitions if mismatch_reason(partition, wanted) is None]
    return sorted(fitting, key=lambda partition: _rank(partition, wanted, fitting))


def alternative_partitions(profile: HpcProfile, wanted: Resources) -> list[Partition]:
    """Return the partitions for jobs that find no idle node in the best one, the best first.

    They have no GPUs that the jobs do not use, and are not meant for debugging, unless the best partition is such a
    one. They may have larger nodes, because a job starts earlier on an idle node than in a short queue.
    """
    found = matching_partitions(profile, wanted)
    return [each for each in found if _tier(each, wanted) == _tier(found[0], wanted)]


def mismatch_reason(partition: Partition, wanted: Resources, *, named: bool = False) -> str | None:
    """Return why a partition does not fit; None if it fits.

    Args:
        partition: The partition.
        wanted: The requested resources. A request without a run time has no limit and fits no partition.
        named: The partition was requested by its name.
    """
    reasons = _lacking(partition, wanted)
    if partition.requires_explicit_request and not named:
        reasons.append("it is taken only when it is named")
    return ", ".join(reasons) or None


def _lacking(partition: Partition, wanted: Resources) -> list[str]:
    """Return the resources and limits of a partition that do not fit."""
    nodes = []
    if wanted.num_cpus > partition.cpus_per_node:
        nodes.append(_count_text(partition.cpus_per_node, "CPU"))
    if wanted.memory_bytes > partition.memory_mb * _MIB:
        nodes.append(f"{exact_size_text(partition.memory_mb * _MIB)} of memory")
    if wanted.num_gpus > partition.gpus_per_node:
        nodes.append(_count_text(partition.gpus_per_node, "GPU") if partition.gpus_per_node else "no GPUs")
    reasons = [f"its nodes have {', '.join(nodes)}"] if nodes else []
    if wanted.runtime_s is None or wanted.runtime_s > partition.max_walltime_secs:
        reasons.append(f"its longest walltime is {exact_duration_text(partition.max_walltime_secs)}")
    if wanted.num_nodes < partition.min_nodes:
        reasons.append(f"its jobs have at least {partition.min_nodes} nodes")
    if partition.max_nodes is not None and wanted.num_nodes > partition.max_nodes:
        reasons.append(f"its jobs have at most {partition.max_nodes} nodes")
    return reasons


def _rank(partition: Partition, wanted: Resources, fitting: Sequence[Partition]) -> tuple[int, ...]:
    """Return the sort key of a fitting partition; the module's docstring describes it."""
    tier = _tier(partition, wanted)
    equals = [other for other in fitting if _tier(other, wanted) == tier]
    is_too_large = any(
        amount >= _OVERSIZE_FACTOR * least > 0
        for amount, least in (
            (partition.memory_mb, min(other.memory_mb for other in equals)),
            (partition.gpus_per_node, min(other.gpus_per_node for other in equals)),
        )
    )
    return (
        *tier,
        is_too_large,
        partition.max_walltime_secs,
        partition.shared,
        partition.memory_mb,
        partition.cpus_per_node,
    )


def _tier(partition: Partition, wanted: Resources) -> tuple[bool, bool]:
    """Return whether GPUs would be unused and whether it is for debugging; sizes are compared within equal tiers."""
    return wanted.num_gpus == 0 and partition.gpus_per_node > 0, "debug" in partition.name.lower()


def _no_match_message(profile: HpcProfile, wanted: Resources) -> str:
    if not profile.partitions:
        return f"HPC profile {profile.name} has no partitions"
    lines = [f"  {partition.name}: {mismatch_reason(partition, wanted)}" for partition in profile.partitions]
    return "\n".join([f"no partition of {profile.name} fits {resources_text(wanted)}:", *lines])


def resources_text(wanted: Resources) -> str:
    """Return requested resources as text: ``4 CPUs, 8g, 2 GPUs, 2h``, with the number of nodes if there are several."""
    amounts = [_count_text(wanted.num_cpus, "CPU"), exact_size_text(wanted.memory_bytes)]
    if wanted.num_gpus:
        amounts.append(_count_text(wanted.num_gpus, "GPU"))
    amounts.append("no time limit" if wanted.runtime_s is None else exact_duration_text(int(wanted.runtime_s)))
    each = " on each of" if wanted.num_nodes > 1 else ""
    return ", ".join(amounts) + (f"{each} {wanted.num_nodes} nodes" if each else "")


def _count_text(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
