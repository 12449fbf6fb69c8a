"""A recovery whose batch system does not release the allocations that wait in its queue."""

import pytest
from programs import project_plugin
from runner_bench import Bench, job

from torc_framework.allocations.records import record_allocation
from torc_framework.errors import ApiError
from torc_framework.plugins.manager import PluginManager
from torc_framework.recovery import recover
from torc_framework.recovery.recover import RecoveryOptions, WorkflowRecoverer

ALLOCATOR = """
from pathlib import Path
from torc_framework.api import AllocationError, Allocator, Capabilities, hookimpl

class Stubborn(Allocator):
    name = "stubborn"
    description = "Releases no allocation, and notes each request"
    capabilities = Capabilities(can_allocate=True)

    def allocate(self, request):
        return []

    def find(self, names):
        return {}

    def alive(self, allocations):
        return {each.id: True for each in allocations}

    def endings(self, allocations):
        return {}

    def release(self, allocations):
        with Path("requests").open("a") as file:
            file.write("release ")
        raise AllocationError("the queue is locked")

@hookimpl
def torc_executors():
    return [Stubborn]
"""


def test_the_request_is_repeated_with_pauses(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch system gets one request for each pause, and the user one warning; then the recovery is refused."""
    project_plugin(bench.folder, "stubborn", ALLOCATOR)
    monkeypatch.setattr(recover, "LEAVING_S", 0.5)
    monkeypatch.setattr(recover, "LOOK_S", 0.2)
    workflow_id = bench.create(job("a", "exit 3"))
    bench.run(workflow_id)
    record_allocation(bench.client, workflow_id, "stubborn", 1, "77")
    lines: list[str] = []
    plugins = PluginManager.load(bench.folder)
    recoverer = WorkflowRecoverer(bench.client, plugins, workflow_id, RecoveryOptions(retry_unknown=True), lines.append)
    with pytest.raises(ApiError, match="Wait until they ended"):
        recoverer.recover()
    assert 1 <= (bench.folder / "requests").read_text().count("release") <= 4
    assert len([line for line in lines if "the queue is locked" in line]) == 1
