"""Asks batch systems about recorded allocations: which have ended and how, and why the queued ones wait."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from attrs import Factory, frozen

from torc_framework.allocations.allocators import ExecutorOptions, make_allocator
from torc_framework.allocations.records import as_allocations, by_executor
from torc_framework.errors import TorcError
from torc_framework.executors import AllocationEnding, Allocator, RunnerContext
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.records import ScheduledComputeNodeRecord

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager


@frozen
class EndedAllocations:
    """What batch systems answered about allocations that the server takes to be open.

    Attributes:
        ended: Those that are neither queued nor running.
        endings: How these ended, by id of their records, as far as that is known.
        reasons: Why queued ones wait, by id of their records, as far as that is known.
        notes: Why some could not be asked about, one sentence for each executor.
    """

    ended: list[ScheduledComputeNodeRecord] = Factory(list)
    endings: dict[int, AllocationEnding] = Factory(dict)
    reasons: dict[int, PendingReason] = Factory(dict)
    notes: list[str] = Factory(list)


def find_ended(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: ExecutorOptions,
    context: RunnerContext,
) -> EndedAllocations:
    """Find the allocations that are neither queued nor running.

    Args:
        allocations: Sorted by executor.
    """
    found = EndedAllocations()
    for executor, several in by_executor(allocations):
        try:
            allocator = make_allocator(plugins.executor, options, context, executor)
            alive = allocator.alive(as_allocations(several))
            ended = [each for each in several if not alive.get(each.batch_id, False)]
            found.reasons.update(_reasons(allocator, [each for each in several if each not in ended]))
            endings: Mapping[str, AllocationEnding] = allocator.endings(as_allocations(ended)) if ended else {}
        except TorcError as error:
            found.notes.append(f"{len(several)} allocation(s) of {executor!r} were not asked about: {error}")
            continue
        found.ended.extend(ended)
        known = ((each.id or 0, endings.get(each.batch_id)) for each in ended)
        found.endings.update({id_: ending for id_, ending in known if ending is not None})
    return found


def pending_reasons(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: ExecutorOptions,
    context: RunnerContext,
) -> dict[int, PendingReason]:
    """Return why allocations that are queued wait, by id of their records, as far as their batch systems answer."""
    found: dict[int, PendingReason] = {}
    asked = [each for each in allocations if not each.is_request]
    for executor, several in by_executor(sorted(asked, key=lambda node: node.scheduler_type)):
        with suppress(TorcError):
            found |= _reasons(make_allocator(plugins.executor, options, context, executor), several)
    return found


def _reasons(allocator: Allocator, several: Sequence[ScheduledComputeNodeRecord]) -> dict[int, PendingReason]:
    by_id = {each.batch_id: each.id or 0 for each in several}
    reasons = allocator.pending_reasons(as_allocations(several)) if several else {}
    return {by_id[id_]: reason for id_, reason in reasons.items() if id_ in by_id}
