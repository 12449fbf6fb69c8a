"""The contract of executors, for jobs as steps; run within an allocation, by test_slurm_contract.py."""

from typing import ClassVar

from torc_slurm.executor import SlurmExecutor

from torc_framework.testing import ExecutorContract


class TestSteps(ExecutorContract):
    """Each attempt a step."""

    executor = SlurmExecutor


class TestPlain(ExecutorContract):
    """Each attempt a process."""

    executor = SlurmExecutor
    options: ClassVar[dict[str, bool]] = {"steps": False}
