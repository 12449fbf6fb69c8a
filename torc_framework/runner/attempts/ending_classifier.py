"""Turns the observed end of an attempt into a report: its class, the job's status, and whether the job runs again."""

import json
import random
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from torc_framework.executors import AttemptKey
from torc_framework.exits.classifier import exit_return_code, status_of
from torc_framework.exits.failure_rules import RULE_STATUSES, attempts_allowed, choose_rule, retry_delay_s
from torc_framework.models.exchange import ClaimedJob, EndedReport, RetryRequest
from torc_framework.models.exits import CleanExit, ExitClass, ExitObservation, ExitVerdict, StopReason
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES, Failure, FailureRule, RuleAction
from torc_framework.models.statuses import JobStatus
from torc_framework.models.stdio import SEPARATE
from torc_framework.runner.attempts.clean_exits import clean_exit_report, is_clean_exit
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob, all_outputs_written
from torc_framework.runner.attempts.log_space import LogSpace
from torc_framework.runner.attempts.observation_values import without_defaults
from torc_framework.runner.process.settings import FailureNotice

LOST_ATTEMPTS: Final = 3
"""Attempts in all that a job gets if their ends were not observed, or were not caused by the job."""


class EndingPlugins(Protocol):
    """The plugin manager, as far as endings need it."""

    def classify(self, observation: ExitObservation) -> ExitVerdict:
        """Return the class of an ending, with its reason."""

    def match_failure(self, rule: FailureRule, failure: Failure) -> RuleAction | None:
        """Return the action of a rule, or None if the rule does not cover the failure."""


@frozen
class ClassifiedEnding:
    """An ended attempt, ready to be reported.

    Attributes:
        script: The recovery script to run if a retry is granted; None if there is none.
    """

    report: EndedReport
    script: str | None = None


