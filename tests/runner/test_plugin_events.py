"""Events for plugins: every type, with the values that the reference lists, each once and in order."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, evolve
from programs import project_plugin
from runner_bench import Bench, handler, job, requirements
from waiting import eventually

from torc_framework.models.events import EVENT_FACTS
from torc_framework.models.exchange import EndedReport, ExchangeRequest, RetryRequest
from torc_framework.models.plan import PlannedAction
from torc_framework.models.records import (
    ComputeNodeRecord,
    EventRecord,
    ScheduledComputeNodeRecord,
    WorkflowRecord,
)
from torc_framework.models.recovery import RecoveryOrder, Repair
from torc_framework.models.verdicts import Verdict, VerdictOrder
from torc_framework.plugin_events import PluginEvents
from torc_framework.plugins.manager import PluginManager

LISTENER = """
import json
from torc_framework.api import hookimpl
@hookimpl
def torc_on_event(event):
    with open("heard", "a") as file:
        print(json.dumps(event), file=file)
"""


@define
class Ears:
    """A bench whose plugins write down every event."""

    bench: Bench

    def heard(self) -> list[dict[str, Any]]:
        """Return what the plugin received."""
        path = self.bench.folder / "heard"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def stored(self, workflow_id: int) -> list[dict[str, Any]]:
        """Return the events of a workflow as the server lists them."""
        found = self.bench.client.find(EventRecord, workflow_id=workflow_id, sort_by="id")
        return [{"id": each.id, "timestamp": each.timestamp, "data": each.data} for each in found]

    def passing(self, workflow_id: int) -> PluginEvents:
        """Return the context in which another process passes events."""
        state_dir = self.bench.folder / "output" / ".torc_runner"
        return PluginEvents(self.bench.client, self.bench.plugins, workflow_id, state_dir)


@pytest.fixture
def ears(bench: Bench) -> Ears:
    """Return a bench with a plugin that writes down every event."""
    project_plugin(bench.folder, "ears", LISTENER)
    return Ears(evolve(bench, plugins=PluginManager.load(bench.folder)))


def as_stored(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: event[name] for name in ("id", "timestamp", "data")} for event in events]


def run_with_many_endings(bench: Bench) -> int:
    """Run a workflow whose jobs end in all ways that a runner observes."""
    plan = {
        "resource_requirements": [requirements("short", runtime="PT1S", memory="100m")],
        "failure_handlers": [handler('[{"exit_codes": [3], "max_retries": 2}]')],
        "dependencies": [(2, 1), (5, 0)],
        "actions": [
            PlannedAction("on_workflow_start", "run_commands", {"commands": [command]})
            for command in ("true", "exit 4")
        ],
    }
    workflow_id = bench.create(
        job("good", "true"),
        job("bad", "exit 2"),
        job("after_bad", "true", cancel_on_blocking_job_failure=True),
        job("retried", "exit 3", failure_handler=0),
        job("slow", "sleep 60", resource_requirements=0),
        job("after_good", "true"),
        workflow={"use_pending_failed": True},
        **plan,
    )
    bench.run(workflow_id, wait_for_new_jobs_s=0.0)
    return workflow_id


def judge(bench: Bench, workflow_id: int) -> None:
    """Give the verdict on the jobs that wait for one."""
    waiting = [each for each in bench.jobs(workflow_id).values() if each.status == "pending_failed"]
    verdicts = [Verdict(each.id or 0, "fail", "seen") for each in waiting]
    bench.client.judge(workflow_id, VerdictOrder(verdicts, "me"))


def recover(bench: Bench, workflow_id: int) -> None:
    """Recover the job that ran out of time."""
    slow = bench.jobs(workflow_id)["slow"]
    run_id = bench.client.workflow_status(workflow_id).run_id
    repair = Repair(slow.id or 0, slow.attempt_id or 1, "it needs longer", runtime_s=7200)
    bench.client.recover(workflow_id, RecoveryOrder(run_id, [repair]))


def lose_and_interrupt(bench: Bench, workflow_id: int) -> None:
    """Be a runner that loses an attempt, is interrupted, asks for nodes, is drained and leaves."""
    client, run_id = bench.client, bench.client.workflow_status(workflow_id).run_id
    node = client.create(
        ComputeNodeRecord(
            workflow_id=workflow_id, hostname="h", pid=1, start_time="2026-01-01T00:00:00Z", is_active=True,
            num_cpus=1, memory_gb=1.0, num_gpus=0, num_nodes=1, compute_node_type="local",
        )
    )  # fmt: skip
    request = ExchangeRequest(node.id or 0, run_id, slots=1)
    for attempt, fields in ((1, {"lost": True, "retry": RetryRequest(3)}), (2, {"interrupted": True})):
        claimed = client.exchange(workflow_id, request).jobs
        ended = EndedReport(claimed[0].id, attempt, "terminated", 1, 0.1, time.time(), **fields)
        client.exchange(workflow_id, ExchangeRequest(node.id or 0, run_id, ended=[ended]))
    client.resume_interrupted_jobs(workflow_id)
    client.create(
        ScheduledComputeNodeRecord(
            workflow_id=workflow_id, scheduler_id=7, scheduler_config_id=1, scheduler_type="slurm", status="pending"
        )
    )
    client.update(ComputeNodeRecord, node.id or 0, {"is_draining": True})
    client.update(ComputeNodeRecord, node.id or 0, {"is_active": False})


def cancel_and_reset(bench: Bench, workflow_id: int) -> None:
    """Cancel the workflow and begin anew."""
    bench.client.cancel(workflow_id)
    bench.client.reset_status(workflow_id, force=True)
    bench.client.begin_run(workflow_id, force=True, only_uninitialized=True)


STEPS: list[Callable[[Bench, int], None]] = [judge, recover, lose_and_interrupt, cancel_and_reset]


@pytest.fixture
def every_event(ears: Ears) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what a plugin received and what the server stored, of a workflow with events of every type."""
    workflow_id = run_with_many_endings(ears.bench)
    for step in STEPS:
        step(ears.bench, workflow_id)
    with ears.passing(workflow_id):
        pass
    return ears.heard(), ears.stored(workflow_id)


