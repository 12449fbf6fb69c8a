"""Request and reply of the exchange, the call by which a runner reports to the server and claims jobs.

In one call a runner reports which attempts started and ended and which jobs it releases, and the server replies with
jobs that it has claimed for the runner. The server does all of it in one transaction. If there is no job to claim,
the call waits on the server, at most ``wait_s`` seconds. Reports are idempotent: a report on an attempt that the
server has already recorded is accepted and changes nothing. Times are seconds since 1970, UTC.

A runner speaks under the lease of its record, which has an epoch. A process that takes over from a dead runner takes
its lease (`TakeOverOrder`) and raises the epoch; a call with an older one is refused with 409 and changes nothing.
"""

from typing import Any, Final

from attrs import Factory, define

from torc_framework.models.exits import CleanExit
from torc_framework.models.resources import Resources
from torc_framework.models.stdio import StdioMode

MOST_COUNTED_UNFINISHED: Final = 1_000
"""Most jobs of each status that the server counts for `ExchangeReply.unfinished`."""


@define
class StartedReport:
    """An attempt began."""

    job_id: int
    attempt_id: int
    at: float


@define
class WaitingReport:
    """What an attempt waits for that was given to an executor and has not begun.

    Attributes:
        reason: In the words of the cluster; None if nothing keeps it from beginning any more.
    """

    job_id: int
    attempt_id: int
    reason: str | None


@define
class RetryRequest:
    """Request for another attempt of a job whose attempt has ended.

    Attributes:
        max_attempts: Total number of attempts that the matching rule allows: of all that count as the job's own, or,
            where the class of the ending has a budget of its own, of those that ended in this class.
        hold: The server is to claim the new attempt for this runner at once: the runner runs a recovery script first.
        reason: The rule that requests the attempt, for the event.
        delay_s: Seconds before the new attempt may begin.
    """

    max_attempts: int
    hold: bool = False
    reason: str = ""
    delay_s: float = 0.0


