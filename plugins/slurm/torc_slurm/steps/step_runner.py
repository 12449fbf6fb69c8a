"""Attempts at work: each is a step with an srun of its own, or a plain process, from its start to its told end."""

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
from torc_slurm.accounting.step_accounting import StepAccounting, StepRow
from torc_slurm.calls.slurm_commands import CircuitBreaker, SlurmCommands, SlurmRefusedError, means_unavailable
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

SCRIPTS_DIR: Final = ".torc_runner"
"""Folder for commands that are too long for an argument, within the output directory."""
STOPPED_PATIENCE_S: Final = 1.0
"""How long accounting may take over a step that was stopped: why is known, and the allocation may be ending."""
READ_PAUSE_S: Final = 0.02
"""What an srun says within so long is taken in together: it says a lot, line by line."""
_ALLOCATION_END_SIGNALS: Final = (signal.SIGTERM, signal.SIGKILL)
"""Signals by which Slurm ends steps when it ends their allocation."""
_LOG: Final = logging.getLogger("torc_framework.slurm")


@define(eq=False)
class SlurmAttempt:
    """An attempt that has been given to this launcher and has not ended.

    Attributes:
        child: Its srun, or its shell where there are no steps; None while it waits to be begun again.
        name: Name of its step; empty where there are no steps.
        is_told: Its start was told.
        is_stopping: It was asked to end.
        tries: How often it was begun in vain.
    """

    attempt: Attempt
    name: str
    child: ChildProcess | None = None
    words: SrunMessages = field(factory=SrunMessages)
    is_told: bool = False
    is_stopping: bool = False
    tries: int = 0