class EndingClassifier:
    """Classifies ended attempts, and decides by the job's failure rules whether to ask for another.

    Args:
        plugins: Exit classifiers and failure matchers.
        attempts: Knows the paths of the attempts' logs.
        workflow_id: The workflow.
        use_pending_failed: Failures that no rule covers wait for a verdict.
        accepts_clean_exits: No classifier has to be asked about a clean exit.
        checks_outputs: Returns whether an executor looks for output files itself, by its name.
    """

    def __init__(
        self,
        plugins: EndingPlugins,
        attempts: AttemptFactory,
        workflow_id: int,
        *,
        use_pending_failed: bool,
        accepts_clean_exits: bool = False,
        checks_outputs: Callable[[str], bool] = lambda _executor: False,
    ) -> None:
        self._plugins, self._attempts, self._checks_outputs = plugins, attempts, checks_outputs
        self._workflow_id, self._use_pending_failed = workflow_id, use_pending_failed
        self._accepts_clean_exits = accepts_clean_exits
        self._log_space = LogSpace(attempts.log_folder)
        self.cut_logs = 0
        """Attempts that ended while the file system of their logs was full."""

    def classify(self, item: HeldJob, seen: ExitObservation) -> ClassifiedEnding:
        """Return the report on an ended attempt.

        Missing output files count only after exit code 0: a failed attempt is expected to lack some. Files that the
        launcher missed count too, and so does the reason for which it stopped the attempt: it ran on another machine.
        Where the executor looks for output files itself, its observation alone counts, and the runner only reports the
        modification times of those that it sees.
        """
        job = item.job
        if self._accepts_clean_exits and is_clean_exit(item, seen) and not self._log_space.is_full():
            return ClassifiedEnding(clean_exit_report(item, seen, self._attempts.stdio(job)))
        mtimes, missing = self._attempts.modification_times(job) if job.output_files and not seen.lost else ({}, [])
        are_written = all_outputs_written(job, mtimes, seen.started_at)
        if self._checks_outputs(item.executor):
            are_written, missing = seen.outputs_written, []
        has_limits = job.resources.runtime_s is not None  # else the job has no requirements of its own
        log_disk_full = not seen.lost and seen.launch_error is None and self._log_space.is_full()
        self.cut_logs += log_disk_full
        is_stopped_clean = item.stop_reason is not None and seen.exit_code == 0
        missed = tuple(dict.fromkeys((*seen.missing_outputs, *missing))) if seen.exit_code == 0 else ()
        seen = _with_changes(
            seen,
            stop_reason=item.stop_reason or seen.stop_reason,
            stop_cause=item.stop_cause,
            stop_forced=item.stop_forced or seen.stop_forced,
            clean_exit=_clean_exit(item),
            log_disk_full=log_disk_full,
            outputs_written=is_stopped_clean and are_written,
            missing_outputs=missed,
            memory_limit_bytes=job.resources.memory_bytes if has_limits else None,
            runtime_limit_s=job.resources.runtime_s,
        )
        stdio = self._attempts.stdio(job)
        if stdio != SEPARATE:
            seen = evolve(seen, stdio=stdio.mode, delete_stdio_on_success=stdio.delete_on_success)
        verdict = self._plugins.classify(seen)
        status = status_of(verdict, item.stop_reason)
        report = EndedReport(
            job_id=item.key.job_id,
            attempt_id=item.key.attempt_id,
            status=status.label,
            return_code=exit_return_code(seen, verdict),
            exec_time_s=seen.runtime_s or 0.0,
            ended_at=seen.ended_at or time.time(),
            exit_code=seen.exit_code,
            signal=seen.signal,
            exit_class=verdict.exit_class.value,
            reason=verdict.reason,
            peak_memory_bytes=seen.peak_memory_bytes,
            cpu_time_s=seen.cpu_time_s,
            observation=without_defaults(seen),
            file_mtimes=dict(mtimes) or None,
            interrupted=status is JobStatus.TERMINATED and _is_interruption(verdict, item.stop_reason),
        )
        return ClassifiedEnding(report, self._decide(item, seen, verdict, report))

    def notice(self, item: HeldJob, report: EndedReport) -> FailureNotice:
        """Return the notice of a failed attempt."""
        stdio = self._attempts.stdio(item.job)
        return FailureNotice(item.job.name, report, stdio, self._attempts.log_paths(item.key, stdio)[1])

    def lost_report(self, job: ClaimedJob, executor: str) -> EndedReport:
        """Return the report on an attempt whose end no process saw."""
        item = HeldJob(job, executor, AttemptKey(job.id, job.attempt_id))
        return self.classify(item, ExitObservation(executor, lost=True)).report

    def _decide(self, item: HeldJob, seen: ExitObservation, verdict: ExitVerdict, report: EndedReport) -> str | None:
        """Request another attempt, or a verdict, according to the job's rules and the workflow.

        Returns:
            The recovery script that runs before the next attempt; None if there is none.
        """
        if seen.lost:
            report.lost, report.retry = True, RetryRequest(LOST_ATTEMPTS, reason=verdict.reason)
            return None
        if report.status not in RULE_STATUSES or report.interrupted or item.stop_reason is StopReason.CANCELED:
            return None
        rule, action = self._matching_rule(item, seen, verdict, report.return_code)
        if action is None and verdict.exit_class in SEPARATE_BUDGET_CLASSES:
            report.retry = RetryRequest(LOST_ATTEMPTS, reason=verdict.reason)
            return None
        if action is None and self._use_pending_failed:
            report.status = JobStatus.PENDING_FAILED.label
        if action is RuleAction.COMPLETE:
            report.status = JobStatus.COMPLETED.label
        if action is not RuleAction.RETRY:
            return None
        script: str | None = rule.get("recovery_script")
        report.retry = RetryRequest(
            attempts_allowed(rule),
            hold=script is not None,
            reason=f"failure rule {json.dumps(rule)}",
            delay_s=retry_delay_s(rule, item.key.attempt_id, random.uniform(-1, 1)),
        )
        return script

    def _matching_rule(
        self, item: HeldJob, seen: ExitObservation, verdict: ExitVerdict, return_code: int
    ) -> tuple[FailureRule, RuleAction | None]:
        """Return the first rule that covers a failure, and its action; None as action if no rule does."""
        if not item.job.failure_rules:
            return {}, None
        stdout_path, stderr_path = self._attempts.log_paths(item.key, self._attempts.stdio(item.job))
        failure = Failure(
            workflow_id=self._workflow_id,
            job_id=item.job.id,
            job_name=item.job.name,
            attempt_id=item.key.attempt_id,
            return_code=return_code,
            observation=seen,
            verdict=verdict,
            stdout_path=stdout_path,
            stderr_path=stderr_path,
        )
        rules = _read_rules(item.job.failure_rules)
        found = choose_rule(rules, return_code, lambda rule: self._plugins.match_failure(rule, failure))
        return found or ({}, None)


def _clean_exit(item: HeldJob) -> CleanExit:
    """Return what exit code 0 means for a job; without a SIGTERM first, the job has completed by itself."""
    if item.stop_reason is StopReason.SHUTDOWN and not item.job.supports_termination:
        return "completed"
    return item.job.clean_exit_after_stop


def _is_interruption(verdict: ExitVerdict, stop_reason: StopReason | None) -> bool:
    """Return whether the next runner continues the job, independent of the class of the ending."""
    return verdict.exit_class is ExitClass.INTERRUPTED or stop_reason is StopReason.SHUTDOWN


def _read_rules(text: str) -> list[FailureRule]:
    """Return the rules of a failure handler; a text that another client stored may hold no rules."""
    try:
        rules = json.loads(text)
    except ValueError:
        return []
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def _with_changes(seen: ExitObservation, **values: Any) -> ExitObservation:
    """Return an observation with these values; the same one, without the cost of a copy, if it has all of them."""
    changed = {name: value for name, value in values.items() if value != getattr(seen, name)}
    return evolve(seen, **changed) if changed else seen
