"""The options of the executor ``slurm``."""

from attrs import define

from torc_framework.api import option


@define
class SlurmOptions:
    """How jobs and allocations are asked for."""

    steps: bool = option(
        True, "Run each job as a job step with srun; otherwise as a plain process inside the allocation."
    )
    exclude_failed_nodes_s: float = option(
        3600.0,
        "Keep new allocations away from nodes that failed under a job for so long; 0 is not at all.",
        metavar="S",
    )