def test_plugins_receive_every_type_of_event(every_event: Any) -> None:
    """A plugin receives what the server has stored, with the values of the reference, and every type of event."""
    heard, stored = every_event
    assert as_stored(heard) == stored
    for event in heard:
        facts = EVENT_FACTS[event["data"]["event_type"]]
        assert set(facts.keys) <= set(event["data"]), event
        assert event["severity"] == facts.severity.label
    assert set(EVENT_FACTS) == {event["data"]["event_type"] for event in heard}


def test_each_end_of_a_job_has_its_values(every_event: Any) -> None:
    """Events of jobs name the job, the run and the attempt; a dependent that never began has no attempt."""
    heard, _ = every_event
    ended = [event["data"] for event in heard if "exit_class" in event["data"]]
    assert len(ended) >= 5
    for data in ended:
        assert data["job_name"]
        assert data["run_id"] is not None
        assert data["attempt_id"] is not None or data["reason"] == "a dependency failed", data


def test_events_are_passed_while_a_runner_works(ears: Ears) -> None:
    """A job that waits for what the plugin writes comes to its end."""
    workflow_id = ears.bench.create(job("a", "until grep -q job_started heard; do sleep 0.02; done"))
    assert ears.bench.run(workflow_id).counts == {"completed": 1}
    types = [event["data"]["event_type"] for event in ears.heard()]
    assert types[0] == "workflow_started"
    assert types[-1] == "compute_node_stopped"


