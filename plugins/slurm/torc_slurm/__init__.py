"""The executor plugin ``slurm``: allocations by ``sbatch``, job steps by ``srun``, endings from accounting."""

from collections.abc import Sequence

from torc_framework.api import Executor, ExitObservation, ExitVerdict, accepts_clean_exits, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    """Offer ``slurm``."""
    from torc_slurm.executor import SlurmExecutor

    return [SlurmExecutor]


@accepts_clean_exits
@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Classify what only this executor causes: jobs whose own ``srun`` got no step."""
    if observation.executor != "slurm":
        return None
    from torc_slurm.steps.unstarted_steps import classify

    return classify(observation)
