"""The comparison of the resources that jobs used with their requirements.

Amounts that were not measured are left out. Jobs without requirements of their own have the workflow's ``default``
ones, which exist for schedulers and which no user chose: exceeding them is not reported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.exits.memory_shortage import diagnose_memory
from torc_framework.exits.time_shortage import diagnose_time
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.models.statuses import FAILURES
from torc_framework.reports import formatting

CPU_NOISE_PERCENT: Final = 5.0
"""CPU use above the requirement that counts as measurement error: times are sampled in hundredths of a second."""
DEFAULT_NAME: Final = "default"
_FAILURES: Final = frozenset(status.label for status in FAILURES)


class ComparedResource(StrEnum):
    """Resources that are compared."""

    MEMORY = "Memory"
    RUNTIME = "Runtime"
    CPU = "CPU"


@frozen
class ComparisonRule:
    """How one resource is read from requirements and results, and formatted."""

    asked: Callable[[ResourceRequirementsRecord], float]
    used: Callable[[ResultRecord], float | None]
    asked_text: Callable[[float], str]
    used_text: Callable[[float], str]
    noise_percent: float = 0.0


RULES: Final[Mapping[ComparedResource, ComparisonRule]] = {
    ComparedResource.MEMORY: ComparisonRule(
        lambda wanted: parse_memory(wanted.memory),
        lambda result: result.peak_memory_bytes,
        formatting.memory,
        formatting.memory,
    ),
    ComparedResource.RUNTIME: ComparisonRule(
        lambda wanted: parse_duration(wanted.runtime),
        lambda result: result.exec_time_minutes * 60,
        formatting.duration,
        formatting.duration,
    ),
    ComparedResource.CPU: ComparisonRule(
        lambda wanted: wanted.num_cpus * 100,
        lambda result: result.peak_cpu_percent,
        lambda percent: formatting.cores(percent / 100),
        formatting.cpu,
        CPU_NOISE_PERCENT,
    ),
}


@frozen
class ResourceUse:
    """The use of one resource by one job, at its largest.

    Attributes:
        asked: The requirement in bytes, seconds or percent of a core.
        used: The use in the same unit.
        is_violation: The use exceeds the requirement by more than the tolerance.
    """

    job_id: int
    job_name: str
    resource: ComparedResource
    asked: float
    used: float
    is_violation: bool
    requirements_id: int

    @property
    def over_percent(self) -> float:
        """By how many percent the use exceeds the requirement; negative if it is below."""
        return _percent_over(self.used, self.asked)

    def as_dict(self) -> dict[str, Any]:
        """Return it with the keys of Torc's report."""
        rule = RULES[self.resource]
        return {
            "job_id": self.job_id,
            "job_name": self.job_name,
            "resource_type": self.resource.value,
            "specified": rule.asked_text(self.asked),
            "peak_used": rule.used_text(self.used),
            "over_utilization": formatting.over(self.over_percent),
        }


@frozen
class FailedAttempt:
    """A failed attempt, with the reasons why it probably lacked memory or time; None where it probably did not."""

    result: ResultRecord
    job_name: str
    wanted: ResourceRequirementsRecord
    oom_reason: str | None
    timeout_reason: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        peak = self.result.peak_memory_bytes
        return {
            "job_id": self.result.job_id,
            "job_name": self.job_name,
            "status": self.result.status,
            "run_id": self.result.run_id,
            "attempt_id": self.result.attempt_id,
            "return_code": self.result.return_code,
            "exit_class": self.result.exit_class,
            "exec_time_minutes": self.result.exec_time_minutes,
            "configured_cpus": self.wanted.num_cpus,
            "configured_memory": self.wanted.memory,
            "configured_runtime": self.wanted.runtime,
            "peak_memory_bytes": peak,
            "peak_memory_formatted": None if peak is None else formatting.memory(peak),
            "likely_oom": self.oom_reason is not None,
            "oom_reason": self.oom_reason,
            "likely_timeout": self.timeout_reason is not None,
            "timeout_reason": self.timeout_reason,
        }


@frozen
class Utilization:
    """The report; ``figures`` holds the measured uses of jobs with requirements of their own, all or the violations."""

    workflow_id: int
    run_id: int | None
    total_results: int
    figures: tuple[ResourceUse, ...]
    failed: tuple[FailedAttempt, ...]
    requirements: Mapping[int, ResourceRequirementsRecord]

    @property
    def violations(self) -> list[ResourceUse]:
        """Uses that exceed the requirements."""
        return [figure for figure in self.figures if figure.is_violation]

    def as_dict(self) -> dict[str, Any]:
        """Return Torc's report; ``failed_jobs`` is an addition."""
        violations = [figure.as_dict() for figure in self.violations]
        return {
            "workflow_id": self.workflow_id,
            "run_id": self.run_id,
            "total_results": self.total_results,
            "over_utilization_count": len(violations),
            "violations": violations,
        }


