"""The executor ``slurm``: obtains allocations, and runs jobs as steps within one."""

from typing import Any, ClassVar

from torc_framework.api import Capabilities
from torc_slurm.allocator import SbatchAllocator
from torc_slurm.launcher import StepLauncher
from torc_slurm.options import SlurmOptions


class SlurmExecutor(StepLauncher, SbatchAllocator):
    """Both halves of Slurm."""

    name = "slurm"
    description = "Allocations of a Slurm cluster, and job steps within one."
    capabilities = Capabilities(can_launch=True, can_allocate=True, limits_runtime=True)
    Options: ClassVar[type[Any]] = SlurmOptions
