"""The choice of the jobs that a runner claims: order, packing, jobs for later, jobs that do not fit at all."""

import threading
from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from torc_framework.models.exchange import Offer
from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import ResourceRequirementsRecord, SlurmSchedulerRecord, WorkflowRecord
from torc_framework.models.resources import Resources
from torc_framework.store.errors import RuleError
from torc_framework.store.exchange.claims import ParsedRequirements, fits_runner
from torc_framework.store.tables import core as t

GIB = 1024**3


def requirements(
    name: str, *, cpus: int = 1, memory: str = "1m", runtime: str = "PT1M", gpus: int = 0, nodes: int = 1
) -> Any:
    """Return a requirements record."""
    return ResourceRequirementsRecord(
        workflow_id=0, name=name, num_cpus=cpus, memory=memory, runtime=runtime, num_gpus=gpus, num_nodes=nodes
    )


def jobs(*uses: int | None) -> list[PlannedJob]:
    """Return jobs with requirements by position; None is the default."""
    return [PlannedJob(f"j{n}", "true", resource_requirements=use) for n, use in enumerate(uses)]


def names(claimed: Any) -> list[str]:
    """Return the names of claimed jobs."""
    return [job.name for job in claimed]


FOUR = [
    requirements("small"),
    requirements("long", runtime="PT5H"),
    requirements("gpu", gpus=1),
    requirements("fat", memory="64g"),
]


@pytest.mark.parametrize(
    ("method", "order"),
    [
        ("gpus_runtime_memory", ["j2", "j1", "j5", "j3", "j0", "j4"]),
        ("gpus_memory_runtime", ["j2", "j3", "j1", "j5", "j0", "j4"]),
        ("none", ["j0", "j1", "j2", "j3", "j4", "j5"]),
    ],
)
def test_the_sort_method_decides_who_is_first(bench: Any, method: str, order: list[str]) -> None:
    """The largest job by the sort method is first; among equals the one that was created first."""
    bench.plan(jobs(0, 1, 2, 3, 0, 1), resource_requirements=FOUR)
    assert names(bench.claim(sort_method=method)) == order


def test_the_workflows_method_is_the_default(bench: Any) -> None:
    """A runner without a sort method of its own claims in the order of the workflow's."""
    workflow = WorkflowRecord(name="w", user="u", jobs_sort_method="gpus_memory_runtime")
    bench.plan(jobs(0, 1, 3), resource_requirements=FOUR, workflow=workflow)
    assert names(bench.claim(2)) == ["j2", "j1"]


def test_an_unknown_method_is_refused(bench: Any) -> None:
    """The message names the known methods."""
    bench.plan(1)
    with pytest.raises(RuleError, match="unknown sort method 'fastest'; known: gpus_runtime_memory"):
        bench.claim(sort_method="fastest")


def test_equal_jobs_of_different_records_come_by_id(bench: Any) -> None:
    """Jobs of two records with the same amounts are claimed in the order of their ids."""
    bench.plan(jobs(0, 1, 0, 1), resource_requirements=[requirements("a"), requirements("b", cpus=2)])
    assert names(bench.claim()) == ["j0", "j1", "j2", "j3"]


def test_jobs_are_packed_into_what_is_free(bench: Any) -> None:
    """The claimed jobs never need more CPUs, memory and GPUs than are free."""
    bench.plan(jobs(0, 0, 0, 1), resource_requirements=[requirements("two", cpus=2, memory="4g"), requirements("one")])
    free = Resources(num_cpus=5, memory_bytes=16 * GIB)
    assert names(bench.claim(10, free=free, total=free)) == ["j0", "j1", "j3"]


def test_memory_is_shared_out(bench: Any) -> None:
    """Memory alone can limit the claimed jobs."""
    bench.plan(jobs(0, 0, 0), resource_requirements=[requirements("m", memory="4g")])
    free = Resources(num_cpus=64, memory_bytes=9 * GIB)
    assert len(bench.claim(10, free=free, total=free)) == 2


def test_a_big_job_does_not_hide_small_ones(bench: Any, roomy: Resources) -> None:
    """A job that does not fit the free resources is skipped, and smaller ones are claimed."""
    bench.plan(
        jobs(0, 1, 1), resource_requirements=[requirements("big", cpus=32, runtime="PT9H"), requirements("small")]
    )
    free = Resources(num_cpus=2, memory_bytes=GIB)
    assert names(bench.claim(10, free=free, total=roomy)) == ["j1", "j2"]


def test_slots_limit_what_starts(bench: Any, roomy: Resources) -> None:
    """No more jobs are claimed than the runner has slots, however much is free."""
    bench.plan(5)
    assert len(bench.claim(2, free=roomy, total=roomy)) == 2


def test_jobs_are_claimed_ahead(bench: Any) -> None:
    """Beyond the jobs that fit now, a runner claims jobs for later, which fit its resources as a whole."""
    bench.plan(jobs(0, 0, 0, 1, 0), resource_requirements=[requirements("one"), requirements("huge", cpus=99)])
    whole = Resources(num_cpus=4, memory_bytes=GIB)
    free = Resources(num_cpus=1, memory_bytes=GIB)
    assert names(bench.claim(4, free=free, total=whole, ahead=2)) == ["j0", "j1", "j2"]
    assert names(bench.claim(0, free=free, total=whole, ahead=9)) == ["j4"]


def test_queue_depth_ignores_resources(bench: Any) -> None:
    """Without ``free``, resources are not compared."""
    bench.plan(jobs(0, 0), resource_requirements=[requirements("huge", cpus=999, memory="900t", gpus=9, nodes=9)])
    assert len(bench.claim(2, total=Resources(num_cpus=1))) == 2


