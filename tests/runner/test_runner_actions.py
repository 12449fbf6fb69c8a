"""Actions: which runner carries them out, when, and what is recorded."""

import threading
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from programs import project_plugin
from runner_bench import Bench, job
from sample_records import register
from waiting import eventually

from torc_framework.models.plan import PlannedAction
from torc_framework.models.records import (
    ComputeNodeRecord,
    EventRecord,
    ScheduledComputeNodeRecord,
    SlurmSchedulerRecord,
    WorkflowActionRecord,
)
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner import run

ALLOCATOR = """
from torc_framework.api import Allocation, Allocator, Capabilities, hookimpl

class Paper(Allocator):
    name = "paper"
    description = "Writes requests down"
    capabilities = Capabilities(can_allocate=True)
    scheduler_kind = "slurm_schedulers"

    def allocate(self, request):
        with open("requests", "a") as file:
            print(request.scheduler["account"], request.count, *request.runner_command[3:], file=file)
        return [Allocation(str(100 + n), self.name) for n in range(request.count)]

    def find(self, names):
        return {}

    def alive(self, allocations):
        return {}

    def release(self, allocations):
        pass

@hookimpl
def torc_executors():
    return [Paper]
"""


def action(trigger: str, *commands: str, jobs: list[int] | None = None, **fields: Any) -> PlannedAction:
    """Return an action that runs commands."""
    return PlannedAction(trigger, "run_commands", {"commands": [*commands]}, jobs, **fields)


def written(bench: Bench) -> list[str]:
    """Return what jobs and actions wrote, in order; commands of actions run in the output directory."""
    return (bench.folder / "log").read_text().split()


def actions(bench: Bench, workflow_id: int) -> dict[str, WorkflowActionRecord]:
    """Return a workflow's actions by trigger."""
    return {each.trigger_type: each for each in bench.client.actions(workflow_id)}


def test_every_trigger(bench: Bench) -> None:
    """Before the first job, between jobs, after the last."""
    names = ["on_workflow_start", "on_worker_start", "on_workflow_complete", "on_worker_complete"]
    planned = [action(name, f"echo {name} >> ../log", persistent="worker" in name) for name in names]
    planned.append(action("on_jobs_complete", "echo first_done >> ../log", jobs=[0]))
    planned.append(action("on_jobs_ready", "echo second_ready >> ../log", jobs=[1]))
    workflow_id = bench.create(
        job("first", "echo first >> log"),
        job("second", "echo second >> log"),
        dependencies=[(1, 0)],
        actions=planned,
    )
    assert bench.run(workflow_id).is_complete
    order = written(bench)
    assert {*order[:2]} == {"on_workflow_start", "on_worker_start"}
    assert order[2] == "first"
    assert {*order[3:6]} == {"first_done", "second_ready", "second"}
    assert order[6:] == ["on_workflow_complete", "on_worker_complete"]
    assert all(each.finished_at and each.executed for each in bench.client.actions(workflow_id) if not each.persistent)
    types = [event.data["event_type"] for event in bench.client.find(EventRecord, workflow_id=workflow_id)]
    assert types.count("action_completed") == 6


def test_a_failed_action_is_told_and_stops_nothing(bench: Bench) -> None:
    """The commands behind it are not run; the workflow goes on; what was printed is in the action's log."""
    planned = [action("on_workflow_start", "echo said; exit 3", "echo never >> ../log")]
    workflow_id = bench.create(job("a", "echo a >> log"), actions=planned)
    assert bench.run(workflow_id).is_complete
    assert written(bench) == ["a"]
    record = actions(bench, workflow_id)["on_workflow_start"]
    assert record.error == "command of action run_commands failed with exit code 3: 'echo said; exit 3'"
    log = bench.folder / "output" / f"action_wf{workflow_id}_a{record.id}.log"
    assert log.read_text() == "said\n"
    (event,) = [
        e for e in bench.client.find(EventRecord, workflow_id=workflow_id) if e.data["event_type"] == "action_failed"
    ]
    assert event.data["reason"] == record.error


NOTES = """
from torc_framework.api import ActionType, hookimpl

def note(config, context):
    with open(f"{context.output_dir}/note", "w") as file:
        file.write(f"{config['text']} {config['times']}")

SCHEMA = {"type": "object", "required": ["text"], "properties": {
    "text": {"type": "string"}, "times": {"type": "integer", "default": 3}
}}

@hookimpl
def torc_action_types():
    return [ActionType("note", SCHEMA, note)]
"""


