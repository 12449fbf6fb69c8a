"""The failed jobs of a workflow, as recovery policies see them."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attrs import fields_dict, frozen

from torc_framework.client import TorcClient
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict, StopReason
from torc_framework.models.failures import Failure
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.recovery import FailedJob
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.models.statuses import JobStatus
from torc_framework.recovery.ceilings import Ceilings

FAILED: Final = (JobStatus.FAILED, JobStatus.TERMINATED, JobStatus.PENDING_FAILED)
"""Statuses of jobs that a recovery is about."""
_DEFAULT: Final = "default"
"""Name of the requirements of jobs that asked for nothing."""
_UNKNOWN_CODE: Final = 1


@frozen
class Case:
    """One failed job.

    Attributes:
        result: How its last attempt ended; None if nobody told.
        seen: The same as policies see it.
    """

    job: JobRecord
    result: ResultRecord | None
    seen: FailedJob


def failed_cases(
    client: TorcClient, workflow_id: int, ceilings: Ceilings, settings: Mapping[str, Any], output_dir: Path
) -> list[Case]:
    """Return the failed jobs of a workflow by id.

    Args:
        settings: What policies are told of the command's options.
        output_dir: Folder of the runners' logs.
    """
    labels = [status.label for status in FAILED]
    jobs = [job for label in labels for job in client.iterate(JobRecord, workflow_id=workflow_id, status=label)]
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
            Case(
                job,
                result,
                FailedJob(
                    _failure(job, result, run_id, output_dir),
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


def _failure(job: JobRecord, result: ResultRecord | None, run_id: int, output_dir: Path) -> Failure:
    run = result.run_id if result else run_id
    stem = output_dir / "job_stdio" / f"job_wf{job.workflow_id}_j{job.id}_r{run}_a{job.attempt_id}"
    return Failure(
        workflow_id=job.workflow_id,
        job_id=job.id or 0,
        job_name=job.name,
        attempt_id=job.attempt_id,
        return_code=result.return_code if result else _UNKNOWN_CODE,
        observation=_observation(result),
        verdict=_verdict(result),
        stdout_path=f"{stem}.o",
        stderr_path=f"{stem}.e",
    )


_FIELDS: Final = frozenset(fields_dict(ExitObservation))


def _observation(result: ResultRecord | None) -> ExitObservation:
    """Return what was seen; of an attempt that another program told of, what its result says."""
    if result is None:
        return ExitObservation("")
    seen: Any = result.observation if isinstance(result.observation, dict) else {}
    values = {"executor": "", **{name: value for name, value in seen.items() if name in _FIELDS}}
    stop = values.get("stop_reason")
    values["stop_reason"] = StopReason(stop) if stop in set(StopReason) else None
    values["missing_outputs"] = tuple(values.get("missing_outputs", ()))
    if values.get("peak_memory_bytes") is None:
        values["peak_memory_bytes"] = result.peak_memory_bytes
    if values.get("started_at") is None or values.get("ended_at") is None:
        ended = datetime.fromisoformat(result.completion_time).timestamp()
        values |= {"started_at": ended - result.exec_time_minutes * 60, "ended_at": ended}
    if not seen:
        values |= {"exit_code": result.exit_code, "signal": result.signal}
    return ExitObservation(**values)


def _verdict(result: ResultRecord | None) -> ExitVerdict:
    name = result.exit_class if result else None
    exit_class = ExitClass(name) if name in set(ExitClass) else ExitClass.UNKNOWN
    return ExitVerdict(exit_class, (result.reason if result else None) or "nobody said how it ended")
