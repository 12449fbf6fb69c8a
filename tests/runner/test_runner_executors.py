"""Executors of others, mixed in one workflow; events for plugins; what a run that was overtaken leaves."""

import threading
from pathlib import Path

import pytest
from attrs import evolve
from programs import project_plugin
from runner_bench import Bench, counted, job, most_at_once, requirements
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, UserError
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.plugins.manager import PluginManager

PLUGIN = Path(__file__).parents[1] / "helpers" / "simple_executor.py"


@pytest.fixture
def simple(bench: Bench) -> Bench:
    """Return a bench whose project brings the executor ``simple``."""
    project_plugin(bench.folder, "simple", PLUGIN.read_text())
    return evolve(bench, plugins=PluginManager.load(bench.folder))


def test_another_executor_runs_the_jobs(simple: Bench) -> None:
    """Without a descriptor to wait for it is asked now and then."""
    workflow_id = simple.create(job("a", "echo $TORC_JOB_NAME"), job("b", "exit 3"), job("c", "kill -9 $$"))
    simple.run(workflow_id, executor="simple")
    results = simple.results(workflow_id)
    assert {name: (r.exit_code, r.signal) for name, r in results.items()} == {
        "a": (0, None),
        "b": (3, None),
        "c": (None, 9),
    }
    assert results["a"].observation["executor"] == "simple"
    assert simple.log(workflow_id, "a") == "a\n"


def test_another_executors_jobs_are_sampled(simple: Bench) -> None:
    """It names the processes; one that does not know them yet is asked again."""
    config = '{"granularity": "time_series", "sample_interval_seconds": 1}'
    waits = "until [ -e output/resource_utilization/*.db ]; do sleep 0.05; done; sleep 0.2"
    workflow_id = simple.create(job("a", waits), workflow={"resource_monitor_config": config})
    simple.run(workflow_id, executor="simple")
    result = simple.results(workflow_id)["a"]
    assert result.observation["raw"]["samples"] >= 1
    assert result.avg_memory_bytes


def test_a_place_that_is_free_is_taken_although_the_end_is_not_known(bench: Bench) -> None:
    """Each of these ends only when the last has begun, and there is room for one."""
    project_plugin(bench.folder, "late", PLUGIN.with_name("late_executor.py").read_text())
    late = evolve(bench, plugins=PluginManager.load(bench.folder))
    workflow_id = late.create(*(job(name, "true") for name in "abc"))
    late.run(workflow_id, executor="late", num_cpus=1)
    assert set(late.statuses(workflow_id).values()) == {"completed"}


def test_executors_can_be_mixed(simple: Bench) -> None:
    """A job's own executor goes before the runner's; all share the runner's resources."""
    log = simple.folder / "log"
    names = [None, "simple", "local"]
    jobs = [job(f"j{i}", counted(log, 0.05), executor=names[i % 3], resource_requirements=0) for i in range(12)]
    workflow_id = simple.create(*jobs, resource_requirements=[requirements(num_cpus=2)])
    assert simple.run(workflow_id).counts == {"completed": 12}
    ran_by = {name: result.observation["executor"] for name, result in simple.results(workflow_id).items()}
    assert ran_by == {f"j{i}": names[i % 3] or "local" for i in range(12)}
    assert most_at_once(log) == 2
    (node,) = simple.client.find(ComputeNodeRecord, workflow_id=workflow_id)
    assert set(node.scheduler["state"]) == {"local", "simple"}


def test_limits_hold_for_every_executor(simple: Bench) -> None:
    """The runner keeps them, not the executor."""
    workflow_id = simple.create(
        job("a", "sleep 100", executor="simple", resource_requirements=0),
        resource_requirements=[requirements(runtime="PT1S")],
    )
    simple.run(workflow_id)
    result = simple.results(workflow_id)["a"]
    assert (result.status, result.exit_class) == ("terminated", "timeout")


ALLOCATOR = """
from torc_framework.api import Allocator, Capabilities, hookimpl
class Cloud(Allocator):
    name = "cloud"
    capabilities = Capabilities(can_allocate=True)
    def allocate(self, request): return []
    def find(self, names): return {}
    def alive(self, allocations): return {}
    def release(self, allocations): pass
@hookimpl
def torc_executors(): return [Cloud]
"""


def test_an_executor_must_be_able_to_launch(bench: Bench) -> None:
    """One that only obtains nodes is refused in so many words."""
    project_plugin(bench.folder, "cloud", ALLOCATOR)
    other = evolve(bench, plugins=PluginManager.load(bench.folder))
    with pytest.raises(UserError, match="'cloud' obtains nodes but does not run jobs"):
        other.run(other.create(job("a", "true")), executor="cloud")


def test_a_run_begun_anew_stops_its_old_runner(bench: Bench) -> None:
    """The server refuses the old run: the runner stops its jobs and passes the reason on."""
    workflow_id = bench.create(job("a", "echo $$ > pid; sleep 100"), job("b", "while ! [ -e go ]; do sleep 0.02; done"))

    def restart() -> None:
        client = TorcClient(bench.client.url)
        pid = bench.folder / "pid"
        eventually(lambda: pid.exists() and pid.read_text().strip())
        client.begin_run(workflow_id, force=True)
        (bench.folder / "go").touch()

    restarter = threading.Thread(target=restart)
    restarter.start()
    with pytest.raises(ApiError, match="Run ID mismatch"):
        bench.run(workflow_id)
    restarter.join()
    pid = int((bench.folder / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()
    assert bench.statuses(workflow_id) == {"a": "ready", "b": "ready"}
