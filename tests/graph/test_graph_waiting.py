"""The least values of jobs that wait: the same as by following every path."""

from hypothesis import given
from hypothesis import strategies as st

from torc_framework.graph.waiting_graph import NOTHING, WaitingGraph
from torc_framework.models.waiting_jobs import GroupMembers, JobClass, WaitingJobs

COUNT = 12
READY = JobClass("ready")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, str], dict[int, list[int]], dict[int, list[int]]]:
    """Statuses by id, upstream ids by job (negative: groups), members by group; ids in any order, no circles."""
    order = draw(st.permutations(range(1, COUNT + 1)))
    statuses = {job: draw(st.sampled_from(["blocked", "canceled", "ready", "completed"])) for job in order}
    groups = {}
    for group in range(1, draw(st.integers(0, 3)) + 1):
        groups[group] = sorted(draw(st.sets(st.sampled_from(order), max_size=4)))
    upstream = {}
    for at, job in enumerate(order):
        before = set(order[:at])
        direct = draw(st.sets(st.sampled_from(sorted(before)), max_size=3)) if before else set()
        usable = [group for group, members in groups.items() if before.issuperset(members)]
        waits = draw(st.sets(st.sampled_from(usable))) if usable else set()
        upstream[job] = sorted(direct) + sorted(-group for group in waits)
    return statuses, upstream, groups


def by_every_path(
    job: int, statuses: dict[int, str], upstream: dict[int, list[int]], groups: dict[int, list[int]], *, odd_last: bool
) -> int:
    """Return the least value of a job by recursion."""
    values = []
    for node in upstream[job]:
        of_node = []
        for other in groups[-node] if node < 0 else [node]:
            if statuses[other] == "ready":
                of_node.append(other)
            elif statuses[other] in ("blocked", "canceled"):
                of_node.append(by_every_path(other, statuses, upstream, groups, odd_last=odd_last))
        values += [min(of_node)] if of_node else []
    values = [value for value in values if value != NOTHING]
    even = [value for value in values if not value & 1]
    return min((even if odd_last and statuses[job] == "canceled" and even else values), default=NOTHING)


@given(graphs(), st.integers(1, 5), st.booleans())
def test_least_values(
    graph: tuple[dict[int, str], dict[int, list[int]], dict[int, list[int]]], size: int, odd_last: bool
) -> None:
    """Of jobs and groups in any order, in pages of any size."""
    statuses, upstream, groups = graph
    waiting = sorted(job for job, status in statuses.items() if status in ("blocked", "canceled"))
    ready = [number for job, status in statuses.items() if status == "ready" for number in (job, 0)]
    pages = [
        WaitingJobs(
            part,
            [job for job in part if statuses[job] == "canceled"],
            [len(upstream[job]) for job in part],
            [other for job in part for other in upstream[job]],
            [READY],
            ready,
            has_more=True,
        )
        for part in (waiting[start : start + size] for start in range(0, len(waiting), size))
    ]
    members = GroupMembers(
        [n for group, jobs in groups.items() for job in jobs for n in (group, job)], [READY], ready, has_more=False
    )
    found = WaitingGraph(pages, [members], lambda job, _: job)
    assert found.jobs.tolist() == waiting
    expected = [by_every_path(job, statuses, upstream, groups, odd_last=odd_last) for job in waiting]
    assert found.least_values(odd_last_of_canceled=odd_last).tolist() == expected
    for job in waiting:
        direct = [other for node in upstream[job] for other in (groups[-node] if node < 0 else [node])]
        assert list(found.dependencies(job)) == list(dict.fromkeys(direct))


def test_a_circle_ends() -> None:
    """Pages that were read during a change can hold one."""
    page = WaitingJobs([1, 2, 3], [], [1, 1, 1], [2, 1, 2], [], [], has_more=False)
    assert WaitingGraph([page], [], lambda job, _: job).least_values().tolist() == [NOTHING] * 3
