"""The past attempts of a job, in every run: requirements, cost, and whether a change of requirements helped."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from torc_framework.models.exits import ExitClass
from torc_framework.models.records import ResourceRequirementsRecord, ResultRecord
from torc_framework.models.recovery import RecoveryEntry
from torc_framework.models.resources import format_duration, format_memory, parse_duration, parse_memory
from torc_framework.models.statuses import JobStatus

COMPLETED: Final = JobStatus.COMPLETED.label
DEFAULT_NAME: Final = "default"
"""Name of the requirements of jobs that have none of their own."""


@frozen
class ResourceRequest:
    """The resources that an attempt asked for; None where one is unknown."""

    num_cpus: int | None = None
    memory_bytes: int | None = None
    runtime_s: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it in the spellings of specs."""
        return {
            "num_cpus": self.num_cpus,
            "memory": None if self.memory_bytes is None else format_memory(self.memory_bytes),
            "runtime": None if self.runtime_s is None else format_duration(self.runtime_s),
        }


@frozen
class PastAttempt:
    """One attempt that ended.

    Attributes:
        request: The resources that it asked for.
        before: Those of the attempt before, if they differ.
        decided_by: The recovery policy that changed the request; None if a person changed it, or it did not change.
        cpu_hours: Run time multiplied by the reserved CPUs.
        paid: Whether the change helped: True if the attempt completed, else False; None without a change.
    """

    result: ResultRecord
    request: ResourceRequest
    cpu_hours: float
    before: ResourceRequest | None = None
    decided_by: str | None = None
    helped: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        result = self.result
        return {
            "run_id": result.run_id,
            "attempt_id": result.attempt_id,
            "status": result.status,
            "exit_class": result.exit_class,
            "return_code": result.return_code,
            "reason": result.reason,
            "completion_time": result.completion_time,
            "exec_time_minutes": result.exec_time_minutes,
            "peak_memory_bytes": result.peak_memory_bytes,
            "request": self.request.as_dict(),
            "request_before": self.before and self.before.as_dict(),
            "decided_by": self.decided_by,
            "cost_cpu_hours": self.cpu_hours,
            "paid": self.helped,
        }


def is_lost_work(result: ResultRecord) -> bool:
    """Return whether an attempt's work is lost: it neither completed, nor exited with 0 when it was interrupted."""
    has_saved = result.exit_class == ExitClass.INTERRUPTED and result.return_code == 0
    return result.status != COMPLETED and not has_saved


def cpu_hours(result: ResultRecord, wanted: ResourceRequirementsRecord | None, num_cpus: int | None = None) -> float:
    """Return run time multiplied by the CPUs that were reserved for an attempt on all nodes."""
    return node_hours(result.exec_time_minutes, wanted, num_cpus)


def node_hours(minutes: float, wanted: ResourceRequirementsRecord | None, num_cpus: int | None = None) -> float:
    """Return minutes multiplied by the CPUs that are reserved on all nodes, in CPU-hours."""
    cpus = num_cpus if num_cpus is not None else wanted.num_cpus if wanted else 1
    return minutes / 60 * cpus * (wanted.num_nodes if wanted else 1)


def past_attempts(
    results: Sequence[ResultRecord], wanted: ResourceRequirementsRecord | None, recoveries: Sequence[RecoveryEntry] = ()
) -> list[PastAttempt]:
    """Return the past attempts, oldest first.

    Args:
        results: The results of all attempts of one job.
        wanted: The job's present requirements.
        recoveries: The recoveries of this job, which hold the requirements of the attempts that they followed. The
            requirements of other attempts are taken from their observations.
    """
    ordered = sorted(results, key=lambda each: (each.run_id, each.attempt_id))
    after = {(each.run_id, each.attempt_id): each for each in recoveries}
    found: list[PastAttempt] = []
    entry: RecoveryEntry | None = None
    for position, result in enumerate(ordered):
        own, is_last = after.get((result.run_id, result.attempt_id)), position == len(ordered) - 1
        if own is not None:
            request = ResourceRequest(own.old_num_cpus, _memory(own.old_memory), _runtime(own.old_runtime))
        else:
            request = _requested(result, wanted if is_last else None, entry)
        before = found[-1].request if found else None
        changed = before is not None and _differs(before, request)
        found.append(
            PastAttempt(
                result,
                request,
                cpu_hours(result, wanted, request.num_cpus),
                before if changed else None,
                entry.decided_by if entry is not None else None,
                result.status == COMPLETED if changed else None,
            )
        )
        entry = own
    return found


def _requested(
    result: ResultRecord, wanted: ResourceRequirementsRecord | None, entry: RecoveryEntry | None
) -> ResourceRequest:
    """Return the resources of an attempt: the observed ones, else those of the recovery before it, else the present."""
    observation: Mapping[str, Any] = result.observation if isinstance(result.observation, dict) else {}
    memory, runtime = observation.get("memory_limit_bytes"), observation.get("runtime_limit_s")
    cpus = entry.new_num_cpus if entry else wanted.num_cpus if wanted else None
    if wanted is not None and wanted.name != DEFAULT_NAME:
        memory = _memory(wanted.memory) if memory is None else memory
        runtime = _runtime(wanted.runtime) if runtime is None else runtime
    return ResourceRequest(cpus, memory, None if runtime is None else int(runtime))


def _differs(before: ResourceRequest, after: ResourceRequest) -> bool:
    pairs = (
        (before.num_cpus, after.num_cpus),
        (before.memory_bytes, after.memory_bytes),
        (before.runtime_s, after.runtime_s),
    )
    return any(old is not None and new is not None and old != new for old, new in pairs)


def _memory(text: str) -> int | None:
    try:
        return parse_memory(text)
    except ValueError:
        return None


def _runtime(text: str) -> int | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None
