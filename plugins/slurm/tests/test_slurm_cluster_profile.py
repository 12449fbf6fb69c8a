"""Profiles of clusters from recorded and modified output of ``scontrol`` of Slurm 22.05.8."""

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_slurm.cluster.cluster_profile import UNLIMITED_S, cluster_profile_of, is_shared, parse_gpus, walltime_s
from torc_slurm.cluster.scontrol import parse_number, parse_records
from torc_slurm.executor import SlurmExecutor

from torc_framework.api import Allocator, HpcProfile, Partition

CONFIG = """Configuration data as of 2026-11-21T15:20:24
AccountingStorageHost   = 127.0.0.1
ClusterName             = devcluster
MaxMemPerNode           = UNLIMITED
PreemptMode             = REQUEUE
PreemptType             = preempt/partition_prio
"""
PARTITION = (
    "PartitionName=debug AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=00:05:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED "
    "MaxTime=00:10:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-2] PriorityJobFactor=1 PriorityTier=5 "
    "RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP TotalCPUs=8 TotalNodes=2 "
    "SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED "
    "TRES=cpu=8,mem=8000M,node=2,billing=8"
)
NODE = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=2.92 AvailableFeatures=cpu "
    "ActiveFeatures=cpu Gres=(null) NodeAddr=127.0.0.1 NodeHostName=n1 Port=16821 Version=22.05.8 "
    "OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=4000 AllocMem=0 FreeMem=22293 Sockets=4 Boards=1 "
    "State=DOWN* ThreadsPerCore=1 TmpDisk=1000 Weight=1 Owner=N/A MCS_label=N/A Partitions=debug  "
    "BootTime=2026-11-21T11:39:15 CfgTRES=cpu=4,mem=4000M,billing=4 AllocTRES= CapWatts=n/a "
    "Reason=says RealMemory=1 and Partitions=none [root@2026-11-21T15:00:00]"
)


def changed(line: str, **facts: object) -> str:
    """Return a line of ``scontrol`` with other values."""
    for key, value in facts.items():
        line, count = re.subn(rf"(?<=\b{key}=)\S*", str(value), line, count=1)
        if not count:
            line += f" {key}={value}"
    return line


def profile_of(*partitions: str, nodes: tuple[str, ...] = (NODE,), config: str = CONFIG) -> HpcProfile:
    return cluster_profile_of(config, "\n".join(partitions) + "\n", "\n".join(nodes) + "\n")


def one(nodes: tuple[str, ...] = (NODE,), config: str = CONFIG, **facts: object) -> Partition:
    """Return the partition of a cluster with one."""
    (partition,) = profile_of(changed(PARTITION, **facts), nodes=nodes, config=config).partitions
    return partition


def test_a_cluster_with_one_partition() -> None:
    profile = profile_of(PARTITION)
    assert profile == HpcProfile(
        "devcluster",
        partitions=(Partition("debug", 4, 4000, 600, "default partition", max_nodes=1),),
    )


def test_of_different_nodes_the_smallest_amounts_count() -> None:
    """A match must fit every node of the partition."""
    nodes = (
        changed(NODE, NodeName="n1", CPUEfctv=64, RealMemory=256000, Gres="gpu:a100:4"),
        changed(NODE, NodeName="n2", CPUEfctv=128, RealMemory=128000, Gres="gpu:h100:2(S:0-1)"),
    )
    found = one(nodes)
    assert (found.cpus_per_node, found.memory_mb, found.max_nodes) == (64, 128000, 2)
    assert (found.gpus_per_node, found.gpu_type) == (2, "a100/h100")
    mixed = one((*nodes, changed(NODE, NodeName="n3")))
    assert (mixed.gpus_per_node, mixed.gpu_type) == (0, None)


def test_resources_of_the_system_are_not_for_jobs() -> None:
    """Reserved CPUs and memory are subtracted; Slurm before 22.05 does not print the reserved CPUs."""
    assert one((changed(NODE, CPUEfctv=2, MemSpecLimit=1000),)).cpus_per_node == 2
    assert one((changed(NODE, CPUEfctv=2, MemSpecLimit=1000),)).memory_mb == 3000
    assert one((NODE.replace("CPUEfctv=4 ", ""),)).cpus_per_node == 4


