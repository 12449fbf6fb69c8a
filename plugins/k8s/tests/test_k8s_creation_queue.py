"""The queue of pods to create: each answer of the cluster, without a cluster."""

import asyncio
from typing import Any

import pytest
from torc_k8s.cluster import ClusterError, ClusterUnreachable
from torc_k8s.executor.creation_queue import Creation, CreationQueue
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

    def __init__(self) -> None:
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
