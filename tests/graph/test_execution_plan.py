"""Stages for people, events for programs."""

from collections import Counter

import pytest
from hypothesis import given
from strategies import graphs

from torc_framework.graph import ExecutionPlan, execution_plan, plan_of_records
from torc_framework.graph.stages import compress_names, describe_trigger
from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
from torc_framework.models.records import JobRecord, SlurmSchedulerRecord, WorkflowActionRecord, WorkflowRecord


def workflow() -> WorkflowRecord:
    return WorkflowRecord(name="two_pipelines", user="ann")


def two_pipelines() -> Plan:
    """Two pipelines that meet at the end: prepare, five jobs of work, tidy; then one last job."""
    names = ["prep_a", "prep_b", *(f"work_{x}_{n}" for x in "ab" for n in range(1, 6)), "post_a", "post_b", "final"]
    at = {name: position for position, name in enumerate(names)}
    works = {x: [at[f"work_{x}_{n}"] for n in range(1, 6)] for x in "ab"}
    schedulers = [
        SlurmSchedulerRecord(workflow_id=0, name=f"{x}_sched", account="x", nodes=1, walltime="1") for x in "pw"
    ]

    def allocate(trigger: str, scheduler: int, jobs: list[int] | None = None, count: int = 1) -> PlannedAction:
        config = {"scheduler_type": "slurm", "num_allocations": count}
        return PlannedAction(trigger, "schedule_nodes", config, jobs, scheduler)

    return Plan(
        workflow(),
        [PlannedJob(name, "true", scheduler=1 if name.startswith("work_a") else None) for name in names],
        dependencies=[
            *((job, at[f"prep_{x}"]) for x in "ab" for job in works[x]),
            *((at[f"post_{x}"], job) for x in "ab" for job in works[x]),
            (at["final"], at["post_a"]),
            (at["final"], at["post_b"]),
        ],
        slurm_schedulers=schedulers,
        actions=[
            allocate("on_workflow_start", 0),
            allocate("on_jobs_ready", 1, works["a"], count=2),
            allocate("on_jobs_complete", 0, [at["post_a"], at["post_b"]]),
            allocate("on_workflow_complete", 0),
            PlannedAction("on_workflow_start", "run_commands", {"commands": ["x"]}),
        ],
    )


def test_the_stages_as_text() -> None:
    assert execution_plan(two_pipelines()).text() == (
        """\
Workflow: two_pipelines
Total Jobs: 15

▶ Stage 1: Workflow Start
  Scheduler Allocations:
    • p_sched (slurm) - 1 allocation(s)
  Jobs Becoming Ready:
    • prep_a
    • prep_b

→ Stage 2: When jobs 'prep_a', 'prep_b' complete
  Scheduler Allocations:
    • w_sched (slurm) - 2 allocation(s)
  Jobs Becoming Ready:
    • work_a_{1..5}
    • work_b_{1..5}

→ Stage 3: When 10 jobs complete
  Jobs Becoming Ready:
    • post_a
    • post_b

→ Stage 4: When jobs 'post_a', 'post_b' complete
  Scheduler Allocations:
    • p_sched (slurm) - 1 allocation(s)
  Jobs Becoming Ready:
    • final

Total Stages: 4"""
    )


def test_the_events_as_json() -> None:
    """One event for the start and one for each different set of jobs waited for."""
    made = execution_plan(two_pipelines()).as_dict()
    assert (made["status"], made["source"], made["workflow_name"]) == ("success", "spec_file", "two_pipelines")
    assert (made["total_events"], made["total_jobs"]) == (6, 15)
    assert (made["root_events"], made["leaf_events"]) == (["start"], ["after_post_jobs"])
    start, after_a, *_, last = made["events"]
    assert start == {
        "id": "start",
        "trigger": {"type": "WorkflowStart"},
        "trigger_description": "Workflow Start",
        "scheduler_allocations": [
            {"scheduler": "p_sched", "scheduler_type": "slurm", "num_allocations": 1, "job_names": []}
        ],
        "jobs_becoming_ready": ["prep_a", "prep_b"],
        "depends_on_events": [],
        "unlocks_events": ["after_prep_a", "after_prep_b"],
    }
    works = [f"work_a_{n}" for n in range(1, 6)]
    assert after_a["trigger"] == {"type": "JobsComplete", "data": {"jobs": ["prep_a"]}}
    assert after_a["jobs_becoming_ready"] == works
    assert after_a["scheduler_allocations"] == [
        {"scheduler": "w_sched", "scheduler_type": "slurm", "num_allocations": 2, "job_names": works}
    ]
    assert last["depends_on_events"] == ["after_work_a_jobs", "after_work_b_jobs"]
    assert last["scheduler_allocations"][0]["job_names"] == ["post_a", "post_b"]


def test_event_ids_never_collide() -> None:
    """Sets of jobs that would have the same name get a number."""
    names = ["x_1", "x_2", "x_3", "a", "b", "c"]
    plan = Plan(
        workflow(),
        [PlannedJob(name, "true") for name in names],
        dependencies=[(3, 0), (3, 1), (4, 1), (4, 2), (5, 0), (5, 2)],
    )
    events = execution_plan(plan).as_dict()["events"]
    assert [event["id"] for event in events] == ["start", "after_x_jobs", "after_x_jobs_2", "after_x_jobs_3"]
    assert sorted(job for event in events for job in event["jobs_becoming_ready"]) == sorted(names)