def test_a_configuration_has_the_defaults_of_the_schema(bench: Bench) -> None:
    project_plugin(bench.folder, "notes", NOTES)
    other = evolve(bench, plugins=PluginManager.load(bench.folder))
    other.run(other.create(job("a", "true"), actions=[PlannedAction("on_workflow_start", "note", {"text": "hi"})]))
    assert (bench.folder / "output" / "note").read_text() == "hi 3"


def test_a_wrong_configuration_names_the_field(bench: Bench) -> None:
    """An action that another client created is not checked before."""
    project_plugin(bench.folder, "notes", NOTES)
    other = evolve(bench, plugins=PluginManager.load(bench.folder))
    for kind, config, told in (
        ("note", {"text": 5}, "its configuration is wrong: text: 5 is not of type 'string'"),
        ("run_commands", {}, "its configuration is wrong: 'commands' is a required property"),
    ):
        workflow_id = other.create(job("a", "true"), actions=[PlannedAction("on_workflow_start", kind, config)])
        assert other.run(workflow_id).is_complete
        assert actions(bench, workflow_id)["on_workflow_start"].error == told


def test_environment_of_actions(bench: Bench) -> None:
    """They find the server and the workflow as jobs do."""
    planned = [
        action(
            "on_workflow_start",
            "env | grep -E '^TORC_(API_URL|WORKFLOW_ID|OUTPUT_DIR)' | sort > ../seen; pwd >> ../seen",
        )
    ]
    workflow_id = bench.create(job("a", "true"), actions=planned)
    bench.run(workflow_id)
    assert (bench.folder / "seen").read_text().splitlines() == [
        f"TORC_API_URL={bench.client.url}",
        f"TORC_OUTPUT_DIR={bench.folder}/output",
        f"TORC_WORKFLOW_ID={workflow_id}",
        f"{bench.folder}/output",
    ]


def test_several_runners_share_actions(bench: Bench) -> None:
    """Each once, but those of workers once a worker."""
    planned = [action("on_workflow_start", "echo once >> ../log"), action("on_workflow_complete", "echo end >> ../log")]
    planned += [action("on_worker_start", "echo worker >> ../log", persistent=True)]
    jobs = [job(f"j{n}", "sleep 0.05") for n in range(60)]
    workflow_id = bench.create(*jobs, actions=planned)
    settings = bench.settings(workflow_id, num_cpus=2, wait_for_new_jobs_s=30)

    def work(number: int) -> None:
        (bench.folder / f"output{number}").mkdir()
        run(evolve(settings, output_dir=bench.folder / f"output{number}"), bench.plugins)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written(bench)) == ["end", "once", "worker", "worker", "worker"]


def test_an_unknown_type_is_left_to_others(bench: Bench) -> None:
    """The runner does not claim it, and ends all the same."""
    planned = [
        PlannedAction("on_workflow_start", "notify_nobody", {"a": 1}),
        action("on_workflow_start", "echo b >> ../log"),
    ]
    workflow_id = bench.create(job("a", "true"), actions=planned)
    outcome = bench.run(workflow_id)
    assert outcome.is_complete
    assert written(bench) == ["b"]
    (trouble,) = outcome.troubles
    assert "was left to other runners: no plugin offers action type 'notify_nobody'" in trouble
    assert [each.executed for each in bench.client.actions(workflow_id)] == [False, True]
    assert "no plugin offers action type" in next((bench.folder / "output").glob("job_runner_*.log")).read_text()


def test_an_action_of_a_dead_runner_is_due_again(bench: Bench) -> None:
    """Unless it had said how the action ended."""
    workflow_id = bench.create(job("a", "true"), actions=[action("on_workflow_start", "echo a >> ../log")])
    dead = register(bench.client, workflow_id, hostname="elsewhere")
    (due,) = bench.client.pending_actions(workflow_id)
    assert bench.client.claim_action(workflow_id, due.id or 0, dead, will_report=True)
    bench.client.update(ComputeNodeRecord, dead, {"is_active": False})
    assert bench.run(workflow_id).is_complete
    assert written(bench) == ["a"]


def test_an_action_of_another_client_is_not_repeated(bench: Bench) -> None:
    """An action counts as done if its runner never reports the end."""
    workflow_id = bench.create(job("a", "true"), actions=[action("on_workflow_start", "echo a >> ../log")])
    other = register(bench.client, workflow_id, hostname="elsewhere")
    (due,) = bench.client.pending_actions(workflow_id)
    assert bench.client.claim_action(workflow_id, due.id or 0, other)
    bench.client.update(ComputeNodeRecord, other, {"is_active": False})
    assert bench.run(workflow_id).is_complete
    assert not (bench.folder / "log").exists()


