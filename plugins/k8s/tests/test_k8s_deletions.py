"""Deletions of pods: those that are ordered together are one request, and a refused one is repeated one by one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from torc_k8s.cluster import ClusterError
from torc_k8s.executor.deletions import FEW, JOBS_IN_A_REQUEST, Deletions


class DeletingCluster:
    """Notes the deletions."""

    def __init__(self, *, refuses_many: bool = False) -> None:
        self.single: list[tuple[str, int | None]] = []
        self.many: list[tuple[str, int | None]] = []
        self._refuses_many = refuses_many

    async def delete(self, _kind: str, name: str, *, grace_s: int | None) -> bool:
        self.single.append((name, grace_s))
        return True

    async def delete_all(self, _kind: str, *, labels: str, grace_s: int | None, patience_s: float) -> None:
        assert patience_s == 0.0
        self.many.append((labels, grace_s))
        if self._refuses_many:
            raise ClusterError("one of them changed meanwhile", status=409)


async def _once(request: Callable[[], Awaitable[Any]]) -> Any:
    return await request()


def after(cluster: DeletingCluster, orders: list[tuple[str, int | None, int]]) -> DeletingCluster:
    """Carry out these orders."""

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            deletions = Deletions(cluster, "ab", _once, tasks.create_task)  # type: ignore[arg-type] # two methods are used
            for order in orders:
                deletions.order(*order)

    asyncio.run(run())
    return cluster


def test_many_pods_are_one_request_that_names_their_jobs() -> None:
    found = after(DeletingCluster(), [(f"p{job}", job, 1) for job in range(1, FEW + 2)])
    (labels, grace_s), *more = found.many
    assert "torc-scope=ab,torc-job in (1,2,3,4,5,6,7,8,9),!torc-kept" in labels
    assert (grace_s, more, found.single) == (1, [], [])


def test_requests_are_bounded() -> None:
    found = after(DeletingCluster(), [(f"p{job}", job, 1) for job in range(JOBS_IN_A_REQUEST + FEW + 1)])
    assert len(found.many) == 2


@pytest.mark.parametrize("count", [1, FEW])
def test_few_pods_are_deleted_one_by_one(count: int) -> None:
    orders: list[tuple[str, int | None, int]] = [(f"p{job}", job, 1) for job in range(count)]
    found = after(DeletingCluster(), orders)
    assert (found.many, len(found.single)) == ([], count)


def test_a_member_of_a_group_is_deleted_without_the_others_of_its_job() -> None:
    found = after(DeletingCluster(), [(f"p{member}", None, 1) for member in range(20)])
    assert (found.many, len(found.single)) == ([], 20)


def test_grace_periods_are_kept_apart() -> None:
    found = after(DeletingCluster(), [("a", 1, 1), ("b", 2, 30)])
    assert sorted(found.single) == [("a", 1), ("b", 30)]


def test_a_refused_request_is_repeated_one_by_one() -> None:
    found = after(DeletingCluster(refuses_many=True), [(f"p{job}", job, 1) for job in range(20)])
    assert (len(found.many), len(found.single)) == (1, 20)
