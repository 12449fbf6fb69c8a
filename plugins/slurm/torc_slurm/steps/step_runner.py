"""The step runner: runs attempts as job steps, one ``srun`` for each, or as plain processes of the allocation."""

import logging
import os
import shutil
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field

from torc_framework.api import (
    Adoption,
    AllocationError,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWithdrawn,
    ExitObservation,
    LauncherEvent,
    LaunchError,
    LaunchSite,
    RunnerContext,
    shell_command,
)
from torc_slurm.accounting.allocation_state import AllocationStateQuery
from torc_slurm.accounting.shared_accounting import SharedAccounting
from torc_slurm.accounting.step_accounting import StepAccounting
from torc_slurm.accounting.step_rows import StepRow
from torc_slurm.calls.circuit_breaker import CircuitBreaker
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmRefusedError, means_unavailable
from torc_slurm.cluster.allocation_context import AllocationContext, find_allocation_context
from torc_slurm.processes.child_process import ChildProcess, parent_death_prefix
from torc_slurm.processes.instants import Instant
from torc_slurm.processes.reactor import Reactor
from torc_slurm.shared.options import SlurmOptions
from torc_slurm.steps.diagnostic_files import write_environment, write_kernel_messages
from torc_slurm.steps.observations import StepEnd, observe_step, with_allocation_state
from torc_slurm.steps.srun_command import MAX_ARGUMENT_BYTES, srun_command, step_environment, step_name
from torc_slurm.steps.srun_messages import SrunMessages
from torc_slurm.steps.step_signals import StepSignaller
from torc_slurm.steps.unstarted_steps import with_unstarted_step

SCRIPTS_DIR: Final = ".torc_runner"
"""Folder within the output directory for commands that are too long for an argument."""
STOPPED_PATIENCE_S: Final = 1.0
"""How long to wait for the row of a step that was stopped, seconds: its reason is known, and the allocation may end."""
READ_PAUSE_S: Final = 0.02
"""Messages of an srun within this time are read together, seconds, as srun writes many single lines."""
ALLOCATION_OVER_MESSAGES: Final = (
    "Job/step already completing or completed",
    "Invalid job id specified",
    "Expired or invalid job",
    "Job has already finished",
    "has expired",
)
"""Parts of srun's messages when the allocation is over (``slurm_errno.c``); Slurm ends the runner as well."""
MAX_TRIES: Final = 4
"""A runner that still runs after this many tries, with growing pauses, returns the attempt to the server."""
_ALLOCATION_END_SIGNALS: Final = (signal.SIGTERM, signal.SIGKILL)
"""Signals by which Slurm ends steps when it ends their allocation."""
_LOG: Final = logging.getLogger("torc_framework.slurm")


@define(eq=False)
class TrackedAttempt:
    """An attempt of this launcher that has not ended.

    Attributes:
        attempt: The attempt.
        name: Name of its step; empty for a plain process.
        child: Its srun, or its shell for a plain process; None while it waits to be started again.
        messages: Messages of its srun.
        start_reported: Its start was reported as an event.
        is_stopping: The runner has requested its end.
        tries: How often srun ended before the step started.
    """

    attempt: Attempt
    name: str
    child: ChildProcess | None = None
    messages: SrunMessages = field(factory=SrunMessages)
    start_reported: bool = False
    is_stopping: bool = False
    tries: int = 0


