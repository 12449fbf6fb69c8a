"""The load of many runners on Slurm, what other users see of a workflow, and why allocations wait."""

import json
import subprocess
from pathlib import Path
from typing import Any

from people import password_of, write_users
from slurm_cluster import Cluster, ServedTorc, eventually, give

RUNNERS = 12
JOBS = 10 * RUNNERS
MOST_PER_MINUTE = 30
"""Calls of accounting in a calendar minute: about 26 in the first minute under load, then about 20."""


def test_many_runners_query_accounting_as_one(quiet_torc: ServedTorc) -> None:
    """Together they call it no more often than one runner may; every row arrives."""
    requirements = {"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT2M"}
    jobs = [{"name": f"j{n}", "command": "sleep 2", "resource_requirements": "small"} for n in range(JOBS)]
    scheduler = {"name": "s", "account": "research", "partition": "short", "nodes": 1, "walltime": "00:20:00"}
    spec = {
        "name": "many",
        "jobs": jobs,
        "resource_requirements": [requirements],
        "slurm_schedulers": [{**scheduler, "mem": "200m", "extra": "--cpus-per-task=1"}],
        "actions": [
            {
                "trigger_type": "on_workflow_start",
                "action_type": "schedule_nodes",
                "scheduler": "s",
                "scheduler_type": "slurm",
                "num_allocations": RUNNERS,
            }
        ],
    }
    quiet_torc("submit", str(quiet_torc.cluster.write("many.json", json.dumps(spec))))
    eventually(lambda: quiet_torc.counts()["completed"] == JOBS)
    calls: list[dict[str, Any]] = [
        row
        for row in quiet_torc.json("slurm", "calls")["calls"]
        if (row["program"], row["purpose"]) == ("sacct", "runner")
    ]
    assert sum(row["most_per_minute"] for row in calls) <= MOST_PER_MINUTE
    results = quiet_torc.json("results", "list", "1")["results"]
    assert all(result["peak_memory_bytes"] for result in results)


def test_no_other_user_sees_the_password(cluster: Cluster) -> None:
    """It is only in a file of its owner, and in no script, record, command line or stored variable."""
    name, password = "alice", password_of("alice")
    users = write_users(cluster.folder / "htpasswd", [name])
    give(users, cluster.user, cluster.folder)
    requirements = {"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT2M"}
    scheduler = {"name": "s", "account": "research", "partition": "short", "nodes": 1, "walltime": "00:05:00"}
    asks = {"action_type": "schedule_nodes", "scheduler": "s", "scheduler_type": "slurm"}
    spec = {
        "name": "secret",
        "jobs": [{"name": "one", "command": "sleep 300", "resource_requirements": "small"}],
        "resource_requirements": [requirements],
        "slurm_schedulers": [{**scheduler, "mem": "300m"}],
        "actions": [{"trigger_type": "on_workflow_start", **asks}],
    }
    path = cluster.write("secret.json", json.dumps(spec))
    with cluster.server("--auth-file", str(users), "--require-auth") as url:
        torc = ServedTorc(cluster, url)
        torc.env |= {"TORC_USERNAME": name, "TORC_PASSWORD": password}
        torc.env["TORC_EXECUTOR__SLURM__KEEP_SUBMISSION_SCRIPTS"] = "true"
        (allocation,) = torc.json("submit", str(path))["allocations"]
        try:
            eventually(lambda: torc.counts()["running"] == 1)
            id_ = str(allocation["scheduler_id"])
            shown = _root("scontrol", "write", "batch_script", id_, "-") + _root("scontrol", "-d", "show", "job", id_)
            shown += _root("sacct", "-j", id_, "--long", "-P") + _root("ps", "-eww", "-o", "args")
            assert "secret" in shown or id_ in shown
            assert password not in shown
            readable = _root("grep", "-rlF", "-e", password, str(cluster.folder), "/var/tmp/slurm-dev", "/var/spool")
            assert {_mode(file) for file in readable.splitlines()} == {0o600}, readable
            assert any(file.endswith(".sh") for file in readable.splitlines())
        finally:
            torc.cancel_all()


