"""The jobs of a workflow that wait for a verdict, with the ends of their last attempts and their logs."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.attempt_logs import attempt_logs
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict
from torc_framework.models.failures import Failure
from torc_framework.models.records import JobRecord, ResultRecord
from torc_framework.models.result_observations import exit_class_of, observation_of, stdio_of_result
from torc_framework.models.statuses import JobStatus
from torc_framework.models.stdio import SEPARATE

TAIL_LINES: Final = 50
"""Number of last lines of a log that are shown."""
TAIL_BYTES: Final = 32 * 1024
"""Most bytes of these lines."""
JSON_LINES: Final = 20
"""Lines at the end of standard error that JSON has for each job."""
_UNKNOWN_CODE: Final = 1


@frozen
class WaitingJob:
    """One job that waits for a verdict.

    Attributes:
        result: How its last attempt ended; None if no end was reported.
        failure: The same as plugins receive it.
    """

    job: JobRecord
    result: ResultRecord | None
    failure: Failure

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error; empty if there is no such file here."""
        return read_tail(Path(self.failure.stderr_path or ""))

    @property
    def stdout_tail(self) -> str:
        """The end of its standard output; empty if there is no such file here."""
        return read_tail(Path(self.failure.stdout_path or ""))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        failure = self.failure
        return {
            "job_id": failure.job_id,
            "name": failure.job_name,
            "attempt_id": failure.attempt_id,
            "run_id": self.result.run_id if self.result else None,
            "return_code": failure.return_code,
            "exit_class": failure.verdict.exit_class.value,
            "reason": failure.verdict.reason,
            "stderr_path": failure.stderr_path,
            "stdout_path": failure.stdout_path,
            "stdio": failure.observation.stdio,
            "stderr_tail": "".join(self.stderr_tail.splitlines(keepends=True)[-JSON_LINES:]),
        }


def waiting_jobs(
    client: TorcClient, workflow_id: int, output_dir: Path, job_ids: Collection[int] | None = None
) -> list[WaitingJob]:
    """Return the jobs of a workflow that wait for a verdict, by id.

    Args:
        output_dir: Folder of the runners' logs.
        job_ids: Only those of these that wait.
    """
    jobs = client.find(JobRecord, workflow_id=workflow_id, status=JobStatus.PENDING_FAILED.label)
    if not jobs:
        return []
    results = {
        result.job_id: result
        for result in client.iterate(ResultRecord, workflow_id=workflow_id, status=JobStatus.PENDING_FAILED.label)
    }
    run_id = client.workflow_status(workflow_id).run_id
    return [
        WaitingJob(job, results.get(job.id or 0), failure_of(job, results.get(job.id or 0), run_id, output_dir))
        for job in jobs
        if job_ids is None or job.id in job_ids
    ]


def read_tail(path: Path, lines: int = TAIL_LINES, max_bytes: int = TAIL_BYTES) -> str:
    """Return the last lines of a text file, as far as they fit into ``max_bytes``; empty if it cannot be read."""
    try:
        if not path.is_file():  # opening a pipe would block
            return ""
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - max_bytes))
            text = log.read(max_bytes).decode(errors="replace")
    except OSError:
        return ""
    kept = text.splitlines(keepends=True)
    if size > max_bytes and len(kept) > 1:
        kept = kept[1:]  # the first line is incomplete
    return "".join(kept[-lines:]) if lines > 0 else ""


def failure_of(job: JobRecord, result: ResultRecord | None, run_id: int, output_dir: Path) -> Failure:
    """Return a failed job's last attempt as plugins receive it.

    Args:
        result: How it ended; None if no end was reported.
        run_id: The present run.
        output_dir: Folder of the runners' logs.
    """
    stdio = stdio_of_result(result) if result else SEPARATE
    run_id = result.run_id if result else run_id
    logs = attempt_logs(output_dir, job.workflow_id, job.id or 0, run_id, job.attempt_id, stdio=stdio)
    return Failure(
        workflow_id=job.workflow_id,
        job_id=job.id or 0,
        job_name=job.name,
        attempt_id=job.attempt_id,
        return_code=result.return_code if result else _UNKNOWN_CODE,
        observation=observation_of(result) if result else ExitObservation(""),
        verdict=_verdict(result),
        stdout_path=None if logs.stdout is None else str(logs.stdout),
        stderr_path=None if logs.stderr is None else str(logs.stderr),
    )


def _verdict(result: ResultRecord | None) -> ExitVerdict:
    exit_class = exit_class_of(result) if result else ExitClass.UNKNOWN
    return ExitVerdict(exit_class, (result.reason if result else None) or "no end was reported")
