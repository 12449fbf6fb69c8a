"""The queue of pods to create: each answer of the cluster, without a cluster."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from torc_k8s.cluster import ClusterError, ClusterUnreachable
from torc_k8s.executor.creation_queue import Creation, CreationQueue
from torc_k8s.executor.pods_in_making import LONGEST_S, PER_NODE, WITHOUT_NODE_S, PodsInMaking
from torc_k8s.executor.refusals import Refusal

LABELS = {"torc-scope": "a", "torc-job": "1", "torc-attempt": "1", "torc-member": "0"}
BODY: dict[str, Any] = {"metadata": {"name": "p", "labels": LABELS}}


class AnswersOfCluster:
    """Answers creations with these errors, then accepts."""

    def __init__(self, *errors: ClusterError, labels: dict[str, str] = LABELS) -> None:
        self._errors, self._labels = list(errors), labels
        self.requests = 0

    async def create(self, _kind: str, body: dict[str, Any]) -> dict[str, Any]:
        self.requests += 1
        if self._errors:
            raise self._errors.pop(0)
        return body

    async def get(self, _kind: str, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": self._labels}}


class WantedPod:
    """A pod that is wanted until it is not."""

    def __init__(self, name: str = "p", *, is_of_group: bool = False) -> None:
        self.name, self.is_of_group = name, is_of_group
        self.body, self.wanted, self.refusals = BODY, True, list[Refusal]()

    def is_wanted(self) -> bool:
        return self.wanted

    def refused(self, refusal: Refusal, _error: ClusterError) -> None:
        self.refusals.append(refusal)
        self.wanted = False


def created(cluster: AnswersOfCluster, pod: WantedPod) -> Creation:
    async def run() -> Creation:
        queue = CreationQueue(cluster)  # type: ignore[arg-type] # it has the two methods that are used
        try:
            async with asyncio.timeout(20):
                return await queue.create(pod)
        finally:
            queue.close()

    return asyncio.run(run())


EXISTS = ClusterError("exists", status=409, reason="AlreadyExists", message="exists")


@pytest.mark.parametrize("errors", [[], [ClusterUnreachable("away")], [ClusterUnreachable("away"), EXISTS], [EXISTS]])
def test_a_pod_is_created_once_whatever_is_lost_on_the_way(errors: list[ClusterError]) -> None:
    found = created(AnswersOfCluster(*errors), WantedPod())
    assert found.pod is not None
    assert found.error is None


def test_a_refused_pod_is_an_error_in_the_words_of_the_cluster() -> None:
    found = created(AnswersOfCluster(ClusterError("spec is invalid", status=422)), WantedPod())
    assert (found.pod, found.error) == (None, "spec is invalid")


def test_another_programs_pod_is_not_taken() -> None:
    found = created(AnswersOfCluster(EXISTS, labels={}), WantedPod())
    assert found.pod is None
    assert "another program" in (found.error or "")


def test_a_used_up_quota_is_told_and_a_pod_that_is_no_longer_wanted_is_not_created() -> None:
    pod = WantedPod()
    cluster = AnswersOfCluster(ClusterError("no room", status=403, message="exceeded quota: q"))
    assert created(cluster, pod) == Creation()
    assert (pod.refusals, cluster.requests) == ([Refusal.NO_ROOM], 1)


async def _settled() -> None:
    """Let the queue work until it can do nothing more."""
    for _ in range(20):
        await asyncio.sleep(0)


def requested(count: int, act: Callable[[CreationQueue], None], *, of_group: int = 0) -> list[int]:
    """Return how many creations were requested at first, and after an act, of so many single pods and then others."""

    async def run() -> list[int]:
        cluster = AnswersOfCluster()
        queue = CreationQueue(cluster)  # type: ignore[arg-type] # it has the two methods that are used
        pods = [WantedPod(f"p{number}", is_of_group=number >= count) for number in range(count + of_group)]
        tasks = [asyncio.create_task(queue.create(pod)) for pod in pods]
        await _settled()
        found = [cluster.requests]
        act(queue)
        await _settled()
        queue.close()
        for task in tasks:
            task.cancel()
        return [*found, cluster.requests]

    return asyncio.run(run())


def test_pods_are_held_back_while_the_cluster_makes_as_many_as_a_node_makes_well() -> None:
    assert requested(3 * PER_NODE, lambda _: None) == [PER_NODE, PER_NODE]


def test_a_pod_that_began_or_says_why_not_makes_way_for_the_next() -> None:
    assert requested(3 * PER_NODE, lambda queue: queue.note("p1", "", is_made=True)) == [PER_NODE, PER_NODE + 1]
    assert requested(3 * PER_NODE, lambda queue: queue.note("p1", "", is_made=False)) == [PER_NODE, PER_NODE]
    assert requested(3 * PER_NODE, lambda queue: queue.note("other", "", is_made=True)) == [PER_NODE, PER_NODE]


def test_another_node_makes_as_many_again() -> None:
    def place(queue: CreationQueue) -> None:
        queue.note("p1", "node-1", is_made=False)
        queue.note("p2", "node-2", is_made=False)

    assert requested(3 * PER_NODE, place) == [PER_NODE, 2 * PER_NODE]


def test_members_of_a_group_are_not_held_back() -> None:
    assert requested(5, lambda _: None, of_group=2 * PER_NODE)[0] == 2 * PER_NODE


def test_a_pod_that_is_held_back_says_why_and_can_be_stopped() -> None:
    async def run() -> Creation:
        queue = CreationQueue(AnswersOfCluster())  # type: ignore[arg-type] # it has the two methods that are used
        others = [asyncio.create_task(queue.create(WantedPod(f"p{number}"))) for number in range(PER_NODE)]
        await asyncio.gather(*others)
        pod = WantedPod("late")
        creation = asyncio.create_task(queue.create(pod))
        await _settled()
        assert queue.hindrance is not None
        assert queue.hindrance[0] == "PodsStarting"
        pod.wanted = False
        queue.drop_unwanted()
        try:
            return await creation
        finally:
            queue.close()

    assert asyncio.run(run()) == Creation()


def test_pods_that_take_long_do_not_count() -> None:
    """The download of an image, or a scheduler that does not answer, holds the others back only for some time."""
    making = PodsInMaking()
    for number in range(PER_NODE):
        making.add(f"p{number}", 0.0)
    assert making.wait_s(0.0) == WITHOUT_NODE_S
    assert making.wait_s(WITHOUT_NODE_S) == 0.0
    for number in range(PER_NODE):
        making.place(f"p{number}", "node-1", 1.0)
    assert making.wait_s(1.0) == LONGEST_S
    making.place("p0", "node-1", LONGEST_S)
    assert making.wait_s(1.0 + LONGEST_S) == 0.0
    making.forget("p0")
    making.add("p0", 1.0 + LONGEST_S)
    assert making.remove("p0")
