"""All pods of one runner: their creation, the watch that follows them, and their removal."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from torc_framework.api import Attempt, AttemptKey, LauncherEvent, RunnerContext
from torc_k8s.cluster import Cluster, ClusterError, PodWatch
from torc_k8s.executor.attempt_pods import AttemptPods
from torc_k8s.executor.leftovers import remove_scope
from torc_k8s.executor.member_pod import LogPaths, MemberPod
from torc_k8s.executor.pod_planner import PodPlanner
from torc_k8s.executor.scope_services import ScopeServices
from torc_k8s.pods.names import selector
from torc_k8s.pods.options import K8sOptions

TICK_S: Final = 1.0
"""How often the limits of time are looked at."""
REMOVAL_S: Final = 30.0
"""At the end the pods of ended attempts may take so long to be removed one by one."""
SETTLE_S: Final = 3.0
"""A request of a dead process reaches the cluster within this time; so long names stay taken."""
LAST_PATIENCE_S: Final = 10.0
"""At the end a request is repeated for so long while the cluster does not answer."""
SLOW_TICK: Final = 1000
"""With more attempts than this the limits are looked at more seldom."""

_log: Final = logging.getLogger(__name__)


class RunnerPods:
    """The pods of one scope. All methods run in the event loop.

    Args:
        cluster: The cluster and namespace.
        scope: The label by which the pods are found.
        options: The executor's options.
        context: The runner.
        report: Takes events, in the event loop.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: str,
        options: K8sOptions,
        context: RunnerContext,
        report: Callable[[list[LauncherEvent]], None],
    ) -> None:
        self.services = ScopeServices(cluster, scope, options, context.output_dir, report)
        self._planner = PodPlanner(self.services, context)
        self._attempts: dict[AttemptKey, AttemptPods] = {}
        self.followed: dict[str, MemberPod] = {}
        """All pods that are followed, by name."""
        self._is_followed = False
        self.trouble: str | None = None
        self.trouble_since = 0.0
        self.is_searching = False
        """The pods of a dead runner are looked for: attempts may be found that are not known yet."""
        self._early_stops: dict[AttemptKey, bool] = {}
        """Stops of attempts that have not been found yet, and whether they are forced."""
        self.on_stranger: Callable[[dict[str, Any]], None] = lambda _: None
        """Called with what the cluster says of a pod that is not followed."""
        self._late_until = -math.inf
        """Until when a request of a dead runner may arrive, by the monotonic clock."""

    def expect_late(self) -> None:
        """Note that a request of a dead runner may be on its way: a name was taken, or a group lacks pods."""
        self._late_until = time.monotonic() + SETTLE_S

    # --- attempts --------------------------------------------------------------------------------

    def begin(self, attempts: Iterable[Attempt]) -> None:
        """Create the pods of these attempts, and follow them."""
        self.follow()
        for attempt in attempts:
            logs = LogPaths(attempt.stdout_path, attempt.stderr_path)
            self.run(AttemptPods(attempt.key, self.services, self.followed, logs, partial(self._planner.plan, attempt)))

    def run(self, attempt: AttemptPods) -> None:
        """Follow an attempt to its end."""
        self._attempts[attempt.key] = attempt
        if (force := self._early_stops.pop(attempt.key, None)) is not None:
            attempt.stop(force=force)
        task = self.services.spawn(attempt.run())
        task.add_done_callback(lambda done: self._finished(attempt, done))

    def _finished(self, attempt: AttemptPods, task: "asyncio.Task[None]") -> None:
        """Forget an attempt."""
        if self._attempts.get(attempt.key) is attempt:
            del self._attempts[attempt.key]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the pods of attempt %s could not be removed", attempt.key, exc_info=error)

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Stop these attempts (`AttemptPods.stop`); ended and unknown ones are ignored."""
        for key in keys:
            if (attempt := self._attempts.get(key)) is not None:
                attempt.stop(force=force)
            elif self.is_searching:
                self._early_stops[key] = force or self._early_stops.get(key, False)

    def log_files(self, key: AttemptKey) -> list[str]:
        """Return the files of the output of all pods of an attempt; none if it is not known."""
        attempt = self._attempts.get(key)
        members = () if attempt is None else list(attempt.members)
        return [path for member in members for path in member.logs.different]

    def stored(self, keys: Iterable[AttemptKey]) -> None:
        """Remove the pods of these attempts: the server has stored their ends."""
        for key in keys:
            if (attempt := self._attempts.get(key)) is not None:
                attempt.stored()

    # --- what the cluster reports ----------------------------------------------------------------

    def follow(self) -> None:
        """Begin to follow the pods of the scope."""
        if not self._is_followed:
            self._is_followed = True
            services = self.services
            labels = selector(services.scope)
            services.spawn(PodWatch(services.cluster, labels, self._on_pod, self._on_listed, self._on_trouble).run())
            services.spawn(self._tick())

    def _on_pod(self, pod: dict[str, Any], is_deleted: bool) -> None:
        member = self.followed.get(pod["metadata"]["name"])
        if member is not None:
            member.update(pod, is_gone=is_deleted)
        elif not is_deleted:
            self.on_stranger(pod)

    def _on_listed(self, names: set[str]) -> None:
        for name, member in self.followed.items():
            if name not in names and member.exists_alone:
                self.services.spawn(self._look_for(member))

    async def _look_for(self, member: MemberPod) -> None:
        """Ask for a pod that a list lacked: it is gone, or newer than the list."""
        try:
            await self.services.settle(lambda: self.services.cluster.get("pods", member.name))
        except ClusterError as error:
            if error.status == 404:
                member.vanished()

    def _on_trouble(self, reason: str | None) -> None:
        if self.trouble is None:
            self.trouble_since = time.time()
        self.trouble = reason
        self.services.is_answering = reason is None
        self.services.report([])  # the runner looks at the hindrance

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S * (1 + len(self._attempts) // SLOW_TICK))
            if self.trouble is not None:
                continue  # the facts are old
            now = time.time()
            for attempt in list(self._attempts.values()):
                try:
                    attempt.tick(now)
                except Exception:  # it must not end the limits of all other attempts
                    _log.exception("the limits of attempt %s cannot be looked at", attempt.key)

    def hindrance(self) -> str | None:
        """Return why nothing can begin at present; None if it can."""
        if self.trouble is None:
            return None
        since = time.strftime("%H:%M:%S", time.localtime(self.trouble_since))
        return f"the cluster has not answered since {since} ({self.trouble}); torc tries again, and its pods go on"

    def is_running(self, key: AttemptKey) -> bool:
        """Return whether an attempt is known whose end is not."""
        attempt = self._attempts.get(key)
        return attempt is not None and attempt.is_running

    # --- the end ---------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Remove all that is left in the cluster: the server has stored every end."""
        services = self.services
        try:
            self.stored(list(self._attempts))
            deadline = time.monotonic() + REMOVAL_S
            while self._attempts and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            await services.close()
            await asyncio.sleep(self._late_until - time.monotonic())
            await remove_scope(services.cluster, services.scope, patience_s=LAST_PATIENCE_S)
        except ClusterError as error:
            _log.warning("not all pods could be removed: %s; 'torc k8s clean' removes them", error)
        finally:
            await self.close()

    async def close(self) -> None:
        """Follow nothing any more; the pods stay."""
        try:
            await self.services.close()
        finally:
            await self.services.cluster.close()
