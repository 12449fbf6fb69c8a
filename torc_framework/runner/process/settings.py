"""The settings of a runner, the progress that it reports, and its outcome."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import Factory, define, field, frozen

from torc_framework.executors import DEFAULT_EXECUTOR
from torc_framework.models.exchange import EndedReport
from torc_framework.models.stdio import Stdio

DEFAULT_TERM_LEAD_S = 30.0
"""Seconds between SIGTERM and SIGKILL (``sigterm_lead_seconds`` of NREL's Torc)."""


@define(kw_only=True)
class RunnerSettings:
    """The settings of one runner.

    Attributes:
        url: Base URL of the server, as `TorcClient` takes it.
        workflow_id: The workflow to work on.
        executor: Name of the executor for jobs that name none themselves.
        executor_options: Values of executor options, by executor name and option name.
        given_options: Those of the executor's options that the command line gave: commands that continue the workflow
            repeat them.
        max_parallel_jobs: Queue depth: at most this many jobs at once on each site, with their requests ignored. None
            packs jobs by their requests.
        num_cpus: CPU cores offered, on each site; None is all that this process may use, or that the site has.
        memory_gb: Memory offered, in GiB; None is all of the machine.
        num_gpus: GPUs offered; None is all that are visible.
        num_nodes: Nodes offered.
        time_limit_s: Walltime of the runner in seconds; None is unlimited.
        poll_interval_s: Accepted for compatibility with NREL's Torc, and ignored: the server wakes a runner.
        output_dir: Folder for logs.
        working_dir: Folder in which jobs run; None is the working directory of this process.
        scheduler_config_id: Scheduler whose jobs are claimed first.
        allocation: The allocation in which the runner works, as executor and id, where its own executor does not know
            it; None if it works in none, or its launcher names it.
        strict_scheduler_match: Claim no jobs of other schedulers, even if there are none of this one.
        sort_method: Order in which ready jobs are claimed; None is that of the workflow.
        term_lead_s: Seconds between SIGTERM and SIGKILL for a job that is being stopped.
        wait_for_new_jobs_s: End after this long without a job; None is the setting of the workflow.
        compute_node_type: Kind of the runner's record: ``local``, ``slurm``, ``remote``.
        log_level: Level of the runner's log file.
        enforce_limits: Kill attempts that use more memory than their jobs requested.
        awaits_people: An idle runner also stays where nothing but a person can let it go on, such as by a verdict.
        counts_jobs: The progress has the numbers of jobs by status, for which the server counts the workflow's jobs.
        handle_signals: SIGTERM, SIGINT and SIGHUP end the runner cleanly; possible in the main thread alone.
    """

    url: str
    workflow_id: int
    executor: str = DEFAULT_EXECUTOR
    executor_options: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    given_options: Mapping[str, Any] = field(factory=dict)
    max_parallel_jobs: int | None = None
    num_cpus: int | None = None
    memory_gb: float | None = None
    num_gpus: int | None = None
    num_nodes: int = 1
    time_limit_s: float | None = None
    poll_interval_s: float | None = None
    output_dir: Path = Path("output")
    working_dir: Path | None = None
    scheduler_config_id: int | None = None
    allocation: tuple[str, str] | None = None
    strict_scheduler_match: bool = False
    sort_method: str | None = None
    term_lead_s: float = DEFAULT_TERM_LEAD_S
    wait_for_new_jobs_s: float | None = None
    compute_node_type: str = "local"
    log_level: str = "info"
    enforce_limits: bool = False
    awaits_people: bool = True
    counts_jobs: bool = True
    handle_signals: bool = True


@frozen
class Progress:
    """The progress of the workflow, as far as the runner knows it.

    Attributes:
        counts: Jobs of the workflow by status label; empty if the runner does not know them.
        running: Attempts that this runner has given to its executors and that have not ended.
        trouble: Why the server could not carry out the last call; None if it could.
        hindrance: Why some attempts cannot begin at present; None if they can.
        waits_for: What a runner without a job waits for, and until when; None if it has jobs.
        waiting: Number of attempts that were given to an executor and have not begun, by what they wait for.
    """

    counts: Mapping[str, int]
    running: int
    trouble: str | None = None
    hindrance: str | None = None
    waits_for: str | None = None
    waiting: Mapping[str, int] = field(factory=dict)


ProgressListener = Callable[[Progress], None]
"""Called in the runner's thread, at most ten times a second; it must return soon."""


@frozen
class FailureNotice:
    """An attempt that failed under this runner.

    Attributes:
        report: Its end, as it is reported to the server. With a ``retry`` the server makes another attempt, up to
            the number that the request names.
        stdio: Where its output went.
        stderr_path: Its standard error; None if it is not kept.
    """

    job_name: str
    report: EndedReport
    stdio: Stdio
    stderr_path: str | None


FailureListener = Callable[[FailureNotice], None]
"""Called in the runner's thread for each attempt that fails; it must return soon."""
WarningListener = Callable[[str], None]
"""Called with a text for people, such as the reason why a site takes no part; it must return soon."""


@frozen
class RunListeners:
    """Functions that a runner calls while it works. Several runners of one process call them one after the other."""

    progress: ProgressListener | None = None
    failure: FailureListener | None = None
    warning: WarningListener | None = None


@frozen
class SiteOutcome:
    """What was done on one site of a run.

    Attributes:
        site: Name of the site; empty for the only site of an executor without names.
        hostname: The name in the records of its runners.
        attempts: Attempts that ended there.
        failed_attempts: Those of them that ended neither completed nor canceled.
        trouble: Why no runner worked there, or why one ended by an error; None if there was no such error.
    """

    site: str
    hostname: str
    attempts: int = 0
    failed_attempts: int = 0
    trouble: str | None = None


@define(kw_only=True)
class RunOutcome:
    """The outcome of a runner, or of all runners of one process.

    Attributes:
        workflow_name: Name of the workflow.
        counts: Jobs of the workflow by status label, at the end.
        is_complete: No job of the workflow is unfinished.
        is_canceled: The workflow was canceled.
        is_drained: It was asked to take no more jobs.
        interrupted: SIGINT, SIGTERM or SIGHUP ended the runner.
        interrupted_jobs: Jobs of the workflow, at the end, that the next runner continues.
        resumed_jobs: Interrupted jobs that ran again because this runner asked for jobs.
        left_jobs: Jobs that this runner left to the next one, because their ends were not reported after SIGKILL.
        out_of_time: The walltime of the runner was over.
        unfit: Why the remaining jobs can never run here, with the amount that is lacking; None if they can.
        troubles: Warnings for people: a substitute for bash, actions that failed or were left to other runners.
        cut_logs: Attempts that ended while the file system of their logs was full.
        attempts: Attempts that ended under this runner.
        failed_attempts: Those of them that ended neither completed nor canceled.
        duration_s: How long the runner worked, in seconds.
        sites: The sites on which the attempts ran.
    """

    workflow_name: str = ""
    counts: dict[str, int] = Factory(dict)
    is_complete: bool = False
    is_canceled: bool = False
    is_drained: bool = False
    interrupted: bool = False
    interrupted_jobs: int = 0
    resumed_jobs: int = 0
    left_jobs: int = 0
    out_of_time: bool = False
    unfit: str | None = None
    troubles: list[str] = Factory(list)
    cut_logs: int = 0
    attempts: int = 0
    failed_attempts: int = 0
    duration_s: float = 0.0
    sites: list[SiteOutcome] = Factory(list)
