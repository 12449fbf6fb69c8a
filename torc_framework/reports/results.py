"""The report of results with the paths of their logs."""

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError
from torc_framework.models.attempt_logs import attempt_logs, runner_log_name
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResultRecord, WorkflowRecord
from torc_framework.models.result_observations import has_deleted_logs, stdio_of_result

_LOGS: Final = {
    "job_stdout": "job stdout log",
    "job_stderr": "job stderr log",
    "job_runner_log": "job runner log",
    "slurm_stdout": "Slurm stdout log",
    "slurm_stderr": "Slurm stderr log",
    "slurm_env_log": "Slurm environment log",
}
"""Keys of the paths of files that every run writes, and their names in warnings."""
_BLOCK_IDS: Final = 2000
_KEPT_BLOCKS: Final = 50


@define
class ResultsReport:
    """The report as JSON values, made while it is read: it takes the same memory for any number of results.

    Attributes:
        head: What comes before the results.
        results: Each result with its logs, and warnings about files of it that do not exist.
        total: The number of results that have been read.
    """

    head: dict[str, Any]
    results: Iterator[tuple[dict[str, Any], list[str]]] = field(factory=lambda: iter(()))
    total: int = 0


def results_report(
    client: TorcClient, workflow_id: int, output_dir: Path, *, all_runs: bool = False, job_id: int | None = None
) -> ResultsReport:
    """Return the results of a workflow: the present result of each job, or with ``all_runs`` those of all attempts."""
    workflow = client.get(WorkflowRecord, workflow_id)
    head = {
        "workflow_id": workflow_id,
        "workflow_name": workflow.name,
        "workflow_user": workflow.user,
        "all_runs": all_runs,
    }
    report = ResultsReport(head)
    names = _JobNames(client, workflow_id)
    nodes = {node.id: node for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id)}

    def entries() -> Iterator[tuple[dict[str, Any], list[str]]]:
        for result in client.iterate(ResultRecord, workflow_id=workflow_id, all_runs=all_runs or None, job_id=job_id):
            node = nodes.get(result.compute_node_id)
            logs = dict(_logs(result, node, output_dir))
            report.total += 1
            warnings = [
                f"{_LOGS[key]} file does not exist for job {result.job_id}: {path}"
                for key, path in logs.items()
                if path is not None and key in _LOGS and not Path(path).exists()
            ]
            yield _entry(result, names.name_of(result.job_id), node) | logs, warnings

    report.results = entries()
    return report


class _JobNames:
    """Names of jobs, requested in blocks of ids that follow each other; the last blocks are kept."""

    def __init__(self, client: TorcClient, workflow_id: int) -> None:
        self._client, self._workflow_id = client, workflow_id
        self._blocks: dict[int, dict[int, str]] = {}

    def name_of(self, job_id: int) -> str | None:
        """Return the name of a job; None if it was deleted."""
        number = job_id // _BLOCK_IDS
        if number not in self._blocks:
            if len(self._blocks) == _KEPT_BLOCKS:
                self._blocks.pop(next(iter(self._blocks)))
            after_id = max(0, number * _BLOCK_IDS - 1)
            page = self._client.page(JobRecord, workflow_id=self._workflow_id, after_id=after_id, limit=_BLOCK_IDS)
            self._blocks[number] = {job.id or 0: job.name for job in page.items}
        found = self._blocks[number].get(job_id)
        return self._requested(job_id) if found is None else found

    def _requested(self, job_id: int) -> str | None:
        """Return the name of a job that its page lacks: the page was too large, or the server has no ``after_id``."""
        try:
            return self._client.get(JobRecord, job_id).name
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise


def _entry(result: ResultRecord, job_name: str | None, node: ComputeNodeRecord | None) -> dict[str, Any]:
    return {
        "job_id": result.job_id,
        "job_name": job_name,
        "status": result.status,
        "run_id": result.run_id,
        "attempt_id": result.attempt_id,
        "return_code": result.return_code,
        "exit_class": result.exit_class,
        "reason": result.reason,
        "stdio": stdio_of_result(result).mode,
        "logs_deleted": has_deleted_logs(result),
        "log_disk_full": isinstance(result.observation, dict) and bool(result.observation.get("log_disk_full")),
        "completion_time": result.completion_time,
        "exec_time_minutes": result.exec_time_minutes,
        "compute_node_id": result.compute_node_id,
        "compute_node_type": node.compute_node_type if node else None,
    }


def _logs(result: ResultRecord, node: ComputeNodeRecord | None, output_dir: Path) -> Iterator[tuple[str, str | None]]:
    """Yield keys and paths of the logs of an attempt; None for one that it does not have by its setting."""
    attempt = result.workflow_id, result.job_id, result.run_id, result.attempt_id
    logs = attempt_logs(output_dir, *attempt, stdio=stdio_of_result(result))
    is_deleted = has_deleted_logs(result)
    for key, path in (("job_stdout", logs.stdout), ("job_stderr", logs.stderr)):
        yield key, None if path is None or (is_deleted and not path.exists()) else str(path)
    if node is None:
        return
    scheduler = node.scheduler if isinstance(node.scheduler, dict) else {}
    label = scheduler.get("label")
    name = runner_log_name(node.hostname, result.workflow_id, result.run_id)
    yield "job_runner_log", str(output_dir / (f"job_runner_slurm_{label}.log" if label else name))
    if (slurm_job := scheduler.get("slurm_job_id")) is not None:
        slurm = f"slurm_output_wf{result.workflow_id}_sl{slurm_job}"
        yield "slurm_stdout", str(output_dir / f"{slurm}.o")
        yield "slurm_stderr", str(output_dir / f"{slurm}.e")
        if label:
            yield "slurm_env_log", str(output_dir / f"slurm_env_{label}.log")
            yield "dmesg_log", str(output_dir / f"dmesg_slurm_{label}.log")
