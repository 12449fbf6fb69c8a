"""The jobs that a runner holds, and the attempts that it makes of them."""

import os
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define

from torc_framework.executors import Attempt, AttemptKey, RunnerContext
from torc_framework.models.attempt_logs import STDIO_DIR, log_names
from torc_framework.models.exchange import ClaimedJob
from torc_framework.models.exits import StopReason
from torc_framework.models.stdio import SEPARATE, Stdio


class JobStage(Enum):
    """The progress of a held job."""

    WAITING = auto()
    """It waits for resources."""
    RECOVERING = auto()
    """Its recovery script runs before it starts."""
    QUEUED = auto()
    """Its launcher starts it when a running attempt of its lane ends."""
    RUNNING = auto()
    """Its launcher has been asked to start it, or has started it."""
    DROPPED = auto()
    """The runner does not hold it any more."""


@define(eq=False)
class HeldJob:
    """One job that this runner holds, with its current attempt.

    Attributes:
        executor: Name of the executor that runs it.
        lane: See `Attempt.lane`; None if no other attempt can start in its place.
        options: What the job sets for its executor; see `Attempt.options`.
        gpus: Names of the GPUs that it was given.
        started_at: When it began, once that is known.
        stop_reason: Why the runner stops it; None if it does not.
        stop_cause: What makes the runner end, if it stops the attempt for that.
        stop_forced: SIGKILL was sent.
        following: Jobs that become ready one after the other when this one completes.
        told: How many jobs the server's last answer about the chain contained; 0 if its end is known.
        follower: The job that its launcher has begun in its place, once that is known.
        is_refused: The server refused it to this runner. It is being stopped, and its end is not reported.
        claimed_again: The job as this runner claimed it anew while the refused attempt was being stopped.
    """

    job: ClaimedJob
    executor: str
    key: AttemptKey
    stage: JobStage = JobStage.WAITING
    lane: int | None = None
    options: Any = None
    gpus: tuple[str, ...] = ()
    started_at: float | None = None
    stop_reason: StopReason | None = None
    stop_cause: str | None = None
    stop_forced: bool = False
    following: list[ClaimedJob] = Factory(list)
    told: int = 0
    follower: "HeldJob | None" = None
    is_refused: bool = False
    claimed_again: ClaimedJob | None = None

    def pass_chain_on(self, follower: "HeldJob") -> None:
        """Let the first of the jobs that follow this one, now held itself, know those behind it."""
        follower.following, follower.told = self.following[1:], self.told

    def knows_fewer_than(self, count: int) -> bool:
        """Return whether there may be more jobs behind this one, and fewer than this are known.

        Half of what the last answer contained counts as few in any case, all of it never does.
        """
        return len(self.following) < max(min(count, self.told), self.told // 2)


class AttemptFactory:
    """Makes attempts of held jobs: paths, environment, command, shell.

    Args:
        context: The runner.
        default_shell: Returns the shell of jobs that name none themselves, by the name of their executor.
        stdio: Where the output of jobs goes that do not say so themselves.
    """

    def __init__(
        self,
        context: RunnerContext,
        default_shell: Callable[[str], str] = lambda _executor: "",
        stdio: Stdio = SEPARATE,
    ) -> None:
        self._context, self._default_shell, self._stdio = context, default_shell, stdio
        self._stem = f"{context.output_dir}/{STDIO_DIR}/job_wf{context.workflow_id}_j"
        self._run = f"_r{context.run_id}_a"
        self._shared = {
            "TORC_WORKFLOW_ID": str(context.workflow_id),
            "TORC_RUN_ID": str(context.run_id),
            "TORC_OUTPUT_DIR": context.output_dir,
            **context.server_environment,
        }

    @property
    def log_folder(self) -> str:
        """The folder of the attempts' log files."""
        return f"{self._context.output_dir}/{STDIO_DIR}"

    def log_path(self, key: AttemptKey, suffix: str) -> str:
        """Return the path of one of an attempt's log files."""
        return f"{self._stem}{key.job_id}{self._run}{key.attempt_id}{suffix}"

    def stdio(self, job: ClaimedJob) -> Stdio:
        """Return where the output of a job goes."""
        return self._stdio.over(job.stdio, delete_on_success=job.delete_stdio_on_success)

    def log_paths(self, key: AttemptKey, stdio: Stdio) -> tuple[str | None, str | None]:
        """Return the paths for standard output and standard error of an attempt; None for one that is not kept."""
        return log_names(self.log_path(key, ""), stdio)

    @property
    def shared_environment(self) -> Mapping[str, str]:
        """The variables of all jobs, actions and scripts of the runner."""
        return self._shared

    def environment(self, item: HeldJob) -> dict[str, str]:
        """Return the environment of an attempt, on top of the executor's (Torc, "Environment Variables")."""
        variables = {
            **self._shared,
            "TORC_JOB_ID": str(item.key.job_id),
            "TORC_JOB_NAME": item.job.name,
            "TORC_ATTEMPT_ID": str(item.key.attempt_id),
        }
        if item.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(item.gpus)
        return variables

    def shell(self, item: HeldJob) -> str:
        """Return the shell of a job's command and of its recovery script; empty is the default."""
        return item.job.shell or self._default_shell(item.executor)

    def make(self, item: HeldJob) -> Attempt:
        """Return the attempt for a launcher."""
        job = item.job
        stdout_path, stderr_path = self.log_paths(item.key, self.stdio(job))
        is_limited = self._context.enforces_limits and job.resources.runtime_s is not None  # has own requirements
        return Attempt(
            key=item.key,
            job_name=job.name,
            command=f"{job.invocation_script} {job.command}" if job.invocation_script else job.command,
            environment=self.environment(item),
            stdout_path=stdout_path or os.devnull,
            stderr_path=stderr_path or os.devnull,
            working_dir=self._context.working_dir,
            resources=job.resources,
            shell=self.shell(item),
            supports_termination=job.supports_termination,
            lane=item.lane or 0,
            memory_limit_bytes=job.resources.memory_bytes if is_limited else None,
            options=item.options,
            container=job.container or "",
            outputs=tuple([file.path for file in job.output_files]) if job.output_files else (),
        )

    def modification_times(self, job: ClaimedJob) -> tuple[Mapping[int, float], list[str]]:
        """Return the modification times of a job's output files by id, and the paths of those that are missing."""
        times: dict[int, float] = {}
        missing = []
        for file in job.output_files or ():
            try:
                times[file.id] = Path(self._context.working_dir, file.path).stat().st_mtime
            except OSError:
                missing.append(file.path)
        return times, missing


MTIME_SLACK_S: Final = 0.010
"""Time stamps of files lag behind the clock by up to one tick of the kernel."""


def all_outputs_written(job: ClaimedJob, times: Mapping[int, float], started_at: float | None) -> bool:
    """Return whether a job declares output files and modified all of them since the start of its attempt.

    On a file system that keeps whole seconds, a file written in the attempt's first second does not count. The job then
    runs once more than needed, which is better than to accept a file of an earlier attempt.

    Args:
        times: Modification times of the files that are there, by id.
        started_at: When the attempt began, seconds since the epoch.
    """
    if not job.output_files or started_at is None:
        return False
    return all(times.get(file.id, 0.0) >= started_at - MTIME_SLACK_S for file in job.output_files)
