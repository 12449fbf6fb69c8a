"""The report on the failed jobs of a workflow: failures with the same cause are one group."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define, frozen

from torc_framework.client import TorcClient
from torc_framework.forensics.failure_causes import CANCELED, jobs_canceled_because_of
from torc_framework.forensics.job_report import LocatedLine
from torc_framework.forensics.line_ranking import lines_to_show, normalized_line
from torc_framework.forensics.log_excerpts import NO_LOGS, Excerpt, LogExcerptReader
from torc_framework.forensics.log_tails import NEVER_BEGAN
from torc_framework.forensics.past_attempts import DEFAULT_NAME, cpu_hours, is_lost_work, node_hours
from torc_framework.forensics.verdicts import verdict_of
from torc_framework.models.exits import ExitClass
from torc_framework.models.failed_jobs import FailedJobs
from torc_framework.models.records import (
    ComputeNodeRecord,
    JobRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    WorkflowRecord,
)
from torc_framework.models.result_observations import observation_of
from torc_framework.models.statuses import JobStatus
from torc_framework.next_step import NextStep, executor_option, next_step, repeat_step, runs_on_nodes
from torc_framework.plugins.manager import PluginManager

MOST_NAMES: Final = 5
"""Most names of jobs of a group that are kept."""


@frozen
class FailureSignature:
    """The features that the failures of one group share.

    Attributes:
        exit_class: Their exit class.
        return_code: Their return code.
        sign: Their decisive log line, or else their reason, without numbers, folders and names of jobs.
        request: The jobs' requirements: CPUs, memory, run time, GPUs, nodes.
    """

    exit_class: ExitClass
    return_code: int | None
    sign: str
    request: tuple[int, str, str, int, int] | None


@define
class FailureGroup:
    """Failures with one cause.

    Attributes:
        job_ids: The jobs that failed, in order.
        job_names: Names of the first of them.
        canceled_ids: The jobs that were canceled because of them.
        canceled_names: Names of the first of these.
        last_lines: Lines of the log of the first of them whose log has some.
        reason: Why the first of them failed.
        example: The decisive line of the first of them whose log has one.
        no_logs: Why none of them has a log, by a setting of theirs; None if there is no such setting.
        confidence: The least confidence in any of the verdicts.
    """

    signature: FailureSignature
    reason: str
    next: NextStep
    job_ids: list[int] = Factory(list)
    job_names: list[str] = Factory(list)
    canceled_ids: list[int] = Factory(list)
    canceled_names: list[str] = Factory(list)
    last_lines: tuple[str, ...] = ()
    example_job: JobRecord | None = None
    example: LocatedLine | None = None
    no_logs: str | None = None
    confidence: float = 1.0
    lost_cpu_hours: float = 0.0

    @property
    def size(self) -> int:
        """The number of failed and canceled jobs."""
        return len(self.job_ids) + len(self.canceled_ids)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = ("num_cpus", "memory", "runtime", "num_gpus", "num_nodes")
        job = self.example_job
        return {
            "verdict": self.signature.exit_class.value,
            "return_code": self.signature.return_code,
            "reason": self.reason,
            "confidence": self.confidence,
            "sign": self.signature.sign,
            "failed_jobs": len(self.job_ids),
            "canceled_jobs": len(self.canceled_ids),
            "request": self.signature.request and dict(zip(names, self.signature.request, strict=True)),
            "example": job and {"job_id": job.id, "job_name": job.name, "log": self.example and self.example.as_dict()},
            "job_ids": self.job_ids,
            "job_names": self.job_names,
            "last_lines": list(self.last_lines),
            "canceled_job_ids": self.canceled_ids,
            "lost_cpu_hours": self.lost_cpu_hours,
            "next": self.next.as_dict(),
        }


@frozen
class WorkflowReport:
    """The report on the failed jobs of a workflow.

    Attributes:
        groups: Groups of failures, the largest first.
        canceled_otherwise: Number of jobs that a person canceled, not a failure of another job.
        lost_cpu_hours: CPU-hours of all attempts, in all runs, whose work was lost.
        retried_cpu_hours: The part of these in jobs that are not failed now.
        logs_read: Number of failed jobs with a log that could be read.
        never_began: Number of failed jobs that have no log because they never began.
        not_kept: Number of failed jobs that have no log because their output goes to no file.
        interrupted_jobs: Number of jobs that ended only because their runner had to end.
        next: The next step of the workflow, its causes having been shown; None if nothing is left to do.
    """

    workflow: WorkflowRecord
    counts: Mapping[str, int]
    groups: tuple[FailureGroup, ...]
    canceled_otherwise: int
    lost_cpu_hours: float
    retried_cpu_hours: float
    logs_read: int
    never_began: int
    not_kept: int
    interrupted_jobs: int = 0
    next: NextStep | None = None

    @property
    def failed_jobs(self) -> int:
        """The number of jobs that failed."""
        return sum(len(group.job_ids) for group in self.groups)

    @property
    def canceled_jobs(self) -> int:
        """The number of jobs that were canceled because of them."""
        return sum(len(group.canceled_ids) for group in self.groups)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "kind": "workflow",
            "workflow_id": self.workflow.id,
            "workflow_name": self.workflow.name,
            "total_jobs": sum(self.counts.values()),
            "jobs_by_status": dict(self.counts),
            "failed_jobs": self.failed_jobs,
            "canceled_jobs": self.canceled_jobs,
            "canceled_otherwise": self.canceled_otherwise,
            "failed_jobs_with_logs": self.logs_read,
            "failed_jobs_that_never_began": self.never_began,
            "failed_jobs_without_kept_output": self.not_kept,
            "interrupted_jobs": self.interrupted_jobs,
            "next": self.next and self.next.as_dict(),
            "next_command": self.next and self.next.command,
            "lost_cpu_hours": self.lost_cpu_hours,
            "retried_cpu_hours": self.retried_cpu_hours,
            "groups": [group.as_dict() for group in self.groups],
        }


def explain_workflow(
    client: TorcClient, plugins: PluginManager, workflow_id: int, *, output_dir: Path | None = None
) -> WorkflowReport:
    """Return the report on the failed jobs of a workflow.

    Args:
        client: The server.
        plugins: Classifiers, which give the confidence of a verdict, and log patterns.
        workflow_id: The workflow.
        output_dir: Folder of the logs; by default the ones that the runners wrote to.
    """
    workflow = client.get(WorkflowRecord, workflow_id)
    wanted = {each.id or 0: each for each in client.iterate(ResourceRequirementsRecord, workflow_id=workflow_id)}
    nodes = {node.id or 0: node for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id)}
    reader = LogExcerptReader(plugins.log_patterns(), nodes, output_dir)
    on_nodes = runs_on_nodes(client, workflow_id)
    executor = executor_option(client, workflow_id, plugins.executors)
    grouping = _FailureGrouping(plugins, reader, wanted, on_nodes=on_nodes, executor=executor)
    for page in client.failed_jobs(workflow_id):
        _add_page(grouping, page, wanted)
    groups = sorted(grouping.groups.values(), key=lambda group: -len(group.job_ids))
    progress = client.progress(workflow_id)
    counts = Counter(progress.overview.counts)
    if counts[CANCELED] and groups:
        _add_canceled(client, workflow_id, groups)
    for group in groups:
        grouping.set_example(group)
    failed_hours = sum(group.lost_cpu_hours for group in groups)
    retried_hours = sum(
        node_hours(lost.exec_time_minutes, wanted.get(lost.resource_requirements_id or 0))
        for lost in client.lost_work(workflow_id)
    )
    return WorkflowReport(
        workflow,
        dict(sorted(counts.items())),
        tuple(sorted(groups, key=lambda group: (-group.size, group.job_ids[0]))),
        counts[CANCELED] - sum(len(group.canceled_ids) for group in groups),
        failed_hours + retried_hours,
        retried_hours,
        grouping.logs_read,
        grouping.never_began,
        grouping.not_kept,
        progress.overview.interrupted,
        next_step(client, progress, plugins.executors, causes_shown=True),
    )


def _add_page(grouping: "_FailureGrouping", page: FailedJobs, wanted: Mapping[int, ResourceRequirementsRecord]) -> None:
    """Group the failures of some jobs."""
    results: dict[int, list[ResultRecord]] = {}
    for result in page.results:
        results.setdefault(result.job_id, []).append(result)
    for job in page.jobs:
        attempts = results.get(job.id or 0, [])
        needs = wanted.get(job.resource_requirements_id or 0)
        hours = sum(cpu_hours(each, needs) for each in attempts if is_lost_work(each))
        last = max(attempts, key=lambda each: (each.run_id, each.attempt_id), default=None)
        grouping.add(job, last, hours)


def _add_canceled(client: TorcClient, workflow_id: int, groups: Sequence[FailureGroup]) -> None:
    """Add to groups of failures the jobs that were canceled because of them."""
    canceled, members = client.waiting_jobs(workflow_id, only_canceled=True), client.group_members(workflow_id)
    found = jobs_canceled_because_of([each.job_ids for each in groups], canceled, members)
    for group, ids in zip(groups, found, strict=True):
        group.canceled_ids = ids
        group.canceled_names = [client.get(JobRecord, id_).name for id_ in ids[:MOST_NAMES]]


class _FailureGrouping:
    """Groups failures by their signature."""

    def __init__(
        self,
        plugins: PluginManager,
        reader: LogExcerptReader,
        wanted: Mapping[int, ResourceRequirementsRecord],
        *,
        on_nodes: bool,
        executor: str,
    ) -> None:
        self._plugins, self._reader, self._wanted = plugins, reader, wanted
        self._on_nodes = on_nodes
        self._executor = executor
        self._examples: dict[FailureSignature, Excerpt] = {}
        self.groups: dict[FailureSignature, FailureGroup] = {}
        self.logs_read = self.never_began = self.not_kept = 0

    def add(self, job: JobRecord, result: ResultRecord | None, hours: float) -> None:
        """Add a failed job to its group; a job whose result was deleted is grouped by its status."""
        if result is None:
            signature = FailureSignature(ExitClass.UNKNOWN, None, "it has no result", self._request(job))
            self._group(signature, "it has no result", job, 0.0, hours)
            return
        verdict = verdict_of(result, self._plugins, observation_of(result))
        excerpt = self._reader.read_decisive_end(result)
        best = excerpt.best
        sign = normalized_line(best.text if best else verdict.reason, job.name)
        signature = FailureSignature(verdict.exit_class, result.return_code, sign, self._request(job))
        self._group(signature, verdict.reason, job, verdict.confidence, hours)
        self.logs_read += excerpt.trouble is None
        self.never_began += excerpt.trouble is not None and result.exit_class in NEVER_BEGAN
        if excerpt.trouble == NO_LOGS and result.exit_class not in NEVER_BEGAN:
            self.not_kept += 1
            self.groups[signature].no_logs = NO_LOGS
        if best is not None:
            self._examples.setdefault(signature, excerpt)

    def _request(self, job: JobRecord) -> tuple[int, str, str, int, int] | None:
        needs = self._wanted.get(job.resource_requirements_id or 0)
        if needs is None or needs.name == DEFAULT_NAME:
            return None
        return (needs.num_cpus, needs.memory, needs.runtime, needs.num_gpus, needs.num_nodes)

    def _group(self, signature: FailureSignature, reason: str, job: JobRecord, confidence: float, hours: float) -> None:
        group = self.groups.get(signature)
        if group is None:
            group = self.groups[signature] = FailureGroup(
                signature, reason, self._next(signature, job), example_job=job
            )
        group.job_ids.append(job.id or 0)
        if len(group.job_names) < MOST_NAMES:
            group.job_names.append(job.name)
        group.confidence = min(group.confidence, confidence)
        group.lost_cpu_hours += hours

    def _next(self, signature: FailureSignature, job: JobRecord) -> NextStep:
        if job.status == JobStatus.PENDING_FAILED.label:
            command = f"torc pending list {job.workflow_id}"
            return NextStep(command, "shows the failures that wait for a verdict")
        classes = [signature.exit_class.value]
        return repeat_step(job.workflow_id, classes, on_nodes=self._on_nodes, executor=self._executor)

    def set_example(self, group: FailureGroup) -> None:
        """Set the example of a group to its line with the number in the log."""
        excerpt = self._examples.get(group.signature)
        if excerpt is not None and (line := self._reader.with_line_number(excerpt)) is not None:
            group.example = LocatedLine(excerpt.path, line)
            group.last_lines = tuple(each.text for each in lines_to_show(excerpt.lines))
