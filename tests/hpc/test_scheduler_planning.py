"""Planned schedulers: every job fits in resources and time, and there are enough allocations."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import graphs

from torc_framework.errors import UserError
from torc_framework.graph import Graph
from torc_framework.hpc.scheduler_planning import MANY_ALLOCATIONS, MAX_ALLOCATIONS, PlanOptions, plan_schedulers
from torc_framework.hpc.walltimes import parse_walltime
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.plan import Plan, PlannedJob, SchedulerPlan
from torc_framework.models.records import ResourceRequirementsRecord, WorkflowRecord
from torc_framework.models.resource_fit import requested_resources
from torc_framework.models.resources import format_duration, parse_memory
from torc_framework.models.walltime_reserve import SLACK_S
from torc_framework.runner.process.walltime import Walltime

HOUR = 3600
CLUSTER = HpcProfile(
    "cluster",
    partitions=(
        Partition("debug", 104, 240_000, HOUR),
        Partition("short", 104, 240_000, 4 * HOUR),
        Partition("standard", 104, 240_000, 48 * HOUR),
        Partition("shared", 104, 240_000, 60 * HOUR, shared=True),
        Partition("gpu", 64, 240_000, 48 * HOUR, gpus_per_node=4),
        Partition("tiny", 2, 400, HOUR, shared=True, max_nodes=2),
    ),
)
OPTIONS = PlanOptions("science", "batch")


def asking(name: str = "work", **amounts: Any) -> ResourceRequirementsRecord:
    values = {"num_cpus": 1, "memory": "1g", "runtime": "PT1H", **amounts}
    return ResourceRequirementsRecord(workflow_id=0, name=name, **values)


def plan_of(
    kinds: list[ResourceRequirementsRecord],
    jobs: Sequence[int | None],
    pairs: list[tuple[int, int]] | None = None,
    **workflow: object,
) -> Plan:
    return Plan(
        WorkflowRecord(name="w", user="u", **workflow),  # type: ignore[arg-type]  # values of several types
        [PlannedJob(f"job{n}", "true", resource_requirements=kind) for n, kind in enumerate(jobs)],
        dependencies=pairs or [],
        resource_requirements=kinds,
    )


def only_partition(**facts: object) -> HpcProfile:
    values = {"name": "only", "cpus_per_node": 4, "memory_mb": 4000, "max_walltime_secs": 48 * HOUR, **facts}
    return HpcProfile("one", partitions=(Partition(**values),))  # type: ignore[arg-type]  # values of several types


def allocations(planned: SchedulerPlan) -> list[int]:
    return [action.config["num_allocations"] for action in planned.actions]


# --- what is asked for ----------------------------------------------------------------------------


def test_a_pipeline_is_staged() -> None:
    kinds = [asking("light", runtime="PT30M"), asking("train", num_gpus=2, num_cpus=16, runtime="PT4H")]
    planned = plan_schedulers(plan_of(kinds, [0, 1, 0], [(1, 0), (2, 1)]), CLUSTER, OPTIONS)
    assert [
        (each.name, each.partition, each.walltime, each.gres, each.nodes, each.account) for each in planned.schedulers
    ] == [
        ("light_scheduler", "short", "00:45:00", None, 1, "science"),
        ("train_deferred_scheduler", "gpu", "06:00:00", "gpu:2", 1, "science"),
        ("light_deferred_scheduler", "short", "00:45:00", None, 1, "science"),
    ]
    assert planned.bound == [0, 1, 2]
    assert [(each.trigger_type, each.jobs, each.scheduler) for each in planned.actions] == [
        ("on_workflow_start", None, 0),
        ("on_jobs_ready", [1], 1),
        ("on_jobs_ready", [2], 2),
    ]
    assert planned.actions[0].config == {"scheduler_type": "batch", "num_allocations": 1}


def test_jobs_of_a_chain_with_equal_requirements_each_get_nodes_when_they_are_ready() -> None:
    """One action for both would wait for the second job, which waits for the first, which waits for nodes."""
    kinds = [asking("small"), asking("large", num_cpus=100)]
    planned = plan_schedulers(plan_of(kinds, [0, 1, 1], [(1, 0), (2, 1)]), CLUSTER, OPTIONS)
    assert [(each.jobs, each.scheduler) for each in planned.actions] == [(None, 0), ([1], 1), ([2], 1)]


def test_the_walltime_is_capped_by_the_partition() -> None:
    planned = plan_schedulers(plan_of([asking(runtime="PT3H")], [0]), CLUSTER, OPTIONS)
    assert (planned.schedulers[0].partition, planned.schedulers[0].walltime) == ("short", "04:00:00")


def test_the_partitions_time_may_be_requested() -> None:
    options = PlanOptions("a", "batch", walltime_strategy="max-partition-time")
    planned = plan_schedulers(plan_of([asking(num_cpus=104, runtime="PT1H")], [0] * 9), CLUSTER, options)
    assert planned.schedulers[0].walltime == "04:00:00"
    assert allocations(planned) == [3], "the buffers leave room for three jobs of an hour in four hours"


def test_two_rounds_fit_when_the_walltime_is_long_enough() -> None:
    options = PlanOptions("a", "batch", walltime_multiplier=2.5)
    planned = plan_schedulers(plan_of([asking(num_cpus=104)], [0] * 4), CLUSTER, options)
    assert (planned.schedulers[0].walltime, allocations(planned)) == ("02:30:00", [2])


def test_a_whole_node_is_requested_where_nodes_are_not_shared() -> None:
    planned = plan_schedulers(plan_of([asking(num_cpus=4, memory="8g")], [0]), CLUSTER, OPTIONS)
    assert planned.schedulers[0].mem == "240000m"
    assert planned.schedulers[0].extra == "--cpus-per-task=104"


def test_of_a_shared_node_only_what_is_used_is_requested() -> None:
    profile = only_partition(shared=True)
    planned = plan_schedulers(plan_of([asking(memory="900m")], [0] * 6), profile, OPTIONS)
    assert allocations(planned) == [2], "four jobs fit a node"
    assert (planned.schedulers[0].mem, planned.schedulers[0].extra) == ("2956m", "--cpus-per-task=3")


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"num_cpus": 2}, 4),
        ({"num_cpus": 1, "memory": "2000m"}, 4),
        ({"num_cpus": 1, "memory": "1m"}, 2),
        ({"num_cpus": 1, "num_gpus": 1}, 4),
    ],
)
def test_cpus_memory_and_gpus_limit_how_many_jobs_a_node_takes(amounts: dict[str, Any], expected: int) -> None:
    profile = only_partition(gpus_per_node=2)
    assert allocations(plan_schedulers(plan_of([asking(**amounts)], [0] * 8), profile, OPTIONS)) == [expected]


def test_jobs_of_several_nodes_have_an_allocation_each() -> None:
    for single in (False, True):
        options = PlanOptions("a", "batch", single_allocation=single)
        planned = plan_schedulers(plan_of([asking(num_nodes=3)], [0, 0]), only_partition(), options)
        assert (planned.schedulers[0].nodes, allocations(planned)) == (3, [2])
        assert "start_one_worker_per_node" not in planned.actions[0].config


def test_all_nodes_may_be_requested_at_once() -> None:
    options = PlanOptions("a", "batch", single_allocation=True)
    kinds = [asking("work", num_cpus=104)]
    planned = plan_schedulers(plan_of(kinds, [0] * 8, [(7, 6)]), CLUSTER, options)
    assert [(each.name, each.nodes) for each in planned.schedulers] == [
        ("work_scheduler", 7),
        ("work_deferred_scheduler", 1),
    ]
    assert planned.actions[0].config == {
        "scheduler_type": "batch",
        "num_allocations": 1,
        "start_one_worker_per_node": True,
    }
    assert "start_one_worker_per_node" not in planned.actions[1].config


def test_a_partition_limits_the_nodes_of_an_allocation() -> None:
    options = PlanOptions("a", "batch", single_allocation=True)
    planned = plan_schedulers(plan_of([asking()], [0] * 20), only_partition(max_nodes=2), options)
    assert (planned.schedulers[0].nodes, allocations(planned)) == (2, [4]), "of the seven nodes that they take"


def test_requests_may_be_put_together_by_partition() -> None:
    kinds = [asking("a", num_cpus=8), asking("b", memory="40g", runtime="PT2H"), asking("c", num_gpus=1)]
    options = PlanOptions("a", "batch", group_by="partition")
    planned = plan_schedulers(plan_of(kinds, [0, 1, 2, 0], [(3, 0)]), CLUSTER, options)
    assert [each.name for each in planned.schedulers] == ["short_scheduler", "gpu_scheduler"]
    assert planned.schedulers[0].walltime == "03:00:00"
    assert planned.bound == [0, 0, 1, 0]
    assert [(each.jobs, each.config["num_allocations"]) for each in planned.actions] == [(None, 1), ([3], 1), (None, 1)]


def test_actions_may_be_left_out() -> None:
    assert plan_schedulers(plan_of([asking()], [0]), CLUSTER, PlanOptions("a", "b", actions=False)).actions == []


def test_names_end_as_wanted_and_are_never_the_same() -> None:
    kinds = [asking("a"), asking("a_deferred", num_cpus=2)]
    planned = plan_schedulers(plan_of(kinds, [0, 0, 1], [(1, 0)]), CLUSTER, PlanOptions("a", "b", suffix="_r2"))
    assert [each.name for each in planned.schedulers] == [
        "a_scheduler_r2",
        "a_deferred_scheduler_r2",
        "a_deferred_scheduler_r2_2",
    ]


def test_a_partition_that_still_fits_is_kept() -> None:
    plan = plan_of([asking()], [0])
    assert plan_schedulers(plan, CLUSTER, OPTIONS, preferred={0: "standard"}).schedulers[0].partition == "standard"
    for gone in ("tiny", "elsewhere"):
        assert plan_schedulers(plan, CLUSTER, OPTIONS, preferred={0: gone}).schedulers[0].partition == "short"


# --- many jobs ------------------------------------------------------------------------------------


def test_very_many_jobs_extend_the_walltime() -> None:
    planned = plan_schedulers(plan_of([asking(runtime="PT5M")], [0] * 4000), only_partition(), OPTIONS)
    assert 90 < allocations(planned)[0] <= MANY_ALLOCATIONS
    assert parse_walltime(planned.schedulers[0].walltime) < 2 * HOUR
    assert "4000 jobs of work_scheduler would take 1334 allocations of 8 min;" in planned.warnings[0]


def test_the_number_of_allocations_is_limited() -> None:
    kinds = [asking(num_cpus=4, runtime="PT40H")]
    planned = plan_schedulers(plan_of(kinds, [0] * 1200), only_partition(), OPTIONS)
    assert allocations(planned) == [MAX_ALLOCATIONS]
    assert "takes 1200 allocations" in planned.warnings[0]


def test_long_chains_cause_a_warning() -> None:
    pairs = [(job, job - 1) for job in range(1, 60)]
    planned = plan_schedulers(plan_of([asking()], [0] * 60, pairs), CLUSTER, OPTIONS)
    assert len(planned.actions) == 60
    assert "in 59 consecutive stages" in planned.warnings[0]


# --- what is refused ------------------------------------------------------------------------------


def test_jobs_must_say_what_they_need() -> None:
    with pytest.raises(UserError, match=r"without resource_requirements: job1, job2;"):
        plan_schedulers(plan_of([asking()], [0, None, None]), CLUSTER, OPTIONS)


def test_what_fits_nowhere_is_named() -> None:
    with pytest.raises(UserError, match=r"'huge'[\s\S]*standard: its nodes have 104 CPUs"):
        plan_schedulers(plan_of([asking("huge", num_cpus=200)], [0]), CLUSTER, OPTIONS)


def test_a_job_that_takes_all_of_a_partitions_time_leaves_none_for_its_runner() -> None:
    with pytest.raises(UserError, match="compute_node_expiration_buffer_seconds"):
        plan_schedulers(plan_of([asking(runtime="PT48H")], [0]), only_partition(), OPTIONS)
    planned = plan_schedulers(plan_of([asking(runtime="PT47H57M")], [0]), only_partition(), OPTIONS)
    assert planned.schedulers[0].walltime == "48:00:00"


# --- any workflow ---------------------------------------------------------------------------------

amounts = st.builds(
    asking,
    num_cpus=st.integers(1, 104),
    memory=st.integers(1, 200_000).map("{}m".format),
    num_gpus=st.sampled_from([0, 0, 1, 3]),
    num_nodes=st.sampled_from([1, 1, 1, 2]),
    runtime=st.integers(1, 40 * HOUR).map(format_duration),
)
choices = st.builds(
    PlanOptions,
    account=st.just("a"),
    executor=st.just("batch"),
    group_by=st.sampled_from(["resource-requirements", "partition"]),
    walltime_strategy=st.sampled_from(["max-job-runtime", "max-partition-time"]),
    walltime_multiplier=st.floats(1, 4),
    single_allocation=st.booleans(),
)
runners = st.fixed_dictionaries(
    {
        "compute_node_expiration_buffer_seconds": st.sampled_from([0, 60, 180, 3600]),
        "compute_node_min_time_for_new_jobs_seconds": st.sampled_from([0, 300, 7200]),
    }
)


@settings(deadline=None, max_examples=300)
@given(graphs(), st.lists(amounts, min_size=1, max_size=4), choices, runners, st.data())
def test_every_job_gets_enough_room_and_time(
    graph: tuple[int, list[tuple[int, int]]],
    kinds: list[ResourceRequirementsRecord],
    options: PlanOptions,
    runner: dict[str, int],
    data: st.DataObject,
) -> None:
    count, pairs = graph
    for number, kind in enumerate(kinds):
        kind.name = f"kind{number}"
    drawn = data.draw(st.lists(st.sampled_from(range(len(kinds))), min_size=count, max_size=count))
    plan = plan_of(kinds, list(drawn), pairs, **runner)
    try:
        planned = plan_schedulers(plan, CLUSTER, options)
    except UserError:
        assume(False)
    assert plan_schedulers(plan, CLUSTER, options) == planned
    partitions = {partition.name: partition for partition in CLUSTER.partitions}
    names = [each.name for each in planned.schedulers]
    assert len(set(names)) == len(names)
    for job, drawn_kind in enumerate(drawn):
        bound = planned.bound[job]
        assert bound is not None
        scheduler, asked = planned.schedulers[bound], requested_resources(kinds[drawn_kind])
        partition = partitions[scheduler.partition or ""]
        walltime_s = parse_walltime(scheduler.walltime)
        cpus = int((scheduler.extra or "").removeprefix("--cpus-per-task="))
        assert walltime_s <= partition.max_walltime_secs
        assert asked.num_cpus <= cpus <= partition.cpus_per_node
        assert asked.memory_bytes <= parse_memory(scheduler.mem or "") <= partition.memory_mb * 1024**2
        assert asked.num_gpus <= int((scheduler.gres or "gpu:0").removeprefix("gpu:")) <= partition.gpus_per_node
        assert asked.num_nodes <= scheduler.nodes
        runner_time = Walltime(0.0, walltime_s - SLACK_S, plan.workflow)
        left = runner_time.left_s(0.0)
        assert left is not None
        assert left >= (asked.runtime_s or 0), "the server hands the job out"
        assert runner_time.allows_new_jobs(0.0)
    _assert_capacity(plan, planned, drawn)
    _assert_every_action_fires(count, pairs, planned)


def _assert_capacity(plan: Plan, planned: SchedulerPlan, drawn: list[int]) -> None:
    """The allocations of each action take all its jobs: by the runner's own clock, job after job."""
    levels = Graph.of_plan(plan).levels
    for action in planned.actions:
        assert action.scheduler is not None
        scheduler = planned.schedulers[action.scheduler]
        jobs = action.jobs or [n for n, at in enumerate(planned.bound) if at == action.scheduler and not levels[n]]
        asked = [requested_resources(plan.resource_requirements[drawn[job]]) for job in jobs]
        longest = max(each.runtime_s or 0 for each in asked)
        clock = Walltime(0.0, parse_walltime(scheduler.walltime) - SLACK_S, plan.workflow)
        rounds = 0
        while rounds < len(jobs) and clock.allows_new_jobs(rounds * longest):
            left = clock.left_s(rounds * longest)
            if left is None or left < longest:
                break
            rounds += 1
        cpus = int((scheduler.extra or "").removeprefix("--cpus-per-task="))
        per_node = cpus // max(each.num_cpus for each in asked)
        per_node = min(per_node, parse_memory(scheduler.mem or "") // max(each.memory_bytes for each in asked))
        if gpus := max(each.num_gpus for each in asked):
            per_node = min(per_node, int((scheduler.gres or "").removeprefix("gpu:")) // gpus)
        wide = max(each.num_nodes for each in asked)
        workers = 1 if wide > 1 else scheduler.nodes
        assert workers == 1 or action.config["start_one_worker_per_node"]
        at_once = 1 if wide > 1 else per_node
        assert action.config["num_allocations"] * workers * at_once * rounds >= len(jobs)
        assert action.config["num_allocations"] <= math.ceil(len(jobs))


def _assert_every_action_fires(count: int, pairs: list[tuple[int, int]], planned: SchedulerPlan) -> None:
    """Jobs run only on nodes of their own scheduler that were asked for by then; all of them get to run."""
    done: set[int] = set()
    fired = [not action.jobs for action in planned.actions]
    before: dict[int, set[int]] = {job: {on for other, on in pairs if other == job} for job in range(count)}
    while len(done) < count:
        ready = {job for job in range(count) if before[job] <= done}
        for number, action in enumerate(planned.actions):
            fired[number] = fired[number] or set(action.jobs or ()) <= ready
        served = {action.scheduler for number, action in enumerate(planned.actions) if fired[number]}
        runs = {job for job in ready - done if planned.bound[job] in served}
        assert runs, "a job waits for nodes that no action asks for"
        done |= runs


# --- idle nodes -----------------------------------------------------------------------------------

SMALL = HpcProfile(
    "small",
    partitions=(
        Partition("debug", 4, 4000, HOUR),
        Partition("short", 4, 4000, 4 * HOUR, shared=True),
        Partition("standard", 4, 4000, 48 * HOUR, shared=True),
        Partition("gpu", 4, 4000, 48 * HOUR, gpus_per_node=2, shared=True),
        Partition("tiny", 2, 400, HOUR, shared=True),
        Partition("urgent", 4, 4000, HOUR, requires_explicit_request=True),
    ),
)
LITTLE = asking(memory="100m", runtime="PT20M")
NODES = ["n1", "n2", "n3"]
ALL_IDLE = {"debug": NODES, "short": NODES, "standard": NODES, "gpu": ["g1"], "tiny": ["t1"], "urgent": NODES}


def places(plan: Plan, idle: dict[str, list[str]], **options: object) -> dict[str, tuple[int, int]]:
    """Return jobs and allocations by partition."""
    planned = plan_schedulers(plan, SMALL, PlanOptions("science", "batch", idle=idle, **options))  # type: ignore[arg-type]  # values of several types
    assert None not in planned.bound
    assert len({each.name for each in planned.schedulers}) == len(planned.schedulers)
    return {
        str(scheduler.partition): (planned.bound.count(n), counts)
        for n, scheduler in enumerate(planned.schedulers)
        for counts in [sum(each.config["num_allocations"] for each in planned.actions if each.scheduler == n)]
    }


@pytest.mark.parametrize(
    ("jobs", "idle", "expected"),
    [
        (40, {}, {"tiny": (40, 20)}),  # nothing is known
        (40, {"tiny": [], "short": []}, {"tiny": (40, 20)}),  # nothing is idle
        (2, ALL_IDLE, {"tiny": (2, 1)}),
        (6, ALL_IDLE, {"tiny": (2, 1), "short": (4, 1)}),
        (14, ALL_IDLE, {"tiny": (2, 1), "short": (12, 3)}),  # standard has the same nodes
        (40, ALL_IDLE, {"tiny": (28, 14), "short": (12, 3)}),
        (6, {"standard": ["n3"], "gpu": ["g1"], "debug": ["n1"]}, {"tiny": (2, 1), "standard": (4, 1)}),
        (4, {"standard": ["n3"]}, {"standard": (4, 1)}),
        (4, {"gpu": ["g1"], "debug": NODES, "urgent": NODES, "elsewhere": NODES}, {"tiny": (4, 2)}),
    ],
)
def test_small_jobs_go_where_nodes_are_idle(
    jobs: int, idle: dict[str, list[str]], expected: dict[str, tuple[int, int]]
) -> None:
    """In the usual order, each node once; nodes with GPUs and those for debugging are left to others."""
    assert places(plan_of([LITTLE], [0] * jobs), idle) == expected
    reordered = {name: nodes[::-1] for name, nodes in reversed(idle.items())}
    assert places(plan_of([LITTLE], [0] * jobs), reordered) == expected


def test_requests_do_not_count_on_the_same_idle_nodes() -> None:
    """The second finds what the first has left."""
    other = asking("other", memory="100m", runtime="PT20M")
    planned = plan_schedulers(
        plan_of([LITTLE, other], [0] * 10 + [1] * 6), SMALL, PlanOptions("science", "batch", idle={"short": NODES})
    )
    counts = [(each.name, planned.bound.count(n)) for n, each in enumerate(planned.schedulers)]
    assert counts == [("work_short_scheduler", 10), ("other_scheduler", 6)]


@pytest.mark.parametrize("settled", [{"partition": "tiny"}, {"group_by": "partition"}, {"single_allocation": True}])
def test_a_choice_goes_before_idle_nodes(settled: dict[str, object]) -> None:
    assert set(places(plan_of([LITTLE], [0] * 40), ALL_IDLE, **settled)) == {"tiny"}


def test_jobs_that_wait_are_not_spread() -> None:
    """What is idle when they can start is not known."""
    plan = plan_of([LITTLE], [0] * 20, [(n, 0) for n in range(1, 20)])
    assert set(places(plan, {"short": NODES})) == {"short", "tiny"}
    assert places(plan, {"short": NODES})["short"] == (1, 1)
