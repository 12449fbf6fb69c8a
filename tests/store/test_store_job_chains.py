"""Chains of jobs that a runner starts before it has reported the end of the job before."""

from typing import Any

import pytest

from torc_framework.models.exchange import EndedReport
from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.store.exchange.job_chains import LONGEST_CHAIN, MOST_FOLLOWING, SHORTEST_LIMIT, report_waves
from torc_framework.store.runs import lifecycle


def numbers(bench: Any, following: dict[int, Any]) -> dict[int, list[int]]:
    """Return chains as positions in the plan."""
    first = bench.first_job
    return {job_id - first: [job.id - first for job in chain] for job_id, chain in following.items()}


@pytest.mark.parametrize(
    ("ahead", "length"),
    [(0, SHORTEST_LIMIT), (5, SHORTEST_LIMIT), (40, 40), (LONGEST_CHAIN + 30, LONGEST_CHAIN)],
    ids=["none", "few", "more", "most"],
)
def test_a_chain_is_told_in_advance(bench: Any, ahead: int, length: int) -> None:
    """A reply has as much of the chain as the runner wants, within limits; none of these jobs is claimed."""
    bench.plan(LONGEST_CHAIN + 3, [(n + 1, n) for n in range(LONGEST_CHAIN + 2)])
    reply = bench.exchange(slots=1, ahead=ahead)
    assert numbers(bench, reply.following) == {0: list(range(1, length + 1))}
    assert [job.command for job in reply.following[bench.first_job]][:2] == ["run 1", "run 2"]
    assert set(bench.statuses()[1:]) == {"blocked"}


def test_all_that_a_dead_runner_may_have_begun_is_told(bench: Any) -> None:
    """Who asks for the jobs that a runner holds learns of the longest chain behind them."""
    bench.plan(LONGEST_CHAIN + 3, [(n + 1, n) for n in range(LONGEST_CHAIN + 2)])
    bench.exchange(slots=1, ahead=5)
    assert numbers(bench, bench.exchange(holding=[]).following) == {0: list(range(1, LONGEST_CHAIN + 1))}


def test_many_jobs_share_what_a_reply_tells(bench: Any) -> None:
    """The more jobs are claimed at once, the fewer behind each are told; one behind each at least."""
    width = MOST_FOLLOWING // 4
    bench.plan(6 * width, [(n, n - width) for n in range(width, 6 * width)])
    following = numbers(bench, bench.exchange(slots=width).following)
    assert following == {n: [n + width * level for level in range(1, 5)] for n in range(width)}


def test_one_behind_each_of_very_many_jobs(bench: Any) -> None:
    """The limit of a reply does not keep a runner from starting the next job."""
    width = MOST_FOLLOWING + 1
    bench.plan(3 * width, [(n, n - width) for n in range(width, 3 * width)])
    following = numbers(bench, bench.exchange(slots=width).following)
    assert following == {n: [n + width] for n in range(width)}


@pytest.mark.parametrize(("asked", "told"), [(None, {3: [4, 5]}), ([], {}), ([3], {3: [4, 5]}), ([0, 4], {})], ids=str)
def test_what_is_behind_a_begun_job_is_told_when_the_runner_asks(
    bench: Any, asked: list[int] | None, told: dict[int, list[int]]
) -> None:
    """Without that field, as older runners ask, it is told each time; never behind jobs that it does not run."""
    bench.plan(6, [(n + 1, n) for n in range(5)])
    bench.claim()
    ids = [bench.job_id(n) for n in range(6)]
    ended = [bench.ended(n, next_job_id=ids[n + 1]) for n in range(3)]
    want = None if asked is None else [ids[n] for n in asked]
    assert numbers(bench, bench.exchange(ended=ended, want_following=want).following) == told


def test_what_is_behind_a_job_of_another_runner_is_not_told(bench: Any) -> None:
    """Nor behind a job that does not exist."""
    bench.plan(3, [(1, 0), (2, 1)])
    bench.claim()
    asked = [bench.job_id(0), 10**9]
    assert bench.exchange(bench.node(), want_following=asked).following == {}
    assert numbers(bench, bench.exchange(want_following=asked).following) == {0: [1, 2]}
    assert bench.exchange(want_following=[10**9] * MOST_FOLLOWING + asked).following == {}, "so many ids are looked up"


