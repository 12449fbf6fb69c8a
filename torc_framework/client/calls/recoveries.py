"""Client methods for recoveries."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from torc_framework.client.calls.base import PLAN_TIMEOUT_S, ClientBase

if TYPE_CHECKING:
    from torc_framework.models.recovery import RecoveryEntry, RecoveryOrder, RecoveryReceipt


class RecoveryCalls(ClientBase):
    """Methods that carry out and list recoveries of failed jobs."""

    def recover(self, workflow_id: int, order: "RecoveryOrder") -> "RecoveryReceipt":
        """Raise the requirements of failed jobs and reset them with their dependents, in one transaction."""
        from torc_framework.models.recovery import RecoveryReceipt

        path = f"/workflows/{workflow_id}/recoveries"
        return self._call(RecoveryReceipt, "POST", path, raw=msgspec.json.encode(order), timeout=PLAN_TIMEOUT_S)

    def recoveries(self, workflow_id: int) -> "Iterator[RecoveryEntry]":
        """Yield the recoveries of a workflow's failed jobs, oldest first."""
        from torc_framework.models.recovery import RecoveryEntry

        return self._walk(RecoveryEntry, f"/workflows/{workflow_id}/recoveries")
