"""The reason why each job does not run now, with the commands that change it.

The table `URGENCY` orders reasons: those that need a person come before those that pass without one. Of all jobs that a
job depends on, directly or not, the one with the most urgent reason is its root.
"""

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, Final

from attrs import Factory, evolve, frozen

from torc_framework.explain.workflow_state import ActiveRunner, WorkflowState
from torc_framework.job_options import container_refusal, runs_containers
from torc_framework.models.pending_reason import join_reasons
from torc_framework.models.records import JobRecord
from torc_framework.models.resource_fit import requested_resources, resource_shortfalls
from torc_framework.models.resources import format_duration
from torc_framework.text.quantities import exact_duration_text

URGENCY: Final = (
    "archived",
    "canceled_workflow",
    "pending_failed",
    "disabled",
    "unknown_executor",
    "no_containers",
    "lacks_resources",
    "walltime_over",
    "allocation_never_starts",
    "no_runner",
    "runner_gone",
    "interrupted",
    "scheduler_mismatch",
    "not_initialized",
    "failed",
    "dependency_failed",
    "stale",
    "allocation_waits",
    "delayed",
    "launch_hindered",
    "launch_waits",
    "waits_turn",
    "starting",
    "running",
    "blocked",
    "completed",
)
"""Codes of all reasons, the most urgent first."""
PROBLEMS: Final = frozenset(URGENCY[: URGENCY.index("allocation_waits")])
"""Codes of reasons that need an action of a person."""
_ENDED_BADLY: Final = ("failed", "terminated")
RANK: Final = {code: rank for rank, code in enumerate(URGENCY)}
"""The position of each code in `URGENCY`."""


@frozen
class RunnerShortfall:
    """What a runner has too little of for a job.

    Attributes:
        hostname: The machine.
        lacking: A clause for each resource: the request and the offer.
    """

    hostname: str
    lacking: tuple[str, ...]


@frozen
class JobReason:
    """Why a job does not run, or runs.

    Attributes:
        text: The reason as a clause, the same for all jobs with this reason.
        commands: Alternative commands that change it, the smallest change first.
        shortfalls: What each runner lacks, where the job fits none of several.
    """

    code: str
    text: str
    commands: tuple[str, ...] = Factory(tuple)
    shortfalls: tuple[RunnerShortfall, ...] = ()

    @property
    def is_problem(self) -> bool:
        """Whether it needs an action of a person."""
        return self.code in PROBLEMS


