"""Jobs are grouped by requirements and by whether they have dependencies; no job of a wave waits for another of it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

from torc_framework.graph import Graph, scheduler_groups
from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord


def plan_of(kinds: list[int | None], pairs: list[tuple[int, int]], barriers: list[Barrier] | None = None) -> Plan:
    jobs = [PlannedJob(f"j{n}", "true", resource_requirements=kind) for n, kind in enumerate(kinds)]
    return Plan(WorkflowRecord(name="w", user="u"), jobs, dependencies=pairs, barriers=barriers or [])


def test_a_pipeline_has_a_group_for_each_kind_of_job_that_waits_and_that_does_not() -> None:
    groups = scheduler_groups(plan_of([0, 1, 1, 0], [(1, 0), (2, 1), (3, 2)]))
    assert [(group.requirements, group.is_deferred, group.waves) for group in groups] == [
        (0, False, {0: [0]}),
        (1, True, {1: [1], 2: [2]}),
        (0, True, {3: [3]}),
    ]


def test_jobs_that_need_no_nodes_are_waited_for() -> None:
    """As when one runs already."""
    groups = scheduler_groups(plan_of([0, 0], [(1, 0)]), only={1})
    assert [(group.is_deferred, group.waves) for group in groups] == [(True, {1: [1]})]


def test_a_barrier_makes_jobs_wait() -> None:
    groups = scheduler_groups(plan_of([0] * 4, [], [Barrier([0, 1], [2, 3])]))
    assert [group.waves for group in groups] == [{0: [0, 1]}, {1: [2, 3]}]


@settings(deadline=None)
@given(graphs(), st.data())
def test_each_job_is_in_one_wave_and_waits_for_none_of_it(
    graph: tuple[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    count, pairs = graph
    kinds = data.draw(st.lists(st.sampled_from([None, 0, 1]), min_size=count, max_size=count))
    groups = scheduler_groups(plan_of(kinds, pairs))
    waves = [(group, jobs) for group in groups for jobs in group.waves.values()]
    assert sorted(job for _, jobs in waves for job in jobs) == list(range(count))
    waiting = {job for job, _ in pairs}
    levels = Graph(count, pairs).levels
    for group, jobs in waves:
        assert {kinds[job] for job in jobs} == {group.requirements}
        assert all((job in waiting) == group.is_deferred for job in jobs)
        assert len({levels[job] for job in jobs}) == 1
