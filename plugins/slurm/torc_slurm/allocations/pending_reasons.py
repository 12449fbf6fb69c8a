"""Reasons why batch jobs wait: what Slurm's codes mean, and which of them never pass.

Source: Slurm, "Job Reason Codes" (https://slurm.schedmd.com/job_reason_codes.html) and squeue(1), JOB REASON CODES.
"""

import re
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from torc_framework.api import AllocationError, PendingReason, join_reasons
from torc_slurm.allocations.batch_jobs import BatchJob, queued_jobs_by_id
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.cluster.scontrol import parse_number, parse_record

_UPDATE_SCHEDULER: Final = "change its scheduler ('torc slurm update')"
PERMANENT_REASONS: Final[Mapping[str, str]] = {
    "PartitionTimeLimit": f"its walltime is longer than the partition allows; {_UPDATE_SCHEDULER}",
    "BadConstraints": f"no node has the features that it asks for; {_UPDATE_SCHEDULER}",
    "InvalidAccount": f"its account is not valid; {_UPDATE_SCHEDULER}",
    "AccountNotAllowed": f"its account may not use the partition; {_UPDATE_SCHEDULER}",
    "InvalidQOS": f"its quality of service is not valid; {_UPDATE_SCHEDULER}",
    "QOSNotAllowed": f"its quality of service may not be used here; {_UPDATE_SCHEDULER}",
    "ReservationDeleted": f"the reservation that it asks for is gone; {_UPDATE_SCHEDULER}",
    "DependencyNeverSatisfied": "a batch job that it waits for has ended in another way than it asks for",
    "DeadLine": "it cannot end before its deadline",
    "MaxMemPerLimit": f"it asks for more memory than the site allows; {_UPDATE_SCHEDULER}",
}
"""Codes of jobs that cannot start unless the request is changed."""
_SINGLE_JOB_LIMITS: Final = re.compile(r"(?:Assoc|QOS)(?:Max\w+Per(?:Job|Node)(?:Limit)?|Min\w+)")
"""Codes of limits that a job exceeds by itself: ``AssocMaxWallDurationPerJobLimit``, ``QOSMaxCpuPerNode``,
``QOSMinGRES``, ... A job that exceeds a limit of its user, group or account can start when other jobs have ended."""
TEMPORARY_REASONS: Final[Mapping[str, str]] = {
    "Resources": "it waits for nodes to become free",
    "Priority": "other jobs go before it",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved, as for maintenance before it would end",
    "NodeDown": "a node that it needs is down",
    "Reservation": "it waits for its reservation",
    "BeginTime": "its start time has not come",
    "Dependency": "it waits for other batch jobs",
    "JobHeldUser": "it is held by its user until 'scontrol release'",
    "JobHeldAdmin": "it is held by an administrator of the site",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "nodes that it needs are down or drained, or it asks for more than the partition allows",
    "PartitionConfig": "the partition has no nodes now that have what it asks for",
    "Licenses": "it waits for a license",
    "JobArrayTaskLimit": "as many tasks of its array run as may at once",
}
"""Codes of jobs that can start without a change of the request."""
_SHARED_LIMITS: Final = re.compile(r"(?:Assoc|QOS|Max)\w+")


def pending_reason(printed: str) -> PendingReason:
    """Return the meaning of a reason that Slurm prints: a code, perhaps followed by a comma and details."""
    code = re.split(r"[,\s(]", printed, maxsplit=1)[0]
    if code in PERMANENT_REASONS:
        return PendingReason(printed, PERMANENT_REASONS[code], never_passes=True)
    if _SINGLE_JOB_LIMITS.fullmatch(code):
        text = f"it alone is over a limit of its account, user or quality of service; {_UPDATE_SCHEDULER}"
        return PendingReason(printed, text, never_passes=True)
    if code in TEMPORARY_REASONS:
        return PendingReason(printed, TEMPORARY_REASONS[code])
    if _SHARED_LIMITS.fullmatch(code):
        return PendingReason(printed, "a limit of its account, user or quality of service is used up by other jobs")
    return PendingReason(printed)


PROVISIONAL_REASON: Final = "PartitionConfig"
"""Reason of new jobs that the partition cannot run now. Seconds later Slurm's scheduler replaces it by the true reason
(measured with Slurm 22.05.8)."""
RECHECK_PAUSES_S: Final = (1.0, 2.0, 3.0)
"""Pauses before new batch jobs with the provisional reason are looked at again, seconds."""


def pending_reasons_by_id(slurm: SlurmCommands, jobs: Iterable[BatchJob]) -> dict[str, PendingReason]:
    """Return by id why batch jobs wait; jobs that do not wait, or have no reason, are left out."""
    return {
        job.id: _with_node_limit(slurm, job.id, pending_reason(job.reason))
        for job in jobs
        if job.is_waiting and job.reason is not None
    }


def cancel_if_never_starting(slurm: SlurmCommands, ids: Collection[str]) -> None:
    """Cancel equal new batch jobs, or an array, if Slurm has accepted them but would never start them.

    Slurm 22.05.8 accepts, for example, a walltime over the partition's limit, and shows the reason only in its queue
    (measured). A normal return means that no such reason was seen, or that Slurm did not answer; ``torc watch`` reports
    a reason that appears later.

    Raises:
        AllocationError: the jobs were canceled; the message has the reason.
    """
    try:
        for pause_s in (*RECHECK_PAUSES_S, 0.0):
            jobs = queued_jobs_by_id(slurm, f"--jobs={','.join(ids)}").values()
            if not any(job.is_waiting and job.reason == PROVISIONAL_REASON for job in jobs):
                break
            time.sleep(pause_s)
    except AllocationError:
        return
    reasons = pending_reasons_by_id(slurm, jobs)
    never = [reason for reason in reasons.values() if reason.never_passes]
    if never:
        slurm.run("scancel", *ids)
        why = join_reasons(never)
        raise AllocationError(f"Slurm would never start what was requested, and it was canceled: {why}")


def _with_node_limit(slurm: SlurmCommands, job_id: str, reason: PendingReason) -> PendingReason:
    """Return a reason; ``PartitionNodeLimit`` becomes permanent if the number of nodes violates the partition's limits.

    Otherwise that code means that nodes of the partition are down.
    """
    if reason.code != "PartitionNodeLimit":
        return reason
    try:
        job = parse_record(slurm.run("scontrol", "-o", "show", "job", job_id))
        partition = parse_record(slurm.run("scontrol", "-o", "show", "partition", job["Partition"]))
        wanted = int(job["NumNodes"].partition("-")[0])
        most = [each for name in ("TotalNodes", "MaxNodes") if (each := parse_number(partition.get(name))) is not None]
        least = parse_number(partition.get("MinNodes")) or 0
    except (AllocationError, KeyError, ValueError):
        return reason
    if least <= wanted <= min(most, default=wanted):
        return reason
    given = f"partition {job['Partition']} gives {least or 1} to {min(most)}"
    text = f"it asks for {wanted} nodes, and {given}; {_UPDATE_SCHEDULER}"
    return PendingReason(reason.code, text, never_passes=True)
