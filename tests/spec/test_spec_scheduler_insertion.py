"""A spec with planned schedulers is a spec: the same jobs, bound, in every format."""

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from torc_framework.errors import UserError
from torc_framework.models.plan import PlannedAction, SchedulerPlan
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.spec import dry_run, dump_spec, load_plan, load_spec
from torc_framework.spec.language.model import WorkflowSpec
from torc_framework.spec.scheduler_insertion import has_schedulers, with_schedulers, without_schedulers

FORMATS = ("yaml", "json", "json5", "kdl")
SPEC = """
name: sweep
resource_requirements:
  - {name: small, num_cpus: 1, memory: 1g, runtime: PT10M}
files:
  - {name: data_2, path: data_2.csv}
jobs:
  - {name: prepare, command: "true", resource_requirements: small, output_files: [data_2]}
  - name: "work_{i:02d}"
    command: "work {i}"
    resource_requirements: small
    parameters: {i: "1:9"}
    depends_on: [prepare]
  - {name: "work_x.y", command: "true", resource_requirements: small, depends_on: [prepare]}
  - name: "read_{i}"
    command: "cat data_{i}.csv ${files.input.data_2}"
    parameters: {i: "2:3"}
    depends_on: ["work_x.y"]
actions:
  - {trigger_type: on_workflow_complete, action_type: run_commands, commands: [date]}
"""
JOBS = 13


@pytest.fixture
def spec(tmp_path: Path) -> WorkflowSpec:
    path = tmp_path / "workflow.yaml"
    path.write_text(SPEC)
    return load_spec(path)


def scheduler(name: str, **facts: Any) -> SlurmSchedulerRecord:
    values: dict[str, Any] = {"account": "a", "nodes": 1, "walltime": "00:20:00", "partition": "short", **facts}
    return SlurmSchedulerRecord(workflow_id=0, name=name, **values)


def action(jobs: list[int] | None, to: int) -> PlannedAction:
    trigger = "on_jobs_ready" if jobs else "on_workflow_start"
    return PlannedAction(trigger, "schedule_nodes", {"scheduler_type": "slurm", "num_allocations": 2}, jobs, to)


def planned() -> SchedulerPlan:
    """One scheduler for what waits for nothing; the second of the readers has a scheduler of its own."""
    return SchedulerPlan(
        [
            scheduler("first"),
            scheduler("second", gres="gpu:1", mem="2g", extra="--cpus-per-task=2"),
            scheduler("third"),
        ],
        [0, *[1] * 10, 1, 2],
        [action(None, 0), action(list(range(1, 10)), 1), action([10, 11], 1), action([12], 2)],
    )


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_written_says_what_was_planned(tmp_path: Path, spec: WorkflowSpec, form: str) -> None:
    path = tmp_path / f"made.{form}"
    path.write_text(dump_spec(with_schedulers(spec, planned()), form))
    made, before = load_plan(path).plan, load_plan(spec).plan
    assert [job.scheduler for job in made.jobs] == planned().bound
    assert made.slurm_schedulers == planned().schedulers
    scheduling = [each for each in made.actions if each.action_type == "schedule_nodes"]
    assert scheduling == planned().actions
    assert len(made.actions) == 5, "the spec's own action stays"
    for job in made.jobs:
        job.scheduler = None
    assert made.jobs == before.jobs
    assert (made.dependencies, made.barriers, made.files) == (before.dependencies, before.barriers, before.files)
    values, text = dry_run(path)
    assert values["valid"]
    assert values["summary"]["has_schedule_nodes_action"]
    assert "PASSED" in text


def test_parameterized_jobs_stay_as_they_are_unless_their_schedulers_differ(spec: WorkflowSpec) -> None:
    jobs = with_schedulers(spec, planned()).jobs
    assert [(job.name, job.scheduler) for job in jobs] == [
        ("prepare", "first"),
        ("work_{i:02d}", "second"),
        ("work_x.y", "second"),
        ("read_2", "second"),
        ("read_3", "third"),
    ]
    assert jobs[3].command == "cat data_2.csv ${files.input.data_2}"


def test_many_jobs_of_one_entry_are_watched_by_a_pattern_that_finds_no_other(spec: WorkflowSpec) -> None:
    """``^work_.+$`` would find work_x.y, too."""
    actions = with_schedulers(spec, planned()).actions or []
    assert actions[2].jobs == [f"work_{n:02d}" for n in range(1, 10)]
    assert actions[2].job_name_regexes is None
    spec.jobs[2].name = "other"
    spec.jobs[3].depends_on = ["other"]
    actions = with_schedulers(spec, planned()).actions or []
    assert (actions[2].jobs, actions[2].job_name_regexes) == (None, ["^work_.+$"])


def test_schedulers_and_what_refers_to_them_can_be_taken_out(spec: WorkflowSpec) -> None:
    assert not has_schedulers(spec)
    made = with_schedulers(spec, planned())
    assert has_schedulers(made)
    assert [job.name for job in without_schedulers(made).jobs][:3] == [job.name for job in spec.jobs][:3]
    spec.jobs[3] = evolve(spec.jobs[3], name="read_{i}")
    again = without_schedulers(with_schedulers(spec, SchedulerPlan([scheduler("one")], [0] * JOBS, [action(None, 0)])))
    assert again == spec
    assert not has_schedulers(again)


def test_a_plan_of_another_workflow_is_refused(spec: WorkflowSpec) -> None:
    with pytest.raises(UserError, match="another workflow"):
        with_schedulers(spec, SchedulerPlan([], [None]))


def test_the_workflows_quality_of_service_is_that_of_its_schedulers(spec: WorkflowSpec) -> None:
    """Whose records would say ``normal``, which hides it."""
    spec.slurm_defaults = {"qos": "high"}
    plan = load_plan(with_schedulers(spec, planned())).plan
    assert {each.qos for each in plan.slurm_schedulers} == {"high"}