def test_limits_of_the_partition_count() -> None:
    found = one(MaxCPUsPerNode=3, MaxMemPerNode=2000, MinNodes=2, MaxNodes=7, MaxTime="UNLIMITED")
    assert (found.cpus_per_node, found.memory_mb, found.min_nodes) == (3, 2000, 2)
    assert (found.max_nodes, found.max_walltime_secs) == (1, UNLIMITED_S)
    limited = CONFIG.replace("MaxMemPerNode           = UNLIMITED", "MaxMemPerNode           = 1500")
    assert one(config=limited).memory_mb == 1500
    assert one(config=limited, MaxMemPerNode=2000).memory_mb == 2000


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        ({"State": "DRAIN"}, "state DRAIN when it was looked at"),
        ({"ReqResv": "YES"}, "needs a reservation"),
    ],
)
def test_partitions_with_conditions_have_to_be_named(facts: dict[str, Any], note: str) -> None:
    found = one(Default="NO", **facts)
    assert (found.requires_explicit_request, found.description) == (True, note)


def test_a_limit_of_no_nodes_is_one_that_the_configuration_can_hold() -> None:
    assert one(MaxNodes=0).max_nodes == 1


def test_some_accounts_only_is_a_note() -> None:
    found = one(Default="NO", AllowAccounts="a,b")
    assert (found.requires_explicit_request, found.description) == (False, "for some accounts only")


def test_unusable_partitions_are_left_out() -> None:
    """Partitions for the administrator alone, and partitions without nodes."""
    assert (
        profile_of(PARTITION, changed(PARTITION, PartitionName="empty")).partitions == profile_of(PARTITION).partitions
    )
    assert profile_of(changed(PARTITION, RootOnly="YES")).partitions == ()


def test_partitions_with_preemption_have_to_be_named() -> None:
    """Those below and above the ordinary partitions of the same nodes."""
    lines = [
        changed(PARTITION, PartitionName=name, PriorityTier=tier, PreemptMode=mode, Default="NO")
        for name, tier, mode in (("low", 0, "REQUEUE"), ("a", 5, "OFF"), ("b", 5, "OFF"), ("high", 10, "OFF"))
    ]
    lines.append(changed(PARTITION, PartitionName="elsewhere", PriorityTier=99, Default="NO"))
    nodes = (changed(NODE, Partitions="low,a,b,high"), changed(NODE, NodeName="n9", Partitions="elsewhere"))
    named = {each.name: each.description for each in profile_of(*lines, nodes=nodes).partitions}
    assert named == {
        "low": "its jobs may be preempted",
        "a": "",
        "b": "",
        "high": "its jobs go before those of others",
        "elsewhere": "",
    }
    calm = CONFIG.replace("preempt/partition_prio", "preempt/none")
    assert not any(each.requires_explicit_request for each in profile_of(*lines, nodes=nodes, config=calm).partitions)


def test_a_reason_of_a_node_may_contain_pairs() -> None:
    """The first value of a key counts."""
    (facts,) = parse_records(NODE)
    assert (facts["RealMemory"], facts["Partitions"], facts["State"]) == ("4000", "debug", "DOWN*")


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("(null)", (0, [])),
        ("", (0, [])),
        ("N/A", (0, [])),
        ("gpu:2", (2, [])),
        ("gpu", (1, [])),
        ("gpu:a100", (1, ["a100"])),
        ("gpu:a100:2", (2, ["a100"])),
        ("gpu:a100:2(S:0-1)", (2, ["a100"])),
        ("gpu:a100:2(S:0,1),nvme:1", (2, ["a100"])),
        ("gpu:tesla:2,gpu:kepler:3", (5, ["tesla", "kepler"])),
        ("gpu:a100:no_consume:2", (2, ["a100"])),
        ("gpu:a100_1g.5gb:7(S:0)", (7, ["a100_1g.5gb"])),
        ("shard:8,mps:100,license:gpu:1", (0, [])),
    ],
)
def test_gpus(gres: str, expected: tuple[int, list[str]]) -> None:
    assert parse_gpus(gres) == expected


