"""The report of results with the paths of their logs."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.models.attempt_logs import STDIO_DIR, attempt_stem, log_names, runner_log_name
from torc_framework.models.records import ComputeNodeRecord, ResultRecord, WorkflowRecord
from torc_framework.models.result_observations import has_deleted_logs, stdio_of_result
from torc_framework.models.stdio import Stdio

_LOGS: Final = {
    "job_stdout": "job stdout log",
    "job_stderr": "job stderr log",
    "job_runner_log": "job runner log",
    "slurm_stdout": "Slurm stdout log",
    "slurm_stderr": "Slurm stderr log",
    "slurm_env_log": "Slurm environment log",
}
"""Keys of the paths of files that every run writes, and their names in warnings."""
_BLOCK_IDS: Final = 10_000
_KEPT_BLOCKS: Final = 20


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
    logs = _PathsOfLogs(output_dir)
    nodes = {node.id: node for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id)}

    def entries() -> Iterator[tuple[dict[str, Any], list[str]]]:
        for result in client.iterate(ResultRecord, workflow_id=workflow_id, all_runs=all_runs or None, job_id=job_id):
            node = nodes.get(result.compute_node_id)
            stdio = stdio_of_result(result)
            paths, missing = logs.of_result(result, node, stdio)
            report.total += 1
            warnings = [
                f"{_LOGS[key]} file does not exist for job {result.job_id}: {paths[key]}"
                for key in missing
                if key in _LOGS
            ]
            yield _entry(result, names.name_of(result.job_id), node, stdio) | paths, warnings

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
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) == _KEPT_BLOCKS:
                self._blocks.pop(next(iter(self._blocks)))
            first = number * _BLOCK_IDS
            found = self._client.job_names(self._workflow_id, first, first + _BLOCK_IDS - 1)
            block = self._blocks[number] = dict(zip(found.ids, found.names, strict=True))
        return block.get(job_id)


def _entry(result: ResultRecord, job_name: str | None, node: ComputeNodeRecord | None, stdio: Stdio) -> dict[str, Any]:
    return {
        "job_id": result.job_id,
        "job_name": job_name,
        "status": result.status,
        "run_id": result.run_id,
        "attempt_id": result.attempt_id,
        "return_code": result.return_code,
        "exit_class": result.exit_class,
        "reason": result.reason,
        "stdio": stdio.mode,
        "logs_deleted": has_deleted_logs(result, stdio),
        "log_disk_full": isinstance(result.observation, dict) and bool(result.observation.get("log_disk_full")),
        "completion_time": result.completion_time,
        "exec_time_minutes": result.exec_time_minutes,
        "compute_node_id": result.compute_node_id,
        "compute_node_type": node.compute_node_type if node else None,
    }


class _PathsOfLogs:
    """Paths of logs, as texts: with objects for paths, those of a million results would take a minute of CPU time.

    The logs of a runner in a run are looked for once.
    """

    def __init__(self, output_dir: Path) -> None:
        self._output_dir = output_dir
        self._stdio_dir = str(output_dir / STDIO_DIR)
        self._of_runners: dict[tuple[int | None, int], tuple[dict[str, str], list[str]]] = {}

    def of_result(
        self, result: ResultRecord, node: ComputeNodeRecord | None, stdio: Stdio
    ) -> tuple[dict[str, str | None], list[str]]:
        """Return the paths of the logs of an attempt, and the keys of those that do not exist.

        A path is None if the attempt does not have the log by its setting.
        """
        stem = attempt_stem(result.workflow_id, result.job_id, result.run_id, result.attempt_id)
        is_deleted = has_deleted_logs(result, stdio)
        paths: dict[str, str | None] = {}
        missing = []
        names = log_names(f"{self._stdio_dir}/{stem}", stdio)
        for key, path in zip(("job_stdout", "job_stderr"), names, strict=True):
            exists = path is not None and os.path.exists(path)  # noqa: PTH110 - see the class
            paths[key] = None if is_deleted and not exists else path
            if paths[key] is not None and not exists:
                missing.append(key)
        if node is None:
            return paths, missing
        at = node.id, result.run_id
        if at not in self._of_runners:
            logs = {key: str(self._output_dir / name) for key, name in _runner_logs(result, node)}
            self._of_runners[at] = logs, [key for key, path in logs.items() if not Path(path).exists()]
        of_runner, missing_of_runner = self._of_runners[at]
        return {**paths, **of_runner}, [*missing, *missing_of_runner]


def _runner_logs(result: ResultRecord, node: ComputeNodeRecord) -> Iterator[tuple[str, str]]:
    """Yield keys and file names of the logs of the runner of an attempt, and of its allocation."""
    scheduler = node.scheduler if isinstance(node.scheduler, dict) else {}
    label = scheduler.get("label")
    name = runner_log_name(node.hostname, result.workflow_id, result.run_id)
    yield "job_runner_log", f"job_runner_slurm_{label}.log" if label else name
    if (slurm_job := scheduler.get("slurm_job_id")) is not None:
        slurm = f"slurm_output_wf{result.workflow_id}_sl{slurm_job}"
        yield "slurm_stdout", f"{slurm}.o"
        yield "slurm_stderr", f"{slurm}.e"
        if label:
            yield "slurm_env_log", f"slurm_env_{label}.log"
            yield "dmesg_log", f"dmesg_slurm_{label}.log"
