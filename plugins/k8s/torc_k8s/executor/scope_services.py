"""What the pods of one scope share: the cluster, the options, the queue of creations, and the way to the runner."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from torc_framework.api import LauncherEvent
from torc_k8s.cluster import Cluster, ClusterError, ClusterUnreachable
from torc_k8s.executor.creation_queue import CreationQueue
from torc_k8s.executor.deletions import Deletions
from torc_k8s.pods.facts import PodEvent
from torc_k8s.pods.options import K8sOptions

T = TypeVar("T")

CHANGES_AT_ONCE: Final = 16
"""Requests that change or delete pods, at once."""
READERS_AT_ONCE: Final = 64
"""Logs of running pods that are read at once, and as many of pods that have ended. Each takes three descriptors."""
QUESTIONS_AT_ONCE: Final = 4
"""Questions about the events of pods, at once."""
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
CLOSE_S: Final = 2.0


class ScopeServices:
    """What the pods of one scope share.

    Args:
        cluster: The cluster and namespace of the scope.
        scope: The label by which its pods are found.
        options: The executor's options.
        output_dir: Folder in which the runner of the scope keeps the output of jobs.
        report: Takes events, in the event loop.

    Attributes:
        creations: The queue of pods to create.
        deletions: The deletions of pods.
        readers: Limits the logs of running pods that are read at once.
        last_readers: The same for pods that have ended, which do not wait for those that run.
        is_answering: The cluster answers.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: str,
        options: K8sOptions,
        output_dir: str,
        report: Callable[[list[LauncherEvent]], None],
    ) -> None:
        self.cluster, self.scope, self.options = cluster, scope, options
        self.output_dir, self.report = output_dir, report
        self.creations = CreationQueue(cluster, options.max_pods)
        self.deletions = Deletions(cluster, scope, self.settle, self.spawn)
        self.readers = asyncio.Semaphore(READERS_AT_ONCE)
        self.last_readers = asyncio.Semaphore(READERS_AT_ONCE)
        self.is_answering = True
        self._changes = asyncio.Semaphore(CHANGES_AT_ONCE)
        self._questions = asyncio.Semaphore(QUESTIONS_AT_ONCE)
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine until it ends or the scope is closed."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request until the cluster has answered it.

        Raises:
            ClusterError: the cluster refuses it.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            async with self._changes:
                try:
                    return await request()
                except ClusterUnreachable as error:
                    wait_s = max(pause_s, error.retry_after_s or 0.0)
                except ClusterError as error:
                    if error.status != 409 or error.reason == "AlreadyExists":
                        raise
                    wait_s = pause_s
            await asyncio.sleep(min(wait_s, LONGEST_PAUSE_S))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def events(self, pod: str) -> list[PodEvent]:
        """Return the events about a pod.

        Raises:
            ClusterError: the cluster does not answer, or does not permit it.
        """
        async with self._questions:
            found, _ = await self.cluster.list("events", fields=f"involvedObject.name={pod}")
        return [PodEvent.of(each) for each in found]

    async def close(self) -> None:
        """End all that was spawned."""
        self.creations.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