class StepRunner:
    """Runs attempts as job steps of the allocation that it is in, or as plain processes within it.

    One ``srun`` stands for each step. It says when the step begins and with which wait status each task
    ends; what else is known of the end is asked of accounting, for many steps at once. The methods are those of
    `Launcher`.
    """

    def __init__(self, name: str, options: SlurmOptions, context: RunnerContext) -> None:
        self.name, self.options, self.context = name, options, context
        self._door = SlurmCommands("runner")
        self._reactor = Reactor()
        self._accountant = StepAccounting(
            self._door,
            self._reactor,
            options.accounting_interval_s,
            options.accounting_patience_s,
            SharedAccounting(
                Path(context.output_dir, SCRIPTS_DIR, f"accounting_wf{context.workflow_id}"),
                f"{context.hostname}_p{os.getpid()}",
                options.accounting_patience_s,
            ),
        )
        self._signaller = StepSignaller(self._door, self._reactor, self._kill_through_srun)
        self._fate = AllocationStateQuery(self._door, self._reactor, STOPPED_PATIENCE_S)
        self._launches = CircuitBreaker()
        self._place: AllocationContext | None = None
        self._live: dict[AttemptKey, SlurmAttempt] = {}
        self._news: list[LauncherEvent] = []
        self._had_failures = False
        self._srun = ""

    # --- where it is -----------------------------------------------------------------------------

    def launch_site(self) -> LaunchSite:
        """Return what the allocation offers.

        Raises:
            LaunchError: this is no allocation, or it lacks the shell.
        """
        shell_command(self.context.shell or self.options.shell)
        place = self._settle_in()
        if self.options.steps:
            return place.launch_site(self.context, os.getpid())
        here = evolve(place, nodes=1)  # plain processes run on this node alone
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        names = tuple(name.strip() for name in visible.split(",") if name.strip())
        return here.launch_site(self.context, os.getpid(), names or tuple(map(str, range(place.gpus))))

    def _settle_in(self) -> AllocationContext:
        """Find out where this is, once."""
        if self._place is None:
            self._place = find_allocation_context(self._door)
            write_environment(self.context.output_dir, self._label)
        return self._place

    @property
    def _label(self) -> str:
        return self._place.label(self.context, os.getpid()) if self._place else ""

    @property
    def _owner(self) -> str:
        """What the names of all steps of this runner end with."""
        return f"n{self._place.node_index if self._place else 0}_p{os.getpid()}"

    # --- beginning -------------------------------------------------------------------------------

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Begin these attempts."""
        for attempt in attempts:
            live = SlurmAttempt(
                attempt, step_name(self.context, attempt.key, self._owner) if self.options.steps else ""
            )
            self._live[attempt.key] = live
            self._begin(live)

    def _begin(self, live: SlurmAttempt) -> None:
        """Start an attempt's process, or report why that cannot be."""
        try:
            place = self._settle_in()
            child = self._start_step(live, place) if self.options.steps else self._start_plainly(live.attempt)
            self._watch(live, child)
        except (OSError, ValueError, LaunchError) as error:
            self._fail(live, _launch_error(error, live.attempt))
            return
        live.child = child
        if child.words_fd < 0:
            self._tell_start(live, child.started.at)

    def _watch(self, live: SlurmAttempt, child: ChildProcess) -> None:
        """Listen to a process; one that cannot be watched is ended.

        Raises:
            OSError: it cannot be watched.
        """
        try:
            self._reactor.watch(child.end_fd, lambda: self._over(live, child))
            if child.words_fd >= 0:
                self._reactor.watch(child.words_fd, lambda: self._hear(live, child))
        except OSError:
            self._reactor.unwatch(child.end_fd)
            child.drop()
            raise

    def _start_step(self, live: SlurmAttempt, place: AllocationContext) -> ChildProcess:
        attempt = live.attempt
        self._srun = self._srun or shutil.which("srun") or ""
        if not self._srun:
            raise LaunchError("there is no program 'srun' here")
        command = srun_command(
            self._srun, attempt, place, live.name, self._shell(attempt), packs=self.context.packs_resources
        )
        return ChildProcess.start(
            [*parent_death_prefix("TERM"), *command],
            step_environment(os.environ, attempt.environment),
            attempt.working_dir,
        )

    def _start_plainly(self, attempt: Attempt) -> ChildProcess:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        out = os.open(attempt.stdout_path, flags, 0o666)
        err = -1
        try:
            err = os.open(attempt.stderr_path, flags, 0o666)
            command = [*parent_death_prefix("KILL"), *self._shell(attempt)]
            return ChildProcess.start(command, {**os.environ, **attempt.environment}, attempt.working_dir, (out, err))
        finally:
            for descriptor in (out, err):
                if descriptor >= 0:
                    os.close(descriptor)

    def _shell(self, attempt: Attempt) -> list[str]:
        """Return the shell with its arguments: the command itself, or a file with it when it is too long for one."""
        words = shell_command(attempt.shell)
        if len(os.fsencode(attempt.command)) < MAX_ARGUMENT_BYTES:
            return [*words, "-c", attempt.command]
        path = self._script(attempt.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(attempt.command))
        return [*words, str(path)]

    def _script(self, key: AttemptKey) -> Path:
        name = f"slurm_{self._label}_j{key.job_id}_a{key.attempt_id}.sh"
        return Path(self.context.output_dir, SCRIPTS_DIR, name)

    def _fail(self, live: SlurmAttempt, reason: str, ended: Instant | None = None) -> None:
        """Report that an attempt could not be started."""
        self._end(live, ExitObservation(self.name, launch_error=reason, ended_at=ended.at if ended else None))

    # --- what processes tell ---------------------------------------------------------------------

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there is news."""
        return self._reactor.fileno()

    def poll(self) -> list[LauncherEvent]:
        """Return what has happened since the last call."""
        self._reactor.run()
        news, self._news = self._news, []
        return news

    def _hear(self, live: SlurmAttempt, child: ChildProcess) -> None:
        """Take in what a step's srun says."""
        data = child.read()
        if data is None:
            return
        live.words.hear(data)
        if data:
            self._reactor.pause(child.words_fd, READ_PAUSE_S)
        else:
            self._reactor.unwatch(child.words_fd)
        if live.words.started is not None:
            self._tell_start(live, live.words.started.at)

    def _tell_start(self, live: SlurmAttempt, at: float) -> None:
        if not live.is_told:
            live.is_told = True
            self._launches.succeeded()
            self._news.append(AttemptStarted(live.attempt.key, at))

    def _over(self, live: SlurmAttempt, child: ChildProcess) -> None:
        """A process has ended."""
        while child.words_fd >= 0 and (data := child.read()) is not None:
            live.words.hear(data)
            if not data:
                break
        ended = child.reap()
        for descriptor in (child.end_fd, child.words_fd):
            self._reactor.unwatch(descriptor)
        child.close()
        if not self.options.steps:
            self._end(live, _observe_process(self.name, child, ended))
            return
        words = live.words
        if words.step_id is None:
            self._never_began(live, child, ended)
            return
        if words.started is not None:
            self._tell_start(live, words.started.at)
        self._signaller.forget(words.step_id)
        status = child.status or 0
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        end = StepEnd(live.name, words, code, number, ended)
        self._news.append(AttemptSlotFreed(live.attempt.key))
        self._accountant.want(
            words.step_id,
            lambda row, why: self._told(live, end, row, why),
            STOPPED_PATIENCE_S if live.is_stopping else None,
        )

    def _told(self, live: SlurmAttempt, end: StepEnd, row: StepRow | None, why: str) -> None:
        """Accounting has said what it knows of a step."""
        if row is None:
            _LOG.info("event=no_accounting_row step=%s reason=%r", end.words.step_id, why)
        seen = observe_step(self.name, end, row, why)
        may_be_slurms = live.is_stopping or seen.signal in _ALLOCATION_END_SIGNALS
        if may_be_slurms and seen.exit_code != 0 and self._place is not None:
            self._fate.want(
                self._place.job_id,
                lambda state: self._end(live, seen if state is None else with_allocation_state(seen, state)),
                is_likely=live.is_stopping or end.words.aborted,
            )
        else:
            self._end(live, seen)

    def _never_began(self, live: SlurmAttempt, child: ChildProcess, ended: Instant) -> None:
        """An srun has ended without a step: it was called off, Slurm is ill, the allocation is over, or it refuses."""
        words = "; ".join(live.words.complaints) or " ".join(live.words.last)
        is_over = any(part in words for part in ALLOCATION_OVER_MESSAGES) and not means_unavailable(words)
        if live.is_stopping or (is_over and live.tries >= MAX_TRIES):
            self._drop(live)
            self._news.append(AttemptWithdrawn(live.attempt.key))
        elif is_over or means_unavailable(words):
            self._again(live, words)
        else:
            self._fail(live, words or f"srun ended with wait status {child.status} and without a word", ended)

    def _again(self, live: SlurmAttempt, words: str) -> None:
        """Begin an attempt again when Slurm has had time to get well."""
        if not self._launches.failures:
            _LOG.warning("event=srun_unanswered reason=%r", words)
        now = time.monotonic()
        if not self._launches.wait_s(now):
            self._launches.failed(now)
        live.child, live.words, live.tries = None, SrunMessages(), live.tries + 1
        self._reactor.after(self._launches.wait_s(now), lambda: self._retry(live))

    def _retry(self, live: SlurmAttempt) -> None:
        if self._live.get(live.attempt.key) is live:
            self._begin(live)

    def _end(self, live: SlurmAttempt, seen: ExitObservation) -> None:
        self._drop(live)
        self._had_failures = self._had_failures or seen.exit_code != 0
        self._news.append(AttemptEnded(live.attempt.key, seen))

    def _drop(self, live: SlurmAttempt) -> None:
        """Forget an attempt."""
        self._live.pop(live.attempt.key, None)
        if len(live.attempt.command) >= MAX_ARGUMENT_BYTES // 4:
            self._script(live.attempt.key).unlink(missing_ok=True)

    # --- stopping --------------------------------------------------------------------------------

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Ask these attempts to end: SIGTERM, or SIGKILL with ``force``."""
        steps: list[str] = []
        for live in [self._live[key] for key in keys if key in self._live]:
            live.is_stopping = True
            if live.child is None:
                self._drop(live)
                self._news.append(AttemptWithdrawn(live.attempt.key))
            elif not self.options.steps:
                live.child.signal(signal.SIGKILL if force else signal.SIGTERM, group=True)
            elif live.words.step_id is not None:
                steps.append(live.words.step_id)
            else:
                live.child.signal(signal.SIGTERM)  # it waits for room: there is nothing else to end
        if steps:
            self._signaller.send(steps, force=force)

    def _kill_through_srun(self, steps: Iterable[str]) -> None:
        """Let the sruns of steps kill them, as the controller cannot be reached."""
        wanted = set(steps)
        for live in self._live.values():
            if live.child is not None and live.words.step_id in wanted:
                live.child.signal(signal.SIGTERM)

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the first process of plain attempts; those of steps are not this process's own."""
        if self.options.steps:
            return {}
        live = {key: self._live[key] for key in keys if key in self._live}
        return {key: [each.child.pid] for key, each in live.items() if each.child is not None}

    # --- after a crash ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Name the allocation and this runner's steps in it."""
        if self._place is None:
            return {}
        return {"slurm_job_id": self._place.job_id, "steps": self._owner}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Cancel what is left of a dead runner's steps: they ended with it, or nobody sees their ends.

        Raises:
            LaunchError: Slurm was not reached, so they may still run.
        """
        job_id, owner = state.get("slurm_job_id"), state.get("steps")
        if isinstance(job_id, int) and isinstance(owner, str):
            try:
                self._cancel_steps(job_id, owner)
            except AllocationError as error:
                raise LaunchError(f"steps of a dead runner may still run: {error}") from error
        return Adoption(unknown=tuple(keys))

    def _cancel_steps(self, job_id: int, owner: str) -> None:
        """Cancel all steps whose names end with an owner's mark."""
        try:
            listed = self._door.ask("squeue", "-hs", "-j", str(job_id), "-o", "%i %j")
        except SlurmRefusedError:  # the allocation is over, and its steps with it
            return
        pairs = (line.split(maxsplit=1) for line in listed.splitlines())
        left = [words[0] for words in pairs if len(words) == 2 and words[1].endswith(f"_{owner}")]
        if left:
            _LOG.warning("event=left_steps_canceled steps=%s", ",".join(left))
            self._door.ask("scancel", *left)

    # --- the end ---------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Let go of everything; steps that still run are ended by their sruns, which are ended by the kernel."""
        self._accountant.close()
        self._fate.close()
        self._signaller.close()
        self._reactor.close()

    def close(self) -> None:
        """Let go of everything, and keep the kernel's messages if anything failed."""
        if self._had_failures and self._place is not None:
            write_kernel_messages(self.context.output_dir, self._label)
        self.abandon()


ALLOCATION_OVER_MESSAGES: Final = (
    "Job/step already completing or completed",
    "Invalid job id specified",
    "Expired or invalid job",
    "Job has already finished",
    "has expired",
)
"""What srun says when there is no allocation any more (slurm_errno.c): the runner is about to be ended, too."""
MAX_TRIES: Final = 4
"""A runner that is still there after so many tries, ever further apart, gives its jobs back."""


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
