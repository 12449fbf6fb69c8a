"""Submitting: from a spec with schedulers and actions to results, on a real cluster."""

import json
import signal

import pytest
from slurm_cluster import Cluster, ServedTorc, eventually

SPEC = """
name: pipeline
resource_requirements:
  - {name: small, num_cpus: 1, memory: 50m, runtime: PT1M}
jobs:
  - {name: 'one_{i}', command: 'echo stage one', resource_requirements: small, scheduler: first, parameters: {i: '1:3'}}
  - {name: two, command: 'hostname', resource_requirements: small, depends_on_regexes: ['one_.*'], scheduler: second}
slurm_schedulers:
  - {name: first, account: research, partition: short, mem: 200m, nodes: 1, walltime: '00:05:00', extra: -c2}
  - {name: second, account: research, partition: small, mem: 100m, nodes: 1, walltime: '00:05:00'}
actions:
  - trigger_type: on_workflow_start
    action_type: schedule_nodes
    scheduler: first
    scheduler_type: slurm
    num_allocations: 2
  - {trigger_type: on_jobs_ready, action_type: schedule_nodes, jobs: [two], scheduler: second, scheduler_type: slurm}
"""
WAITING = SPEC.partition("actions:")[0].replace("echo stage one", "sleep 300") + (
    "actions:\n  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: first, "
    "scheduler_type: slurm, num_allocations: 2}\n"
)


@pytest.fixture
def torc(served_torc: ServedTorc) -> ServedTorc:
    """The program with a server on the cluster."""
    return served_torc


def test_a_staged_pipeline_runs_through(cluster: Cluster, torc: ServedTorc) -> None:
    """Nodes of the second stage are requested when its job is ready; all allocations end; every call is logged."""
    cluster.write("w.yaml", SPEC)
    torc.env["TORC_CLIENT__SLURM__STRICT_SCHEDULER_MATCH"] = "true"  # reaches the runners
    submitted = torc.json("submit", "w.yaml")
    assert len(submitted["allocations"]) == 2
    torc("watch", "1", "-p", "60")
    eventually(lambda: {each["status"] for each in torc.allocations()} == {"complete"})
    assert [each["scheduler_config_id"] for each in torc.allocations()] == [1, 1, 2]
    (second,) = (each["id"] for each in torc.allocations() if each["scheduler_config_id"] == 2)
    assert [job["name"] for job in torc.json("scheduled-compute-nodes", "list-jobs", str(second))["jobs"]] == ["two"]
    (last,) = (each for each in torc.json("reports", "results", "1")["results"] if each["job_name"] == "two")
    for key in ("job_stdout", "job_runner_log", "slurm_stdout", "slurm_stderr", "slurm_env_log"):
        assert (cluster.folder / last[key]).is_file(), key
    assert (cluster.folder / last["job_stdout"]).read_text() == "small1\n"
    calls = torc.calls()
    assert calls["sbatch"] == 3
    assert calls.get("squeue", 0) <= 10
    assert "asked for before" in torc("submit", "1", code=2)


def test_run_stays_with_the_workflow(cluster: Cluster, torc: ServedTorc) -> None:
    """Outside of an allocation the executor submits; the results are shown as for local jobs."""
    cluster.write("w.yaml", SPEC.replace("'hostname'", "'exit 3'"))
    said = torc("run", "--executor", "slurm", "w.yaml", code=1)
    assert "(workflow 1) failed: 3 of 4 jobs done, 1 failed, in " in said
    assert "exit code 3" in said


