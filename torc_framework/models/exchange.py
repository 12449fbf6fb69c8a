"""The one conversation between a runner and the server.

In a single call a runner says which attempts started and ended and which jobs it gives back, and
is given new jobs; the server does all of it in one transaction. The call waits on the server when
there is nothing to hand out (``wait_s``). Reports are idempotent: an attempt that the server has
already recorded is accepted again and changes nothing. Times are seconds since the epoch, UTC.
"""

from typing import Any

from attrs import Factory, define

from torc_framework.models.exits import CleanExit
from torc_framework.models.resources import Resources


@define
class StartedReport:
    """An attempt began."""

    job_id: int
    attempt_id: int
    at: float


@define
class RetryRequest:
    """Asks for another attempt instead of an end.

    Attributes:
        max_attempts: Attempts in all that the matching rule allows, of the job's own or of the ending's class.
        hold: Hand the new attempt straight back to this runner, which has a recovery script to run first.
        reason: The rule that asked, for the event.
        delay_s: Seconds that must pass before the new attempt may begin.
    """

    max_attempts: int
    hold: bool = False
    reason: str = ""
    delay_s: float = 0.0


@define
class EndedReport:
    """An attempt ended.

    Attributes:
        status: Label of the status the attempt ended in; the job takes it unless a retry is granted.
        observation: The whole `ExitObservation` as JSON values, without its defaults.
        file_mtimes: Modification times of the output files that exist, by file id.
        retry: Another attempt is asked for.
        interrupted: The attempt ended only because its runner had to end, or saved its state as it was asked to:
            the job is terminated until a runner asks for jobs, which begins the next attempt.
        lost: Nobody saw the end: the job is made ready again, at most ``retry.max_attempts`` attempts in all.
        next_job_id: Job that waited for this end alone and that the runner has gone on with (see
            `ExchangeReply.following`): it is claimed for the runner as soon as the end is recorded.
    """

    job_id: int
    attempt_id: int
    status: str
    return_code: int
    exec_time_s: float
    ended_at: float
    exit_code: int | None = None
    signal: int | None = None
    exit_class: str | None = None
    reason: str | None = None
    peak_memory_bytes: int | None = None
    avg_memory_bytes: int | None = None
    peak_cpu_percent: float | None = None
    avg_cpu_percent: float | None = None
    cpu_time_s: float | None = None
    observation: dict[str, Any] | None = None
    file_mtimes: dict[int, float] | None = None
    retry: RetryRequest | None = None
    interrupted: bool = False
    lost: bool = False
    next_job_id: int | None = None


@define
class ExchangeRequest:
    """What a runner says and wants.

    Attributes:
        compute_node_id: The runner's own record.
        run_id: Run that the runner serves; another run is refused with 422.
        seq: Grows with each call of this runner; a newer call ends an older one that still waits.
        released: Ids of jobs given back without being started.
        holding: After a lost answer: ids of every job this runner has in hand. Jobs that the server
            handed to this runner and that are not listed are handed out again in the answer.
        slots: Jobs that may start right now, at most.
        free: Resources not in use; None ignores resources (queue depth).
        total: Resources of the whole runner: no job that exceeds them is handed out.
        ahead: Jobs wanted beyond those that fit ``free``, to have at hand when others end.
        wait_s: How long the server may wait for a job to hand out, seconds.
        want_counts: Count the jobs by status for the answer.
    """

    compute_node_id: int
    run_id: int
    seq: int = 0
    started: list[StartedReport] = Factory(list)
    ended: list[EndedReport] = Factory(list)
    released: list[int] = Factory(list)
    holding: list[int] | None = None
    slots: int = 0
    free: Resources | None = None
    total: Resources | None = None
    ahead: int = 0
    sort_method: str | None = None
    scheduler_config_id: int | None = None
    strict_scheduler_match: bool = False
    wait_s: float = 0.0
    want_counts: bool = False


@define
class OutputFile:
    """A file that a job promises to write."""

    id: int
    path: str


@define
class ClaimedJob:
    """One attempt for a runner to run.

    Attributes:
        resources: What the job asks for; ``runtime_s`` is None unless the job names its own requirements.
        failure_rules: JSON text of its failure handler's rules.
        shell: Shell that runs its command; None is the workflow's.
        is_early: It is handed out for its recovery script alone, to be given back: its wait is not over.
    """

    id: int
    name: str
    command: str
    attempt_id: int
    resources: Resources
    invocation_script: str | None = None
    executor: str | None = None
    shell: str | None = None
    supports_termination: bool = False
    clean_exit_after_stop: CleanExit = "auto"
    failure_rules: str | None = None
    output_files: list[OutputFile] | None = None
    is_early: bool = False


@define
class ExchangeReply:
    """What a runner is told.

    Attributes:
        jobs: Jobs now held by this runner.
        held: Ids of jobs whose new attempt was granted with ``hold``; they are among ``jobs``.
        following: Jobs that each wait for the success of the one before and for nothing else, by the id of
            a job in the runner's hand that the first of them waits for. They are not claimed: the runner may
            go on with one the moment its predecessor completes, and says so by ``next_job_id``.
        refused: Jobs that the runner stops and forgets: named by a ``next_job_id`` that it may not have, or deleted.
        is_complete: No job of the workflow is unfinished.
        is_canceled: The workflow was canceled: stop everything.
        actions_due: Actions that are due, besides those at the start and end of each worker.
        unfit: Ready jobs that exceed ``total``, when nothing was handed out and nothing else is live.
        counts: Jobs by status label, if wanted.
        due_in_s: Seconds until the first job that waits before its next attempt may begin, if any does.
        resumed: How many interrupted jobs this call made ready.
    """

    jobs: list[ClaimedJob] = Factory(list)
    held: list[int] = Factory(list)
    following: dict[int, list[ClaimedJob]] = Factory(dict)
    refused: list[int] = Factory(list)
    is_complete: bool = False
    is_canceled: bool = False
    actions_due: int = 0
    unfit: int = 0
    counts: dict[str, int] | None = None
    due_in_s: float | None = None
    resumed: int = 0
