"""Refusal of nodes whose walltime is too short for every job that could begin on them."""

from collections.abc import Mapping
from typing import Any, Final

from torc_framework.client import TorcClient
from torc_framework.errors import AllocationError
from torc_framework.models.records import ResourceRequirementsRecord, WorkflowRecord
from torc_framework.models.resources import parse_duration
from torc_framework.models.statuses import JobStatus
from torc_framework.models.time_limits import parse_time_limit
from torc_framework.models.walltime_reserve import WalltimeReserve

_TO_BEGIN: Final = frozenset(each.label for each in (JobStatus.UNINITIALIZED, JobStatus.READY))
_AT_WORK: Final = frozenset(each.label for each in (JobStatus.PENDING, JobStatus.RUNNING))


def refuse_useless_walltime(
    client: TorcClient, workflow_id: int, kind: type[Any], scheduler: Mapping[str, Any]
) -> None:
    """Refuse a request for nodes on which no job that waits for a runner would ever start.

    A job that is bound to no scheduler, or to another one, may still need other nodes of the workflow: it decides only
    if its run time is too long for all schedulers. While jobs run, nothing is refused: jobs that follow them may fit.

    Args:
        kind: The class of the records of schedulers.
        scheduler: The scheduler's record as JSON values; without a walltime nothing is refused.

    Raises:
        AllocationError: the walltime is too short for all of these jobs.
    """
    limit_s = _limit_s(scheduler.get("walltime"))
    if limit_s is None:
        return
    reserve = WalltimeReserve.of(client.get(WorkflowRecord, workflow_id))
    records = client.find(ResourceRequirementsRecord, workflow_id=workflow_id)
    runtimes = {each.id: parse_duration(each.runtime) for each in records}
    if not any(reserve.never_starts(limit_s, each) for each in runtimes.values()):
        return
    others = [_limit_s(each.walltime) for each in client.find(kind, workflow_id=workflow_id)]
    longest_s = None if None in others else max(each or 0 for each in others)
    too_long = None
    for jobs in client.job_classes(workflow_id):
        known = jobs.job_class
        if known.status in _AT_WORK:
            return
        if known.status not in _TO_BEGIN and not known.is_interrupted:
            continue
        runtime_s = runtimes.get(known.resource_requirements_id)
        most_s = limit_s if known.scheduler_id == scheduler.get("id") else longest_s
        if runtime_s is None or most_s is None or not reserve.never_starts(most_s, runtime_s):
            return
        too_long = too_long or (jobs.first_names[0], runtime_s)
    if too_long is not None:
        which = f"no job that waits would start: scheduler {scheduler.get('name') or scheduler.get('id')!r}"
        raise AllocationError(reserve.never_starts_text(which, limit_s, *too_long))


def _limit_s(walltime: str | None) -> int | None:
    """Return the seconds of a walltime; None if it is missing or unlimited, or in a notation of the batch system."""
    try:
        return None if walltime is None else parse_time_limit(walltime)
    except ValueError:
        return None
