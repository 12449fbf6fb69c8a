"""The HPC profile of a Slurm cluster, made from the output of ``scontrol``; Slurm accepts what matches it.

Where the nodes of a partition differ, the smallest amount of each resource counts. Some partitions are only used when
a person names them: those that are not up, that need a reservation, whose jobs may be preempted, or whose jobs have
precedence over the jobs of others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import evolve

from torc_framework.api import AllocationError, HpcProfile, Partition, parse_time_limit, user_name
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.cluster.scontrol import ScontrolRecord, parse_number, parse_records

UNLIMITED_S: Final = 365 * 86_400
"""Longest walltime in the profile of a partition without a limit, as a profile requires a number: one year."""

_SETTING: Final = re.compile(r"^(\w+)\s*=\s*(.*?)\s*$", re.MULTILINE)


def query_cluster_profile(slurm: SlurmCommands | None = None) -> HpcProfile:
    """Return the profile of the cluster that this machine belongs to, with four calls of Slurm's programs.

    Its default account is this user's default account in accounting, if there is one.

    Raises:
        AllocationError: Slurm is not installed here or does not answer, or its output cannot be read.
    """
    slurm = slurm or SlurmCommands("cli")
    config = slurm.run("scontrol", "show", "config")
    partitions = slurm.run("scontrol", "-o", "show", "partition")
    nodes = slurm.run("scontrol", "-o", "show", "node")
    try:
        return evolve(cluster_profile_of(config, partitions, nodes), default_account=_default_account(slurm))
    except (KeyError, ValueError) as error:
        raise AllocationError(f"the output of scontrol on this cluster cannot be read: {error}") from error


def _default_account(slurm: SlurmCommands) -> str | None:
    """Return the account that Slurm charges if this user names none; None if accounting does not know one."""
    try:
        printed = slurm.run("sacctmgr", "-nP", "show", "user", user_name(), "format=DefaultAccount")
    except AllocationError:
        return None
    return next((line.strip() for line in printed.splitlines() if line.strip()), None)


def cluster_profile_of(config: str, partitions: str, nodes: str) -> HpcProfile:
    """Return the profile that the output of ``scontrol`` describes.

    Args:
        config: Output of ``scontrol show config``.
        partitions: Output of ``scontrol -o show partition``.
        nodes: Output of ``scontrol -o show node``.

    Raises:
        ValueError: a number or a time cannot be read.
        KeyError: a partition or node lacks a key that all have.
    """
    settings = dict(_SETTING.findall(config))
    by_partition: dict[str, list[ScontrolRecord]] = {}
    for node in parse_records(nodes):
        for name in node.get("Partitions", "").split(","):
            by_partition.setdefault(name, []).append(node)
    usable = [
        facts
        for facts in parse_records(partitions)
        if facts.get("RootOnly") != "YES" and facts["PartitionName"] in by_partition
    ]
    members = {
        facts["PartitionName"]: {node["NodeName"] for node in by_partition[facts["PartitionName"]]} for facts in usable
    }
    preempts = settings.get("PreemptType") == "preempt/partition_prio"
    found = tuple(
        _partition(
            facts,
            by_partition[facts["PartitionName"]],
            settings,
            _precedence(facts, _neighbours(facts, usable, members)) if preempts else None,
        )
        for facts in usable
    )
    name = settings.get("ClusterName", "(null)")
    return HpcProfile("slurm" if name == "(null)" else name, partitions=found)


# --- one partition --------------------------------------------------------------------------------


def _partition(
    facts: ScontrolRecord, nodes: Sequence[ScontrolRecord], settings: ScontrolRecord, precedence: str | None
) -> Partition:
    """Return a partition with the smallest amounts of its nodes, within the partition's own limits."""
    cpus = _least(*(_cpus(node) for node in nodes), parse_number(facts.get("MaxCPUsPerNode")))
    memory = _least(*(_memory_mib(node) for node in nodes), _memory_limit(facts, settings))
    counts = [parse_gpus(node.get("Gres", "")) for node in nodes]
    gpu_count = min(count for count, _ in counts)
    kinds = sorted({kind for _, found in counts for kind in found}) if gpu_count else []
    conditions = [condition for condition in (*_conditions(facts), precedence) if condition]
    notes = [note for note in (_default_note(facts), _accounts_note(facts)) if note]
    return Partition(
        name=facts["PartitionName"],
        cpus_per_node=max(1, cpus),
        memory_mb=max(1, memory),
        max_walltime_secs=walltime_s(facts["MaxTime"]),
        description=", ".join([*notes, *conditions]),
        gpus_per_node=gpu_count,
        gpu_type="/".join(kinds) or None,
        shared=is_shared(facts.get("OverSubscribe", "NO"), settings.get("SelectType", "")),
        requires_explicit_request=bool(conditions),
        min_nodes=max(1, parse_number(facts.get("MinNodes")) or 1),
        max_nodes=max(1, _least(len(nodes), parse_number(facts.get("MaxNodes")))),
    )


