"""The executor's half that launches: job steps of the allocation that it is in."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve

from torc_framework.api import Adoption, Attempt, AttemptKey, Launcher, LauncherEvent, LaunchSite, RunnerContext
from torc_slurm.cluster.allocation_context import inside_allocation
from torc_slurm.shared.options import SlurmOptions
from torc_slurm.steps.step_runner import StepRunner


class StepLauncher(Launcher):
    """Runs attempts as job steps: begun with ``srun``, stopped with ``scancel``, named at their end by accounting."""

    options: SlurmOptions

    def __init__(self, options: SlurmOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        self.capabilities = evolve(type(self).capabilities, limits_runtime=options.steps)

    @cached_property
    def _bench(self) -> StepRunner:
        """Where the work is done; there is none as long as nodes are obtained and nothing is run."""
        return StepRunner(self.name, self.options, self.context)

    @classmethod
    def can_launch_here(cls) -> bool:
        """Steps are begun within an allocation only."""
        return inside_allocation()

    def launch_site(self) -> LaunchSite:
        """Return what the allocation offers.

        Raises:
            LaunchError: this is no allocation.
        """
        return self._bench.launch_site()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Begin these attempts."""
        self._bench.start(attempts)

    def poll(self) -> list[LauncherEvent]:
        """Return what has happened since the last call."""
        return self._bench.poll()

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Ask these attempts to end: SIGTERM, or SIGKILL with ``force``."""
        self._bench.stop(keys, force=force)

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there is news."""
        return self._bench.wait_fd()

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the first process of plain attempts; those of steps are not this process's own."""
        return self._bench.processes(keys)

    def state(self) -> dict[str, Any]:
        """Name the allocation and this runner's steps in it."""
        return self._bench.state()

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Cancel what is left of a dead runner's steps: they ended with it, or nobody sees their ends.

        Raises:
            LaunchError: Slurm was not reached, so they may still run.
        """
        return self._bench.adopt(state, keys)

    def abandon(self) -> None:
        """Let go of everything; steps that still run are ended by their sruns, which are ended by the kernel."""
        if "_bench" in self.__dict__:
            self._bench.abandon()

    def close(self) -> None:
        """Let go of everything, and keep the kernel's messages if anything failed."""
        if "_bench" in self.__dict__:
            self._bench.close()