def test_of_several_processes_one_passes_the_events(ears: Ears) -> None:
    """Each event is passed once; the second process continues when the first one ends."""
    workflow_id = ears.bench.create(job("a", "true"))
    with ears.passing(workflow_id):
        eventually(lambda: len(ears.heard()) > 0)
        with ears.passing(workflow_id):
            ears.bench.run(workflow_id)
    assert as_stored(ears.heard()) == ears.stored(workflow_id)


def test_the_next_process_continues(ears: Ears) -> None:
    """What was stored while no process worked is passed later, and nothing is passed twice."""
    workflow_id = ears.bench.create(job("a", "true"))
    with ears.passing(workflow_id):
        eventually(lambda: len(ears.heard()) > 0)
    ears.bench.client.create(EventRecord(workflow_id=workflow_id, data={"event_type": "between"}))
    assert "between" not in [event["data"]["event_type"] for event in ears.heard()]
    ears.bench.run(workflow_id)
    assert as_stored(ears.heard()) == ears.stored(workflow_id)


def test_a_killed_process_is_continued(ears: Ears) -> None:
    """The lock of a killed process is free, and what it did not pass is passed."""
    workflow_id = ears.bench.create(job("a", "true"))
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom torc_framework.client import TorcClient\n"
        "from torc_framework.plugin_events import PluginEvents\n"
        "from torc_framework.plugins.manager import PluginManager\n"
        "plugins = PluginManager.load(Path('.'))\nclient = TorcClient(sys.argv[1])\n"
        "with PluginEvents(client, plugins, int(sys.argv[2]), Path('output/.torc_runner')):\n"
        "    while not Path('heard').exists(): pass\n    os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code, ears.bench.client.url, str(workflow_id)]
    assert subprocess.run(command, cwd=ears.bench.folder, check=False, timeout=120).returncode == -9
    ears.bench.run(workflow_id)
    unique = {event["id"]: event for event in ears.heard()}
    assert as_stored([unique[id_] for id_ in sorted(unique)]) == ears.stored(workflow_id)


def test_a_new_plugin_receives_no_events_of_earlier_runs(ears: Ears, bench: Bench) -> None:
    """The first process with the plugin begins after the last runner left."""
    workflow_id = bench.create(job("a", "true"))
    bench.run(workflow_id)
    bench.client.begin_run(workflow_id)
    ears.bench.run(workflow_id)
    started = [event["data"]["run_id"] for event in ears.heard() if event["data"]["event_type"] == "workflow_started"]
    assert started == [bench.client.workflow_status(workflow_id).run_id]


def test_events_of_users_are_passed(ears: Ears) -> None:
    """An event of any shape arrives."""
    workflow_id = ears.bench.create(job("a", "true"))
    with ears.passing(workflow_id):
        for data in ({"category": "mine", "n": 1}, ["a", "list"]):
            ears.bench.client.create(EventRecord(workflow_id=workflow_id, data=data))
    mine, listed = [event["data"] for event in ears.heard()][-2:]
    assert mine == {"event_type": "mine", "category": "mine", "n": 1}
    assert listed == {"event_type": "event", "value": ["a", "list"]}


def test_a_plugin_that_raises_stops_nothing(bench: Bench) -> None:
    """The workflow completes, and other plugins receive the event."""
    project_plugin(bench.folder, "a_broken", LISTENER.replace("with", "raise ValueError(event)\n    with"))
    project_plugin(bench.folder, "ears", LISTENER)
    ears = Ears(evolve(bench, plugins=PluginManager.load(bench.folder)))
    workflow_id = ears.bench.create(job("a", "true"))
    assert ears.bench.run(workflow_id).is_complete
    assert as_stored(ears.heard()) == ears.stored(workflow_id)


def test_a_deleted_workflow_ends_it(ears: Ears) -> None:
    """The context ends without an error when the workflow is gone."""
    workflow_id = ears.bench.create(job("a", "true"))
    with ears.passing(workflow_id):
        eventually(lambda: len(ears.heard()) > 0)
        ears.bench.client.delete(WorkflowRecord, workflow_id)
