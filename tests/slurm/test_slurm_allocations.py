"""Allocations on a real cluster: many at once, on several nodes, partly refused, and with a stopped controller."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from slurm_cluster import Cluster, ServedTorc, eventually

SPEC = """
name: many
resource_requirements:
  - {name: small, num_cpus: 1, memory: 40m, runtime: PT4M}
jobs:
  - {name: 'job_{i}', command: 'sleep SECONDS; hostname', resource_requirements: small, parameters: {i: '1:COUNT'}}
slurm_schedulers:
  - {name: first, account: research, partition: short, mem: 200m, nodes: NODES, walltime: '00:10:00', MORE}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: first, scheduler_type: slurm, HOW}
"""
PID_FILE = Path(os.environ.get("SLURM_DEV_DIR", "/var/tmp/slurm-dev"), "run", "slurmctld.pid")


def write(cluster: Cluster, **words: object) -> None:
    """Write the spec with a test's values for its placeholders."""
    text = SPEC
    for word, value in {"SECONDS": 0, "COUNT": 6, "NODES": 1, "MORE": "qos: normal", **words}.items():
        text = text.replace(word, str(value))
    cluster.write("w.yaml", text)


def has_completed(torc: ServedTorc, workflow: str, count: int) -> bool:
    """Return whether so many jobs of a workflow are completed."""
    return torc.counts(workflow)["completed"] == count


def hosts(cluster: Cluster) -> set[str]:
    """Return the nodes on which jobs ran."""
    return {path.read_text().strip() for path in (cluster.folder / "output" / "job_stdio").glob("*.o")}


def test_many_equal_allocations_are_one_submission(cluster: Cluster, served_torc: ServedTorc) -> None:
    """Each has a job id of its own: one can be canceled while the others stay."""
    write(cluster, SECONDS=300, HOW="num_allocations: 6")
    asked = served_torc.json("submit", "w.yaml")["allocations"]
    ids = {str(each["scheduler_id"]) for each in asked}
    assert len(ids) == 6
    assert ids <= served_torc.queue()
    assert served_torc.has_batch_jobs()
    calls = served_torc.calls()
    # squeue is asked once more than the others: for the reasons for which they wait.
    expected = {"sbatch": 1, "scontrol": 1, "squeue": 2, "scancel": 1}
    assert {name: calls[name] for name in expected} == expected
    first = sorted(ids)[0]
    cluster.slurm("scancel", "--me", first)
    eventually(lambda: first not in served_torc.queue())
    assert served_torc.queue() >= ids - {first}
    served_torc("workflows", "sync-status", "1")  # unless its runner had begun, and has said so itself
    ended = [each["scheduler_id"] for each in served_torc.allocations() if each["status"] == "complete"]
    assert ended == [int(first)]
    assert "Canceled workflow 1" in served_torc("workflows", "cancel", "1")  # a runner may end by itself before
    eventually(lambda: not ids & served_torc.queue())


def test_a_runner_on_each_node(cluster: Cluster, served_torc: ServedTorc) -> None:
    """All runners belong to one allocation, which is over when the last runner has ended."""
    write(cluster, COUNT=4, SECONDS=3, NODES=2, MORE="extra: -c2", HOW="start_one_worker_per_node: true")
    (asked,) = served_torc.json("submit", "w.yaml")["allocations"]
    eventually(lambda: served_torc.counts()["completed"] == 4)
    assert len(hosts(cluster)) == 2
    nodes = served_torc.json("compute-nodes", "list", "1")["compute_nodes"]
    assert {node["scheduler"]["slurm_job_id"] for node in nodes} == {asked["scheduler_id"]}
    assert len(nodes) == 2
    eventually(lambda: served_torc.allocations()[0]["status"] == "complete")
    eventually(lambda: str(asked["scheduler_id"]) not in served_torc.queue())


def test_a_limit_accepts_a_part_of_the_request(served_torc: ServedTorc) -> None:
    """The accepted allocations run the jobs; the refusal is reported with Slurm's message."""
    # No other test on the cluster uses this QOS.
    write(served_torc.cluster, COUNT=2, MORE="qos: capped", HOW="num_allocations: 3")
    done = served_torc("submit", "w.yaml")
    assert "2 of 3 allocations were accepted" in done
    assert "QOS" in done or "submit limit" in done
    eventually(lambda: served_torc.counts()["completed"] == 2)


@contextmanager
def controller_stopped() -> Iterator[None]:
    """Stop the controller's process, so that it does not answer."""
    pid = int(PID_FILE.read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_stopped_controller_loses_nothing(quiet_torc: ServedTorc) -> None:
    """No job fails, no allocation counts as over, nothing is submitted twice, and waiting submissions continue."""
    torc = quiet_torc
    write(torc.cluster, COUNT=2, SECONDS=45, MORE="extra: -c2", HOW="num_allocations: 1")
    torc("submit", "w.yaml")
    eventually(lambda: torc.counts()["running"] == 2)
    before = torc.queue()
    torc.cluster.write("v.yaml", (torc.cluster.folder / "w.yaml").read_text().replace("sleep 45", "true"))
    with controller_stopped():
        second = torc.cluster.start(torc.cluster.bin / "torc", "-f", "json", "submit", "v.yaml", env=torc.env)
        found = torc.json("workflows", "sync-status", "1")
        assert (found["jobs"], found["allocation_ids"], len(found["notes"])) == ([], [], 1)
        assert torc.counts()["running"] == 2
    said, complaint = second.communicate(timeout=240)
    assert second.returncode == 0, complaint
    (asked,) = json.loads(said)["allocations"]
    assert torc.queue() - before <= {str(asked["scheduler_id"])}
    for workflow in ("1", "2"):
        eventually(partial(has_completed, torc, workflow, 2))
    lines = torc.cluster.slurm("sacct", "-nPX", "-S", "now-10minutes", "--format=JobName,WorkDir").splitlines()
    mine = [line for line in lines if line.endswith(f"|{torc.cluster.folder}")]
    assert sum("_wf2_" in line for line in mine) == 1
