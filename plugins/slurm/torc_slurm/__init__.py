"""The executor plugin ``slurm``: allocations by ``sbatch``, job steps by ``srun``, endings from accounting."""

from collections.abc import Sequence

from torc_framework.api import Executor, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    """Offer ``slurm``."""
    from torc_slurm.executor import SlurmExecutor

    return [SlurmExecutor]
