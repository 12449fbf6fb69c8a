"""The launcher: passes attempts to the event loop, in which their pods are kept, and events back to the runner."""

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, Final

from attrs import evolve

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptKey,
    Capabilities,
    Launcher,
    LauncherEvent,
    LaunchError,
    LaunchSite,
    RunnerContext,
)
from torc_k8s.cluster import Cluster, ClusterAddress, ClusterError, loop_thread
from torc_k8s.executor.adoption import adopt_pods
from torc_k8s.executor.names import EXECUTOR, is_scope, new_scope
from torc_k8s.executor.pod_owner import require_owner_right
from torc_k8s.executor.runner_pods import RunnerPods
from torc_k8s.executor.site import find_site
from torc_k8s.pods.options import K8sOptions
from torc_k8s.pods.pod_options import PodOptions

OPEN_S: Final = 10.0
"""A launcher is made if the cluster answers within this time."""
ADOPT_S: Final = 20.0
"""`adopt` waits so long for the cluster; then it counts all attempts as adopted."""
UNREACHABLE_S: Final = 10.0
"""A cluster that does not answer for so long is given no attempts."""


class PodLauncher(Launcher):
    """Runs each attempt as a pod."""

    name: ClassVar[str] = EXECUTOR
    description: ClassVar[str] = "Pods of a Kubernetes cluster"
    capabilities: Capabilities = Capabilities(
        can_launch=True, survives_runner=True, limits_runtime=True, runs_containers=True, checks_outputs=True
    )
    Options: ClassVar[type[Any]] = K8sOptions
    JobOptions: ClassVar[type[Any] | None] = PodOptions

    def __init__(self, options: K8sOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._events: SimpleQueue[list[LauncherEvent]] = SimpleQueue()
        self._of_dead: dict[str, RunnerPods] = {}
        """The pods of dead runners, by scope."""

    @classmethod
    def require_access(cls, options: K8sOptions) -> None:
        """Connect to the cluster, and ask whether this account may create what all pods need; nothing is changed.

        Raises:
            ConfigError: kubeconfig, context or account are missing or wrong.
            LaunchError: the cluster does not answer or refuses.
        """
        try:
            loop_thread.run(_require_access(ClusterAddress(options.kubeconfig, options.context, options.namespace)))
        except ClusterError as error:
            raise LaunchError(str(error)) from None

    @cached_property
    def _wake_fd(self) -> int:
        return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    @cached_property
    def _pods(self) -> RunnerPods:
        """The pods of this runner; the first use connects to the cluster.

        Raises:
            ConfigError: kubeconfig, context or account are missing or wrong.
            LaunchError: the cluster does not answer or refuses.
        """
        try:
            return loop_thread.run(self._open_checked())
        except ClusterError as error:
            raise LaunchError(str(error)) from None

    async def _open_checked(self) -> RunnerPods:
        """Connect, and ask whether this account may create what all pods need, before any job is held."""
        pods = await self._open(self._address(self.options.context, self.options.namespace), new_scope())
        try:
            await require_owner_right(pods.services.cluster)
        except BaseException:
            await pods.close()
            raise
        return pods

    def _address(self, context: str, namespace: str) -> ClusterAddress:
        return ClusterAddress(self.options.kubeconfig, context, namespace)

    async def _open(self, address: ClusterAddress, scope: str, output_dir: str = "") -> RunnerPods:
        """Return the pods of a scope, in the event loop, to which their parts belong."""
        cluster = await Cluster.open(address, patience_s=OPEN_S)
        context = evolve(self.context, output_dir=output_dir or self.context.output_dir)
        return RunnerPods(cluster, scope, self.options, context, self._report)

    def launch_site(self) -> LaunchSite | None:
        """Return the largest node that the cluster has; its number of nodes does not limit what is submitted."""
        return loop_thread.run(find_site(self._pods.services.cluster, self.options))

    # --- commands --------------------------------------------------------------------------------

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Create the pods of these attempts."""
        loop_thread.post(self._pods.begin, list(attempts))

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Have SIGTERM sent to these attempts, or with ``force`` delete their pods."""
        wanted = list(keys)
        for pods in self._all_pods():
            loop_thread.post(partial(pods.stop, wanted, force=force))

    def ends_stored(self, keys: Iterable[AttemptKey]) -> None:
        """Remove the pods of these attempts."""
        stored = list(keys)
        for pods in self._all_pods():
            loop_thread.post(pods.stored, stored)

    def further_logs(self, key: AttemptKey) -> Sequence[str]:
        """Return the logs of the members of a group besides those of its lead."""
        return [path for pods in self._all_pods() for path in pods.log_files(key)]

    def memory_limited(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Return those of these attempts that run: the kernel enforces the limits of containers."""
        return [key for key in keys if any(pods.is_running(key) for pods in self._all_pods())]

    def _all_pods(self) -> list[RunnerPods]:
        own = [self._pods] if "_pods" in self.__dict__ else []
        return [*own, *self._of_dead.values()]

    # --- events ----------------------------------------------------------------------------------

    def _report(self, events: list[LauncherEvent]) -> None:
        """Take events in the event loop."""
        self._events.put(events)
        with suppress(OSError):  # the launcher was closed meanwhile
            os.eventfd_write(self._wake_fd, 1)

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there are events."""
        return self._wake_fd

    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake_fd)
        if "_pods" in self.__dict__:  # the first use would connect, and a runner has one thread
            self.hindrance = self._pods.hindrance()
            trouble, since = self._pods.trouble, self._pods.trouble_since
            self.accepts_attempts = trouble is None or time.time() - since < UNREACHABLE_S
        events: list[LauncherEvent] = []
        with suppress(Empty):
            while True:
                events += self._events.get_nowait()
        return events

    # --- after a crash ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return where the pods are, and the label by which they are found."""
        services = self._pods.services
        return {
            "scope": services.scope,
            "context": self.options.context,
            "namespace": services.cluster.namespace,
            "url": services.cluster.url,
            "output_dir": services.output_dir,
        }

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over the pods of a dead runner."""
        scope = state.get("scope")
        if not is_scope(scope):
            return Adoption(unknown=tuple(keys))
        try:
            return loop_thread.run(self._adopt(str(scope), state, keys))
        except ClusterError as error:
            raise LaunchError(f"the pods of a dead runner cannot be looked up: {error}") from None

    async def _adopt(self, scope: str, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        if scope not in self._of_dead:
            context, namespace = (str(state.get(name) or "") for name in ("context", "namespace"))
            pods = await self._open(self._address(context, namespace), scope, str(state.get("output_dir") or ""))
            if (url := pods.services.cluster.url) != state.get("url"):
                await pods.close()
                raise LaunchError(f"they are in the cluster {state.get('url')}, and the configuration names {url}")
            self._of_dead[scope] = pods
        return await adopt_pods(self._of_dead[scope], keys, ADOPT_S)

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove what a dead runner left in the cluster."""
        if (pods := self._of_dead.pop(str(state.get("scope")), None)) is not None:
            loop_thread.run(pods.finish())

    def close(self) -> None:
        """Remove from the cluster what is left, and end the connection."""
        self._end(is_finished=True)

    def abandon(self) -> None:
        """End the connection; the cluster keeps the pods and their ends."""
        self._end(is_finished=False)

    def _end(self, *, is_finished: bool) -> None:
        try:
            for pods in self._all_pods():
                # What a dead runner left stays until the server has all ends: `forget` removes it.
                is_own = pods.services.scope not in self._of_dead
                loop_thread.run(pods.finish() if is_finished and is_own else pods.close())
        finally:
            if "_wake_fd" in self.__dict__:
                os.close(self._wake_fd)


async def _require_access(address: ClusterAddress) -> None:
    cluster = await Cluster.open(address, patience_s=OPEN_S)
    try:
        await require_owner_right(cluster)
    finally:
        await cluster.close()
