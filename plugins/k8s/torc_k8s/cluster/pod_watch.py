"""The state of all pods with certain labels, kept up to date by one list and one watch."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from torc_k8s.cluster.client import Cluster
from torc_k8s.cluster.errors import ClusterError, Expired

WATCH_S: Final = 60.0
"""A watch is begun again about so often; a connection that went silent is noticed shortly afterwards."""
FIRST_PAUSE_S: Final = 0.5
MOST_PAUSE_S: Final = 15.0
"""Seconds between two tries while the cluster does not answer, first and at most; each is varied by half of it."""
MOST_RETRY_AFTER_S: Final = 60.0
"""What the cluster wants is heeded up to so many seconds."""
SETTLED_S: Final = 5.0
"""A watch that lasted so long, or brought an event, has worked."""

_log = logging.getLogger(__name__)


@define
class PodWatch:
    """Reports every change of the pods with certain labels, for ever.

    A change may be reported twice, and changes that follow each other fast as one. A pod that was deleted while the
    cluster was not reachable is missing in the next list, and is not reported otherwise.

    Args:
        cluster: The cluster.
        labels: A label selector.
        on_pod: Called with a pod, and whether it has been deleted (the pod is its last state).
        on_listed: Called with the names of all pods of a complete list, after ``on_pod`` for each that changed.
        on_trouble: Called with why the state of the pods is not known, and with None when it is known again.
    """

    _cluster: Cluster
    _labels: str
    _on_pod: Callable[[dict[str, Any], bool], None]
    _on_listed: Callable[[set[str]], None]
    _on_trouble: Callable[[str | None], None]
    _version: str = field(default="", init=False)
    """The state up to which changes were reported; empty before a list."""
    _reported: dict[str, str] = field(factory=dict, init=False)
    """The resource version that was last reported, by the name of the pod."""
    _trouble: str | None = field(default=None, init=False)
    _opened_at: float | None = field(default=None, init=False)
    """When the cluster accepted the present watch, by the clock of the event loop."""
    _has_worked: bool = field(default=False, init=False)
    """The present watch brought an event, or lasted `SETTLED_S`."""

    async def run(self) -> None:
        """List and watch until the task is cancelled; errors of the cluster are reported by ``on_trouble``."""
        failures = 0
        while True:
            self._opened_at, self._has_worked, retry_after_s = None, False, 0.0
            error: ClusterError | None = None
            try:
                await self._once()
            except Expired:
                self._version = ""
            except ClusterError as raised:
                error, retry_after_s = raised, min(raised.retry_after_s or 0.0, MOST_RETRY_AFTER_S)
            except Exception as raised:  # the runner learns of its pods by this watch alone: it must not end
                _log.exception("the watch of pods failed")
                error = ClusterError(f"the watch of pods failed: {raised!r}")
            self._settle()
            failures = 0 if self._has_worked else failures + 1
            if error is not None and failures > 1:
                self._tell(str(error))
            if error is not None or failures:
                await asyncio.sleep(max(retry_after_s, _pause_s(failures)))

    async def _once(self) -> None:
        """List if no state is known, and follow one watch to its end."""
        if not self._version:
            await self._list()
        events = self._cluster.watch(
            "pods",
            labels=self._labels,
            resource_version=self._version,
            timeout_s=WATCH_S * random.uniform(0.9, 1.1),
            on_open=self._open,
        )
        async with contextlib.aclosing(events):
            async for kind, pod in events:
                self._has_worked = True
                self._version = str(pod["metadata"]["resourceVersion"])
                if kind != "BOOKMARK":
                    self._report(pod, is_deleted=kind == "DELETED")

    async def _list(self) -> None:
        pods, version = await self._cluster.list("pods", labels=self._labels)
        names = {str(pod["metadata"].get("name")) for pod in pods}
        for name in self._reported.keys() - names:
            del self._reported[name]
        for pod in pods:
            self._report(pod, is_deleted=False)
        self._version = version
        self._call(self._on_listed, names)
        self._tell(None)

    def _open(self) -> None:
        self._opened_at = asyncio.get_running_loop().time()
        self._tell(None)

    def _settle(self) -> None:
        if self._opened_at is not None:
            self._has_worked |= asyncio.get_running_loop().time() - self._opened_at > SETTLED_S

    def _report(self, pod: dict[str, Any], *, is_deleted: bool) -> None:
        """Report a pod unless this state of it was reported."""
        metadata = pod["metadata"]
        name, version = str(metadata.get("name")), str(metadata.get("resourceVersion"))
        if is_deleted:
            self._reported.pop(name, None)
        elif self._reported.get(name) == version:
            return
        else:
            self._reported[name] = version
        self._call(self._on_pod, pod, is_deleted)

    def _tell(self, trouble: str | None) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._call(self._on_trouble, trouble)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function of the owner; an error in it must not end the watch of all other pods."""
        try:
            function(*arguments)
        except Exception:
            _log.exception("a change of the pods could not be processed")


def _pause_s(failures: int) -> float:
    """Return the pause after so many tries in a row that failed, varied so that runners do not ask together."""
    pause_s = min(FIRST_PAUSE_S * 2.0 ** max(min(failures, 10) - 1, 0), MOST_PAUSE_S)
    return pause_s * random.uniform(0.5, 1.5)
