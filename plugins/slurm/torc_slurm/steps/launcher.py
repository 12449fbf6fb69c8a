"""The launcher of executor ``slurm``, which runs attempts in the allocation around this process."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve

from torc_framework.api import Adoption, Attempt, AttemptKey, Launcher, LauncherEvent, LaunchSite, RunnerContext
from torc_slurm.cluster.allocation_context import inside_allocation
from torc_slurm.shared.options import SlurmOptions
from torc_slurm.steps.step_runner import StepRunner


class StepLauncher(Launcher):
    """Runs attempts as job steps: ``srun`` starts them, ``scancel`` stops them, accounting describes their ends."""

    options: SlurmOptions

    def __init__(self, options: SlurmOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        self.capabilities = evolve(type(self).capabilities, limits_runtime=options.steps)

    @cached_property
    def _step_runner(self) -> StepRunner:
        """The step runner; it is made when it is first needed, and never in a process that only requests nodes."""
        return StepRunner(self.name, self.options, self.context)

    @classmethod
    def can_launch_here(cls) -> bool:
        """Return whether this process runs within an allocation."""
        return inside_allocation()

    def launch_site(self) -> LaunchSite:
        """Return the nodes of the allocation and their resources.

        Raises:
            LaunchError: this process runs in no allocation, or the shell of jobs is missing.
        """
        return self._step_runner.launch_site()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts; return at once."""
        self._step_runner.start(attempts)

    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        return self._step_runner.poll()

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``force``, to these attempts."""
        self._step_runner.stop(keys, force=force)

    def wait_fd(self) -> int:
        """Return a descriptor that is readable while `poll` has something to do."""
        return self._step_runner.wait_fd()

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the root process of attempts without steps; processes of steps are not children of this process."""
        return self._step_runner.processes(keys)

    def state(self) -> dict[str, Any]:
        """Return what identifies the allocation and this runner's steps in it."""
        return self._step_runner.state()

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Cancel the steps of a dead runner that still run; the ends of all its attempts are unknown.

        Raises:
            LaunchError: Slurm did not answer, so these steps may still run.
        """
        return self._step_runner.adopt(state, keys)

    def abandon(self) -> None:
        """Close everything. The kernel then ends the sruns, which end the steps that still run."""
        if "_step_runner" in self.__dict__:
            self._step_runner.abandon()

    def close(self) -> None:
        """Close everything, and write the kernel's messages if an attempt failed."""
        if "_step_runner" in self.__dict__:
            self._step_runner.close()
