"""Methods about recoveries."""

from collections.abc import Iterator

import msgspec

from torc_framework.client.calls.base import PLAN_TIMEOUT_S, ClientBase
from torc_framework.models.recovery import RecoveryEntry, RecoveryOrder, RecoveryReceipt


class RecoveryCalls(ClientBase):
    """What was done, and is to be done, about failed jobs."""

    def recover(self, workflow_id: int, order: RecoveryOrder) -> RecoveryReceipt:
        """Carry out a recovery in one transaction: requests grow, the jobs and what hangs on them run again."""
        path = f"/workflows/{workflow_id}/recoveries"
        return self._call(RecoveryReceipt, "POST", path, raw=msgspec.json.encode(order), timeout=PLAN_TIMEOUT_S)

    def recoveries(self, workflow_id: int) -> Iterator[RecoveryEntry]:
        """Iterate over what was done about a workflow's failed jobs, oldest first."""
        return self._walk(RecoveryEntry, f"/workflows/{workflow_id}/recoveries")
