"""The executor ``slurm``: it obtains allocations, and it runs jobs as steps within one."""

from typing import Any, ClassVar

from torc_framework.api import Capabilities
from torc_slurm.allocations.allocator import SbatchAllocator
from torc_slurm.shared.options import SlurmOptions
from torc_slurm.steps.launcher import StepLauncher


class SlurmExecutor(StepLauncher, SbatchAllocator):
    """The launcher and the allocator of Slurm in one executor."""

    name = "slurm"
    description = "Allocations of a Slurm cluster, and job steps within one."
    capabilities = Capabilities(can_launch=True, can_allocate=True, limits_runtime=True)
    Options: ClassVar[type[Any]] = SlurmOptions
