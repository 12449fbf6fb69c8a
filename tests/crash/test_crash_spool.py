"""The runner keeps the ends of executors without a journal on disk until the server has them."""

import os
import signal
from pathlib import Path

import pytest
from crash_bench import Bench
from programs import project_plugin
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.models.records import JobRecord, ResultRecord

pytestmark = pytest.mark.crash

PLUGIN = Path(__file__).parents[1] / "helpers" / "simple_executor.py"


def test_ends_survive_without_server_and_runner(bench: Bench) -> None:
    """Seen while the server was gone, by a runner that is killed before it comes back."""
    project_plugin(bench.folder, "simple", PLUGIN.read_text())
    codes = [0, 3, -9, 77]
    bench.create(codes, 0.5)
    options = ["--executor", "simple"]
    bench.start_runner(4, *options)
    bench.wait_until_begun(4)
    bench.kill_server()
    eventually(lambda: sum(path.read_bytes().count(b"\n") for path in bench.folder.rglob("*.ends")) == 4, "not kept")
    bench.kill_runner()
    bench.start_server()
    assert bench.start_runner(4, *options).wait(60) == 1
    bench.check()


def test_unseen_ends_run_again(bench: Bench) -> None:
    """Of an executor that knows nothing of its past, what was running runs again."""
    project_plugin(bench.folder, "simple", PLUGIN.read_text())
    bench.create([5, 0], 0.3)
    bench.start_runner(2, "--executor", "simple")
    bench.wait_until_begun(2)
    bench.kill_runner()
    assert bench.start_runner(2, "--executor", "simple").wait(60) == 1
    assert sorted(bench.log.read_text().split()) == ["0", "0", "1", "1"]
    client = TorcClient(bench.url)
    results = client.find(ResultRecord, workflow_id=bench.workflow_id, all_runs=True)
    client.close()
    assert sorted((each.attempt_id, each.return_code) for each in results) == [(1, -128), (1, -128), (2, 0), (2, 5)]


def child_of(pid: int) -> int:
    """Return the only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def test_runner_supervisor_and_reaper_killed(bench: Bench) -> None:
    """The ends are not observed: the jobs run again when their processes are gone, and no process is left."""
    bench.create([0] * 40, 0.2)
    runner = bench.start_runner(4)
    bench.wait_until_begun(10)
    reaper = child_of(runner.pid)
    supervisor = child_of(reaper)
    runner.send_signal(signal.SIGSTOP)
    os.kill(reaper, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    bench.kill_runner()
    assert bench.start_runner(4).wait(60) == 0
    client = TorcClient(bench.url)
    statuses = [each.status for each in client.find(JobRecord, workflow_id=bench.workflow_id)]
    client.close()
    assert statuses == ["completed"] * 40


def test_runner_and_supervisor_killed(bench: Bench) -> None:
    """The reaper sees to the ends of what runs: no job runs again, and each end is the true one."""
    bench.create([0, 3, -9, 77] * 10, 0.2)
    runner = bench.start_runner(4)
    bench.wait_until_begun(10)
    supervisor = child_of(child_of(runner.pid))
    runner.send_signal(signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    bench.kill_runner()
    assert bench.start_runner(4).wait(60) == 1
    bench.check()


def test_supervisors_killed_under_a_runner(bench: Bench) -> None:
    """Jobs that kill their parent process, eight at a time: each job runs once and ends as it ends."""
    codes = [0, 3, 0, 77, 0, 137] * 20
    bench.create(codes, 0.05, before=lambda number: "kill -9 $PPID; " if number % 17 == 5 else "")
    assert bench.start_runner(8).wait(120) == 1
    bench.check()


def test_canceled_while_the_runner_is_dead(bench: Bench) -> None:
    """The next runner ends what still runs."""
    bench.create([0], 1000)
    bench.start_runner()
    bench.wait_until_begun(1)
    bench.kill_runner()
    client = TorcClient(bench.url)
    client.cancel(bench.workflow_id)
    client.close()
    journal = next(bench.folder.rglob("*.journal")).read_text()
    (pid,) = [line.split()[3] for line in journal.splitlines() if line.startswith("S ")]
    bench.start_runner().wait(60)
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the canceled job still runs")
