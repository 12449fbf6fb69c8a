"""How much is asked of Slurm when many runners work at the same time."""

import json
from typing import Any

from slurm_cluster import ServedTorc, eventually

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
