"""The options of the executor ``slurm``."""

from attrs import define

from torc_framework.api import option


@define
class SlurmOptions:
    """How jobs and allocations are asked for."""

    steps: bool = option(
        True, "Run each job as a job step with srun; otherwise as a plain process inside the allocation."
    )
    shell: str = option(
        "", "Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given.", metavar="SHELL"
    )
    exclude_failed_nodes_s: float = option(
        3600.0,
        "Keep new allocations away from nodes that failed under a job for so long; 0 is not at all.",
        metavar="S",
    )
    accounting_interval_s: float = option(
        1.0, "Seconds between two questions to accounting (sacct) about steps that ended, at least.", metavar="SECONDS"
    )
    accounting_patience_s: float = option(
        10.0,
        "Seconds to wait for accounting's row of a step that ended; then its srun alone decides.",
        metavar="SECONDS",
    )
    job_array: str = option(
        "auto", "Submit many equal allocations as one array: auto (where it spares calls), on or off.", metavar="WHEN"
    )
    requeue: bool = option(False, "Let Slurm start an allocation anew by itself after a failure or preemption.")
    warning_s: int = option(30, "Slurm sends SIGTERM so long before the end of an allocation; 0 is never.", metavar="S")
    patience_s: float = option(900.0, "Wait so long for a Slurm that does not answer.", metavar="S")
    keep_submission_scripts: bool = option(
        False,
        "Keep the scripts that were submitted in the output directory.",
        setting="client.slurm.keep_submission_scripts",
    )
