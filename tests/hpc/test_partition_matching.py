"""Matching of partitions: each rule, and properties that hold for every profile."""

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.errors import UnknownNameError, UserError
from torc_framework.hpc.partition_matching import best_partition, matching_partitions, mismatch_reason
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.resources import Resources

GIB = 1024**3
HOUR = 3_600


def partition(name: str, **facts: Any) -> Partition:
    values = {"cpus_per_node": 48, "memory_mb": 192_000, "max_walltime_secs": 48 * HOUR}
    return Partition(name, **(values | facts))


RESEARCH = HpcProfile(
    "research",
    partitions=(
        partition("batch", max_walltime_secs=72 * HOUR),
        partition("short", max_walltime_secs=4 * HOUR, shared=True),
        partition("gpu", cpus_per_node=32, memory_mb=256_000, gpus_per_node=4, gpu_type="A100"),
        partition("himem", memory_mb=1_048_576),
        partition("debug", max_walltime_secs=HOUR),
        partition("priority", requires_explicit_request=True),
        partition("large", cpus_per_node=64, min_nodes=16, max_nodes=64),
    ),
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Resources(8, 16 * GIB, runtime_s=2 * HOUR), ["short", "batch", "himem", "gpu"]),
        (Resources(8, 16 * GIB, runtime_s=HOUR / 2), ["short", "batch", "himem", "debug", "gpu"]),
        (Resources(16, 64 * GIB, num_gpus=2, runtime_s=8 * HOUR), ["gpu"]),
        (Resources(24, 512 * GIB, runtime_s=24 * HOUR), ["himem"]),
        (Resources(8, GIB, runtime_s=60 * HOUR), ["batch"]),
        (Resources(64, GIB, num_nodes=16, runtime_s=HOUR), ["large"]),
        (Resources(64, GIB, num_nodes=65, runtime_s=HOUR), []),
    ],
)
def test_what_matches_best_first(wanted: Resources, expected: list[str]) -> None:
    """Debug partitions come after others, those with GPUs last, large nodes after small ones."""
    assert [each.name for each in matching_partitions(RESEARCH, wanted)] == expected


def test_shared_nodes_come_after_others_of_the_same_walltime() -> None:
    profile = HpcProfile("p", partitions=(partition("shared", shared=True), partition("own")))
    assert best_partition(profile, Resources(runtime_s=60)).name == "own"


def test_equal_partitions_keep_the_order_of_the_profile() -> None:
    profile = HpcProfile("p", partitions=(partition("first"), partition("second")))
    assert [each.name for each in matching_partitions(profile, Resources(runtime_s=60))] == ["first", "second"]


def test_few_gpus_go_to_nodes_with_few() -> None:
    profile = HpcProfile("p", partitions=(partition("eight", gpus_per_node=8), partition("two", gpus_per_node=2)))
    assert best_partition(profile, Resources(num_gpus=1, runtime_s=60)).name == "two"


def test_small_nodes_for_debugging_make_no_other_node_too_large() -> None:
    """Sizes are compared within equal tiers."""
    parts = (partition("debug", memory_mb=1_000), partition("slow", max_walltime_secs=99 * HOUR), partition("fast"))
    assert best_partition(HpcProfile("p", partitions=parts), Resources(runtime_s=60)).name == "fast"


def test_a_partition_that_must_be_named_is_taken_when_it_is() -> None:
    wanted = Resources(48, runtime_s=10 * HOUR)
    assert best_partition(RESEARCH, wanted).name == "batch"
    assert best_partition(RESEARCH, wanted, partition="priority").name == "priority"


def test_a_named_partition_has_to_fit() -> None:
    with pytest.raises(UserError) as caught:
        best_partition(RESEARCH, Resources(64, 16 * GIB, runtime_s=5 * HOUR), partition="short")
    assert str(caught.value) == (
        "partition short of research does not fit 64 CPUs, 16 GiB, 5 h: its nodes have 48 CPUs, "
        "its longest walltime is 4 h"
    )