def test_names_without_a_common_start() -> None:
    plan = Plan(workflow(), [PlannedJob(n, "c") for n in "abc"], dependencies=[(2, 0), (2, 1)])
    assert execution_plan(plan).as_dict()["events"][1]["id"] == "after_a_and_1_more"


def test_a_stored_workflow_unfolds_as_its_file() -> None:
    """From records and ids."""
    plan = two_pipelines()
    jobs = [
        JobRecord(
            id=100 + n, workflow_id=1, name=job.name, command=job.command, scheduler_id=8 if job.scheduler else None
        )
        for n, job in enumerate(plan.jobs)
    ]
    actions = [
        WorkflowActionRecord(
            id=n,
            workflow_id=1,
            trigger_type=action.trigger_type,
            action_type=action.action_type,
            action_config={**action.config, "scheduler_id": 7 + (action.scheduler or 0)},
            job_ids=[100 + job for job in action.jobs] if action.jobs else None,
        )
        for n, action in enumerate(plan.actions)
    ]
    schedulers = [
        SlurmSchedulerRecord(id=7 + n, workflow_id=1, name=s.name, account="x", nodes=1, walltime="1")
        for n, s in enumerate(plan.slurm_schedulers)
    ]
    dependencies = [(100 + job, 100 + on) for job, on in plan.dependencies]
    stored = execution_plan(plan_of_records(workflow(), jobs, dependencies, schedulers=schedulers, actions=actions))
    assert stored.text() == execution_plan(plan).text()
    assert stored.as_dict("database") == {**execution_plan(plan).as_dict(), "source": "database"}


def test_a_stored_barrier_needs_no_pairs() -> None:
    """A thousand jobs that wait for a thousand others are two stages, from one group."""
    jobs = [JobRecord(id=n, workflow_id=1, name=f"j{n}", command="c") for n in range(2000)]
    group = Barrier(list(range(1000)), list(range(1000, 2000)))
    made = execution_plan(plan_of_records(workflow(), jobs, [], groups=[group]))
    assert [len(stage.jobs) for stage in made.stages] == [1000, 1000]


@given(graphs())
def test_every_job_becomes_ready_once(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """In one stage and in one event, and events form an acyclic graph of their own."""
    count, pairs = graph
    names = [f"j{n}" for n in range(count)]
    made = ExecutionPlan(Plan(workflow(), [PlannedJob(name, "c") for name in names], dependencies=pairs))
    assert Counter(job for stage in made.stages for job in stage.jobs) == Counter(names)
    assert Counter(job for event in made.events for job in event.jobs) == Counter(names)
    assert len({event.id for event in made.events}) == len(made.events)
    known: set[str] = set()
    for event in made.events:
        assert set(event.depends_on) <= known
        known.add(event.id)


def test_a_barrier_is_one_event_and_one_stage() -> None:
    """Also when it is said as pairs for some of the jobs."""
    plan = Plan(
        workflow(),
        [PlannedJob(f"j{n}", "c") for n in range(9)],
        dependencies=[(8, 0), (8, 1), (8, 2)],
        barriers=[Barrier([0, 1, 2], [3, 4, 5, 6, 7])],
    )
    events = execution_plan(plan).as_dict()["events"]
    assert [event["jobs_becoming_ready"] for event in events] == [
        ["j0", "j1", "j2"],
        ["j3", "j4", "j5", "j6", "j7", "j8"],
    ]


def test_wide_barriers_are_shown_at_once() -> None:
    width = 20_000
    jobs = [PlannedJob(f"{x}_{n:05d}", "c") for x in "ab" for n in range(width)]
    barrier = Barrier(list(range(width)), list(range(width, 2 * width)))
    text = execution_plan(Plan(workflow(), jobs, barriers=[barrier])).text()
    assert "→ Stage 2: When 20000 jobs complete" in text
    assert "• b_{00000..19999}" in text


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["w_1", "w_2", "w_3"], ["w_{1..3}"]),
        (["w_08", "w_09", "w_10", "w_11"], ["w_{08..11}"]),
        (["w_1", "w_2"], ["w_1", "w_2"]),
        (["w_1", "w_2", "w_3", "w_5"], ["w_{1..3}", "w_5"]),
        (["a1b", "a2b", "a3b"], ["a{1..3}b"]),
        (["x1_y2", "x1_y3", "x1_y4"], ["x1_y{2..4}"]),
        (["9", "10", "11"], ["{9..11}"]),
        (["a", "b"], ["a", "b"]),
        ([], []),
    ],
)
def test_runs_of_numbers_are_put_together(names: list[str], expected: list[str]) -> None:
    assert compress_names(names) == expected


def test_triggers_in_words() -> None:
    assert describe_trigger([]) == "Workflow Start"
    assert describe_trigger(["a"]) == "When job 'a' completes"
    assert describe_trigger(["a", "b"]) == "When jobs 'a', 'b' complete"
    assert describe_trigger(list("abcd")) == "When 4 jobs complete"


def test_an_empty_workflow() -> None:
    made = execution_plan(Plan(workflow(), []))
    assert made.text().endswith("Total Stages: 0")
    assert made.as_dict()["total_events"] == 1
