"""Allocations of an executor that is not Slurm: their ids are any text, through every part of the room."""

import ast
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from runner_bench import Bench, job

import torc_framework.allocations
from torc_framework.allocations.allocators import context_without_runner
from torc_framework.allocations.occupancy import AllocationOccupancy
from torc_framework.allocations.records import find_record, open_allocations, record_allocation
from torc_framework.allocations.release import release_allocations
from torc_framework.allocations.state_queries import find_ended, pending_reasons
from torc_framework.api import Allocation, AllocationEnding, AllocationRequest, Allocator, Capabilities, PendingReason

CLOUD = "cloud"
IDS = ["eu-west/pool:7f-3b.1", "9" * 30, "007", "ärger #1"]


class CloudAllocator(Allocator):
    """Knows four allocations: the first is running, the second queued, the others have ended."""

    name: ClassVar[str] = CLOUD
    capabilities: Capabilities = Capabilities(can_allocate=True)
    released: ClassVar[list[str]] = []

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        raise NotImplementedError

    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        return {}

    def alive(self, allocations: Sequence[Allocation]) -> dict[str, bool]:
        return {each.id: each.id in IDS[:2] for each in allocations}

    def endings(self, allocations: Sequence[Allocation]) -> dict[str, AllocationEnding]:
        return {each.id: AllocationEnding("gone") for each in allocations}

    def pending_reasons(self, allocations: Sequence[Allocation]) -> dict[str, PendingReason]:
        return {IDS[1]: PendingReason("Full", "it waits for room")}

    def release(self, allocations: Sequence[Allocation]) -> None:
        self.released.extend(each.id for each in allocations)


class CloudPlugins:
    """A plugin manager that offers the allocator."""

    def executor(self, name: str) -> type[Allocator]:
        assert name == CLOUD
        return CloudAllocator


@pytest.fixture
def workflow_id(bench: Bench) -> int:
    """A workflow whose allocations have these ids."""
    workflow_id = bench.create(job("a", "true"))
    for id_ in IDS:
        record_allocation(bench.client, workflow_id, CLOUD, 1, id_)
    return workflow_id


def test_records_hold_the_text(bench: Bench, workflow_id: int) -> None:
    """Each allocation is found by its id and executor, and recording it twice makes no second record."""
    assert [each.batch_id for each in open_allocations(bench.client, workflow_id)] == IDS
    for id_ in IDS:
        record = find_record(bench.client, workflow_id, CLOUD, id_)
        assert record is not None
        assert (record.scheduler_type, record.allocation_id) == (CLOUD, id_)
        assert record_allocation(bench.client, workflow_id, CLOUD, 1, id_).id == record.id
        assert find_record(bench.client, workflow_id, "another", id_) is None


def test_a_runner_occupies_it(bench: Bench, workflow_id: int) -> None:
    """The record is active while a runner works in the allocation, and complete after it."""
    occupancy = AllocationOccupancy(bench.client, workflow_id, CLOUD, IDS[0])
    record = find_record(bench.client, workflow_id, CLOUD, IDS[0])
    assert record is not None
    assert occupancy.begin() == {"scheduler_id": record.id}
    occupancy.end()
    assert [each.batch_id for each in open_allocations(bench.client, workflow_id)] == IDS[1:]


def test_its_executor_is_asked_and_releases_it(bench: Bench, workflow_id: int) -> None:
    """Questions and release reach the allocator with the ids as it gave them."""
    plugins: Any = CloudPlugins()
    context = context_without_runner(bench.client, workflow_id)
    there = open_allocations(bench.client, workflow_id)
    found = find_ended(there, plugins, {}, context)
    assert ([each.batch_id for each in found.ended], found.notes) == (IDS[2:], [])
    assert {ending.state for ending in found.endings.values()} == {"gone"}
    assert list(found.reasons) == list(pending_reasons(there, plugins, {}, context)) == [there[1].id]
    done = release_allocations(bench.client, there, plugins, {}, context)
    assert CloudAllocator.released == [each.batch_id for each in done.released] == IDS
    assert open_allocations(bench.client, workflow_id) == []


def test_the_room_reads_no_record_of_slurm() -> None:
    """No module of the room names Slurm's record or its executor."""
    for path in Path(torc_framework.allocations.__file__).parent.glob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert not {name for name in names if "slurm" in name.lower()}, path.name