def test_an_unknown_partition_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="unknown partition of research 'hmem'; did you mean 'himem'"):
        best_partition(RESEARCH, Resources(runtime_s=60), partition="hmem")


def test_when_nothing_fits_each_partition_has_its_reasons() -> None:
    with pytest.raises(UserError) as caught:
        best_partition(RESEARCH, Resources(8, 300 * GIB, num_gpus=2, runtime_s=2 * HOUR))
    assert str(caught.value).splitlines() == [
        "no partition of research fits 8 CPUs, 300 GiB, 2 GPUs, 2 h:",
        "  batch: its nodes have 187.5 GiB of memory, no GPUs",
        "  short: its nodes have 187.5 GiB of memory, no GPUs",
        "  gpu: its nodes have 250 GiB of memory",
        "  himem: its nodes have no GPUs",
        "  debug: its nodes have 187.5 GiB of memory, no GPUs, its longest walltime is 1 h",
        "  priority: its nodes have 187.5 GiB of memory, no GPUs, it is taken only when it is named",
        "  large: its nodes have 187.5 GiB of memory, no GPUs, its jobs have at least 16 nodes",
    ]


def test_a_profile_without_partitions_is_an_error() -> None:
    with pytest.raises(UserError, match="HPC profile empty has no partitions"):
        best_partition(HpcProfile("empty"), Resources(runtime_s=60))


def test_no_time_limit_fits_nowhere() -> None:
    """Slurm would stop a runner of unknown length."""
    assert mismatch_reason(partition("p"), Resources()) == "its longest walltime is 2 d"


PARTITIONS = st.builds(
    Partition,
    name=st.sampled_from(["a", "b", "debug", "debug-gpu", "gpu"]),
    cpus_per_node=st.integers(1, 4),
    memory_mb=st.integers(1, 4),
    max_walltime_secs=st.integers(1, 4),
    gpus_per_node=st.integers(0, 3),
    shared=st.booleans(),
    requires_explicit_request=st.booleans(),
    min_nodes=st.integers(1, 2),
    max_nodes=st.none() | st.integers(2, 3),
)
WANTED = st.builds(
    Resources,
    num_cpus=st.integers(1, 4),
    memory_bytes=st.integers(1, 4).map(lambda mib: mib * 1024**2),
    num_gpus=st.integers(0, 3),
    num_nodes=st.integers(1, 3),
    runtime_s=st.integers(1, 4),
)


@given(parts=st.lists(PARTITIONS, max_size=6), wanted=WANTED)
def test_what_matches_has_what_is_wanted_and_the_rest_has_reasons(parts: list[Partition], wanted: Resources) -> None:
    profile = HpcProfile("p", partitions=tuple(parts))
    found = matching_partitions(profile, wanted)
    for part in parts:
        fits = not part.requires_explicit_request and wanted.fits(
            Resources(
                part.cpus_per_node,
                part.memory_mb * 1024**2,
                part.gpus_per_node,
                part.max_nodes or 9,
                part.max_walltime_secs,
            )
        )
        fits = fits and wanted.num_nodes >= part.min_nodes
        assert (part in found) == fits == (mismatch_reason(part, wanted) is None)
    if not wanted.num_gpus:
        wasted = [part.gpus_per_node > 0 for part in found]
        assert wasted == sorted(wasted), "nodes with GPUs come last"


@given(parts=st.lists(PARTITIONS, min_size=1, max_size=6), wanted=WANTED)
def test_less_is_never_harder_to_place(parts: list[Partition], wanted: Resources) -> None:
    """But fewer nodes may be too few."""
    profile = HpcProfile("p", partitions=tuple(parts))
    less = evolve(wanted, num_cpus=1, memory_bytes=1, num_gpus=0, runtime_s=1)
    names = {id(part) for part in matching_partitions(profile, less)}
    assert names >= {id(part) for part in matching_partitions(profile, wanted)}
