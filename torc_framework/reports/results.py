"""The report of results with the paths of their logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define

from torc_framework.client import TorcClient
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


@define
class ResultsReport:
    """The report as JSON values, and warnings about files that do not exist."""

    document: dict[str, Any]
    warnings: list[str] = Factory(list)


def results_report(
    client: TorcClient, workflow_id: int, output_dir: Path, *, all_runs: bool = False, job_id: int | None = None
) -> ResultsReport:
    """Return the results of a workflow: the present result of each job, or with ``all_runs`` those of all attempts."""
    workflow = client.get(WorkflowRecord, workflow_id)
    names = {job.id: job.name for job in client.iterate(JobRecord, workflow_id=workflow_id)}
    nodes = {node.id: node for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id)}
    found = client.iterate(ResultRecord, workflow_id=workflow_id, all_runs=all_runs or None, job_id=job_id)
    report = ResultsReport({})
    entries = []
    for result in found:
        logs = dict(_logs(result, nodes.get(result.compute_node_id), output_dir))
        for key, path in logs.items():
            if path is not None and key in _LOGS and not Path(path).exists():
                report.warnings.append(f"{_LOGS[key]} file does not exist for job {result.job_id}: {path}")
        entries.append(_entry(result, names.get(result.job_id), nodes.get(result.compute_node_id)) | logs)
    report.document = {
        "workflow_id": workflow_id,
        "workflow_name": workflow.name,
        "workflow_user": workflow.user,
        "all_runs": all_runs,
        "total_results": len(entries),
        "results": entries,
    }
    return report


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
