"""One job as text: its state, its attempts side by side against what it requests, its command and its neighbours."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torc_framework.client import TorcClient
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.monitoring.context import WorkContext
from torc_framework.text.quantities import count_text, duration_text, size_text
from torc_framework.text.status_text import STATUS_LOOKS
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.looks import fitted
from torc_framework.tui.tables.record_tables import time_text

_MOST_ATTEMPTS: Final = 5
_COLUMN: Final = 20
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def job_text(context: WorkContext, client: TorcClient, workflow_id: int, job_id: int) -> str:
    """Return what is known of a job; at most four requests."""
    from torc_framework.monitoring.log_files import attempts

    job = client.get(JobRecord, job_id)
    found = attempts(context, client, workflow_id, job_id)
    asked = None
    if job.resource_requirements_id is not None:
        asked = client.get(ResourceRequirementsRecord, job.resource_requirements_id)
    look = STATUS_LOOKS.get(job.status or "")
    lines = [f"{look.glyph if look else ' '} {one_line(job.name)} (job {job_id})  {look.word if look else job.status}"]
    if asked is not None:
        lines.append(
            f"Requests {asked.num_cpus} CPUs, {asked.memory} memory, {asked.num_gpus} GPUs, {asked.num_nodes} nodes, "
            f"{asked.runtime} ({one_line(asked.name)})"
        )
    lines += ["", "Command", *(f"  {line}" for line in job.command.split("\n"))]
    if job.depends_on_job_ids:
        ids = ", ".join(str(each) for each in job.depends_on_job_ids[:20])
        lines.append(f"Waits for {count_text(len(job.depends_on_job_ids), 'job')}: {ids}")
    lines += ["", *_attempt_lines(found["attempts"], asked), "", "e explain   W why failed   l logs"]
    return "\n".join(lines)


def _attempt_lines(found: Sequence[Mapping[str, Any]], asked: ResourceRequirementsRecord | None) -> list[str]:
    """Return the attempts as columns, the newest at the left."""
    if not found:
        return ["It has not run."]
    shown = [*reversed(found)][:_MOST_ATTEMPTS]
    rows: dict[str, list[str]] = {
        "Run, attempt": [f"{each['run_id']}, {each['attempt_id']}" for each in shown],
        "Status": [str(each["status"]).replace("_", " ") for each in shown],
        "Ending": [one_line(each["exit_class"] or "") for each in shown],
        "Host": [one_line(each["hostname"] or "") for each in shown],
    }
    results = [each["result"] for each in shown]
    memory = None if asked is None else parse_memory(asked.memory)
    runtime = None if asked is None else parse_duration(asked.runtime)
    rows["Return code"] = ["" if each is None else str(each.return_code) for each in results]
    rows["Ended"] = ["" if each is None else time_text(each.completion_time) for each in results]
    for title, cell in _USES.items():
        rows[title] = ["" if each is None else cell(each, memory, runtime) for each in results]
    head = f"{count_text(len(found), 'attempt')}, newest first; the block is the share of what was requested"
    lines = [head]
    for title, values in rows.items():
        if any(values):
            lines.append(f"  {fitted(title, 13)} " + " ".join(fitted(value, _COLUMN) for value in values).rstrip())
    for each in results:
        if each is not None and each.reason:
            lines.append(f"  {each.run_id}, {each.attempt_id}: {one_line(each.reason)}")
    return lines


def _time(result: ResultRecord, _memory: float | None, runtime: float | None) -> str:
    seconds = 60 * result.exec_time_minutes
    return f"{duration_text(seconds)} {share(seconds, runtime)}"


def _peak(result: ResultRecord, memory: float | None, _runtime: float | None) -> str:
    peak = result.peak_memory_bytes
    return "" if peak is None else f"{size_text(peak)} {share(peak, memory)}"


def _cpu(result: ResultRecord, _memory: float | None, _runtime: float | None) -> str:
    return "" if result.avg_cpu_percent is None else f"{result.avg_cpu_percent:.0f}%"


_USES: Final = {"Time": _time, "Peak memory": _peak, "Mean CPU": _cpu}
"""What an attempt used, by title; of memory and time with the share of the request."""


def share(used: float, requested: float | None) -> str:
    """Return a share of a request as a block of eight heights; ``!`` beyond the request."""
    if not requested:
        return ""
    return "!" if used > requested else _BLOCKS[min(7, int(8 * used / requested))]