def test_a_canceled_workflow_ends_its_actions(bench: Bench) -> None:
    """A command that would run for ever is killed, with its children."""
    workflow_id = bench.create(
        job("a", "true"), actions=[action("on_workflow_start", "echo $$ > ../pid; sleep 1000; true")]
    )
    thread = threading.Thread(target=bench.run, args=(workflow_id,))
    thread.start()
    pid = bench.folder / "pid"
    eventually(lambda: pid.exists() and pid.read_text().strip(), "the action begins")
    bench.client.cancel(workflow_id)
    thread.join(60)
    assert not thread.is_alive()
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


@pytest.mark.parametrize("installed", [True, False])
def test_schedule_nodes(bench: Bench, installed: bool) -> None:
    """The named executor is asked; without it the action stays due, and the log has the reason."""
    if installed:
        project_plugin(bench.folder, "paper", ALLOCATOR)
    config = {"scheduler_type": "paper", "num_allocations": 2, "max_parallel_jobs": 3}
    planned = [PlannedAction("on_jobs_ready", "schedule_nodes", config, [1], scheduler=0)]
    scheduler = SlurmSchedulerRecord(workflow_id=0, name="s", account="acc", nodes=1, walltime="01:00:00")
    workflow_id = bench.create(
        job("a", "true"), job("b", "true"), dependencies=[(1, 0)], actions=planned, slurm_schedulers=[scheduler]
    )
    outcome = run(bench.settings(workflow_id), PluginManager.load(bench.folder))
    assert outcome.is_complete
    nodes = bench.client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    if installed:
        assert [(node.scheduler_id, node.scheduler_type, node.status) for node in nodes] == [
            (100, "paper", "pending"),
            (101, "paper", "pending"),
        ]
        said = (bench.folder / "requests").read_text().split()
        assert said == [
            "acc",
            "2",
            "--worker",
            "--executor",
            "local",
            "--output-dir",
            f"{bench.folder}/output",
            "--scheduler-config-id",
            str(nodes[0].scheduler_config_id),
            "--max-parallel-jobs",
            "3",
        ]
    else:
        assert nodes == []
        assert "paper" in next((bench.folder / "output").glob("job_runner_*.log")).read_text()


def test_allocations_whose_ids_are_no_numbers(bench: Bench) -> None:
    """They are recorded as they are; an allocator that needs no record of a scheduler is given none."""
    text = ALLOCATOR.replace("str(100 + n)", 'f"host:{n}"').replace('scheduler_kind = "slurm_schedulers"', "")
    project_plugin(bench.folder, "paper", text.replace('request.scheduler["account"]', "request.scheduler"))
    planned = [PlannedAction("on_workflow_start", "schedule_nodes", {"scheduler_type": "paper", "scheduler_id": 77})]
    workflow_id = bench.create(job("a", "true"), actions=planned)
    assert run(bench.settings(workflow_id), PluginManager.load(bench.folder)).is_complete
    assert actions(bench, workflow_id)["on_workflow_start"].error is None
    (node,) = bench.client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    assert (node.allocation_id, node.scheduler_id, node.scheduler_config_id, node.status) == (
        "host:0",
        0,
        77,
        "pending",
    )
    assert (bench.folder / "requests").read_text().startswith("{} 1 ")


@pytest.mark.parametrize("stays", [False, True])
def test_nodes_that_a_complete_workflow_waits_for_are_given_back(bench: Bench, stays: bool) -> None:
    """By a runner on nodes that were asked for, unless runners are to stay after the workflow is complete."""
    written = '        Path("released").write_text(" ".join(each.id for each in allocations))'
    text = "from pathlib import Path" + ALLOCATOR.replace("        pass", written)
    project_plugin(bench.folder, "paper", text)
    workflow = {"compute_node_ignore_workflow_completion": stays}
    workflow_id = bench.create(job("a", "true"), workflow=workflow)
    asked: dict[str, Any] = {"workflow_id": workflow_id, "scheduler_config_id": 1, "scheduler_type": "paper"}
    for number, status in ((7, "pending"), (8, "active")):
        bench.client.create(ScheduledComputeNodeRecord(**asked, scheduler_id=number, status=status))
    settings = bench.settings(workflow_id, scheduler_config_id=1, time_limit_s=5.0 if stays else None)
    run(settings, PluginManager.load(bench.folder))
    nodes = bench.client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    found = {each.scheduler_id: each.status for each in nodes}
    assert found == {7: "pending" if stays else "complete", 8: "active"}
    assert stays or (bench.folder / "released").read_text() == "7"