def test_watching_can_be_stopped(cluster: Cluster, torc: ServedTorc) -> None:
    """The workflow continues; canceling it cancels its allocations."""
    cluster.write("w.yaml", WAITING)
    process = cluster.start(cluster.bin / "torc", "run", "--executor", "slurm", "w.yaml", env=torc.env)
    assert process.stdout is not None
    while "Submitted" not in (line := process.stdout.readline()):
        assert line
    eventually(lambda: torc.counts()["running"] == 3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "'torc workflows cancel 1'" in said
    ids = {str(each["scheduler_id"]) for each in torc.allocations()}
    assert ids <= torc.queue()
    assert "Canceled workflow 1" in torc("workflows", "cancel", "1")
    eventually(lambda: not ids & torc.queue())
    # A runner that learns of it first ends by itself, and then its allocation is not released any more.
    eventually(lambda: {each["status"] for each in torc.allocations()} == {"complete"})
    states = cluster.slurm("sacct", "-nPX", "-j", ",".join(ids), "--format=State").split("\n")
    assert all(state.startswith(("CANCELLED", "COMPLETED", "FAILED")) for state in states)


def test_a_refused_request_can_be_repeated(cluster: Cluster, torc: ServedTorc) -> None:
    """The error has Slurm's message; the other scheduler's nodes are requested."""
    other = "scheduler: second, scheduler_type: slurm}\n"
    first = "  - {trigger_type: on_workflow_start, action_type: schedule_nodes, "
    go = cluster.folder / "go"  # the jobs are not over before the request is repeated, however slow this process is
    spec = SPEC.replace("echo stage one", f"until [ -e {go} ]; do sleep 0.2; done").replace("PT1M", "PT3M")
    cluster.write("w.yaml", spec.replace("partition: short", "partition: nowhere") + first + other)
    said = torc("submit", "w.yaml", code=1)
    assert "invalid partition specified: nowhere" in said
    # The runner on the other scheduler's node may be about to ask for the refused nodes again: a record without an id.
    assert len([each for each in torc.allocations() if each["scheduler_id"]]) == 1
    assert "invalid partition" in torc("submit", "1", code=1)
    torc("slurm", "update", "1", "--partition", "short")
    torc("submit", "1")
    cluster.write("go", "")
    torc("watch", "1", "-p", "5")
    torc("-f", "json", "workflows", "cancel", "1")


def test_what_cannot_be_submitted_is_not_created(cluster: Cluster, torc: ServedTorc) -> None:
    """Without an action that requests nodes, without a lasting server, without input."""
    cluster.write("w.yaml", SPEC.partition("actions:")[0])
    assert "'torc submit-slurm'" in torc("submit", "w.yaml", code=2)
    cluster.write("v.yaml", SPEC + "files: [{name: input, path: nowhere.txt}]\n")
    done = cluster.torc("submit", "v.yaml")
    assert (done.returncode, "torc-server run" in done.stderr) == (2, True)
    cluster.write("u.yaml", SPEC.replace("scheduler: second}", "scheduler: second, input_files: [input]}", 1))
    assert torc.json("workflows", "list") == []


def test_nodes_are_requested_by_hand(cluster: Cluster, torc: ServedTorc) -> None:
    """For a scheduler that was made by hand; its accounting and logs are shown."""
    cluster.write(
        "w.yaml",
        SPEC.partition("slurm_schedulers:")[0].replace(", scheduler: first", "").replace(", scheduler: second", ""),
    )
    torc("workflows", "create", "w.yaml")
    torc("slurm", "create", "1", "-n", "mine", "-a", "research", "-p", "short", "-W", "00:05:00", "-m", "200m")
    assert torc.json("slurm", "get", "1")["qos"] == "normal"
    assert "not initialized" in torc("slurm", "schedule-nodes", "1", code=2)
    torc("workflows", "initialize", "1")
    asked = torc.json("slurm", "schedule-nodes", "1", "-j", "mine", "-p", "60", "--keep-submission-scripts")
    (id_,) = (str(each["scheduler_id"]) for each in asked["allocations"])
    torc("watch", "1", "-p", "5")
    eventually(lambda: torc.allocations()[0]["status"] == "complete")
    assert "is complete" in torc("slurm", "schedule-nodes", "1", code=2)
    (script,) = (cluster.folder / "output").glob("slurm_submit_mine_wf1_*.sh")
    assert script.stat().st_mode & 0o777 == 0o600
    eventually(lambda: cluster.slurm("sacct", "-nPX", "-j", id_, "--format=State") == "COMPLETED")
    rows = torc.json("slurm", "sacct", "1", "--save-json")
    steps = [row for row in rows["summary"] if row["step_id"] not in (None, "batch", "extern")]
    assert (len(steps), {row["state"] for row in rows["summary"]}) == (4, {"COMPLETED"})
    assert json.loads((cluster.folder / f"output/sacct_{id_}.json").read_text())["jobs"]
    cluster.write(f"output/slurm_output_wf1_sl{id_}.e", "fine\nslurmstepd: error: Detected 1 oom-kill event(s)\n")
    (hit,) = torc.json("slurm", "parse-logs", "1")["errors"]
    assert (hit["line"], hit["severity"], len(hit["affected_jobs"])) == (2, "critical", 4)
    assert "one_1 (ID: 1)" in torc("slurm", "parse-logs", "1", "--errors-only")
