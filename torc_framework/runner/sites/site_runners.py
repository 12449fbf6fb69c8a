"""The runners of all sites of a run, as one.

The main thread receives the signals and passes them on. A site whose runner cannot be made is tried again while others
work; so is one whose runner ended by an error, and its next runner takes over what the first one held.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from torc_framework.errors import LaunchError
from torc_framework.plugins.watched_calls import is_stuck
from torc_framework.runner.process.settings import RunListeners, RunOutcome
from torc_framework.runner.process.signals import RunnerSignals
from torc_framework.runner.process.site_group import SiteGroup, SiteMember
from torc_framework.runner.process.wakeup import Wakeup
from torc_framework.runner.sites.merged_outcome import merge_outcomes
from torc_framework.runner.sites.shared_listeners import SharedListeners
from torc_framework.runner.sites.site_worker import SiteRunner, SiteWorker, without_site
from torc_framework.system.processes import start_thread_with_retry

LOOK_S: Final = 1.0
"""Longest wait of the main thread."""
LEAVE_S: Final = 3.0
"""How long after a signal the main thread waits for runners that are still being made, such as for a connection."""

TimedRunnerMaker = Callable[[SiteMember, RunListeners, float], SiteRunner]
"""Makes the runner of a site so many seconds after the begin of the run; called in the thread of the site."""


class SiteRunners:
    """Runs a workflow on several sites.

    Args:
        sites: Names of the sites, all different.
        make: Makes the runner of a site.
        listeners: Called by all runners, one after the other.
        handle_signals: SIGTERM, SIGINT and SIGHUP end all runners cleanly.
    """

    def __init__(
        self, sites: Sequence[str], make: TimedRunnerMaker, listeners: RunListeners, *, handle_signals: bool
    ) -> None:
        self._wakeup = Wakeup()
        self._signals = RunnerSignals(self._wakeup, wanted=handle_signals)
        self._group, shared, self._began = (
            SiteGroup(sites, self._wakeup.wake),
            SharedListeners(listeners),
            time.monotonic(),
        )

        def made(member: SiteMember, listeners: RunListeners) -> SiteRunner:
            return make(member, listeners, time.monotonic() - self._began)

        self._workers = [SiteWorker(self._group.member(site), made, shared, self._give_away) for site in sites]

    def run(self) -> RunOutcome:
        """Work until the runners of all sites have ended.

        Raises:
            LaunchError: no site could begin; the message has the reason of each.
            Exception: no runner came to its end, and this is the error of the first.
            KeyboardInterrupt: a signal came before there was any runner.
        """
        try:
            with self._signals:
                for worker in self._workers:
                    start_thread_with_retry(worker.thread)
                self._watch()
        except BaseException:
            self._interrupt("SIGINT")  # the signals are not handled here; the jobs are stopped all the same
            self._stop_trying()
            for worker in self._workers:
                while worker.has_runner and not is_stuck(worker.thread):
                    worker.thread.join(LOOK_S)
            raise
        finally:
            self._wakeup.close()
        return self._outcome()

    def _watch(self) -> None:
        """Pass signals on until every runner has ended."""
        relayed, since = 0, 0.0
        while any(worker.thread.is_alive() for worker in self._workers):
            self._wakeup.wait(LOOK_S)
            while relayed < self._signals.count:
                relayed, since = relayed + 1, time.monotonic()
                self._interrupt(self._signals.last)
            if relayed or self._group.is_over or self._is_complete:
                self._stop_trying()
            living = [worker.thread for worker in self._workers if worker.thread.is_alive()]
            if relayed > 1 and living and all(map(is_stuck, living)):
                raise KeyboardInterrupt  # plugins do not return; the next run takes over what these runners hold
            is_late = self._is_complete or relayed > 1 or (relayed == 1 and time.monotonic() - since >= LEAVE_S)
            if is_late and not any(worker.has_runner for worker in self._workers):
                return  # what is still being made holds no job

    @property
    def _is_complete(self) -> bool:
        """Whether a runner has seen that nothing of the workflow is left to do."""
        return any(outcome.is_complete for worker in self._workers for _, outcome in worker.runs)

    def _interrupt(self, signal_name: str) -> None:
        for worker in self._workers:
            worker.interrupt(signal_name)

    def _stop_trying(self) -> None:
        for worker in self._workers:
            worker.stop_trying()

    def _give_away(self) -> None:
        """Let a runner that works take over what is left on sites that cannot begin."""
        next((worker for worker in self._workers if worker.take_over_more()), None)

    def _outcome(self) -> RunOutcome:
        """Return the outcome of all runners together."""
        runs = sorted((run for worker in self._workers for run in worker.runs), key=lambda run: run[0])
        errors = {worker.member.site: worker.error for worker in self._workers if worker.error is not None}
        if not any(outcome.counts for _, outcome in runs):
            raise _error_of_all(errors)
        merged = merge_outcomes([outcome for _, outcome in runs])
        merged.duration_s = time.monotonic() - self._began
        merged.sites = [worker.outcome() for worker in self._workers]
        troubles = ((each.site, each.trouble) for each in merged.sites if each.trouble)
        merged.troubles += [f"{site}: {without_site(site, trouble)}" for site, trouble in troubles]
        return merged


def _error_of_all(errors: Mapping[str, BaseException]) -> BaseException:
    """Return the error that ends a run in which no runner came to its end."""
    if not errors:
        return KeyboardInterrupt()
    other = next((error for error in errors.values() if not isinstance(error, LaunchError)), None)
    if other is not None:
        return other
    reasons = (f"{site}: {without_site(site, str(error))}" for site, error in errors.items())
    return LaunchError("no site can begin: " + "; ".join(reasons))