@define
class EndedReport:
    """An attempt ended.

    Attributes:
        status: Label of the status in which the attempt ended; the job takes it unless a retry is granted.
        observation: The whole `ExitObservation` as JSON values, without its defaults.
        file_mtimes: Modification times of the output files that exist, by file id.
        retry: Request for another attempt.
        interrupted: The attempt ended only because its runner had to end, or it saved its state when the runner asked
            it to stop. The job is terminated; when a runner next claims jobs, the server makes it ready again.
        lost: The end was not observed: the server makes the job ready again, up to ``retry.max_attempts`` attempts in
            all.
        next_job_id: Job that waited for this end only and that the runner has already started (see
            `ExchangeReply.following`): the server claims it for the runner when it records the end.
        next_node_id: Id of the dead runner that started this job, from which the reporting runner has taken over: the
            server claims the job for that record, whose launchers know the attempt. None is the reporting runner.
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
    next_node_id: int | None = None


@define(kw_only=True)
class Offer:
    """What a runner can take: free places and resources, and which jobs it takes first.

    Attributes:
        slots: Largest number of jobs that the runner can start now.
        free: Resources not in use; None ignores resources (queue depth).
        total: Resources of the whole runner: the server claims no job that exceeds them.
        ahead: Number of jobs to claim beyond those that fit ``free``; the runner starts them when others end.
        sort_method: Order in which jobs are claimed; None is the workflow's order.
        scheduler_config_id: Scheduler whose jobs are claimed, besides jobs without a scheduler.
        strict_scheduler_match: Claim no jobs of other schedulers, even if there are no others.
    """

    slots: int = 0
    free: Resources | None = None
    total: Resources | None = None
    ahead: int = 0
    sort_method: str | None = None
    scheduler_config_id: int | None = None
    strict_scheduler_match: bool = False


@define
class ExchangeRequest(Offer):
    """A runner's reports and its offer. In JSON the fields of the offer stand beside the others.

    Attributes:
        compute_node_id: Id of the runner's compute node record.
        run_id: Run to which the runner belongs; the server refuses any other run with 422.
        seq: Number that grows with each call of this runner; a newer call ends an older one that still waits, and a
            call that arrives after a newer one, or a second time, changes nothing. 0 is a call without a number.
        epoch: Epoch of the lease of ``compute_node_id``, as the caller knows it; the server refuses any other with 409.
        released: Ids of jobs that the runner returns without having started them.
        holding: After a reply was lost: ids of all jobs that this runner holds. Jobs that the server has claimed
            for this runner and that are not listed are in the reply again.
        wait_s: Longest time that the server may wait for a job to claim, seconds.
        want_counts: Include the numbers of jobs by status in the reply.
        want_unfinished: Include `ExchangeReply.unfinished` in a reply without jobs.
        want_following: Ids of jobs that this runner has begun, for which the reply is to have `ExchangeReply.following`
            again, at most 1,024; None is each job that it has begun by a ``next_job_id`` of this request.
        unstarted: Number of jobs that the runner holds and has not started.
        is_draining: The runner knows that it is to take no more jobs.
    """

    compute_node_id: int
    run_id: int
    seq: int = 0
    epoch: int = 0
    started: list[StartedReport] = Factory(list)
    ended: list[EndedReport] = Factory(list)
    released: list[int] = Factory(list)
    waiting: list[WaitingReport] = Factory(list)
    holding: list[int] | None = None
    wait_s: float = 0.0
    want_counts: bool = False
    want_unfinished: bool = False
    want_following: list[int] | None = None
    unstarted: int = 0
    is_draining: bool = False


@define
class OutputFile:
    """A file that a job declares as its output."""

    id: int
    path: str


@define
class ClaimedJob:
    """One attempt that a runner has claimed.

    Attributes:
        resources: The job's requests; ``runtime_s`` is None unless the job names its own requirements.
        failure_rules: JSON text of its failure handler's rules.
        shell: Shell that runs its command; None is the workflow's.
        container: Image of the container in which its command runs.
        executor_options: JSON text of what it sets for executors, by name.
        stdio: Files of its output; None is as the workflow says. Likewise ``delete_stdio_on_success``.
        is_early: The delay before this attempt is not over: the runner claims it only to run the recovery script, and
            then releases it.
    """

    id: int
    name: str
    command: str
    attempt_id: int
    resources: Resources
    invocation_script: str | None = None
    executor: str | None = None
    shell: str | None = None
    container: str | None = None
    executor_options: str | None = None
    stdio: StdioMode | None = None
    delete_stdio_on_success: bool | None = None
    supports_termination: bool = False
    clean_exit_after_stop: CleanExit = "auto"
    failure_rules: str | None = None
    output_files: list[OutputFile] | None = None
    is_early: bool = False


@define
class Vacancy:
    """Free places of a runner that waits for jobs.

    Attributes:
        slots: Number of jobs that it could start now.
        free: Its free resources; None ignores resources.
    """

    slots: int
    free: Resources | None = None


@define
class ExchangeReply:
    """The server's reply to an exchange.

    Attributes:
        jobs: Jobs that are now claimed for this runner.
        held: Ids of jobs whose new attempt was granted with ``hold``; they are among ``jobs``.
        following: Chains of jobs in which each job waits for the success of the one before and for nothing else, by
            the id of the job, held by this runner, for which the first of the chain waits. They are not claimed: the
            runner may start one as soon as its predecessor completes, and reports that by ``next_job_id``.
        refused: Ids of jobs that the runner must stop and forget: deleted ones, and those of a ``next_job_id`` that
            the server did not grant.
        is_complete: No job of the workflow is unfinished.
        is_canceled: The workflow was canceled: the runner stops everything.
        is_draining: The runner is asked to take no more jobs, and to end when those that it runs have ended.
        actions_due: Number of due actions, without those for the start and end of each worker.
        unfit: Number of ready jobs that exceed ``total``; counted when no job was claimed and no job is pending or
            running.
        counts: Jobs by status label, if requested, or if no job is unfinished.
        unfinished: Unfinished jobs by status label, if requested and no job was claimed, as they are when the server
            answers; at most `MOST_COUNTED_UNFINISHED` of each status are counted.
        due_in_s: Seconds until the first delayed attempt may begin; None if no attempt is delayed.
        resumed: Number of interrupted jobs that this call made ready.
        vacancies: Other runners of the workflow that wait for jobs while this one holds some that it has not started:
            it releases a share of those. Each wait of a runner is named once.
        is_superseded: The call changed nothing, because it or a newer one of the same runner was carried out before.
            The answer to that one may be lost: the runner reports again, with ``holding``.
    """

    jobs: list[ClaimedJob] = Factory(list)
    held: list[int] = Factory(list)
    following: dict[int, list[ClaimedJob]] = Factory(dict)
    refused: list[int] = Factory(list)
    is_complete: bool = False
    is_canceled: bool = False
    is_draining: bool = False
    actions_due: int = 0
    unfit: int = 0
    counts: dict[str, int] | None = None
    unfinished: dict[str, int] | None = None
    due_in_s: float | None = None
    resumed: int = 0
    vacancies: list[Vacancy] = Factory(list)
    is_superseded: bool = False


@define
class TakeOverOrder:
    """Request to take the lease of a dead runner, and with it those that this one has taken from others.

    Attributes:
        epoch: The epoch of its lease; the server refuses the order with 409 if it has changed meanwhile.
        by: Id of the runner that takes it; None if a command takes it that runs no jobs.
    """

    epoch: int
    by: int | None = None


@define
class TakenLeases:
    """The leases that were taken.

    Attributes:
        epochs: The new epoch of each, by the id of the compute node.
    """

    epochs: dict[int, int]
