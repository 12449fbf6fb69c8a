"""Adoption of the pods of a dead runner, and proof that what has no pod was never begun."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import define, field

from torc_framework.api import Adoption, AttemptKey, AttemptWithdrawn
from torc_k8s.cluster import ClusterError
from torc_k8s.executor.attempt_pods import AttemptPods
from torc_k8s.executor.group_adoption import adopt_group, is_group
from torc_k8s.executor.group_pods import waits_for_others
from torc_k8s.executor.leftovers import is_kept, remove_pods
from torc_k8s.executor.member_pod import LogPaths
from torc_k8s.executor.names import FENCE
from torc_k8s.executor.runner_pods import SETTLE_S, RunnerPods
from torc_k8s.pods.facts import PodFacts
from torc_k8s.pods.names import (
    ATTEMPT,
    JOB,
    MAIN,
    MANAGED_BY,
    MEMBER,
    SCOPE,
    key_of,
    pod_name,
    selector,
)

AT_ONCE: Final = 16


async def adopt_pods(pods: RunnerPods, keys: Sequence[AttemptKey], patience_s: float) -> Adoption:
    """Follow the pods of these attempts, and stop all others of the scope.

    If the cluster does not answer within ``patience_s``, all attempts count as adopted, and what was never begun is
    withdrawn when it answers again.

    Raises:
        ClusterError: the cluster refuses.
    """
    search = pods.services.spawn(_PodSearch(pods, keys).run())
    await asyncio.wait({search}, timeout=patience_s)
    if search.done():
        begun = search.result()
        return Adoption(
            adopted=tuple(key for key in keys if key in begun),
            never_started=tuple(key for key in keys if key not in begun),
        )
    search.add_done_callback(lambda done: _withdraw(pods, keys, done))
    return Adoption(adopted=tuple(keys))


def _withdraw(pods: RunnerPods, keys: Sequence[AttemptKey], search: "asyncio.Task[set[AttemptKey]]") -> None:
    """Report the attempts that were never begun, long after the adoption."""
    if search.cancelled():
        return
    begun: set[AttemptKey] = set() if search.exception() is not None else search.result()
    pods.services.report([AttemptWithdrawn(key) for key in keys if key not in begun])


@define(eq=False)
class _PodSearch:
    """The search for the pods of a dead runner's attempts."""

    _pods: RunnerPods
    _keys: Sequence[AttemptKey]
    _found: dict[AttemptKey, dict[str, dict[str, Any]]] = field(factory=dict, init=False)
    """Pods by attempt and name."""
    _whole: set[AttemptKey] = field(factory=set, init=False)
    """Those of which all pods were found: no request for another one was under way."""
    _held_back: set[AttemptKey] = field(factory=set, init=False)
    """Groups that cannot go on, and whose commands have not begun."""
    _is_refused: bool = field(default=False, init=False)
    """The cluster does not accept pods that take a name."""

    async def run(self) -> set[AttemptKey]:
        """Follow what was begun and stop what is not wanted; return the keys of the former."""
        self._pods.is_searching = True
        try:
            return await self._search()
        finally:
            self._pods.is_searching = False

    async def _search(self) -> set[AttemptKey]:
        await self._list()
        missing = [key for key in self._keys if key not in self._found]
        limit = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._fence(key, limit) for key in missing))
        if self._is_refused:
            await asyncio.sleep(SETTLE_S)
            await self._list()
        wanted = set(self._keys)
        for key, found in self._found.items():
            self._follow(key, list(found.values()), is_wanted=key in wanted)
        self._pods.on_stranger = self._remove_late
        self._pods.follow()
        return (self._found.keys() & wanted) - self._held_back

    async def _list(self) -> None:
        services = self._pods.services
        labels = selector(services.scope)
        listed, _ = await services.settle(lambda: services.cluster.list("pods", labels=labels))
        for pod in listed:
            self._note(pod)

    def _note(self, pod: dict[str, Any]) -> None:
        labels = pod["metadata"].get("labels") or {}
        key = key_of(labels)
        if key is not None and FENCE not in labels and not is_kept(pod):
            self._found.setdefault(key, {})[pod["metadata"]["name"]] = pod

    def _follow(self, key: AttemptKey, found: list[dict[str, Any]], *, is_wanted: bool) -> None:
        notes = found[0]["metadata"].get("annotations") or {}
        attempt = AttemptPods(
            key, self._pods.services, self._pods.followed, LogPaths.of_notes(notes, self._pods.services.output_dir)
        )
        attempt.is_reported = is_wanted
        if is_wanted and is_group(found[0]) and adopt_group(attempt, found):
            self._whole.add(key)
            self._pods.run(attempt)
            return
        attempt.is_rest = len(found) > 1 or is_group(found[0])
        if not attempt.is_rest:
            self._whole.add(key)
        else:
            self._pods.expect_late()
            if all(waits_for_others(PodFacts.of(pod)) for pod in found):
                self._held_back.add(key)
                attempt.is_reported = False
        for pod in found:
            attempt.add(pod["metadata"]["name"]).exists(pod)
        if attempt.is_rest or not is_wanted:
            attempt.stop(force=True)
        self._pods.run(attempt)

    def _remove_late(self, pod: dict[str, Any]) -> None:
        """Remove a pod that a request of the dead runner made after the search; its container has not begun yet."""
        labels = pod["metadata"].get("labels") or {}
        if key_of(labels) not in self._whole and FENCE not in labels and not is_kept(pod):
            self._pods.services.spawn(self._remove(pod))

    async def _remove(self, pod: dict[str, Any]) -> None:
        services = self._pods.services
        with suppress(ClusterError):  # it stays for the removal of the whole scope
            await services.settle(lambda: remove_pods(services.cluster, [pod], patience_s=0.0))

    async def _fence(self, key: AttemptKey, limit: asyncio.Semaphore) -> None:
        """Take the name of an attempt's pod, so that a request of the dead runner that is still on its way is refused.

        Where the cluster does not accept such a pod, the request has arrived after some seconds, or was lost.
        """
        services, name = self._pods.services, pod_name(self._pods.services.scope, key)
        async with limit:
            if self._is_refused:
                return
            try:
                await services.settle(lambda: _take_name(self._pods, key, name))
            except ClusterError as error:
                if error.reason != "AlreadyExists":
                    self._is_refused = True
                    return
                self._note(await services.settle(lambda: services.cluster.get("pods", name)))
            else:
                self._pods.expect_late()


async def _take_name(pods: RunnerPods, key: AttemptKey, name: str) -> None:
    """Create a pod that no scheduler ever starts."""
    labels = {MANAGED_BY: "torc", SCOPE: pods.services.scope, JOB: str(key.job_id), ATTEMPT: str(key.attempt_id)}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**labels, MEMBER: "0", FENCE: "true"}},
        "spec": {
            "schedulerName": FENCE,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [{"name": MAIN, "image": FENCE}],
        },
    }
    await pods.services.cluster.create("pods", body)
