"""The queue of pods to create: a bounded number of requests at once, each repeated until the cluster answers it."""

import asyncio
from collections import deque
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from torc_k8s.cluster import Cluster
from torc_k8s.cluster.errors import ClusterError
from torc_k8s.executor.refusals import Refusal, refusal_of
from torc_k8s.pods.names import ATTEMPT, JOB, MEMBER, SCOPE

AT_ONCE: Final = 16
"""Creations that are under way at once."""
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
"""Bounds of the pause after a creation that has to be repeated."""


class PendingPod(Protocol):
    """A pod that is to be created."""

    @property
    def body(self) -> dict[str, Any]:
        """What is to be created."""

    def is_wanted(self) -> bool:
        """Return whether it is still to be created."""

    def refused(self, refusal: Refusal, error: ClusterError) -> None:
        """Note why it cannot be created now."""


@frozen
class Creation:
    """How the creation of a pod ended.

    Attributes:
        pod: The pod as the cluster has it; None if it was not created.
        error: Why the cluster never creates it; None if it was created, or was not wanted any more.
    """

    pod: dict[str, Any] | None = None
    error: str | None = None


@define(eq=False)
class _Entry:
    pod: PendingPod
    done: asyncio.Future[Creation]
    is_in_doubt: bool = False
    """A request was sent whose answer is not known. It is sent again, also if the pod is not wanted any more: a
    deletion could reach the cluster before the creation."""

    @property
    def is_dropped(self) -> bool:
        """Whether it need not be created any more."""
        return not self.is_in_doubt and not self.pod.is_wanted()


@define(eq=False)
class CreationQueue:
    """Creates pods in the order in which they were given.

    Attributes:
        max_pods: Most pods that exist at once; 0 is no limit.
    """

    _cluster: Cluster
    max_pods: int = 0
    _existing: int = field(default=0, init=False)
    """Pods that exist and have not ended, and those whose creation is under way."""
    _waiting: deque[_Entry] = field(factory=deque, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)
    _workers: list[asyncio.Task[None]] = field(factory=list, init=False)
    _refused_in_a_row: int = field(default=0, init=False)
    _pause_s: float = field(default=0.0, init=False)
    _paused_until: float = field(default=0.0, init=False)

    async def create(self, pod: PendingPod) -> Creation:
        """Create a pod; return when the cluster has it, refuses it for good, or it is not wanted any more."""
        entry = _Entry(pod, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self._changed.set()
        self._workers = [worker for worker in self._workers if not worker.done()]
        if len(self._workers) < AT_ONCE:
            self._workers.append(asyncio.create_task(self._work()))
        return await entry.done

    def pod_ended(self) -> None:
        """Note that the processes of a pod have ended: it occupies nothing any more."""
        self._existing -= 1
        self.hurry()

    def hurry(self) -> None:
        """Try again at once what was refused: something has changed."""
        self._paused_until = 0.0
        self._changed.set()

    def drop_unwanted(self) -> None:
        """Take out the pods that are not wanted any more."""
        dropped = [each for each in self._waiting if each.is_dropped]
        if dropped:
            self._waiting = deque(each for each in self._waiting if not each.is_dropped)
        for entry in dropped:
            entry.done.set_result(Creation())

    def close(self) -> None:
        """Create nothing more."""
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        while True:
            entry = await self._next()
            creation: Creation | None = Creation(error="torc could not ask for it")
            try:
                creation = await self._try(entry)
            finally:
                if creation is None or creation.pod is None:
                    self._existing -= 1
                if creation is not None and not entry.done.done():
                    entry.done.set_result(creation)

    async def _next(self) -> _Entry:
        """Return the next pod when the pause is over."""
        while True:
            left_s = self._paused_until - asyncio.get_running_loop().time()
            is_full = 0 < self.max_pods <= self._existing
            if self._waiting and left_s <= 0 and not is_full:
                self._existing += 1
                return self._waiting.popleft()
            self._changed.clear()
            try:
                async with asyncio.timeout(left_s if self._waiting and left_s > 0 else None):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _try(self, entry: _Entry) -> Creation | None:
        """Send one request; return how the creation ended, None if it has to be tried again."""
        if entry.is_dropped:
            return Creation()
        was_in_doubt, entry.is_in_doubt = entry.is_in_doubt, True
        try:
            pod = await self._cluster.create("pods", entry.pod.body)
        except ClusterError as error:
            return await self._refused(entry, error, was_in_doubt=was_in_doubt)
        self._accepted()
        return Creation(pod)

    async def _refused(self, entry: _Entry, error: ClusterError, *, was_in_doubt: bool) -> Creation | None:
        match refusal := refusal_of(error):
            case Refusal.EXISTS:
                return await self._take_existing(entry, error)
            case Refusal.FINAL:
                self._accepted()  # the cluster answers
                return Creation(error=str(error))
            case Refusal.REPEAT:
                self._waiting.appendleft(entry)
                self._pause(error.retry_after_s)
            case Refusal.NO_ROOM | Refusal.NOT_READY:
                entry.is_in_doubt = was_in_doubt
                self._waiting.append(entry)
                self._refused_in_a_row += 1
                if self._refused_in_a_row >= min(AT_ONCE, len(self._waiting)):
                    self._pause(error.retry_after_s)
                entry.pod.refused(refusal, error)
        return None

    async def _take_existing(self, entry: _Entry, error: ClusterError) -> Creation | None:
        """Take the pod that an earlier request has created; another program's pod of that name is an error."""
        wanted = entry.pod.body["metadata"]
        try:
            pod = await self._cluster.get("pods", wanted["name"])
        except ClusterError as failure:
            if failure.status != 403:  # 404: it was removed meanwhile
                self._waiting.appendleft(entry)
                self._pause(failure.retry_after_s)
                return None
            self._accepted()
            return Creation(error=f"{error}; {failure}")
        self._accepted()
        found = pod["metadata"].get("labels") or {}
        is_ours = all(found.get(name) == wanted["labels"][name] for name in (SCOPE, JOB, ATTEMPT, MEMBER))
        return Creation(pod) if is_ours else Creation(error=f"another program has a pod of this name: {error}")

    def _accepted(self) -> None:
        self._refused_in_a_row, self._pause_s = 0, 0.0

    def _pause(self, wanted_s: float | None) -> None:
        self._pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * self._pause_s))
        pause_s = max(self._pause_s, min(wanted_s or 0.0, LONGEST_PAUSE_S))
        self._paused_until = asyncio.get_running_loop().time() + pause_s
        self._refused_in_a_row = 0
