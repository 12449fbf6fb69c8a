"""The queue of pods to create: a bounded number of requests at once, each repeated until the cluster answers it."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from torc_k8s.cluster import Cluster
from torc_k8s.cluster.errors import ClusterError
from torc_k8s.executor.pods_in_making import PodsInMaking
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
    def name(self) -> str:
        """Its name."""

    @property
    def is_of_group(self) -> bool:
        """Whether others of its group may wait for it: it is created however many pods the cluster makes."""

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
    """Creates pods in the order in which they were given, those of groups first.

    A pod that is no member of a group is held back while the cluster makes as many pods as its nodes make well.

    Attributes:
        max_pods: Most pods that exist at once; 0 is no limit.
    """

    _cluster: Cluster
    max_pods: int = 0
    _existing: int = field(default=0, init=False)
    """Pods that exist and have not ended, and those whose creation is under way."""
    _making: PodsInMaking = field(factory=PodsInMaking, init=False)
    _of_groups: deque[_Entry] = field(factory=deque, init=False)
    _singles: deque[_Entry] = field(factory=deque, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)
    _workers: list[asyncio.Task[None]] = field(factory=list, init=False)
    _refused_in_a_row: int = field(default=0, init=False)
    _is_dropping: bool = field(default=False, init=False)
    _pause_s: float = field(default=0.0, init=False)
    _paused_until: float = field(default=0.0, init=False)

    async def create(self, pod: PendingPod) -> Creation:
        """Create a pod; return when the cluster has it, refuses it for good, or it is not wanted any more."""
        entry = _Entry(pod, asyncio.get_running_loop().create_future())
        self._line_of(entry).append(entry)
        self._changed.set()
        self._workers = [worker for worker in self._workers if not worker.done()]
        if len(self._workers) < AT_ONCE:
            self._workers.append(asyncio.create_task(self._work()))
        return await entry.done

    def note(self, name: str, node: str, *, is_made: bool) -> None:
        """Note what the cluster reports of a pod.

        Args:
            name: The pod.
            node: Its node; empty if it has none.
            is_made: It has begun or ended, or states why it does not begin: the cluster is not at work for it.
        """
        is_new_node = bool(node) and self._making.place(name, node, asyncio.get_running_loop().time())
        if (is_made and self._making.remove(name)) or is_new_node:
            self._changed.set()

    @property
    def hindrance(self) -> tuple[str, str] | None:
        """Why the next pod is not requested yet: a reason and a message; None if it is about to be."""
        if self._is_full:
            return "MaxPods", f"as many pods of this run exist as max_pods permits ({self.max_pods})"
        if self._making.wait_s(asyncio.get_running_loop().time()) > 0:
            return "PodsStarting", "the cluster starts other pods of this run first"
        return None

    def pod_ended(self, name: str) -> None:
        """Note that the processes of a pod have ended: it occupies nothing any more."""
        self._making.forget(name)
        self._existing -= 1
        self.hurry()

    def hurry(self) -> None:
        """Try again at once what was refused: something has changed."""
        self._paused_until = 0.0
        self._changed.set()

    def drop_unwanted(self) -> None:
        """Take out the pods that are not wanted any more, soon: those of one stop together."""
        if not self._is_dropping:
            self._is_dropping = True
            asyncio.get_running_loop().call_soon(self._drop)

    def _drop(self) -> None:
        self._is_dropping = False
        for line in (self._of_groups, self._singles):
            entries = list(line)
            line.clear()
            for entry in entries:
                if not entry.is_dropped:
                    line.append(entry)
                elif not entry.done.done():
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
                    self._making.remove(entry.pod.name)
                    self._changed.set()
                if creation is not None and not entry.done.done():
                    entry.done.set_result(creation)

    def _line_of(self, entry: _Entry) -> deque[_Entry]:
        return self._of_groups if entry.pod.is_of_group else self._singles

    @property
    def _is_full(self) -> bool:
        return 0 < self.max_pods <= self._existing

    async def _next(self) -> _Entry:
        """Return the next pod when nothing holds it back."""
        while True:
            now = asyncio.get_running_loop().time()
            line = self._of_groups or self._singles
            wait_s = self._wait_s(line, now)
            if wait_s == 0.0:
                entry = line.popleft()
                self._existing += 1
                self._making.add(entry.pod.name, now)
                return entry
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    def _wait_s(self, line: deque[_Entry], now: float) -> float | None:
        """Return how long the first pod of a line has to wait at most; None if a change ends the wait."""
        if not line or self._is_full:
            return None
        held_s = 0.0 if line is self._of_groups else self._making.wait_s(now)
        return max(0.0, self._paused_until - now, held_s)

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
                self._line_of(entry).appendleft(entry)
                self._pause(error.retry_after_s)
            case Refusal.NO_ROOM | Refusal.NOT_READY:
                entry.is_in_doubt = was_in_doubt
                self._line_of(entry).append(entry)
                self._refused_in_a_row += 1
                if self._refused_in_a_row >= min(AT_ONCE, len(self._of_groups) + len(self._singles)):
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
                self._line_of(entry).appendleft(entry)
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