def _least(*amounts: int | None) -> int:
    return min(amount for amount in amounts if amount is not None)


def _cpus(node: ScontrolRecord) -> int:
    """Return the CPUs that jobs may have: ``CPUEfctv``, which Slurm 22.05 introduced, else all CPUs."""
    return int(node.get("CPUEfctv") or node["CPUTot"])


def _memory_mib(node: ScontrolRecord) -> int:
    """Return the memory that jobs may have, MiB."""
    return int(node["RealMemory"]) - (parse_number(node.get("MemSpecLimit")) or 0)


def _memory_limit(facts: ScontrolRecord, settings: ScontrolRecord) -> int | None:
    """Return the largest memory per node that a job may request, MiB: the partition's limit, else the cluster's."""
    if (own := parse_number(facts.get("MaxMemPerNode"))) is not None:
        return own
    return None if "MaxMemPerCPU" in facts else parse_number(settings.get("MaxMemPerNode"))


def _default_note(facts: ScontrolRecord) -> str | None:
    return "default partition" if facts.get("Default") == "YES" else None


def _accounts_note(facts: ScontrolRecord) -> str | None:
    return "for some accounts only" if facts.get("AllowAccounts", "ALL") != "ALL" else None


def _conditions(facts: ScontrolRecord) -> Iterable[str]:
    """Yield the conditions under which a partition runs jobs, for those that do not run all jobs at any time."""
    if (state := facts.get("State", "UP")) != "UP":
        yield f"state {state} when it was looked at"
    if facts.get("ReqResv") == "YES":
        yield "needs a reservation"


# --- precedence between partitions ---------------------------------------------------------------


def _neighbours(
    facts: ScontrolRecord, others: Iterable[ScontrolRecord], members: Mapping[str, set[str]]
) -> list[ScontrolRecord]:
    """Return the other partitions that have nodes in common with this one."""
    name = facts["PartitionName"]
    return [
        other for other in others if other["PartitionName"] != name and members[name] & members[other["PartitionName"]]
    ]


def _precedence(facts: ScontrolRecord, neighbours: Sequence[ScontrolRecord]) -> str | None:
    """Return a note if jobs of this partition may be preempted, or precede ordinary jobs of others; else None."""
    tier = _tier(facts)
    if _is_preemptible(facts) and any(_tier(other) > tier for other in neighbours):
        return "its jobs may be preempted"
    below = [other for other in neighbours if _tier(other) < tier]
    if any(map(_is_preemptible, below)) and not all(map(_is_preemptible, below)):
        return "its jobs go before those of others"
    return None


def _tier(facts: ScontrolRecord) -> int:
    return parse_number(facts.get("PriorityTier")) or 0


def _is_preemptible(facts: ScontrolRecord) -> bool:
    return facts.get("PreemptMode", "OFF") != "OFF"


# --- values of records ----------------------------------------------------------------------------


def walltime_s(text: str) -> int:
    """Return the seconds of a partition's ``MaxTime``.

    Raises:
        ValueError: the text is not a time limit.
    """
    limit = parse_time_limit(text)
    return UNLIMITED_S if limit is None else max(1, limit)


def parse_gpus(gres: str) -> tuple[int, list[str]]:
    """Return the number and the types of the GPUs among a node's generic resources.

    Examples: ``gpu:2``, ``gpu:a100:2``, ``gpu:a100:2(S:0-1),nvme:1``; ``(null)`` is none.
    """
    count, types = 0, []
    for resource in re.sub(r"\([^()]*\)", "", gres).split(","):
        name, *rest = resource.split(":")
        if name != "gpu":
            continue
        words = [word for word in rest if word and word != "no_consume"]
        count += int(words.pop()) if words and words[-1].isdecimal() else 1
        types += words[:1]
    return count, types


def is_shared(over_subscribe: str, select_type: str) -> bool:
    """Return whether a node may run several jobs at the same time.

    Where Slurm allocates CPUs (``select/cons_tres``, ``select/cons_res``) it may, unless the partition is
    ``EXCLUSIVE``. Where Slurm allocates whole nodes it may only if the partition lets jobs share CPUs: ``YES:4``,
    ``FORCE:2``.
    """
    word = over_subscribe.partition(":")[0]
    return word in {"YES", "FORCE"} or (word == "NO" and select_type.startswith("select/cons_"))
