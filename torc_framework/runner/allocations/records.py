"""A workflow's allocations: moved into, asked about and given back, through the executors that make them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, TorcError
from torc_framework.executors import Allocation, AllocationEnding, Allocator, RunnerContext
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.records import ComputeNodeRecord, ScheduledComputeNodeRecord
from torc_framework.runner.attempts.launchers import Launchers

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

ExecutorOptions = Mapping[str, Mapping[str, Any]]
"""Values of executors' options, by executor and option."""
_OPEN: Final = ("pending", "active")


@frozen
class BatchSystemAnswers:
    """What became of a question about allocations.

    Attributes:
        yes: Those of which the batch system said so, or that were given back.
        fates: What became of those that are over, by id of their records, as far as that is known.
        unasked: Why some could not be asked about, one sentence for each executor.
        reasons: Why those that are queued wait, by id of their records, as far as that is known.
    """

    yes: list[ScheduledComputeNodeRecord] = Factory(list)
    endings: dict[int, AllocationEnding] = Factory(dict)
    unasked: list[str] = Factory(list)
    reasons: dict[int, PendingReason] = Factory(dict)


def open_allocations(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return a workflow's allocations that are not complete as far as the server knows."""
    return [each for each in open_records(client, workflow_id) if not each.is_request]


def open_requests(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return a workflow's requests for nodes whose answers are not recorded."""
    return [each for each in open_records(client, workflow_id) if each.is_request]


def open_records(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return both: there are nodes for the workflow, or there may be soon."""
    found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    return sorted((node for node in found if node.status in _OPEN), key=lambda node: (node.scheduler_type, node.id))


def find_record(client: TorcClient, workflow_id: int, executor: str, id_: str) -> ScheduledComputeNodeRecord | None:
    """Return the record of an allocation by the batch system's id; of several the one that is not complete."""
    found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, scheduler_type=executor, allocation_id=id_)
    if not found:  # one that a client of Torc's own has made
        found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, scheduler_id=id_)
    mine = [each for each in found if not each.is_request and (each.scheduler_type, each.batch_id) == (executor, id_)]
    return min(mine, key=lambda each: (each.status not in _OPEN, -(each.id or 0)), default=None)


def context_without_runner(client: TorcClient, workflow_id: int) -> RunnerContext:
    """Return what executors are told that no runner uses."""
    return RunnerContext(
        workflow_id=workflow_id,
        run_id=client.workflow_status(workflow_id).run_id,
        output_dir=str(Path.cwd()),
        working_dir=str(Path.cwd()),
        api_url=client.environment["TORC_API_URL"],
        server_environment=client.environment,
    )


def record_allocation(
    client: TorcClient,
    workflow_id: int,
    executor: str,
    scheduler_config_id: int,
    id_: str,
    *,
    status: str = "pending",
    request: str | None = None,
) -> ScheduledComputeNodeRecord:
    """Return the record of an allocation that is there; it is made if there is none.

    Args:
        id_: The batch system's id of it.
        request: Name of the request that it came of, if that is known.

    Raises:
        ApiError: the server refused it.
    """
    record = ScheduledComputeNodeRecord(
        workflow_id=workflow_id,
        scheduler_id=int(id_) if _is_number(id_) else 0,
        scheduler_config_id=scheduler_config_id,
        scheduler_type=executor,
        status=status,
        allocation_id=id_,
        request=request,
    )
    try:
        return client.create(record)
    except ApiError as error:
        found = find_record(client, workflow_id, executor, id_) if error.status == 409 else None
        if found is None:
            raise
        return found


def _is_number(id_: str) -> bool:
    """Say whether an id is a number that the database can hold as one."""
    return id_.isascii() and id_.isdecimal() and len(id_) < 19


# --- living there ---------------------------------------------------------------------------------


@frozen
class AllocationOccupancy:
    """A runner's stay in an allocation.

    Args:
        allocation_id: The batch system's name of it; None if the runner lives in none.
        scheduler_config_id: The scheduler that it was asked for with; None if Torc did not ask for it.
    """

    client: TorcClient
    workflow_id: int
    executor: str
    allocation_id: str | None
    scheduler_config_id: int | None = None

    def move_in(self) -> dict[str, Any]:
        """Say that the allocation is in use; return what the runner's record says of it.

        The process that asked for the allocation may not have recorded it yet, or may have been killed before.
        """
        record = self._record() or self._new_record()
        if record is None:
            return {}
        self._set_status(record, "active")
        return {"scheduler_id": record.id}

    def move_out(self) -> None:
        """Say that the allocation is over, unless other runners live there."""
        record = self._record()
        if record is None:
            return
        there = self.client.find(
            ComputeNodeRecord, workflow_id=self.workflow_id, scheduled_compute_node_id=record.id, is_active=True
        )
        if not there:
            self._set_status(record, "complete")

    def _record(self) -> ScheduledComputeNodeRecord | None:
        if self.allocation_id is None:
            return None
        return find_record(self.client, self.workflow_id, self.executor, self.allocation_id)

    def _new_record(self) -> ScheduledComputeNodeRecord | None:
        if self.allocation_id is None or self.scheduler_config_id is None:
            return None
        return record_allocation(
            self.client, self.workflow_id, self.executor, self.scheduler_config_id, self.allocation_id, status="active"
        )

    def _set_status(self, record: ScheduledComputeNodeRecord, status: str) -> None:
        if record.status != status:
            self.client.update(ScheduledComputeNodeRecord, record.id or 0, {"status": status})


# --- asking about them ----------------------------------------------------------------------------


def find_ended(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: ExecutorOptions,
    context: RunnerContext,
) -> BatchSystemAnswers:
    """Return the allocations that are neither queued nor running."""
    answers = BatchSystemAnswers()
    for executor, several in by_executor(allocations):
        try:
            allocator = make_allocator(plugins, options, context, executor)
            alive = allocator.alive([_allocation_of(each) for each in several])
            over = [each for each in several if not alive.get(each.batch_id, False)]
            answers.reasons.update(_reasons(allocator, [each for each in several if each not in over]))
            endings = allocator.endings([_allocation_of(each) for each in over]) if over else {}
        except TorcError as error:
            answers.unasked.append(f"{len(several)} allocation(s) of {executor!r} were not asked about: {error}")
            continue
        answers.yes.extend(over)
        known = ((each.id or 0, endings.get(each.batch_id)) for each in over)
        answers.endings.update({id_: fate for id_, fate in known if fate is not None})
    return answers


def pending_reasons(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: ExecutorOptions,
    context: RunnerContext,
) -> dict[int, PendingReason]:
    """Return why allocations that are queued wait, by id of their records, as far as batch systems say it here."""
    found: dict[int, PendingReason] = {}
    asked = [each for each in allocations if not each.is_request]
    for executor, several in by_executor(sorted(asked, key=lambda node: node.scheduler_type)):
        with suppress(TorcError):
            found |= _reasons(make_allocator(plugins, options, context, executor), several)
    return found


def _reasons(allocator: Allocator, several: Sequence[ScheduledComputeNodeRecord]) -> dict[int, PendingReason]:
    by_id = {each.batch_id: each.id or 0 for each in several}
    reasons = allocator.pending_reasons([_allocation_of(each) for each in several]) if several else {}
    return {by_id[id_]: reason for id_, reason in reasons.items() if id_ in by_id}


def release_allocations(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: ExecutorOptions,
    context: RunnerContext,
) -> BatchSystemAnswers:
    """Give allocations back; return those of which that was possible."""
    answers = BatchSystemAnswers()
    for executor, several in by_executor(allocations):
        try:
            make_allocator(plugins, options, context, executor).release([_allocation_of(each) for each in several])
        except TorcError as error:
            answers.unasked.append(f"{len(several)} allocation(s) of {executor!r} were not given back: {error}")
            continue
        answers.yes.extend(several)
    return answers


def release_waiting(client: TorcClient, workflow_id: int, allocator_of: Callable[[str], Allocator]) -> None:
    """Give back the allocations of a workflow that no runner has moved into.

    Raises:
        AllocationError: a batch system did not answer.
        UserError: an executor is not known here.
        ApiError: the server refused it.
    """
    waiting = [each for each in open_allocations(client, workflow_id) if each.status == "pending"]
    for executor, several in by_executor(waiting):
        allocator_of(executor).release([_allocation_of(each) for each in several])
        for each in several:
            client.update(ScheduledComputeNodeRecord, each.id or 0, {"status": "complete"})


def by_executor(
    allocations: Sequence[ScheduledComputeNodeRecord],
) -> list[tuple[str, list[ScheduledComputeNodeRecord]]]:
    """Return records, sorted by executor, in one list for each."""
    return [(name, list(several)) for name, several in groupby(allocations, key=lambda node: node.scheduler_type)]


def make_allocator(
    plugins: "PluginManager", options: ExecutorOptions, context: RunnerContext, executor: str
) -> Allocator:
    """Return a new allocator of an executor, with its options.

    Raises:
        UserError: there is none of this name, it obtains no nodes, or it has no such options.
    """
    return Launchers(plugins.executor, options, context, lambda _launcher: None).allocator(executor)


def _allocation_of(node: ScheduledComputeNodeRecord) -> Allocation:
    return Allocation(node.batch_id, node.scheduler_type)
