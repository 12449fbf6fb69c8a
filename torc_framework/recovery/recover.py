"""One recovery of a workflow: end orphans, ask the policies, run the hook, and reset the jobs in one call."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, asdict, define, field, frozen

from torc_framework.allocations.allocators import context_without_runner
from torc_framework.allocations.records import open_allocations
from torc_framework.allocations.release import release_allocations
from torc_framework.client import TorcClient
from torc_framework.errors import UserError
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.records import WorkflowRecord
from torc_framework.models.recovery import RecoveryAction, RecoveryOrder, RecoveryReceipt
from torc_framework.next_step import next_step_text
from torc_framework.pending import PendingClassification
from torc_framework.recovery import ReportLine
from torc_framework.recovery.decision_table import decision_lines
from torc_framework.recovery.decisions import JobDecision, decide, repair_of
from torc_framework.recovery.failed_jobs import failed_cases
from torc_framework.recovery.orphans import OrphanFindings, sync_status
from torc_framework.recovery.recovery_hook import run_hook, split_hook
from torc_framework.recovery.resource_ceilings import ResourceCeilings
from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

MEMORY_MULTIPLIER: Final = 1.5
RECOVER_RUNTIME_MULTIPLIER: Final = 1.4
"""Growth of run times in ``torc recover`` (the default of NREL's Torc)."""
WATCH_RUNTIME_MULTIPLIER: Final = 1.5
"""The same in ``torc watch``."""
LEAVING_S: Final = 60.0
"""How long a recovery waits for runners of a complete workflow to end."""
LOOK_S: Final = 2.0


@frozen
class RecoveryOptions:
    """Options of a recovery.

    Attributes:
        retry_unknown: Run failures again on which no policy decides.
        hook: Command that is run if there are such failures; they run again after it.
        output_dir: Folder of the runners' logs.
        policies: Values of the options that policies offer, by name.
        judge: Gives verdicts on jobs that wait for one, or in a dry run returns which it would give; None gives none.
    """

    memory_multiplier: float = MEMORY_MULTIPLIER
    runtime_multiplier: float = RECOVER_RUNTIME_MULTIPLIER
    retry_unknown: bool = False
    hook: str | None = None
    output_dir: Path = Path("output")
    policies: Mapping[str, Any] = field(factory=dict)
    judge: Callable[[bool], PendingClassification] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Values that policies receive in `FailedJob.settings`."""
        multipliers = {"memory_multiplier": self.memory_multiplier, "runtime_multiplier": self.runtime_multiplier}
        return {**self.policies, **multipliers}


@define
class Recovery:
    """The outcome of one recovery.

    Attributes:
        orphans: Runners that are gone, and their jobs.
        decided: The decision on every failed job.
        receipt: What the server did, or in a dry run would do; None if there was nothing to do.
        judged: The verdicts on jobs that waited for one; None if no plugin was asked.
    """

    workflow_id: int
    dry_run: bool
    orphans: OrphanFindings | None = None
    decided: list[JobDecision] = Factory(list)
    receipt: RecoveryReceipt | None = None
    judged: PendingClassification | None = None

    @property
    def goes_on(self) -> bool:
        """Whether jobs run again, because of a repair or a verdict."""
        return bool(self.retried) or any(v.action == "retry" for v in (self.judged.verdicts if self.judged else ()))

    def fixed(self, cause: str) -> int:
        """Return how many jobs run again that failed for this cause."""
        return sum(each.is_retry and cause in each.decision.causes for each in self.decided)

    @property
    def retried(self) -> list[JobDecision]:
        """The jobs that run again."""
        return [each for each in self.decided if each.is_retry]

    @property
    def unknown(self) -> list[JobDecision]:
        """The jobs on whose failures no policy decided."""
        return [each for each in self.decided if each.is_unknown]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        actions = Counter(each.decision.action for each in self.decided)
        return {
            "workflow_id": self.workflow_id,
            "dry_run": self.dry_run,
            "run_id": self.receipt.run_id if self.receipt else None,
            "failed_jobs": len(self.decided),
            "oom_fixed": self.fixed("oom"),
            "timeout_fixed": self.fixed("timeout"),
            "unknown": len(self.unknown),
            "retried": len(self.retried),
            "cannot_grow": actions[RecoveryAction.CANNOT_GROW],
            "reset_count": self.receipt.reset_count if self.receipt else 0,
            "orphaned_jobs": len(self.orphans.jobs) if self.orphans else 0,
            "jobs": [each.as_dict() for each in self.decided],
            "recovered": [asdict(entry) for entry in self.receipt.entries] if self.receipt else [],
            "judged": [asdict(verdict) for verdict in self.judged.verdicts] if self.judged else [],
        }


class WorkflowRecoverer:
    """Recovers one workflow.

    Args:
        executor_options: Values of executors' options, by executor and option.
        report: Gets a line about everything that happens.
        profiles: Returns the clusters in which partitions are looked up; if it returns None, those of the plugins are.
    """

    def __init__(
        self,
        client: TorcClient,
        plugins: "PluginManager",
        workflow_id: int,
        options: RecoveryOptions,
        report: ReportLine,
        *,
        executor_options: Mapping[str, Mapping[str, Any]] | None = None,
        profiles: Callable[[], Mapping[str, HpcProfile] | None] = lambda: None,
    ) -> None:
        self._client, self._plugins, self._workflow_id = client, plugins, workflow_id
        self._options, self._report, self._executor_options = options, report, executor_options or {}
        self._profiles = profiles
        if options.hook is not None:
            split_hook(options.hook)  # raises before anything is changed

    def recover(self, *, dry_run: bool = False) -> Recovery:
        """Recover the workflow once.

        Raises:
            UserError: no job failed.
            OperatorError: the server refused, or the hook failed; no job was reset.
        """
        found = Recovery(self._workflow_id, dry_run)
        found.orphans = self._end_orphans(dry_run=dry_run)
        if not dry_run and self._client.is_complete(self._workflow_id).is_complete:
            self._end_allocations()
        if self._options.judge is not None:
            found.judged = self._judged(self._options.judge(dry_run))
            if found.goes_on and not dry_run:  # other failures are recovered when these jobs are over
                return found
        order = RecoveryOrder(self._client.workflow_status(self._workflow_id).run_id, [], dry_run=True)
        self._refuse_interrupted()
        must_wait = dry_run and bool(found.orphans.compute_node_ids or found.orphans.allocation_ids)
        if not must_wait:
            self._client.recover(self._workflow_id, order)  # refused unless it is complete and has no active runner
        found.decided = self._decide()
        if not found.decided:
            raise UserError(f"workflow {self._workflow_id} has no failed job: there is nothing to recover")
        self._explain(found)
        if not found.retried:
            self._explain_nothing(found)
            return found
        order.repairs = [repair_of(each) for each in found.retried]
        if must_wait:
            self._report("Orphaned jobs would be ended first, and then all looked at again. Nothing was changed.")
            return found
        found.receipt = self._client.recover(self._workflow_id, order)
        has_hook = self._options.hook is not None and found.unknown
        if dry_run:
            if has_hook:
                self._report(f"Would run the recovery hook: {self._options.hook} {self._workflow_id}")
            self._report("Nothing was changed.")
            return found
        if has_hook:
            self._run_hook(len(found.unknown))
        order.dry_run = False
        found.receipt = self._client.recover(self._workflow_id, order)
        self._report(_recovered_text(found, found.receipt))
        return found

    def _refuse_interrupted(self) -> None:
        """Refuse a workflow with interrupted jobs: it needs a runner and no recovery.

        Raises:
            UserError: jobs were interrupted.
        """
        client, id_ = self._client, self._workflow_id
        count = client.job_counts(id_).interrupted
        if count and not client.is_complete(id_).is_canceled:
            step = next_step_text(client, id_, self._plugins.executors, count)
            raise UserError(f"workflow {id_} was interrupted and needs no recovery: {step}")

    def _judged(self, judged: PendingClassification) -> PendingClassification:
        would = "would be " if judged.dry_run else ""
        for verdict in judged.verdicts:
            done = "retried" if verdict.action == "retry" else "failed"
            self._report(
                f"  Job {verdict.job_id} ({verdict.job_name}) {would}{done} by {verdict.judge}: {verdict.reason}"
            )
        for left in judged.left:
            self._report(f"  Job {left.job_id} ({left.job_name}) waits for a person: {left.reason}")
        return judged

    def _end_orphans(self, *, dry_run: bool) -> OrphanFindings:
        found = sync_status(self._client, self._plugins, self._executor_options, self._workflow_id, dry_run=dry_run)
        for note in found.notes:
            self._report(f"Warning: {note}")
        for job in found.jobs:
            self._report(f"  Job {job.job_id} ({job.job_name}) is orphaned: {job.reason}")
        return found

    def _end_allocations(self) -> None:
        """Give back the waiting allocations of a complete workflow, and wait until the others have ended."""
        client, id_ = self._client, self._workflow_id
        deadline, reported = time.monotonic() + LEAVING_S, set[str]()
        while (there := open_allocations(client, id_)) and time.monotonic() < deadline:
            if waiting := [each for each in there if each.status == "pending"]:
                context = context_without_runner(client, id_)
                done = release_allocations(client, waiting, self._plugins, self._executor_options, context)
                for note in done.notes:
                    if note not in reported:
                        self._report(f"Warning: {note}")
                reported.update(done.notes)
                if done.released:
                    self._report(
                        f"Gave back {count_text(len(done.released), 'allocation')} that the workflow no longer needs"
                    )
                    continue
            time.sleep(LOOK_S)
            sync_status(client, self._plugins, self._executor_options, id_)

    def _decide(self) -> list[JobDecision]:
        profiles = self._profiles() or self._plugins.hpc_profiles()
        ceilings = ResourceCeilings.of_workflow(self._client, self._workflow_id, profiles)
        options = self._options
        cases = failed_cases(self._client, self._workflow_id, ceilings, options.settings, options.output_dir)
        return decide(self._plugins, cases, retry_unknown=options.retry_unknown, has_hook=options.hook is not None)

    def _explain(self, found: Recovery) -> None:
        name = self._client.get(WorkflowRecord, self._workflow_id).name
        failed = count_text(len(found.decided), "failed job")
        self._report(f"{one_line(name)} (workflow {self._workflow_id}): {failed}")
        for line in decision_lines(found.decided):
            self._report(line)

    def _explain_nothing(self, found: Recovery) -> None:
        left = len(found.unknown)
        causes = f" {count_text(left, 'job')} failed with unknown causes." if left else ""
        self._report(f"No recoverable jobs found.{causes}")
        if left:
            self._report("Use --retry-unknown to retry jobs with unknown failure causes.")

    def _run_hook(self, count: int) -> None:
        hook = self._options.hook or ""
        self._report(f"{count_text(count, 'job')} failed with an unknown cause: running the recovery hook: {hook}")
        run_hook(hook, self._workflow_id, self._client.environment, self._report)


def _recovered_text(found: Recovery, receipt: RecoveryReceipt) -> str:
    """Return the sentence on what was recovered, with the jobs that depend on the recovered ones."""
    count, total = len(found.retried), len(found.decided)
    which = f"{count:,} of {count_text(total, 'job')}" if count < total else count_text(total, "job")
    text = f"Recovered {which}: {'it is' if count == 1 else 'they are'} ready to run again"
    after = receipt.reset_count - count
    return (
        f"{text}, and {count_text(after, 'job')} after {'it' if count == 1 else 'them'}." if after > 0 else f"{text}."
    )