WORDS = st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True).filter(lambda word: word not in {"gpu", "no_consume"})
PLACES = st.sampled_from(["", "(S:0)", "(S:0-1)", "(S:0,1)", "(IDX:0-3)"])


@given(
    st.lists(st.tuples(st.none() | WORDS, st.integers(0, 99), PLACES), max_size=3),
    st.lists(st.tuples(WORDS, st.integers(0, 99), PLACES), max_size=3),
)
def test_gpus_are_counted_among_other_resources(
    cards: list[tuple[str | None, int, str]], rest: list[tuple[str, int, str]]
) -> None:
    texts = ["gpu:" + (f"{kind}:" if kind else "") + f"{count}{place}" for kind, count, place in cards]
    texts += [f"{name}:{count}{place}" for name, count, place in rest]
    assert parse_gpus(",".join(texts)) == (sum(count for _, count, _ in cards), [kind for kind, _, _ in cards if kind])


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_walltimes(days: int, hours: int, minutes: int, seconds: int) -> None:
    """As Slurm writes them: days only if there are any."""
    text = f"{days}-{hours:02}:{minutes:02}:{seconds:02}" if days else f"{hours:02}:{minutes:02}:{seconds:02}"
    assert walltime_s(text) == max(1, ((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def test_words_for_no_limit_and_no_number() -> None:
    assert walltime_s("UNLIMITED") == walltime_s("infinite") == UNLIMITED_S
    assert walltime_s("10:00") == 600
    assert [parse_number(text) for text in ("UNLIMITED", "N/A", "(null)", "", None, "7")] == [None] * 5 + [7]


@pytest.mark.parametrize("select_type", ["select/cons_tres", "select/cons_res", "select/linear", ""])
@pytest.mark.parametrize("over_subscribe", ["NO", "EXCLUSIVE", "YES:4", "FORCE:2", "FORCE"])
def test_nodes_are_shared_where_slurm_allocates_cpus(over_subscribe: str, select_type: str) -> None:
    """Except in partitions that allocate whole nodes."""
    gives_cpus = select_type.startswith("select/cons_")
    expected = {"NO": gives_cpus, "EXCLUSIVE": False}.get(over_subscribe, True)
    assert is_shared(over_subscribe, select_type) is expected


@given(
    st.lists(
        st.tuples(st.from_regex(r"[A-Z][A-Za-z]{0,6}", fullmatch=True), st.text("abc0-9,=:()[]*+./", max_size=6)),
        min_size=1,
        max_size=5,
        unique_by=lambda pair: pair[0],
    )
)
def test_records_are_parsed_as_they_were_written(pairs: list[tuple[str, str]]) -> None:
    assert parse_records(" ".join(f"{key}={value}" for key, value in pairs)) == [dict(pairs)]


@given(st.data())
def test_missing_or_odd_values_are_errors_or_have_defaults(data: st.DataObject) -> None:
    """Other versions of Slurm may print other values; every partition of a profile can be requested."""

    def mangled(line: str) -> str:
        words = line.split(" ")
        for index in data.draw(st.sets(st.integers(0, len(words) - 1), max_size=4)):
            key = words[index].partition("=")[0]
            words[index] = data.draw(st.sampled_from(["", key, f"{key}=", f"{key}=(null)", f"{key}=x", f"{key}=0"]))
        return " ".join(words)

    with contextlib.suppress(KeyError, ValueError):
        for found in profile_of(mangled(PARTITION), nodes=(mangled(NODE),)).partitions:
            assert min(found.cpus_per_node, found.memory_mb, found.max_walltime_secs, found.min_nodes) >= 1
            assert found.max_nodes == 1


def test_the_executor_describes_its_cluster() -> None:
    """Its method overrides that of the contract."""
    assert SlurmExecutor.cluster_profile is not Allocator.cluster_profile