@pytest.mark.parametrize(
    "offer",
    [
        Resources(num_cpus=3, memory_bytes=8 * GIB, num_gpus=1, num_nodes=2, runtime_s=3600),
        Resources(num_cpus=4, memory_bytes=8 * GIB - 1, num_gpus=1, num_nodes=2, runtime_s=3600),
        Resources(num_cpus=4, memory_bytes=8 * GIB, num_gpus=0, num_nodes=2, runtime_s=3600),
        Resources(num_cpus=4, memory_bytes=8 * GIB, num_gpus=1, num_nodes=1, runtime_s=3600),
        Resources(num_cpus=4, memory_bytes=8 * GIB, num_gpus=1, num_nodes=2, runtime_s=3599),
    ],
)
def test_what_never_fits_is_not_handed_out(bench: Any, offer: Resources) -> None:
    """A job that exceeds the runner in one amount is not claimed; the reply has the number of such jobs."""
    bench.plan(
        jobs(0, 0), resource_requirements=[requirements("r", cpus=4, memory="8g", runtime="PT1H", gpus=1, nodes=2)]
    )
    reply = bench.exchange(slots=5, free=offer, total=offer)
    assert (reply.jobs, reply.unfit, reply.is_complete) == ([], 2, False)


def test_unfit_jobs_are_told_only_when_nothing_runs(bench: Any) -> None:
    """The number of jobs that do not fit is given only when no job is pending or running."""
    bench.plan(jobs(None, 0), resource_requirements=[requirements("r", cpus=4)])
    small = Resources(num_cpus=1, memory_bytes=GIB)
    assert bench.exchange(slots=5, free=small, total=small).unfit == 0
    assert bench.exchange(slots=5, free=small, total=small).unfit == 0
    bench.exchange(started=[bench.started(0)], ended=[bench.ended(0)])
    assert bench.exchange(slots=5, free=small, total=small).unfit == 1


def test_jobs_of_several_nodes_take_them(bench: Any) -> None:
    """Jobs of one node share nodes; a job of two nodes takes two, with its amounts on each."""
    bench.plan(jobs(0, 0, None), resource_requirements=[requirements("pair", cpus=4, runtime="PT9H", nodes=2)])
    free = Resources(num_cpus=8, memory_bytes=GIB, num_nodes=3)
    assert names(bench.claim(9, free=free, total=free)) == ["j0", "j2"]


SCHEDULERS = [SlurmSchedulerRecord(workflow_id=0, account="a", nodes=1, walltime="01:00:00") for _ in range(2)]


def bound(*schedulers: int | None) -> list[PlannedJob]:
    """Return jobs bound to schedulers by position."""
    return [PlannedJob(f"j{n}", "true", scheduler=scheduler) for n, scheduler in enumerate(schedulers)]


def scheduler_id(bench: Any, position: int) -> int:
    """Return the id of a scheduler of the plan."""
    with bench.database.read() as tx:
        query = sa.select(t.SLURM_SCHEDULER.c.id).where(t.SLURM_SCHEDULER.c.workflow_id == bench.workflow_id)
        return int(list(tx.connection.execute(query).scalars())[position])


def test_a_runner_takes_its_own_schedulers_jobs_first(bench: Any) -> None:
    """Jobs of the runner's scheduler and of none are claimed first; those of others only if there are none of these."""
    bench.plan(bound(0, 1, None), slurm_schedulers=SCHEDULERS)
    mine = scheduler_id(bench, 1)
    assert names(bench.claim(scheduler_config_id=mine)) == ["j1", "j2"]
    assert names(bench.claim(scheduler_config_id=mine)) == ["j0"]


def test_a_strict_runner_takes_no_others_jobs(bench: Any) -> None:
    """With strict matching, jobs of other schedulers are not claimed."""
    bench.plan(bound(0), slurm_schedulers=SCHEDULERS)
    assert bench.claim(scheduler_config_id=scheduler_id(bench, 1), strict_scheduler_match=True) == []
    assert bench.claim(strict_scheduler_match=True) == []
    assert len(bench.claim(scheduler_config_id=scheduler_id(bench, 0), strict_scheduler_match=True)) == 1


def test_sixteen_threads_never_get_the_same_job(bench: Any) -> None:
    """Every job is claimed once."""
    bench.plan(400)
    nodes = [bench.node() for _ in range(16)]
    got: list[int] = []

    def take(node: int) -> None:
        while claimed := bench.claim(3, node=node, run_id=1):
            got.extend(job.id for job in claimed)

    threads = [threading.Thread(target=take, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [bench.job_id(n) for n in range(400)]
    assert max(Counter(got).values()) == 1


amounts = st.integers(0, 9)
anything = st.builds(
    Resources, num_cpus=amounts, memory_bytes=amounts, num_gpus=amounts, num_nodes=amounts, runtime_s=amounts
)


@given(asked=anything, total=anything)
@settings(max_examples=200)
def test_fitting_is_comparing_each_amount(asked: Resources, total: Resources) -> None:
    """A job fits when none of its amounts exceeds the runner's."""
    offer = Offer(slots=1, free=total, total=total)
    parts = ("num_cpus", "memory_bytes", "num_gpus", "num_nodes", "runtime_s")
    assert fits_runner(ParsedRequirements(1, asked, named=True), offer) == all(
        getattr(asked, part) <= getattr(total, part) for part in parts
    )
