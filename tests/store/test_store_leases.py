"""Leases: which calls in a runner's name are carried out, and who takes over from a dead one."""

from typing import Any

import pytest

from torc_framework.models.exchange import ExchangeReply, RetryRequest, TakeOverOrder
from torc_framework.store.errors import ConflictError, NotFoundError
from torc_framework.store.exchange import leases
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES
from torc_framework.store.records import crud


def take_over(bench: Any, node: int, epoch: int = 0, by: int | None = None) -> dict[int, int]:
    """Take the lease of a runner; return the new epochs by id."""
    with bench.database.write() as tx:
        return leases.take_over(tx, node, TakeOverOrder(epoch, by)).epochs


def close(bench: Any, node: int) -> dict[str, Any]:
    """End a runner; return its record."""
    with bench.database.write() as tx:
        return crud.update(tx, COMPUTE_NODES, node, {"is_active": False})


def test_one_of_two_takes_over(bench: Any) -> None:
    """Both have read the same epoch; the second one is told, and changes nothing."""
    bench.plan(1)
    dead, first, second = bench.nodes[0], bench.node(), bench.node()
    bench.start(0)
    assert take_over(bench, dead, by=first) == {dead: 1}
    with pytest.raises(ConflictError, match=f"has epoch 1, not 0: compute node {first} has taken over"):
        take_over(bench, dead, by=second)
    with bench.database.read() as tx:
        record = crud.get(tx, COMPUTE_NODES, dead)
    assert (record["epoch"], record["taken_over_by"]) == (1, first)


def test_what_comes_late_from_a_dead_runner_changes_nothing(bench: Any) -> None:
    """Its reports, releases and claims are refused; those of the process that has taken over are stored."""
    bench.plan(3)
    dead, other = bench.nodes[0], bench.node()
    bench.claim(2)
    take_over(bench, dead, by=other)
    for late in ({"slots": 1}, {"ended": [bench.ended(0)]}, {"released": [bench.job_id(1)]}):
        with pytest.raises(
            ConflictError, match=r"taken over by another runner \(epoch 1 of its lease, this call has 0\)"
        ):
            bench.exchange(dead, **late)
    assert bench.statuses() == ["pending", "pending", "ready"]
    bench.exchange(dead, epoch=1, ended=[bench.ended(0)], released=[bench.job_id(1)])
    assert bench.statuses() == ["completed", "ready", "ready"]


def test_a_lease_comes_with_those_that_its_holder_had_taken(bench: Any) -> None:
    """Who takes over from a dead runner has all that this one had taken over, and no other of them has a part of it."""
    bench.plan(1)
    first, second, third = bench.nodes[0], bench.node(), bench.node()
    take_over(bench, first, by=second)
    assert take_over(bench, second, by=third) == {first: 2, second: 1}
    close(bench, first)
    assert take_over(bench, third) == {second: 2, third: 1}, "the first record has ended"


@pytest.mark.parametrize("case", ["itself", "another workflow", "taken over", "ended", "unknown"])
def test_who_may_take_over(bench: Any, case: str) -> None:
    """A runner of the same workflow that holds its own lease."""
    bench.plan(1)
    strange = bench.nodes[0]
    bench.plan(1)
    dead, by = bench.nodes[0], bench.node()
    match case:
        case "itself":
            by = dead
        case "another workflow":
            by = strange
        case "taken over":
            take_over(bench, by)
        case "ended":
            close(bench, by)
        case _:
            by = 999
    with pytest.raises((ConflictError, NotFoundError), match=f"Compute node .*{by}"):
        take_over(bench, dead, by=by)


def test_a_runner_that_holds_jobs_cannot_end(bench: Any) -> None:
    """It is told which; when it holds none, it ends, and what comes afterwards is refused."""
    bench.plan(2)
    bench.start(0)
    with pytest.raises(ConflictError, match=r"it holds job 1 \(job0\), which is running, and 1 more"):
        close(bench, bench.nodes[0])
    bench.exchange(ended=[bench.ended(0)], released=[bench.job_id(1)])
    assert close(bench, bench.nodes[0])["epoch"] == 1
    with pytest.raises(ConflictError, match="has ended"):
        bench.claim()
    assert bench.statuses() == ["completed", "ready"]


def test_a_call_that_is_delivered_twice_claims_once(bench: Any) -> None:
    """The runner is told that an answer may be lost, and gets the jobs of that one when it says what it holds."""
    bench.plan(4)
    (job,) = bench.exchange(seq=1, slots=1).jobs
    assert bench.exchange(seq=1, slots=1) == ExchangeReply(is_superseded=True)
    assert bench.exchange(seq=3, slots=1).jobs
    assert bench.exchange(seq=2, slots=1, released=[job.id]) == ExchangeReply(is_superseded=True)
    assert bench.statuses() == ["pending", "pending", "ready", "ready"]
    assert [each.name for each in bench.exchange(seq=4, holding=[job.id]).jobs] == ["job1"]


def test_a_lost_answer_is_told_again(bench: Any) -> None:
    """That a script runs before the next attempt, that the attempt is early, and which jobs to stop."""
    bench.plan(2)
    bench.start(0, 1)
    failed = bench.ended(0, "failed", 1, retry=RetryRequest(5, hold=True, delay_s=3600))
    lost = bench.exchange(seq=1, ended=[failed, bench.ended(1, next_job_id=999)])
    again = bench.exchange(seq=2, holding=[999])
    assert again.held == lost.held == [bench.job_id(0)]
    assert again.refused == lost.refused == [999]
    assert [job.is_early for job in again.jobs] == [True]
    bench.exchange(seq=3, released=[bench.job_id(0)])
    reply = bench.exchange(seq=4, holding=[])
    assert (reply.jobs, reply.held, reply.refused) == ([], [], [])


@pytest.mark.parametrize("taken", [True, False])
def test_a_follower_is_claimed_for_the_runner_that_began_it(bench: Any, taken: bool) -> None:
    """The dead runner had begun job1 when job0 ended; the runner that has taken over reports that."""
    bench.plan(2, [(1, 0)])
    dead, other = bench.nodes[0], bench.node()
    bench.start(0)
    if taken:
        take_over(bench, dead, by=other)
    report = bench.ended(0, next_job_id=bench.job_id(1), next_node_id=dead)
    refused = bench.exchange(other, started=[bench.started(1)], ended=[report]).refused
    found = bench.statuses()[1], bench.column("active_compute_node_id")[1], refused
    assert found == (("running", dead, []) if taken else ("ready", None, [bench.job_id(1)]))