class JobReasons:
    """Finds the reasons of the jobs of one workflow."""

    def __init__(self, state: WorkflowState) -> None:
        self.state = state
        self._ready: dict[tuple[Any, ...], JobReason] = {}

    def reason_of(self, job: JobRecord) -> JobReason:
        """Return the reason of a job by itself, without its dependencies."""
        is_over = not job.is_interrupted and job.status in ("completed", *_ENDED_BADLY, "disabled")
        if self._workflow_reason is not None and not is_over:
            return self._workflow_reason
        if job.is_interrupted:
            return self._of_interrupted_job(job)
        by_status: dict[str, Callable[[], JobReason]] = {
            "uninitialized": self._of_uninitialized_job,
            "blocked": lambda: JobReason("blocked", "waits for other jobs"),
            "ready": lambda: self._of_ready_job(job),
            "pending": lambda: self._of_held_job(job, *self._starting(job)),
            "running": lambda: self._of_held_job(job, "running", f"attempt {job.attempt_id} is running"),
            "completed": lambda: JobReason("completed", "it has completed, and runs again only if its inputs change"),
            "failed": lambda: self._of_ended_job(job),
            "terminated": lambda: self._of_ended_job(job),
            "canceled": lambda: JobReason(
                "dependency_failed", "it was canceled, because a job that it waits for failed", self._rerun_commands
            ),
            "disabled": lambda: JobReason(
                "disabled",
                "it was disabled",
                (f"torc jobs update {job.id} --status uninitialized && torc workflows reinitialize {self.state.id}",),
            ),
            "pending_failed": lambda: JobReason(
                "pending_failed",
                "it failed, and waits for a verdict: to be retried or to count as failed",
                (f"torc pending list {self.state.id}",),
            ),
        }
        found = by_status.get(job.status or "")
        return found() if found else JobReason("blocked", f"its status is {job.status}")

    # --- by status --------------------------------------------------------------------------------

    @cached_property
    def _workflow_reason(self) -> JobReason | None:
        """The reason that applies to all unfinished jobs of the workflow; None if there is no such reason."""
        workflow_id = self.state.id
        if self.state.status.is_archived:
            return JobReason("archived", "the workflow is archived", (f"torc workflows archive false {workflow_id}",))
        if self.state.status.is_canceled:
            return JobReason(
                "canceled_workflow",
                "the workflow was canceled",
                self._rerun_commands,
            )
        return None

    @property
    def _rerun_commands(self) -> tuple[str, ...]:
        return (f"torc run {self.state.id} --retry-failed",)

    def _of_uninitialized_job(self) -> JobReason:
        started = set(self.state.counts) - {"uninitialized", "disabled"}
        command = "reinitialize" if started else "initialize"
        text = "it was added or reset, and the workflow was not initialized since"
        if not started:
            text = "the workflow is not initialized"
        return JobReason("not_initialized", text, (f"torc workflows {command} {self.state.id}",))

    def _starting(self, job: JobRecord) -> tuple[str, str]:
        """Return why a job that a runner holds does not run yet: code and text."""
        if job.waiting_reason:
            return (
                "launch_waits",
                f"a runner has given it to its executor, where it has not begun: {job.waiting_reason}",
            )
        if runner := self.state.hindered_runners.get(job.id or 0):
            return "launch_hindered", f"a runner has taken it and cannot start it at present, {self._remedy(runner)}"
        return "starting", "a runner has taken it and is about to start it"

    def _remedy(self, runner: ActiveRunner) -> str:
        limit = f"torc run {self.state.id} --max-parallel-jobs NUMBER"
        return f"{runner.hindrance}; or let fewer run at a time ({limit})"

    def _of_held_job(self, job: JobRecord, code: str, text: str) -> JobReason:
        if self.state.runners and job.id not in self.state.orphans:
            return JobReason(code, text)
        return JobReason(
            "runner_gone",
            "the runner that held it has ended",
            (self.state.next_command(), f"torc workflows sync-status {self.state.id}"),
        )

    def _of_interrupted_job(self, job: JobRecord) -> JobReason:
        """Return the reason of an interrupted job: that of a ready one, unless no runner works on the workflow."""
        found = self._of_ready_job(job)
        if found.code == "no_runner":
            return JobReason("interrupted", "it was interrupted and runs again with the next runner", found.commands)
        return JobReason(found.code, f"it was interrupted and runs again: {found.text}", found.commands)

    def _of_ended_job(self, job: JobRecord) -> JobReason:
        tried = f" in attempt {job.attempt_id}" if job.attempt_id > 1 else ""
        return JobReason(
            "failed", f"it {'failed' if job.status == 'failed' else 'was terminated'}{tried}", self._rerun_commands
        )

    def _of_ready_job(self, job: JobRecord) -> JobReason:
        delayed = self.state.is_delayed(job)
        key = job.resource_requirements_id, job.scheduler_id, job.executor, bool(job.container), delayed
        if key not in self._ready:
            self._ready[key] = self._find_ready_reason(job)
        return self._ready[key]

    def _find_ready_reason(self, job: JobRecord) -> JobReason:
        found = (
            rule(job)
            for rule in (
                self._no_executor,
                self._no_containers,
                self._no_runner,
                self._exceeds_all_runners,
                self._bound_to_other_scheduler,
                self._delayed,
                self._hindered,
            )
        )
        waits = JobReason("waits_turn", "it fits a runner and waits until there is room")
        return next((reason for reason in found if reason is not None), waits)

    def _no_executor(self, job: JobRecord) -> JobReason | None:
        described = [runner.record.scheduler for runner in self.state.runners]
        types = [each.get("type") for each in described if isinstance(each, dict)]
        if job.executor is None or self.state.executors is None or job.executor in (*self.state.executors, *types):
            return None
        text = f"it must run on executor {job.executor!r}, which no plugin here offers and no runner has"
        return JobReason("unknown_executor", text, ("torc plugins list",))

    def _no_containers(self, job: JobRecord) -> JobReason | None:
        """Return the reason of a job with a container that names an executor of which it is known to run none."""
        executors, name = self.state.executors or {}, job.executor or ""
        if not job.container or name not in executors or runs_containers(executors[name]):
            return None
        others = [name for name, executor in executors.items() if runs_containers(executor)]
        command = f"torc jobs update {job.id} --executor {others[0] if others else 'NAME'}"
        return JobReason("no_containers", container_refusal("it", name, others), (command,))

    @cached_property
    def _open_runners(self) -> list[ActiveRunner]:
        """Runners with enough remaining walltime to start a job."""
        least_s = self.state.workflow.compute_node_min_time_for_new_jobs_seconds
        return [runner for runner in self.state.runners if runner.remaining_s is None or runner.remaining_s >= least_s]

    def _no_runner(self, job: JobRecord) -> JobReason | None:
        if self._open_runners:
            return None
        again = (self.state.next_command(),)
        if self.state.runners:
            least = exact_duration_text(self.state.workflow.compute_node_min_time_for_new_jobs_seconds)
            text = f"every runner has less than {least} of its time left and starts nothing new"
            return JobReason("walltime_over", text, again)
        if count := len(self.state.queued_allocations):
            return self._queued(count)
        too_large = self._exceeds_this_machine(job) or self._exceeds_all(
            job, self.state.sites, "any host of the last run"
        )
        return too_large or JobReason("no_runner", "no runner works on this workflow", again)

    def _exceeds_this_machine(self, job: JobRecord) -> JobReason | None:
        """Return the reason of a job that does not fit this machine, where a runner would be started."""
        record = self.state.requirements.get(job.resource_requirements_id or 0)
        if record is None or self.state.machine is None:
            return None
        offer = evolve(self.state.machine, memory_bytes=self.state.machine.memory_bytes >> 20 << 20)  # whole MiB
        short = resource_shortfalls(requested_resources(record), offer)
        if not short:
            return None
        text = f"it asks for more than this machine has (resource requirements {record.name!r}): {', '.join(short)}"
        limits = {
            "CPUs": f"--num-cpus {offer.num_cpus}",
            "memory": f"--memory {max(1, offer.memory_bytes // 1024**2)}m",
            "GPUs": f"--num-gpus {offer.num_gpus}",
            "nodes": f"--num-nodes {offer.num_nodes}",
        }
        given = " ".join(flag for word, flag in limits.items() if any(word in amount for amount in short))
        change = f"torc resource-requirements update {record.id} {given}"
        return JobReason("lacks_resources", text, (change, f"{self.state.next_command()}  # on a larger machine"))

    def _queued(self, count: int) -> JobReason:
        """Return the reason of ready jobs while this many allocations are queued."""
        reasons = self.state.reasons
        if len(reasons) == count and all(reason.never_passes for reason in reasons):
            several = (
                "the queued allocation never starts" if count == 1 else f"all {count} queued allocations never start"
            )
            return JobReason(
                "allocation_never_starts",
                f"{several}: {join_reasons(reasons)}",
                (f"torc scheduled-compute-nodes list {self.state.id}", f"torc workflows cancel {self.state.id}"),
            )
        text = f"it can run once one of {count} queued allocations starts"
        return JobReason("allocation_waits", f"{text}; they wait for {join_reasons(reasons)}" if reasons else text)

    def _exceeds_all_runners(self, job: JobRecord) -> JobReason | None:
        return self._exceeds_all(job, self._open_runners, "any runner")

    def _exceeds_all(self, job: JobRecord, runners: Collection[ActiveRunner], which: str) -> JobReason | None:
        """Return the reason of a job that fits none of these runners; None if it fits one, or there is none."""
        record = self.state.requirements.get(job.resource_requirements_id or 0)
        if record is None or not runners:
            return None
        wanted = requested_resources(record)
        short = {id(runner): resource_shortfalls(wanted, runner.total) for runner in runners}
        if not all(short.values()):
            return None
        nearest = min(runners, key=lambda runner: len(short[id(runner)]))
        found = self._lacking_resources(job, nearest, short[id(nearest)], which)
        shortfalls = [RunnerShortfall(each.record.hostname, tuple(short[id(each)])) for each in runners]
        return evolve(found, shortfalls=tuple(sorted(shortfalls, key=lambda each: each.hostname)))

    def _bound_to_other_scheduler(self, job: JobRecord) -> JobReason | None:
        of_runners = {runner.record.scheduler_config_id for runner in self._open_runners}
        if job.scheduler_id is None or job.scheduler_id in of_runners:
            return None
        text = (
            f"it is bound to scheduler {job.scheduler_id}, which no runner belongs to; "
            "others take it only when they have nothing of their own left"
        )
        return JobReason("scheduler_mismatch", text, (f"torc scheduled-compute-nodes list {self.state.id}",))

    def _delayed(self, job: JobRecord) -> JobReason | None:
        if not self.state.is_delayed(job):
            return None
        return JobReason("delayed", "its next attempt waits for the delay of its failure handler")

    def _hindered(self, _job: JobRecord) -> JobReason | None:
        if not all(runner.hindrance for runner in self._open_runners):
            return None
        text = f"it waits for a runner that can start more, {self._remedy(self._open_runners[0])}"
        return JobReason("launch_hindered", text)

    def _lacking_resources(self, job: JobRecord, runner: ActiveRunner, short: list[str], which: str) -> JobReason:
        record, requirements_id = runner.record, job.resource_requirements_id
        name = self.state.requirements[requirements_id or 0].name
        text = (
            f"it asks for more than {which} has (resource requirements {name!r}): {', '.join(short)} "
            f"on {record.hostname}, which comes nearest"
        )
        flags = {
            "CPUs": f"--num-cpus {record.num_cpus}",
            "memory": f"--memory {max(1, int(record.memory_gb * 1024))}m",
            "GPUs": f"--num-gpus {record.num_gpus}",
            "nodes": f"--num-nodes {record.num_nodes}",
            "run time": f"--runtime {format_duration(max(1, int(runner.remaining_s or 0)))}",
        }
        given = " ".join(flag for word, flag in flags.items() if any(word in amount for amount in short))
        change = f"torc resource-requirements update {requirements_id} {given}"
        return JobReason("lacks_resources", text, (change, f"{self.state.next_command()}  # on a larger machine"))
