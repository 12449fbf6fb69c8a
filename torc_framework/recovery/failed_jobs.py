"""The failed jobs of a workflow, as recovery policies receive them."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.recovery import FailedJob
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.models.statuses import JobStatus
from torc_framework.pending import failure_of
from torc_framework.recovery.resource_ceilings import ResourceCeilings

FAILED: Final = (JobStatus.FAILED, JobStatus.TERMINATED, JobStatus.PENDING_FAILED)
"""Statuses of jobs that need a recovery. Interrupted jobs among them run again without one."""
_DEFAULT: Final = "default"
"""Name of the requirements of jobs that have none of their own."""


@frozen
class RecoveryCase:
    """One failed job.

    Attributes:
        result: How its last attempt ended; None if no end was reported.
        seen: The same as policies receive it.
    """

    job: JobRecord
    result: ResultRecord | None
    seen: FailedJob


def failed_cases(
    client: TorcClient, workflow_id: int, ceilings: ResourceCeilings, settings: Mapping[str, Any], output_dir: Path
) -> list[RecoveryCase]:
    """Return the failed jobs of a workflow by id.

    Args:
        settings: Values of the command's options for the policies.
        output_dir: Folder of the runners' logs.
    """
    labels = [status.label for status in FAILED]
    found = (job for label in labels for job in client.iterate(JobRecord, workflow_id=workflow_id, status=label))
    jobs = [job for job in found if not job.is_interrupted]
    if not jobs:
        return []
    requirements = {each.id: each for each in client.iterate(ResourceRequirementsRecord, workflow_id=workflow_id)}
    current = {each.job_id: each for each in client.iterate(ResultRecord, workflow_id=workflow_id)}
    past = _past(client, workflow_id, {job.id or 0 for job in jobs})
    recoveries = Counter(entry.job_id for entry in client.recoveries(workflow_id))
    run_id = client.workflow_status(workflow_id).run_id
    cases = []
    for job in sorted(jobs, key=lambda job: job.id or 0):
        job_id = job.id or 0
        result = current.get(job_id)
        wanted = requirements[job.resource_requirements_id]
        cases.append(
            RecoveryCase(
                job,
                result,
                FailedJob(
                    failure_of(job, result, run_id, output_dir),
                    parse_memory(wanted.memory),
                    parse_duration(wanted.runtime),
                    wanted.num_cpus,
                    has_own_request=wanted.name != _DEFAULT,
                    ceiling=ceilings.of(job),
                    recoveries=recoveries[job_id],
                    history=tuple(each.return_code for each in past[job_id] if result is None or each.id != result.id),
                    settings=settings,
                ),
            )
        )
    return cases


def _past(client: TorcClient, workflow_id: int, job_ids: set[int]) -> dict[int, list[ResultRecord]]:
    """Return all results of these jobs, oldest first."""
    found: dict[int, list[ResultRecord]] = defaultdict(list)
    for result in client.iterate(ResultRecord, workflow_id=workflow_id, all_runs=True):
        if result.job_id in job_ids:
            found[result.job_id].append(result)
    for results in found.values():
        results.sort(key=lambda result: (result.run_id, result.attempt_id))
    return found
