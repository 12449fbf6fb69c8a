"""The server's records of allocations and of requests for them.

A `ScheduledComputeNodeRecord` is an allocation, with the batch system's id as text, or a request whose answer is not
recorded yet, with the request's name and no id.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError
from torc_framework.executors import Allocation
from torc_framework.models.records import ScheduledComputeNodeRecord

_OPEN: Final = ("pending", "active")


def open_allocations(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return a workflow's allocations that are not complete as far as the server knows."""
    return [each for each in open_records(client, workflow_id) if not each.is_request]


def open_requests(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return a workflow's requests for nodes whose answers are not recorded."""
    return [each for each in open_records(client, workflow_id) if each.is_request]


def open_records(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return open allocations and requests, sorted by executor: the workflow has nodes, or may have some soon."""
    found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    return sorted((node for node in found if node.status in _OPEN), key=lambda node: (node.scheduler_type, node.id))


def find_record(client: TorcClient, workflow_id: int, executor: str, id_: str) -> ScheduledComputeNodeRecord | None:
    """Return the record of an allocation by the batch system's id; of several the one that is not complete."""
    found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, scheduler_type=executor, allocation_id=id_)
    if not found:  # a record that Torc's own client made has the number alone
        found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, scheduler_id=id_)
    same = [each for each in found if not each.is_request and (each.scheduler_type, each.batch_id) == (executor, id_)]
    return min(same, key=lambda each: (each.status not in _OPEN, -(each.id or 0)), default=None)


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
    """Return the record of an allocation that exists, and make it if there is none.

    Args:
        id_: The batch system's id of it.
        request: Name of the request that it came of, if that is known.

    Raises:
        ApiError: the server refused it.
    """
    record = ScheduledComputeNodeRecord(
        workflow_id=workflow_id,
        scheduler_id=int(id_) if _fits_a_number_column(id_) else 0,
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


def _fits_a_number_column(id_: str) -> bool:
    """Return whether an id is a number that the database can hold as one."""
    return id_.isascii() and id_.isdecimal() and len(id_) < 19


def by_executor(
    allocations: Sequence[ScheduledComputeNodeRecord],
) -> list[tuple[str, list[ScheduledComputeNodeRecord]]]:
    """Return records, which are sorted by executor, in one list for each executor."""
    return [(name, list(several)) for name, several in groupby(allocations, key=lambda node: node.scheduler_type)]


def as_allocations(records: Sequence[ScheduledComputeNodeRecord]) -> list[Allocation]:
    """Return the allocations of these records, as allocators take them."""
    return [Allocation(each.batch_id, each.scheduler_type) for each in records]
