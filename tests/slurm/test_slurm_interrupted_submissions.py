"""Submissions that are interrupted on a real cluster: the server knows every batch job that is left."""

import random
import signal
import subprocess
from functools import partial

import pytest
from slurm_cluster import Cluster, ServedTorc, eventually
from waiting import let_pass

from torc_framework.client import TorcClient
from torc_framework.models.records import ScheduledComputeNodeRecord

SPEC = """
name: cut_short
resource_requirements: [{name: small, num_cpus: 1, memory: 40m, runtime: PT4M}]
jobs: [{name: 'job_{i}', command: sleep 200, resource_requirements: small, parameters: {i: '1:8'}}]
slurm_schedulers: [{name: first, account: research, partition: short, mem: 100m, nodes: 1, walltime: '00:10:00'}]
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: first, scheduler_type: slurm,
     num_allocations: COUNT}
"""
TRIES = 3


def queue(cluster: Cluster, workflow: int) -> set[str]:
    """Return the ids of a workflow's batch jobs that wait or run: by their names, and this test's folder."""
    lines = cluster.slurm("squeue", "--me", "-h", "-r", "-t", "PD,R,CF", "-o", "%A|%j|%Z").splitlines()
    jobs = (line.split("|", 2) for line in lines)
    return {id_ for id_, name, folder in jobs if f"_wf{workflow}_" in name and folder == str(cluster.folder)}


def is_queue_empty(cluster: Cluster, workflow: int) -> bool:
    """Return whether a workflow has no batch job that waits or runs."""
    return not queue(cluster, workflow)


def await_request(torc: ServedTorc, workflow: int, process: "subprocess.Popen[str]") -> None:
    """Wait until a submission has recorded its request."""
    with TorcClient(torc.env["TORC_API_URL"]) as client:
        eventually(
            lambda: client.find(ScheduledComputeNodeRecord, workflow_id=workflow) or process.poll() is not None,
            pause_s=0.01,
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("count", [4, 6])
def test_a_submission_that_is_interrupted_at_any_moment(served_torc: ServedTorc, number: int, count: int) -> None:
    """One by one and as an array: afterwards the server knows the waiting jobs, and canceling leaves none."""
    torc, cluster = served_torc, served_torc.cluster
    cluster.write("w.yaml", SPEC.replace("COUNT", str(count)))
    for workflow in range(1, TRIES + 1):
        process = cluster.start(cluster.bin / "torc", "submit", "w.yaml", env=torc.env | {"PYTHONUNBUFFERED": "1"})
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Created")
        await_request(torc, workflow, process)
        moment = random.uniform(0.0, 0.8)
        let_pass(moment)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        there = queue(cluster, workflow)
        print(f"signal {number} after {moment:.2f} s: rc {process.returncode}, {len(there)} of {count}; {said.strip()}")
        assert "Traceback" not in said
        if number != signal.SIGKILL:
            assert process.returncode in (0, 130, -signal.SIGHUP), said
        if workflow == 1:
            torc("workflows", "cancel", str(workflow))
        else:
            torc("workflows", "sync-status", str(workflow))
            known = {each["allocation_id"] for each in torc.allocations(str(workflow)) if each["status"] != "complete"}
            assert queue(cluster, workflow) <= known
            torc("workflows", "cancel", str(workflow))
        eventually(partial(is_queue_empty, cluster, workflow), patience_s=60)
