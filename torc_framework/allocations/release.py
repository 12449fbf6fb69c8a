"""Gives allocations back to their batch systems."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import Factory, frozen

from torc_framework.allocations.allocators import ExecutorOptions, context_without_runner, make_allocator
from torc_framework.allocations.records import as_allocations, by_executor, open_allocations
from torc_framework.allocations.unanswered_requests import refuse_requests, resolve_requests
from torc_framework.client import TorcClient
from torc_framework.errors import TorcError
from torc_framework.executors import Allocator, RunnerContext
from torc_framework.models.records import ScheduledComputeNodeRecord

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager


@frozen
class ReleasedAllocations:
    """Which allocations were given back.

    Attributes:
        released: Those whose batch system accepted it.
        notes: What was not possible, one sentence each.
    """

    released: list[ScheduledComputeNodeRecord] = Factory(list)
    notes: list[str] = Factory(list)


def release_allocations(
    client: TorcClient,
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: ExecutorOptions,
    context: RunnerContext,
) -> ReleasedAllocations:
    """Give allocations back, and record those as complete whose batch system accepted it.

    Args:
        allocations: Sorted by executor.
    """
    done = ReleasedAllocations()
    for executor, several in by_executor(allocations):
        try:
            make_allocator(plugins.executor, options, context, executor).release(as_allocations(several))
        except TorcError as error:
            done.notes.append(f"{len(several)} allocation(s) of {executor!r} were not given back: {error}")
            continue
        done.released.extend(several)
    _record_as_complete(client, done.released)
    return done


def release_all(
    client: TorcClient, plugins: "PluginManager", options: ExecutorOptions, workflow_id: int
) -> ReleasedAllocations:
    """Give all allocations of a canceled workflow back, and refuse its open requests.

    Allocations of requests whose answers were not recorded are looked for first.
    """
    context = context_without_runner(client, workflow_id)
    resolved = resolve_requests(client, plugins, options, context)
    done = release_allocations(client, open_allocations(client, workflow_id), plugins, options, context)
    refused = refuse_requests(client, resolved.open)
    return ReleasedAllocations(done.released, [*resolved.notes, *done.notes, *refused])


def release_waiting(client: TorcClient, workflow_id: int, allocator_of: Callable[[str], Allocator]) -> None:
    """Give back the allocations of a workflow in which no runner has begun.

    Raises:
        AllocationError: a batch system did not answer.
        UserError: an executor is not known here.
        ApiError: the server refused a change.
    """
    waiting = [each for each in open_allocations(client, workflow_id) if each.status == "pending"]
    for executor, several in by_executor(waiting):
        allocator_of(executor).release(as_allocations(several))
        _record_as_complete(client, several)


def _record_as_complete(client: TorcClient, allocations: Sequence[ScheduledComputeNodeRecord]) -> None:
    for each in allocations:
        client.update(ScheduledComputeNodeRecord, each.id or 0, {"status": "complete"})
