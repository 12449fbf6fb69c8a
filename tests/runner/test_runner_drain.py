"""A runner that is asked to take no more jobs ends when its jobs have ended; the server knows when it was heard of."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from runner_bench import Bench, job
from waiting import eventually

from torc_framework.models.records import ComputeNodeRecord, EventRecord
from torc_framework.models.runner_states import heard_seconds, runner_state


def start(bench: Bench, workflow_id: int, *options: str) -> "subprocess.Popen[bytes]":
    """Run a workflow as a user would."""
    torc = str(Path(sys.executable).with_name("torc"))
    command = [torc, "--url", bench.client.url, "run", str(workflow_id), "--num-cpus", "2", *options]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _event_types(bench: Bench, workflow_id: int) -> list[str]:
    return [each.data["event_type"] for each in bench.client.iterate(EventRecord, workflow_id=workflow_id)]


def _node(bench: Bench, workflow_id: int) -> ComputeNodeRecord:
    return bench.client.find(ComputeNodeRecord, workflow_id=workflow_id)[-1]


def _drain(bench: Bench, workflow_id: int, *, is_draining: bool = True) -> None:
    node = _node(bench, workflow_id)
    bench.client.update(ComputeNodeRecord, node.id or 0, {"is_draining": is_draining})


def test_a_drained_runner_ends_with_its_jobs(bench: Bench) -> None:
    """The running job ends as it would; the others stay ready, also the successor of the running one."""
    hold = "touch up; while [ ! -e go ]; do sleep 0.02; done"
    jobs = [job("runs", hold), job("next", "true"), *[job(f"later{i}", hold) for i in range(4)]]
    workflow_id = bench.create(*jobs, dependencies=[(1, 0)])
    process = start(bench, workflow_id, "--max-parallel-jobs", "1")
    eventually(Path("up").exists)
    _drain(bench, workflow_id)
    eventually(
        lambda: (
            "compute_node_draining"
            in [each.data["event_type"] for each in bench.client.iterate(EventRecord, workflow_id=workflow_id)]
        )
    )
    eventually(lambda: list(bench.statuses(workflow_id).values()).count("pending") == 0)
    node = _node(bench, workflow_id)
    assert (node.is_active, node.is_draining, runner_state(node, time.time())) == (True, True, "drains")
    Path("go").touch()
    assert process.wait(120) == 1
    assert bench.statuses(workflow_id) == {
        "runs": "completed",
        "next": "ready",
        **{f"later{i}": "ready" for i in range(4)},
    }
    assert runner_state(_node(bench, workflow_id), time.time()) == "ended"


@pytest.mark.usefixtures("bench")
def test_a_drained_runner_that_waits_ends_at_once(bench: Bench) -> None:
    """It waits for a job that another runner holds, as it were."""
    workflow_id = bench.create(job("delayed", "true"))
    bench.client.claim_next_jobs(workflow_id)
    process = start(bench, workflow_id)
    eventually(lambda: bench.client.find(ComputeNodeRecord, workflow_id=workflow_id))
    eventually(lambda: _node(bench, workflow_id).last_heard_at is not None)
    _drain(bench, workflow_id)
    assert process.wait(15) == 1


def test_a_drain_can_be_undone(bench: Bench) -> None:
    """A runner that still runs a job takes others again."""
    workflow_id = bench.create(job("runs", "touch up; while [ ! -e go ]; do sleep 0.02; done"), job("later", "true"))
    process = start(bench, workflow_id, "--max-parallel-jobs", "1")
    eventually(Path("up").exists)
    _drain(bench, workflow_id)
    eventually(lambda: bench.statuses(workflow_id)["later"] == "ready")
    _drain(bench, workflow_id, is_draining=False)
    Path("go").touch()
    assert process.wait(30) == 0
    assert set(bench.statuses(workflow_id).values()) == {"completed"}


def test_a_silent_runner_is_told_from_one_that_works(bench: Bench) -> None:
    """The time of the last report is stored, and a runner that was killed becomes silent."""
    workflow_id = bench.create(job("runs", "touch up; sleep 100"))
    began = time.time()
    process = start(bench, workflow_id)
    eventually(Path("up").exists)
    process.kill()
    process.wait(10)
    node = _node(bench, workflow_id)
    assert began - 1 < (heard_seconds(node) or 0.0) < time.time() + 1
    assert runner_state(node, time.time()) == "works"
    assert runner_state(node, time.time() + 400) == "silent"