def _root(*command: str) -> str:
    """Return what the administrator sees."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _mode(file: str) -> int:
    return Path(file).stat().st_mode & 0o777


WAITS = {"trigger_type": "on_workflow_start", "action_type": "schedule_nodes", "scheduler_type": "slurm"}


def _asking(cluster: Cluster, count: int = 1, **scheduler: Any) -> str:
    """Write a spec that requests nodes at its start; return its path."""
    made = {"account": "research", "partition": "short", "nodes": 1, "walltime": "00:05:00", "mem": "200m"}
    spec = {
        "name": "waiting",
        "jobs": [{"name": "one", "command": "true", "resource_requirements": "small"}],
        "resource_requirements": [{"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT2M"}],
        "slurm_schedulers": [{"name": "s", **made, **scheduler}],
        "actions": [{**WAITS, "scheduler": "s", "num_allocations": count, "start_one_worker_per_node": True}],
    }
    return str(cluster.write("waiting.json", json.dumps(spec)))


def test_what_slurm_would_never_start_is_an_error_at_once(served_torc: ServedTorc) -> None:
    """Slurm accepts such requests; single jobs and arrays of them are canceled again."""
    cluster = served_torc.cluster
    for count, scheduler, word in (
        (1, {"partition": "debug", "walltime": "00:30:00"}, "PartitionTimeLimit"),
        (6, {"partition": "debug", "walltime": "00:30:00"}, "PartitionTimeLimit"),
        (1, {"partition": "gpu", "nodes": 3}, "asks for 3 nodes, and partition gpu gives 1 to 1"),
    ):
        said = served_torc("submit", _asking(cluster, count, **scheduler), code=1)
        assert word in said
        assert "Slurm would never start what was requested, and it was canceled" in said
    assert not served_torc.has_batch_jobs()


def test_reasons_of_waiting_are_shown_everywhere(served_torc: ServedTorc) -> None:
    """In lists, explanations and by torc watch."""
    cluster = served_torc.cluster
    path = _asking(cluster, extra="--begin=now+1hour")
    served_torc("submit", path)
    (listed,) = served_torc.allocations()
    assert listed["pending_reason"] == "BeginTime (its start time has not come)"
    assert "BeginTime" in served_torc("scheduled-compute-nodes", "list", "1")
    explained = served_torc("explain", "1")
    assert "1 queued allocations starts; they wait for BeginTime (its start time has not come)" in explained
    cluster.slurm("scontrol", "hold", str(listed["scheduler_id"]))
    held = "JobHeld"  # Slurm 22.05.8 may also print JobHeldAdmin for a held job whose start time has not come (seen)
    assert served_torc.allocations()[0]["pending_reason"].startswith(held)
    process = cluster.start(cluster.bin / "torc", "watch", "1", "-p", "1", env=served_torc.env)
    assert process.stdout is not None
    printed = ""
    while f"waits in the queue: {held}" not in printed:
        line = process.stdout.readline()
        assert line, printed
        printed += line
    process.terminate()
    process.communicate(timeout=60)
    served_torc("workflows", "cancel", "1")


def test_an_allocation_that_can_never_start_is_a_problem(served_torc: ServedTorc) -> None:
    """It could start when it was submitted."""
    cluster = served_torc.cluster
    other = cluster.slurm("sbatch", "--parsable", "--hold", "-p", "short", "--wrap", "true", "-o", "/dev/null")
    served_torc("submit", _asking(cluster, extra=f"--dependency=afterok:{other}"))
    cluster.slurm("scancel", other)
    eventually(lambda: "NeverSatisfied" in served_torc.allocations()[0]["pending_reason"])
    explained = served_torc.json("explain", "1")
    (group,) = explained["groups"]
    assert (group["reason"], group["is_problem"]) == ("allocation_never_starts", True)
    assert "DependencyNeverSatisfied" in group["text"]
    assert "torc workflows cancel 1" in group["commands"]
    served_torc("workflows", "cancel", "1")


def test_match_uses_the_profile_of_the_cluster(cluster: Cluster) -> None:
    """Where no configured profile is for this machine."""
    done = cluster.torc("-f", "json", "hpc", "match", "--cpus", "4", "--memory", "2g", "--walltime", "30m")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["best_partition"]["name"] == "short"
    assert "small" in found["not_matching"]


def test_small_jobs_are_planned_for_idle_nodes(quiet_cluster: Cluster) -> None:
    """They are spread over the one node of the smallest partition and three idle larger nodes."""
    spec = {
        "name": "little",
        "jobs": [{"name": f"j{n}", "command": "true", "resource_requirements": "little"} for n in range(40)],
        "resource_requirements": [{"name": "little", "num_cpus": 1, "memory": "50m", "runtime": "PT5M"}],
    }
    path = quiet_cluster.write("little.json", json.dumps(spec))
    done = quiet_cluster.torc("-f", "json", "submit-slurm", "--dry-run", path)
    assert done.returncode == 0, done.stderr
    planned = {each["partition"]: each["job_count"] for each in json.loads(done.stdout)["slurm_schedulers"]}
    assert planned == {"small": 28, "short": 12}
