"""Requests for nodes whose answers are not recorded: the process that made them was killed, or still waits."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define

from torc_framework.allocations.allocators import ExecutorOptions, make_allocator
from torc_framework.allocations.node_requests import close_request, record_answer
from torc_framework.allocations.records import by_executor, open_requests
from torc_framework.client import TorcClient
from torc_framework.errors import TorcError
from torc_framework.executors import RunnerContext
from torc_framework.models.records import ScheduledComputeNodeRecord
from torc_framework.system.process_identity import is_gone

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

ACCEPTED_WITHIN_S: Final = 60.0
"""A batch system accepts a request within this time after it was recorded, also if the requesting process is gone."""
LONGEST_S: Final = 3600.0
"""A request of a process of which it cannot be known whether it lives counts as abandoned after this time."""


@define
class ResolvedRequests:
    """The requests of a workflow that had no recorded answer, after their batch systems were asked.

    Attributes:
        allocations: Records of what had been accepted.
        open: Requests of which the batch system may still accept more.
        notes: What could not be found out, one sentence each.
    """

    allocations: list[ScheduledComputeNodeRecord] = Factory(list)
    open: list[ScheduledComputeNodeRecord] = Factory(list)
    notes: list[str] = Factory(list)


def resolve_requests(
    client: TorcClient, plugins: "PluginManager", options: ExecutorOptions, context: RunnerContext
) -> ResolvedRequests:
    """Record what batch systems accepted of a workflow's requests whose answers are not recorded.

    A request is closed once its process is gone, or has had an hour, and the batch system can accept nothing of it any
    more. Until then it stays open.
    """
    resolved = ResolvedRequests()
    for executor, several in by_executor(open_requests(client, context.workflow_id)):
        over = [each.id for each in several if _is_over(each)]  # decided before the question
        try:
            allocator = make_allocator(plugins.executor, options, context, executor)
            found = allocator.find([each.request or "" for each in several])
        except TorcError as error:
            resolved.open += several
            resolved.notes.append(f"{len(several)} request(s) for nodes to {executor!r} were not looked for: {error}")
            continue
        for request in several:
            accepted = found.get(request.request or "", ())
            resolved.allocations += record_answer(client, request, accepted)
            if request.id in over:
                close_request(client, request)
            else:
                resolved.open.append(request)
    return resolved


def refuse_requests(client: TorcClient, requests: Sequence[ScheduledComputeNodeRecord]) -> list[str]:
    """Refuse the open requests of a canceled workflow; return what remains to be done, one sentence each.

    The process that made a request finds it refused and gives back what the batch system accepts. Where that process is
    dead, the batch system has to be asked once more after `ACCEPTED_WITHIN_S`.
    """
    notes = []
    for request in requests:
        if _requester_is_dead(request):
            notes.append(
                f"request {request.request} for nodes was cut short a moment ago and may still be accepted: "
                f"'torc workflows cancel {request.workflow_id}' in a minute sees to it"
            )
        else:
            client.update(ScheduledComputeNodeRecord, request.id or 0, {"status": "complete"})
    return notes


def _is_over(request: ScheduledComputeNodeRecord) -> bool:
    """Return whether a batch system can accept nothing more of a request."""
    return _age_s(request) > (ACCEPTED_WITHIN_S if _requester_is_dead(request) else LONGEST_S)


def _requester_is_dead(request: ScheduledComputeNodeRecord) -> bool:
    """Return whether the process that made a request is certainly gone; False for one on another machine."""
    described = _requester(request)
    return described.get("hostname") == os.uname().nodename and is_gone(described)


def _age_s(request: ScheduledComputeNodeRecord) -> float:
    """Return how long ago a request was recorded, in seconds, by the wall clocks of the two machines."""
    at = _requester(request).get("at")
    return time.time() - at if isinstance(at, int | float) else LONGEST_S + 1


def _requester(request: ScheduledComputeNodeRecord) -> Mapping[str, Any]:
    return request.requester if isinstance(request.requester, dict) else {}
