"""The options of the executor ``slurm``."""

from attrs import define

from torc_framework.api import option


@define
class SlurmOptions:
    """Options for requesting allocations and running jobs."""

    steps: bool = option(
        True, "Run each job as a job step with srun; otherwise as a plain process inside the allocation."
    )
    shell: str = option(
        "", "Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given.", metavar="SHELL"
    )
    exclude_failed_nodes_s: float = option(
        3600.0,
        "Exclude nodes that failed under an allocation from new ones for this time; 0 excludes none.",
        metavar="S",
    )
    accounting_interval_s: float = option(
        1.0,
        "Shortest time between two queries of accounting (sacct) about steps that ended, seconds.",
        metavar="SECONDS",
    )
    accounting_patience_s: float = option(
        10.0,
        "Seconds to wait for accounting's row of a step that ended; after that only srun's messages count.",
        metavar="SECONDS",
    )
    job_array: str = option(
        "auto",
        "Submit many equal allocations as one job array: auto (where it saves calls), on or off.",
        metavar="WHEN",
    )
    requeue: bool = option(False, "Let Slurm start an allocation again after a failure or preemption.")
    warning_s: int = option(
        30, "Slurm sends SIGTERM this many seconds before the end of an allocation; 0 is never.", metavar="S"
    )
    patience_s: float = option(900.0, "Longest time to wait for a Slurm that does not answer, seconds.", metavar="S")
    keep_submission_scripts: bool = option(
        False,
        "Keep submitted scripts in the output directory.",
        setting="client.slurm.keep_submission_scripts",
    )
