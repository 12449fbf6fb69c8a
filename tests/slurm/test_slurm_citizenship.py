"""How much is asked of Slurm when many runners work at the same time, and what other users see of a workflow."""

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


def test_many_runners_ask_accounting_as_one(quiet_torc: ServedTorc) -> None:
    """Each of them alone would ask as often as all together may; and every row arrives all the same."""
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
    """It stands in a file of one's own, and in no script, record, command line or kept variable."""
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
