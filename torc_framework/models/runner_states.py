"""What a runner does, as far as the server knows: it works, drains, is silent, or has ended."""

from datetime import datetime
from typing import Final, Literal

from torc_framework.models.records import ComputeNodeRecord

RunnerState = Literal["works", "drains", "silent", "ended"]
SILENT_AFTER_S: Final = 300.0
"""Seconds without a report after which a runner counts as silent; one that waits reports every 20 seconds, and the
server stores the time once a minute at most."""


def heard_seconds(node: ComputeNodeRecord) -> float | None:
    """Return when a runner last reported, seconds since the epoch; None if no time is known."""
    return None if node.last_heard_at is None else datetime.fromisoformat(node.last_heard_at).timestamp()


def runner_state(node: ComputeNodeRecord, now: float) -> RunnerState:
    """Return what a runner does at ``now``, seconds since the epoch.

    A runner whose reports carry no time, because its client reports the steps of jobs one by one, is never silent.
    """
    if not node.is_active:
        return "ended"
    heard_s = heard_seconds(node)
    if heard_s is not None and now - heard_s > SILENT_AFTER_S:
        return "silent"
    return "drains" if node.is_draining else "works"
