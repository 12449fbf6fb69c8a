"""``torc tui`` beside a real cluster: allocations with their load and walltime, logs of a batch job, runners."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import Cluster, ServedTorc, eventually
from tui_bench import Terminal, tmux

SPEC = """
name: on_slurm
resource_requirements:
  - {name: small, num_cpus: 1, memory: 40m, runtime: PT4M}
jobs:
  - {name: 'hold_{i}', command: 'echo held; exec sleep 300', resource_requirements: small, parameters: {i: '1:2'}}
slurm_schedulers:
  - {name: first, account: research, partition: short, mem: 200m, nodes: 1, walltime: '00:10:00'}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: first, scheduler_type: slurm}
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal of tmux."""
    with tmux(tmp_path / "tmux") as found:
        yield found


def test_nodes_and_runners_of_a_real_cluster(cluster: Cluster, served_torc: ServedTorc, terminal: Terminal) -> None:
    """The tab of scheduled nodes shows load and walltime left; l the logs of the batch job; canceling ends it."""
    cluster.write("w.yaml", SPEC)
    asked = served_torc.json("submit", "w.yaml")["allocations"]
    batch = str(asked[0]["scheduler_id"])
    eventually(lambda: served_torc.counts()["running"] >= 1)
    environment = {**cluster.environment, **served_torc.env, "TERM": "xterm-256color"}
    terminal.start((100, 24), environment, cluster.folder, "--all-users")
    terminal.until("on_slurm")
    terminal.keys("6")
    terminal.until(batch)
    shown = terminal.until("active")
    row = next(line for line in shown.splitlines() if batch in line)
    assert "slurm" in row
    assert " min" in row, row
    assert " of " in row, row
    terminal.keys("Right", "l")
    terminal.until(f"_sl{batch}.o")
    terminal.keys("Tab")
    terminal.until(f"_sl{batch}.e")
    terminal.keys("q")
    terminal.until("BATCH JOB")
    terminal.keys("7")
    terminal.until("works")
    terminal.keys("l")
    terminal.until("Runner on")
    terminal.keys("q")
    terminal.until("STARTED")
    terminal.keys("v")
    terminal.until("Timeline of on_slurm")
    terminal.until("on 1 runner")
    terminal.keys("l")
    terminal.until("held")
    terminal.keys("q")
    terminal.until("Timeline of on_slurm")
    terminal.keys("q")
    terminal.until("STARTED")
    terminal.keys("C")
    terminal.until("torc workflows cancel 1")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    eventually(lambda: batch not in served_torc.queue())
    terminal.keys("6")
    terminal.until("complete")
    terminal.keys("q")
    terminal.until("ended with 0")
