"""Reports on clean exits, which need neither a classifier nor a copy of the observation.

Most attempts end so. Where all classifiers have declared that they accept clean exits, their answer is known.
"""

import time

from torc_framework.exits.classifier import CLEAN_EXIT
from torc_framework.models.exchange import EndedReport
from torc_framework.models.exits import ExitObservation
from torc_framework.models.statuses import JobStatus
from torc_framework.models.stdio import Stdio
from torc_framework.runner.attempts.held_jobs import HeldJob
from torc_framework.runner.attempts.observation_values import without_defaults

_STATUS = JobStatus.COMPLETED.label
_CLASS = CLEAN_EXIT.exit_class.value


def is_clean_exit(item: HeldJob, seen: ExitObservation) -> bool:
    """Return whether exit code 0 of an attempt can have one meaning only: no stop and no output file matters."""
    return (
        seen.exit_code == 0
        and not item.job.output_files
        and not seen.missing_outputs
        and item.stop_reason is None
        and seen.stop_reason is None
        and seen.scheduler_state is None
        and seen.scheduler_reason is None
        and seen.launch_error is None
        and not seen.lost
    )


def clean_exit_report(item: HeldJob, seen: ExitObservation, stdio: Stdio) -> EndedReport:
    """Return the report on a clean exit, the same as a classification would return.

    Args:
        item: The attempt.
        seen: Its observation.
        stdio: Where its output went.
    """
    job, key = item.job, item.key
    runtime_limit_s = job.resources.runtime_s
    return EndedReport(
        job_id=key.job_id,
        attempt_id=key.attempt_id,
        status=_STATUS,
        return_code=0,
        exec_time_s=seen.runtime_s or 0.0,
        ended_at=seen.ended_at or time.time(),
        exit_code=0,
        exit_class=_CLASS,
        reason=CLEAN_EXIT.reason,
        peak_memory_bytes=seen.peak_memory_bytes,
        cpu_time_s=seen.cpu_time_s,
        observation=without_defaults(
            seen,
            clean_exit=job.clean_exit_after_stop,
            stdio=stdio.mode,
            delete_stdio_on_success=stdio.delete_on_success,
            memory_limit_bytes=None if runtime_limit_s is None else job.resources.memory_bytes,
            runtime_limit_s=runtime_limit_s,
        ),
    )
