"""Reasons why allocations wait in the queues of batch systems that can be asked from this machine."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torc_framework.cli.shared.session import Session
from torc_framework.models.records import ScheduledComputeNodeRecord

if TYPE_CHECKING:
    from torc_framework.models.pending_reason import PendingReason


def queue_reasons(
    session: Session, workflow_id: int, allocations: Sequence[ScheduledComputeNodeRecord]
) -> "Mapping[int, PendingReason]":
    """Return the reasons by id of the records, with one query to each batch system that has queued allocations."""
    from torc_framework.allocations.allocators import context_without_runner
    from torc_framework.allocations.state_queries import pending_reasons
    from torc_framework.cli.shared.plugin_flags import executor_options

    waiting = [each for each in allocations if each.status == "pending"]
    if not waiting:
        return {}
    plugins = session.plugins(skip_untrusted=True)
    options = executor_options(session, plugins, "")
    return pending_reasons(waiting, plugins, options, context_without_runner(session.client, workflow_id))
