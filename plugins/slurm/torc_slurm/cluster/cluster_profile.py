"""What a Slurm cluster is like, from ``scontrol``: a profile whose matches Slurm accepts.

Where the nodes of a partition differ, the smallest amount of each kind counts. A partition that one should not
get into by chance is marked so that it has to be named: one that is not up, that needs a reservation, whose jobs
others may preempt, or whose jobs preempt or overtake those of others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import evolve

from torc_framework.api import AllocationError, HpcProfile, Partition, parse_time_limit, user_name
from torc_slurm.calls.slurm_commands import SlurmCommands

UNLIMITED_S: Final = 365 * 86_400
"""Longest walltime of a partition without a limit: a profile has a number there, and a year is as good as none."""

_PAIR: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=(\S*)")
_SETTING: Final = re.compile(r"^(\w+)\s*=\s*(.*?)\s*$", re.MULTILINE)
_NO_NUMBERS: Final = frozenset({"UNLIMITED", "N/A", "(null)", ""})

ScontrolRecord = Mapping[str, str]


def query_cluster_profile(door: SlurmCommands | None = None) -> HpcProfile:
    """Return the profile of the cluster that this machine belongs to, in four questions.

    The account that is charged by default is this user's own, where accounting knows one.

    Raises:
        AllocationError: Slurm is not here, does not answer, or answers what nobody can read.
    """
    door = door or SlurmCommands("cli")
    config = door.ask("scontrol", "show", "config")
    partitions = door.ask("scontrol", "-o", "show", "partition")
    nodes = door.ask("scontrol", "-o", "show", "node")
    try:
        return evolve(cluster_profile_of(config, partitions, nodes), default_account=_default_account(door))
    except (KeyError, ValueError) as error:
        raise AllocationError(f"what scontrol says of this cluster cannot be read: {error}") from error


def _default_account(door: SlurmCommands) -> str | None:
    """Return the account that Slurm charges if this user names none; None where nobody keeps such accounts."""
    try:
        told = door.ask("sacctmgr", "-nP", "show", "user", user_name(), "format=DefaultAccount")
    except AllocationError:
        return None
    return next((line.strip() for line in told.splitlines() if line.strip()), None)


def cluster_profile_of(config: str, partitions: str, nodes: str) -> HpcProfile:
    """Return the profile that the answers of ``scontrol`` make.

    Raises:
        ValueError: a number or a time cannot be read.
        KeyError: what every partition or node has is missing.
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


def parse_records(text: str) -> list[ScontrolRecord]:
    """Return the facts on each line of ``scontrol -o``; of two with one name the first counts."""
    found: list[ScontrolRecord] = []
    for line in text.splitlines():
        facts: dict[str, str] = {}
        for key, value in _PAIR.findall(line):
            facts.setdefault(key, value)
        if facts:
            found.append(facts)
    return found


# --- one partition --------------------------------------------------------------------------------


def _partition(
    facts: ScontrolRecord, nodes: Sequence[ScontrolRecord], settings: ScontrolRecord, precedence: str | None
) -> Partition:
    """Return a partition with the least that any of its nodes has, within its own limits."""
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
    """Return the CPUs that jobs may have; before Slurm 22.05 all of them."""
    return int(node.get("CPUEfctv") or node["CPUTot"])


def _memory_mib(node: ScontrolRecord) -> int:
    """Return the memory that jobs may have."""
    return int(node["RealMemory"]) - (parse_number(node.get("MemSpecLimit")) or 0)


def _memory_limit(facts: ScontrolRecord, settings: ScontrolRecord) -> int | None:
    """Return the most memory of a node that a job may ask for: the partition's limit, else the cluster's."""
    if (own := parse_number(facts.get("MaxMemPerNode"))) is not None:
        return own
    return None if "MaxMemPerCPU" in facts else parse_number(settings.get("MaxMemPerNode"))


def _default_note(facts: ScontrolRecord) -> str | None:
    return "default partition" if facts.get("Default") == "YES" else None


def _accounts_note(facts: ScontrolRecord) -> str | None:
    return "for some accounts only" if facts.get("AllowAccounts", "ALL") != "ALL" else None


def _conditions(facts: ScontrolRecord) -> Iterable[str]:
    """Yield why a partition is not one for everybody's jobs at any time."""
    if (state := facts.get("State", "UP")) != "UP":
        yield f"state {state} when it was looked at"
    if facts.get("ReqResv") == "YES":
        yield "needs a reservation"


# --- who goes before whom -------------------------------------------------------------------------


def _neighbours(
    facts: ScontrolRecord, others: Iterable[ScontrolRecord], members: Mapping[str, set[str]]
) -> list[ScontrolRecord]:
    """Return the other partitions that have nodes in common with one."""
    name = facts["PartitionName"]
    return [
        other for other in others if other["PartitionName"] != name and members[name] & members[other["PartitionName"]]
    ]


def _precedence(facts: ScontrolRecord, neighbours: Sequence[ScontrolRecord]) -> str | None:
    """Say whether jobs of others go before those of a partition, or these before ordinary ones of others."""
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


# --- words and numbers ----------------------------------------------------------------------------


def parse_number(text: str | None) -> int | None:
    """Return a whole number; None where there is none or no limit.

    Raises:
        ValueError: it is something else.
    """
    return None if text is None or text in _NO_NUMBERS else int(text)


def walltime_s(text: str) -> int:
    """Return the seconds of a partition's ``MaxTime``.

    Raises:
        ValueError: it is no time.
    """
    limit = parse_time_limit(text)
    return UNLIMITED_S if limit is None else max(1, limit)


def parse_gpus(gres: str) -> tuple[int, list[str]]:
    """Return how many GPUs a node's generic resources are, and of which types.

    ``gpu:2``, ``gpu:a100:2``, ``gpu:a100:2(S:0-1),nvme:1``; ``(null)`` is none.
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
    """Say whether a node may run jobs of several users at the same time.

    Where CPUs are what is given out (``select/cons_tres``, ``select/cons_res``), it may unless the partition says
    ``EXCLUSIVE``; where nodes are, only if the partition lets jobs have the same CPUs: ``YES:4``, ``FORCE:2``.
    """
    word = over_subscribe.partition(":")[0]
    return word in {"YES", "FORCE"} or (word == "NO" and select_type.startswith("select/cons_"))
