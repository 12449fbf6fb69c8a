"""Workflows that lack something on a real cluster, and watchers that see to it that they get it."""

from typing import Any

import pytest
from slurm_cluster import Cluster, ServedTorc
from slurm_watch import Watch, attempts

pytestmark = pytest.mark.e2e

HUNGRY = """
name: hungry
resource_requirements:
  - {name: small, num_cpus: 1, memory: 100m, runtime: PT2M}
jobs:
  - name: 'hungry_{i}'
    command: "python3 -c 'bytearray(300 << 20)'"
    resource_requirements: small
    parameters: {i: '1:10'}
slurm_schedulers:
  - {name: wide, account: research, partition: short, mem: 1g, nodes: 1, walltime: '00:05:00', extra: -c4}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: wide, scheduler_type: slurm}
"""
LATE = """
name: late
resource_requirements:
  - {name: minute, num_cpus: 1, memory: 50m, runtime: PT1M}
jobs:
  - {name: late, command: 'echo x >> late; test $(wc -l < late) -gt 1 || sleep 300', resource_requirements: minute}
  - {name: after, command: 'cat late', resource_requirements: minute, depends_on: [late]}
"""
STEPS = 900
"""Tenths of a second that a job needs: more than its allocation lasts."""
COUNTER = f"""\
i=$(cat counted 2>/dev/null || echo 0)
echo $i > resumed
trap 'echo $i > counted; exit 143' TERM
while [ $i -lt {STEPS} ]; do sleep 0.1; i=$((i + 1)); done
echo $i > counted
"""
COUNTS = """
name: counts
compute_node_expiration_buffer_seconds: 40
jobs:
  - {name: counter, command: sh counter.sh, supports_termination: true}
slurm_schedulers:
  - {name: short, account: research, partition: short, mem: 100m, nodes: 1, walltime: '00:02:00'}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: short, scheduler_type: slurm}
"""


def test_jobs_get_the_memory_and_time_that_they_lack(cluster: Cluster, served_torc: ServedTorc) -> None:
    """Three workflows at once: too little memory, too little time, and an allocation that ends under a checkpoint."""
    torc = served_torc
    cluster.write("counter.sh", COUNTER)
    for name, spec in (("hungry", HUNGRY), ("late", LATE), ("counts", COUNTS)):
        cluster.write(f"{name}.yaml", spec)
    torc("submit", "hungry.yaml")
    torc("submit-slurm", "late.yaml", "--account", "research")
    torc("submit", "counts.yaml")
    hungry, late, counts = Watch(torc, "1", "-m", "5"), Watch(torc, "2"), Watch(torc, "3", "--auto-schedule")

    printed = hungry.output()
    assert "(attempt 3/5)" in printed
    assert "(attempt 4/5)" not in printed
    assert [each["exit_class"] for each in attempts(torc, "1", "hungry_7")] == ["oom", "oom", "oom", "success"]
    assert asked(torc, "1", "small")["memory"] == "338m"
    assert {each["partition"] for each in torc.json("slurm", "list", "1")["slurm_schedulers"]} == {"short"}

    late.output()
    assert [each["exit_class"] for each in attempts(torc, "2", "late")] == ["timeout", "success"]
    assert (asked(torc, "2", "minute")["runtime"], asked(torc, "2", "minute_recovered_r2")["runtime"]) == (
        "PT1M",
        "PT2M",
    )

    assert "1 interrupted job runs again" in counts.output()
    first, last = attempts(torc, "3", "counter")
    assert (first["status"], first["exit_class"], first["attempt_id"]) == ("terminated", "interrupted", 1)
    assert (last["run_id"], last["attempt_id"]) == (first["run_id"], 2)
    assert last["status"] == "completed"
    assert (cluster.folder / "resumed").read_text().strip() != "0", "it began anew"
    assert (cluster.folder / "counted").read_text() == f"{STEPS}\n"


def asked(torc: ServedTorc, workflow: str, name: str) -> dict[str, Any]:
    """Return resource requirements of a workflow."""
    found: list[dict[str, Any]] = torc.json("resource-requirements", "list", workflow)["resource_requirements"]
    (one,) = (each for each in found if each["name"] == name)
    return one