def test_only_what_waits_for_nothing_else(bench: Any) -> None:
    """The first job behind a job follows it, or none: what a dead runner may have begun is told to the next."""
    bench.plan(6, [(2, 0), (3, 0), (4, 0), (4, 1), (5, 1)])
    assert numbers(bench, bench.exchange(slots=2, ahead=1).following) == {0: [2]}, "job 4 waits for two"
    bench.exchange(ended=[bench.ended(0)], slots=2)
    assert numbers(bench, bench.exchange(want_following=[bench.job_id(1)]).following) == {1: [4]}


def test_only_what_asks_for_the_same(bench: Any) -> None:
    """A job with other requirements or of another scheduler is in no chain."""
    big = ResourceRequirementsRecord(workflow_id=0, name="big", num_cpus=8, runtime="PT1H")
    jobs = [PlannedJob(name="a", command="a"), PlannedJob(name="b", command="b", resource_requirements=0)]
    bench.plan(jobs, [(1, 0)], resource_requirements=[big])
    assert bench.exchange(slots=1, ahead=5).following == {}


def test_not_while_other_jobs_are_ready(bench: Any) -> None:
    """While other jobs are ready, there are no chains: these are claimed first."""
    bench.plan(4, [(3, 0)])
    assert bench.exchange(slots=2).following == {}


def test_going_on(bench: Any) -> None:
    """Ends and the jobs that were started after them arrive together; the runner holds those that still run."""
    bench.plan(5, [(n + 1, n) for n in range(4)])
    bench.claim()
    ids = [bench.job_id(n) for n in range(5)]
    ended = [bench.ended(n, next_job_id=ids[n + 1]) for n in range(3)]
    request = {"ended": ended, "started": [bench.started(3)], "slots": 0, "ahead": 1}
    reply = bench.exchange(**request)
    assert bench.statuses() == ["completed", "completed", "completed", "running", "blocked"]
    assert (reply.jobs, reply.refused, numbers(bench, reply.following)) == ([], [], {3: [4]})
    assert bench.column("active_compute_node_id")[3] == bench.nodes[0]
    bench.check_counters()
    again = bench.exchange(**request)
    assert (again.refused, len(bench.results())) == ([], 3)
    assert len(bench.events("job_started")) == 1


def test_going_on_from_a_failure_is_refused(bench: Any) -> None:
    """The next job is canceled; its end and that of the one behind it are not stored."""
    bench.plan(3, [(1, 0), (2, 1)])
    bench.claim()
    ended = [
        bench.ended(0, "failed", next_job_id=bench.job_id(1)),
        bench.ended(1, next_job_id=bench.job_id(2)),
        bench.ended(2),
    ]
    reply = bench.exchange(ended=ended)
    assert bench.statuses() == ["failed", "canceled", "canceled"]
    assert [result["job_id"] for result in bench.results()] == [bench.job_id(0)]
    assert reply.refused == [bench.job_id(1), bench.job_id(2)]


@pytest.mark.parametrize("why", ["canceled workflow", "other runner", "no such job"])
def test_refused(bench: Any, why: str) -> None:
    """Jobs that the runner may not have are in ``refused``, and nothing of them is stored."""
    bench.plan(2, [(1, 0)])
    bench.claim()
    follower = bench.job_id(1)
    if why == "canceled workflow":
        with bench.database.write() as tx:
            lifecycle.cancel_workflow(tx, bench.workflow_id)
    elif why == "other runner":
        bench.set_status(0, JobStatus.COMPLETED)
        bench.set_status(1, JobStatus.RUNNING, active_compute_node_id=bench.node())
    else:
        follower = 10**9
    reply = bench.exchange(ended=[bench.ended(0, next_job_id=follower), EndedReport(follower, 1, "completed", 0, 1, 1)])
    assert reply.refused == [follower]
    assert (
        bench.statuses()[1] == {"canceled workflow": "blocked", "other runner": "running", "no such job": "ready"}[why]
    )


def test_waves_keep_the_order() -> None:
    """The ends of chains side by side are divided by level."""

    def report(job_id: int, next_job_id: int | None = None) -> EndedReport:
        return EndedReport(job_id, 1, "completed", 0, 1, 1, next_job_id=next_job_id)

    reports = [report(1, 11), report(2, 12), report(11, 21), report(3), report(12), report(21)]
    assert [[r.job_id for r in wave] for wave in report_waves(reports)] == [[1, 2], [11, 3, 12], [21]]
    assert list(report_waves([])) == []
