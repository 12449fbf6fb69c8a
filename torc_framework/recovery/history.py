"""The history of recoveries, with the endings of the failed attempts and of the new ones."""

from typing import Any

from attrs import asdict, frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import ResultRecord
from torc_framework.models.recovery import RecoveryEntry


@frozen
class RecoveredJob:
    """One recovery of a job, with the attempts before and after it.

    Attributes:
        failed: How the failed attempt ended; None if its result was deleted.
        after: How the last attempt of the new run ended; None if there is none yet.
    """

    entry: RecoveryEntry
    failed: ResultRecord | None
    after: ResultRecord | None

    @property
    def changes(self) -> list[str]:
        """Requests of the job that the recovery changed: old and new."""
        entry = self.entry
        pairs = (
            ("memory", entry.old_memory, entry.new_memory),
            ("runtime", entry.old_runtime, entry.new_runtime),
            ("CPUs", entry.old_num_cpus, entry.new_num_cpus),
        )
        return [f"{what} {old} -> {new}" for what, old, new in pairs if old != new]

    def as_dict(self) -> dict[str, Any]:
        """Return the entry with both endings as JSON values."""
        failed, after = self.failed, self.after
        return asdict(self.entry) | {
            "exit_class": failed and failed.exit_class,
            "return_code": failed and failed.return_code,
            "new_attempt_id": after and after.attempt_id,
            "new_status": after and after.status,
            "new_exit_class": after and after.exit_class,
        }


def recovery_history(client: TorcClient, workflow_id: int, job_id: int | None = None) -> list[RecoveredJob]:
    """Return the recoveries of a workflow's jobs, oldest first.

    Args:
        job_id: Only recoveries of this job.
    """
    entries = [each for each in client.recoveries(workflow_id) if job_id in (None, each.job_id)]
    if not entries:
        return []
    only = {} if job_id is None else {"job_id": job_id}
    results: dict[tuple[int, int, int], ResultRecord] = {}
    last: dict[tuple[int, int], ResultRecord] = {}
    for result in client.iterate(ResultRecord, workflow_id=workflow_id, all_runs=True, **only):
        results[result.job_id, result.run_id, result.attempt_id] = result
        run = (result.job_id, result.run_id)
        if run not in last or last[run].attempt_id < result.attempt_id:
            last[run] = result
    return [
        RecoveredJob(
            each, results.get((each.job_id, each.run_id, each.attempt_id)), last.get((each.job_id, each.new_run_id))
        )
        for each in entries
    ]