def analyze(
    client: TorcClient,
    workflow_id: int,
    *,
    run_id: int | None = None,
    include_failed: bool = False,
    min_over_percent: float = 0.0,
    only_violations: bool = False,
) -> Utilization:
    """Compare the completed jobs of a workflow with their requirements.

    Args:
        client: The server.
        workflow_id: The workflow.
        run_id: The run; None takes each job's present result.
        include_failed: Include failed attempts; of several attempts the largest use counts.
        min_over_percent: Tolerate uses above the requirements by at most this.
        only_violations: Leave out the uses within the requirements, which then are not read from the server either.
    """
    requirements = {each.id or 0: each for each in client.find(ResourceRequirementsRecord, workflow_id=workflow_id)}
    figures: list[ResourceUse] = []
    failed: list[FailedAttempt] = []
    total = 0
    pages = client.compared_results(
        workflow_id, run_id=run_id, all_attempts=include_failed, only_excess=only_violations
    )
    for page in pages:
        total += page.count
        jobs = {job.id or 0: job for job in page.jobs}
        for job_id, attempts in _by_job(page.results).items():
            wanted = requirements.get(jobs[job_id].resource_requirements_id or 0)
            if wanted is not None and wanted.name != DEFAULT_NAME:
                uses = _resource_uses(jobs[job_id], attempts, wanted, min_over_percent)
                figures += (use for use in uses if use.is_violation or not only_violations)
        failures = (result for result in page.results if result.status in _FAILURES)
        failed += (_failed(jobs[result.job_id], result, requirements) for result in failures)
    failed.sort(key=lambda each: each.result.id or 0)
    return Utilization(workflow_id, run_id, total, tuple(figures), tuple(failed), requirements)


def _by_job(results: Iterable[ResultRecord]) -> dict[int, list[ResultRecord]]:
    found: dict[int, list[ResultRecord]] = {}
    for result in results:
        found.setdefault(result.job_id, []).append(result)
    return dict(sorted(found.items()))


def _resource_uses(
    job: JobRecord, attempts: Sequence[ResultRecord], wanted: ResourceRequirementsRecord, min_over_percent: float
) -> Iterable[ResourceUse]:
    for resource, rule in RULES.items():
        used = [amount for result in attempts if (amount := rule.used(result)) is not None]
        if used:
            asked = rule.asked(wanted)
            overlooked = max(min_over_percent, rule.noise_percent)
            is_violation = max(used) > asked and _percent_over(max(used), asked) > overlooked
            yield ResourceUse(job.id or 0, job.name, resource, asked, max(used), is_violation, wanted.id or 0)


def _percent_over(used: float, asked: float) -> float:
    return 100 * (used / asked - 1) if asked else float("inf")


def _failed(
    job: JobRecord, result: ResultRecord, requirements: Mapping[int, ResourceRequirementsRecord]
) -> FailedAttempt:
    wanted = requirements.get(job.resource_requirements_id or 0)
    if wanted is None:  # its record was deleted meanwhile
        wanted = ResourceRequirementsRecord(workflow_id=job.workflow_id, name=DEFAULT_NAME)
    return FailedAttempt(result, job.name, wanted, _oom_reason(result, wanted), _timeout_reason(result, wanted))


def _oom_reason(result: ResultRecord, wanted: ResourceRequirementsRecord) -> str | None:
    """Return why an attempt probably lacked memory; None if it probably did not."""
    is_own = wanted.name != DEFAULT_NAME
    return diagnose_memory(
        exit_class=result.exit_class,
        peak_bytes=result.peak_memory_bytes,
        limit_bytes=parse_memory(wanted.memory) if is_own else None,
        return_code=result.return_code,
        was_stopped=_stop_reason(result) is not None,
        runtime_s=result.exec_time_minutes * 60,
        runtime_limit_s=parse_duration(wanted.runtime) if is_own else None,
    )


def _timeout_reason(result: ResultRecord, wanted: ResourceRequirementsRecord) -> str | None:
    """Return why an attempt probably lacked time; None if it probably did not."""
    return diagnose_time(
        exit_class=result.exit_class,
        return_code=result.return_code,
        stop_reason=_stop_reason(result),
        runtime_s=result.exec_time_minutes * 60,
        runtime_limit_s=parse_duration(wanted.runtime) if wanted.name != DEFAULT_NAME else None,
    )


def _stop_reason(result: ResultRecord) -> str | None:
    """Return why a runner stopped the attempt; None if it did not."""
    reason = result.observation.get("stop_reason") if isinstance(result.observation, dict) else None
    return None if reason is None else str(reason)