class StepRunner:
    """Runs attempts as job steps of the allocation around this process, or as plain processes within it.

    Each step has an ``srun`` of its own, which reports when the step starts and with which wait status each task ends.
    Further facts about the end come from accounting, for many steps in one query. The public methods are those of
    `Launcher`.
    """

    def __init__(self, name: str, options: SlurmOptions, context: RunnerContext) -> None:
        self.name, self.options, self.context = name, options, context
        self._slurm = SlurmCommands("runner")
        self._reactor = Reactor()
        self._accounting = StepAccounting(
            self._slurm,
            self._reactor,
            options.accounting_interval_s,
            options.accounting_patience_s,
            SharedAccounting(
                Path(context.output_dir, SCRIPTS_DIR, f"accounting_wf{context.workflow_id}"),
                f"{context.hostname}_p{os.getpid()}",
                options.accounting_patience_s,
            ),
        )
        self._signaller = StepSignaller(self._slurm, self._reactor, self._kill_through_srun)
        self._allocation_state = AllocationStateQuery(self._slurm, self._reactor, STOPPED_PATIENCE_S)
        self._launch_breaker = CircuitBreaker()
        self._allocation: AllocationContext | None = None
        self._tracked: dict[AttemptKey, TrackedAttempt] = {}
        self._events: list[LauncherEvent] = []
        self._had_failures = False
        self._srun = ""

    # --- the allocation --------------------------------------------------------------------------

    def launch_site(self) -> LaunchSite:
        """Return the nodes of the allocation and their resources.

        Raises:
            LaunchError: this process runs in no allocation, or the shell of jobs is missing.
        """
        shell_command(self.context.shell or self.options.shell)
        allocation = self._find_context()
        if self.options.steps:
            return allocation.launch_site(self.context, os.getpid())
        here = evolve(allocation, nodes=1)  # plain processes run on this node alone
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        names = tuple(name.strip() for name in visible.split(",") if name.strip())
        return here.launch_site(self.context, os.getpid(), names or tuple(map(str, range(allocation.gpus))))

    def _find_context(self) -> AllocationContext:
        """Return the allocation; the first call queries it and writes Slurm's variables to a file."""
        if self._allocation is None:
            self._allocation = find_allocation_context(self._slurm)
            write_environment(self.context.output_dir, self._label)
        return self._allocation

    @property
    def _label(self) -> str:
        return self._allocation.label(self.context, os.getpid()) if self._allocation else ""

    @property
    def _owner(self) -> str:
        """The end of the names of all steps of this runner."""
        return f"n{self._allocation.node_index if self._allocation else 0}_p{os.getpid()}"

    # --- starting --------------------------------------------------------------------------------

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts; failures are reported as events."""
        for attempt in attempts:
            tracked = TrackedAttempt(
                attempt, step_name(self.context, attempt.key, self._owner) if self.options.steps else ""
            )
            self._tracked[attempt.key] = tracked
            self._launch(tracked)

    def _launch(self, tracked: TrackedAttempt) -> None:
        """Start an attempt's process, or report why it cannot be started."""
        try:
            allocation = self._find_context()
            child = (
                self._start_step(tracked, allocation) if self.options.steps else self._start_process(tracked.attempt)
            )
            self._watch(tracked, child)
        except (OSError, ValueError, LaunchError) as error:
            self._report_launch_error(tracked, _launch_error(error, tracked.attempt))
            return
        tracked.child = child
        if child.stderr_fd < 0:
            self._report_start(tracked, child.started.at)

    def _watch(self, tracked: TrackedAttempt, child: ChildProcess) -> None:
        """Watch a process; one that cannot be watched is killed.

        Raises:
            OSError: it cannot be watched.
        """
        try:
            self._reactor.watch(child.exit_fd, lambda: self._on_exit(tracked, child))
            if child.stderr_fd >= 0:
                self._reactor.watch(child.stderr_fd, lambda: self._read_messages(tracked, child))
        except OSError:
            self._reactor.unwatch(child.exit_fd)
            child.kill_and_close()
            raise

    def _start_step(self, tracked: TrackedAttempt, allocation: AllocationContext) -> ChildProcess:
        attempt = tracked.attempt
        self._srun = self._srun or shutil.which("srun") or ""
        if not self._srun:
            raise LaunchError("there is no program 'srun' here")
        command = srun_command(
            self._srun, attempt, allocation, tracked.name, self._shell(attempt), packs=self.context.packs_resources
        )
        return ChildProcess.start(
            [*parent_death_prefix("TERM"), *command],
            step_environment(os.environ, attempt.environment),
            attempt.working_dir,
        )

    def _start_process(self, attempt: Attempt) -> ChildProcess:
        out, err = _open_log(attempt.stdout_path), -1
        try:
            is_combined = attempt.stderr_path == attempt.stdout_path
            err = os.dup(out) if is_combined else _open_log(attempt.stderr_path)
            command = [*parent_death_prefix("KILL"), *self._shell(attempt)]
            return ChildProcess.start(command, {**os.environ, **attempt.environment}, attempt.working_dir, (out, err))
        finally:
            for descriptor in (out, err):
                if descriptor >= 0:
                    os.close(descriptor)

    def _shell(self, attempt: Attempt) -> list[str]:
        """Return the shell with its arguments: the command, or the path of a file with a command that is too long."""
        shell = shell_command(attempt.shell)
        if len(os.fsencode(attempt.command)) < MAX_ARGUMENT_BYTES:
            return [*shell, "-c", attempt.command]
        path = self._script(attempt.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(attempt.command))
        return [*shell, str(path)]

    def _script(self, key: AttemptKey) -> Path:
        name = f"slurm_{self._label}_j{key.job_id}_a{key.attempt_id}.sh"
        return Path(self.context.output_dir, SCRIPTS_DIR, name)

    def _report_launch_error(self, tracked: TrackedAttempt, reason: str, ended: Instant | None = None) -> None:
        """Report that an attempt could not be started."""
        self._report_end(tracked, ExitObservation(self.name, launch_error=reason, ended_at=ended.at if ended else None))

    # --- events of processes ---------------------------------------------------------------------

    def wait_fd(self) -> int:
        """Return a descriptor that is readable while `poll` has something to do."""
        return self._reactor.fileno()

    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        self._reactor.run()
        events, self._events = self._events, []
        return events

    def _read_messages(self, tracked: TrackedAttempt, child: ChildProcess) -> None:
        """Read new messages of a step's srun."""
        data = child.read()
        if data is None:
            return
        tracked.messages.feed(data)
        if data:
            self._reactor.pause(child.stderr_fd, READ_PAUSE_S)
        else:
            self._reactor.unwatch(child.stderr_fd)
        if tracked.messages.started is not None:
            self._report_start(tracked, tracked.messages.started.at)

    def _report_start(self, tracked: TrackedAttempt, at: float) -> None:
        if not tracked.start_reported:
            tracked.start_reported = True
            self._launch_breaker.record_success()
            self._events.append(AttemptStarted(tracked.attempt.key, at))

    def _on_exit(self, tracked: TrackedAttempt, child: ChildProcess) -> None:
        """Reap an ended process, and report the end of its attempt or query accounting for it."""
        while child.stderr_fd >= 0 and (data := child.read()) is not None:
            tracked.messages.feed(data)
            if not data:
                break
        ended = child.reap()
        for descriptor in (child.exit_fd, child.stderr_fd):
            self._reactor.unwatch(descriptor)
        child.close()
        if not self.options.steps:
            self._report_end(tracked, _observe_process(self.name, child, ended))
            return
        messages = tracked.messages
        if messages.step_id is None:
            self._on_no_step(tracked, child, ended)
            return
        if messages.started is not None:
            self._report_start(tracked, messages.started.at)
        self._signaller.forget(messages.step_id)
        status = child.status or 0
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        end = StepEnd(tracked.name, messages, code, number, ended)
        self._events.append(AttemptSlotFreed(tracked.attempt.key))
        self._accounting.request_row(
            messages.step_id,
            lambda row, why: self._on_row(tracked, end, row, why),
            STOPPED_PATIENCE_S if tracked.is_stopping else None,
        )

    def _on_row(self, tracked: TrackedAttempt, end: StepEnd, row: StepRow | None, why: str) -> None:
        """Report the end of a step with its accounting row.

        If Slurm may have ended the step together with the allocation, query the allocation's state first.
        """
        if row is None:
            _LOG.info("event=no_accounting_row step=%s reason=%r", end.messages.step_id, why)
        seen = observe_step(self.name, end, row, why)
        may_be_allocation_end = tracked.is_stopping or seen.signal in _ALLOCATION_END_SIGNALS
        if may_be_allocation_end and seen.exit_code != 0 and self._allocation is not None:
            self._allocation_state.request(
                self._allocation.job_id,
                lambda state: self._report_end(tracked, seen if state is None else with_allocation_state(seen, state)),
                is_likely=tracked.is_stopping or end.messages.aborted,
            )
        else:
            self._report_end(tracked, seen)

    def _on_no_step(self, tracked: TrackedAttempt, child: ChildProcess, ended: Instant) -> None:
        """Handle an srun that ended before its step started.

        The runner stopped it, Slurm is unavailable, the allocation is over, or Slurm refused the step.
        """
        message = "; ".join(tracked.messages.errors) or " ".join(tracked.messages.last_lines)
        is_over = any(part in message for part in ALLOCATION_OVER_MESSAGES) and not means_unavailable(message)
        if tracked.is_stopping or (is_over and tracked.tries >= MAX_TRIES):
            self._forget(tracked)
            self._events.append(AttemptWithdrawn(tracked.attempt.key))
        elif is_over or means_unavailable(message):
            self._schedule_retry(tracked, message)
        else:
            reason = message or f"srun ended with wait status {child.status} and without a message"
            self._report_launch_error(tracked, reason, ended)

    def _schedule_retry(self, tracked: TrackedAttempt, message: str) -> None:
        """Start an attempt again after a pause."""
        if not self._launch_breaker.failures:
            _LOG.warning("event=srun_unanswered reason=%r", message)
        now = time.monotonic()
        if not self._launch_breaker.wait_s(now):
            self._launch_breaker.record_failure(now)
        tracked.child, tracked.messages, tracked.tries = None, SrunMessages(), tracked.tries + 1
        self._reactor.after(self._launch_breaker.wait_s(now), lambda: self._launch_again(tracked))

    def _launch_again(self, tracked: TrackedAttempt) -> None:
        if self._tracked.get(tracked.attempt.key) is tracked:
            self._launch(tracked)

    def _report_end(self, tracked: TrackedAttempt, seen: ExitObservation) -> None:
        self._forget(tracked)
        self._had_failures = self._had_failures or seen.exit_code != 0
        self._events.append(AttemptEnded(tracked.attempt.key, with_unstarted_step(seen, tracked.attempt.stderr_path)))

    def _forget(self, tracked: TrackedAttempt) -> None:
        """Remove an attempt and its script."""
        self._tracked.pop(tracked.attempt.key, None)
        if len(tracked.attempt.command) >= MAX_ARGUMENT_BYTES // 4:
            self._script(tracked.attempt.key).unlink(missing_ok=True)

    # --- stopping --------------------------------------------------------------------------------

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``force``, to these attempts; one that has not started is withdrawn."""
        steps: list[str] = []
        for tracked in [self._tracked[key] for key in keys if key in self._tracked]:
            tracked.is_stopping = True
            if tracked.child is None:
                self._forget(tracked)
                self._events.append(AttemptWithdrawn(tracked.attempt.key))
            elif not self.options.steps:
                tracked.child.signal(signal.SIGKILL if force else signal.SIGTERM, group=True)
            elif tracked.messages.step_id is not None:
                steps.append(tracked.messages.step_id)
            else:
                tracked.child.signal(signal.SIGTERM)  # its step has not started: only srun has to end
        if steps:
            self._signaller.send(steps, force=force)

    def _kill_through_srun(self, steps: Iterable[str]) -> None:
        """Let the sruns of these steps kill them, as the controller does not answer.

        A SIGTERM to srun kills the tasks of its step (measured with Slurm 22.05.8).
        """
        wanted = set(steps)
        for tracked in self._tracked.values():
            if tracked.child is not None and tracked.messages.step_id in wanted:
                tracked.child.signal(signal.SIGTERM)

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the root process of attempts without steps; processes of steps are not children of this process."""
        if self.options.steps:
            return {}
        tracked = {key: self._tracked[key] for key in keys if key in self._tracked}
        return {key: [each.child.pid] for key, each in tracked.items() if each.child is not None}

    # --- takeover of a dead runner ---------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what identifies the allocation and this runner's steps in it."""
        if self._allocation is None:
            return {}
        return {"slurm_job_id": self._allocation.job_id, "steps": self._owner}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Cancel the steps of a dead runner that still run; the ends of all its attempts are unknown.

        Raises:
            LaunchError: Slurm did not answer, so these steps may still run.
        """
        job_id, owner = state.get("slurm_job_id"), state.get("steps")
        if isinstance(job_id, int) and isinstance(owner, str):
            try:
                self._cancel_steps(job_id, owner)
            except AllocationError as error:
                raise LaunchError(f"steps of a dead runner may still run: {error}") from error
        return Adoption(unknown=tuple(keys))

    def _cancel_steps(self, job_id: int, owner: str) -> None:
        """Cancel all steps of a runner, which its steps' names end with."""
        try:
            listed = self._slurm.run("squeue", "-hs", "-j", str(job_id), "-o", "%i %j")
        except SlurmRefusedError:  # the allocation is over, and so are its steps
            return
        pairs = (line.split(maxsplit=1) for line in listed.splitlines())
        left = [messages[0] for messages in pairs if len(messages) == 2 and messages[1].endswith(f"_{owner}")]
        if left:
            _LOG.warning("event=left_steps_canceled steps=%s", ",".join(left))
            self._slurm.run("scancel", *left)

    # --- the end ---------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Close everything. The kernel then ends the sruns, which end the steps that still run."""
        self._accounting.close()
        self._allocation_state.close()
        self._signaller.close()
        self._reactor.close()

    def close(self) -> None:
        """Close everything, and write the kernel's messages if an attempt failed."""
        if self._had_failures and self._allocation is not None:
            write_kernel_messages(self.context.output_dir, self._label)
        self.abandon()


def _open_log(path: str) -> int:
    """Return a descriptor of a new, empty log, or of the null device."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)


def _launch_error(error: Exception, attempt: Attempt) -> str:
    """Return why an attempt could not be started."""
    if isinstance(error, OSError) and error.filename == attempt.working_dir:
        return f"cannot run in {attempt.working_dir!r}: no such folder, or no access to it"
    return str(error)


def _observe_process(executor: str, child: ChildProcess, ended: Instant) -> ExitObservation:
    """Return the observation of a plain process's end."""
    status = child.status or 0
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return ExitObservation(
        executor,
        exit_code=os.WEXITSTATUS(status) if number is None else None,
        signal=number,
        core_dumped=number is not None and os.WCOREDUMP(status),
        started_at=child.started.at,
        ended_at=ended.at,
        duration_s=ended.since(child.started),
        peak_memory_bytes=child.peak_memory_bytes,
        cpu_time_s=child.cpu_time_s,
        raw={"plain": True},
    )
