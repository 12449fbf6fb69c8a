"""Client methods that runners call: the exchange, and the take-over from a dead runner."""

from typing import TYPE_CHECKING

import msgspec

from torc_framework.client.calls.base import DEFAULT_TIMEOUT_S, ClientBase

if TYPE_CHECKING:
    from torc_framework.models.exchange import ExchangeReply, ExchangeRequest


class RunnerCalls(ClientBase):
    """Methods for one runner of a workflow."""

    def exchange(
        self, workflow_id: int, request: "ExchangeRequest", *, timeout: float = DEFAULT_TIMEOUT_S
    ) -> "ExchangeReply":
        """Send a runner's reports and its offer; return new jobs. The server may wait up to ``request.wait_s``."""
        from torc_framework.models.exchange import ExchangeReply

        return self._call(
            ExchangeReply,
            "POST",
            f"/workflows/{workflow_id}/exchange",
            raw=msgspec.json.encode(request),
            timeout=timeout + request.wait_s,
        )

    def take_over(self, compute_node_id: int, epoch: int, by: int | None) -> dict[int, int]:
        """Take the lease of a dead runner, and with it those that this one has taken; return their new epochs by id.

        Args:
            epoch: The epoch that its record had when it was found dead.
            by: The runner that takes it; None for a command that runs nothing.

        Raises:
            ApiError: with status 409, the lease has changed hands meanwhile.
        """
        from torc_framework.models.exchange import TakenLeases, TakeOverOrder

        path, raw = f"/compute_nodes/{compute_node_id}/take_over", msgspec.json.encode(TakeOverOrder(epoch, by))
        return self._call(TakenLeases, "POST", path, raw=raw).epochs
