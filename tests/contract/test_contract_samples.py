"""Samples keep the contracts: the executor of the docs, and an allocator on the batch system of the tests."""

from types import SimpleNamespace

from doc_pages import executor_of_the_docs
from sample_allocator import SampleAllocator

from torc_framework.api import HpcProfile, Partition
from torc_framework.testing import AllocatorContract, ExecutorContract, HpcProfileContract


class TestExecutorOfTheDocs(ExecutorContract):
    """What plugin authors copy works."""

    executor = executor_of_the_docs()


class TestSampleAllocator(AllocatorContract):
    """It calls the programs of the batch system."""

    executor = SampleAllocator


class TestProfile(HpcProfileContract):
    """A profile as a site would define it."""

    plugin = SimpleNamespace(
        torc_hpc_profiles=lambda: [
            HpcProfile(
                "site",
                partitions=(
                    Partition("short", 64, 240_000, 14_400),
                    Partition("gpu", 64, 360_000, 86_400, "", 4, "a100", 40),
                ),
                detect_env_var="CLUSTER=site",
            )
        ]
    )
