"""The launchers of one runner. Each is made when a job first needs it."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from torc_framework.allocations.allocators import ExecutorOptions, make_allocator
from torc_framework.errors import ConfigError, ExecutorError, LaunchError, TorcError, UserError
from torc_framework.executors import Allocator, AttemptKey, Launcher, LauncherEvent, RunnerContext
from torc_framework.job_options import container_refusal, runs_containers
from torc_framework.models.exchange import ClaimedJob
from torc_framework.runner.attempts.guarded_calls import guarded_call, with_guarded_calls
from torc_framework.system.shells import NO_BASH_WARNING, lacks_default_shell

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

_log: Final = logging.getLogger(__name__)


def find_sites(plugins: "PluginManager", options: ExecutorOptions, context: RunnerContext, name: str) -> Sequence[str]:
    """Return the names of the sites of an executor; of one that launches nothing, a single empty name.

    Raises:
        UserError: it is not known, or has no such options.
        LaunchError: the sites cannot be found out.
        ExecutorError: its method raised, or returned no list of different names.
    """
    executor, label = plugins.executor(name), plugins.executor_label(name)
    if not issubclass(executor, Launcher):
        return ("",)
    values = guarded_call(label, "__init__", executor.make_options, options.get(name, {}))
    sites: Sequence[str] = guarded_call(label, "sites", executor.sites, values, context)
    return sites


class Launchers:
    """The launchers of a runner, by the names of their executors.

    What a method of a launcher raises is a `TorcError`; an error of the method itself is an `ExecutorError`.

    Args:
        plugins: Offer the executors.
        options: Values of options, by executor name and option name.
        context: The runner, with the site that its own executor serves.
        on_new: Called with each new launcher before it is used.
        own: Name of the runner's own executor.
    """

    def __init__(
        self,
        plugins: "PluginManager",
        options: ExecutorOptions,
        context: RunnerContext,
        on_new: Callable[[Launcher], None],
        own: str = "",
    ) -> None:
        self._plugins, self._options, self._context, self._on_new = plugins, options, context, on_new
        self._own = own
        self.by_name: dict[str, Launcher] = {}
        self._only_adopts: dict[str, TorcError] = {}
        """Executors that start nothing under this runner, and why."""

    def get(self, name: str) -> Launcher:
        """Return the launcher of that name.

        Raises:
            UserError: it is not known, cannot launch, or has no such options.
            LaunchError: it cannot work here.
            ExecutorError: it lacks a method, or one of its methods raised.
        """
        if name not in self.by_name:
            self.by_name[name] = self._make(name)
            try:
                self._on_new(self.by_name[name])
            except BaseException:
                with suppress(ExecutorError):  # the first error is the one to tell
                    self.by_name.pop(name).close()
                raise
        return self.by_name[name]

    def options_for(self, job: ClaimedJob, name: str) -> Any:
        """Return a job's options for the executor of that name, after a check that it can start the job here.

        Returns:
            An instance of `Executor.JobOptions`; None if the executor has no such class.

        Raises:
            TorcError: the executor is not known, cannot work here, has sites of its own, none of which the runner
                serves, runs no containers although the job names one, or refuses the job's options.
        """
        launcher = self.get(name)
        if (error := self._only_adopts.get(name)) is not None:
            raise error
        if job.container and not launcher.capabilities.runs_containers:
            others = [each for each, kind in self._plugins.executors().items() if runs_containers(kind)]
            raise LaunchError(container_refusal(f"job {job.name!r}", name, others))
        options = json.loads(job.executor_options).get(name) if job.executor_options else None
        try:
            return launcher.make_job_options(options)
        except ConfigError as refusal:
            raise ConfigError(f"executor_options of {name!r} in job {job.name!r}: {refusal}") from refusal

    def checks_outputs(self, name: str) -> bool:
        """Return whether an executor looks for output files itself, so that the runner does not."""
        launcher = self.by_name.get(name)
        return launcher is not None and launcher.capabilities.checks_outputs

    def shell(self, name: str) -> str:
        """Return the shell of jobs that name none: that of the workflow, else the option ``shell`` of the launcher."""
        return self._context.shell or getattr(self.get(name).options, "shell", "")

    def cautions(self) -> list[str]:
        """Return warnings about the shell under which jobs of these launchers run."""
        takes_default = any(not self.shell(name) for name in self.by_name)
        return [NO_BASH_WARNING] if takes_default and lacks_default_shell() else []

    def allocator(self, name: str) -> Allocator:
        """Return a new allocator of that name.

        Raises:
            UserError: it is not known, cannot allocate, or has no such options.
        """
        return make_allocator(self._plugins.executor, self._options, self._context, name)

    def _make(self, name: str) -> Launcher:
        executor = self._plugins.executor(name)
        if not issubclass(executor, Launcher):
            raise UserError(f"executor {name!r} obtains nodes but does not run jobs; a runner needs one that does")
        label = self._plugins.executor_label(name)
        if executor.__abstractmethods__:
            lacking = ", ".join(sorted(executor.__abstractmethods__))
            raise ExecutorError(f"{label} does not define {lacking}; every launcher has to")
        options = self._options.get(name, {})
        context = self._context
        if name != self._own:
            context = evolve(context, site="")
            self._note_own_sites(name)
        made: Launcher = guarded_call(label, "__init__", executor.with_options, options, context)
        return with_guarded_calls(label, made)

    def _note_own_sites(self, name: str) -> None:
        """Note if an executor works on sites of its own, none of which this runner serves."""
        try:
            has_sites = any(find_sites(self._plugins, self._options, self._context, name))
        except (LaunchError, UserError) as error:
            self._only_adopts[name] = error
            return
        if has_sites:
            command = f"torc run {self._context.workflow_id} --executor {name}"
            self._only_adopts[name] = LaunchError(
                f"executor {name!r} works on sites of its own, and each needs a runner of its own: '{command}'"
            )

    def survives(self, name: str) -> bool:
        """Return whether attempts of this executor survive the runner."""
        launcher = self.by_name.get(name)
        return launcher is not None and launcher.capabilities.survives_runner

    def ends_stored(self, name: str, keys: Sequence[AttemptKey]) -> None:
        """Tell the launcher of that name, if there is one, which ends the server has stored."""
        if (launcher := self.by_name.get(name)) is not None:
            launcher.ends_stored(keys)

    def further_logs(self, name: str, key: AttemptKey) -> Sequence[str]:
        """Return the logs of an attempt besides those for its two streams, from the launcher of that name."""
        launcher = self.by_name.get(name)
        return () if launcher is None else launcher.further_logs(key)

    def states(self) -> dict[str, dict[str, Any]]:
        """Return what a later runner needs to take over, by executor name."""
        return {name: launcher.state() for name, launcher in self.by_name.items()}

    def poll(self) -> list[LauncherEvent]:
        """Return the events of all launchers."""
        return [event for launcher in self.by_name.values() for event in launcher.poll()]

    def accepts_attempts(self) -> bool:
        """Return whether the runner's own executor takes attempts now."""
        launcher = self.by_name.get(self._own)
        return launcher is None or launcher.accepts_attempts

    def hindrance(self) -> str | None:
        """Return why attempts cannot begin at present; None if they can."""
        return next((each.hindrance for each in self.by_name.values() if each.hindrance), None)

    def round_trip_s(self) -> float:
        """Return the longest time from an order until its effect can be reported."""
        return max((each.round_trip_s for each in self.by_name.values()), default=0.0)

    def poll_interval_s(self) -> float | None:
        """Return how often `poll` must be called; None if every launcher has a descriptor to wait for."""
        return min((each.poll_interval_s for each in self.by_name.values() if each.wait_fd() is None), default=None)

    def close(self) -> None:
        """Close all launchers; every end must have been reported."""
        while self.by_name:
            self.by_name.popitem()[1].close()

    def abandon(self) -> None:
        """Abandon all launchers, so that a later runner adopts what still runs; log what they raise."""
        while self.by_name:
            try:
                self.by_name.popitem()[1].abandon()
            except ExecutorError as error:  # the reason for which they are abandoned is the one to raise
                _log.warning("%s", error)
