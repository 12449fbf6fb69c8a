"""A runner's use of the allocation in which it works."""

from typing import Any

from attrs import frozen

from torc_framework.allocations.records import find_record, record_allocation
from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord, ScheduledComputeNodeRecord


@frozen
class AllocationOccupancy:
    """Keeps the record of a runner's allocation up to date: active while runners work there, complete after the last.

    Args:
        allocation_id: The batch system's id of the allocation; None if the runner works in none.
        scheduler_config_id: The scheduler record with which it was requested; None if Torc did not request it.
    """

    client: TorcClient
    workflow_id: int
    executor: str
    allocation_id: str | None
    scheduler_config_id: int | None = None

    def begin(self) -> dict[str, Any]:
        """Record the allocation as active; return its entry for the runner's record.

        If the process that requested the allocation has not recorded it yet, or was killed before it could, its record
        is made here.
        """
        record = self._record() or self._new_record()
        if record is None:
            return {}
        self._set_status(record, "active")
        return {"scheduler_id": record.id}

    def end(self) -> None:
        """Record the allocation as complete, unless other runners work in it."""
        record = self._record()
        if record is None:
            return
        active = self.client.find(
            ComputeNodeRecord, workflow_id=self.workflow_id, scheduled_compute_node_id=record.id, is_active=True
        )
        if not active:
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
