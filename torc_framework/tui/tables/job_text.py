"""One job as lines: its state, its attempts side by side against what it requests, its command and its neighbours."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torc_framework.client import TorcClient
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.monitoring.context import WorkContext
from torc_framework.text.quantities import count_text, duration_text, size_text
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened, text_width
from torc_framework.tui.tables.lines_pane import Line, wrapped
from torc_framework.tui.tables.looks import Cell, fitted, status_cell
from torc_framework.tui.tables.sparklines import OVER, sparkline
from torc_framework.tui.tables.value_cells import time_text

_MOST_ATTEMPTS: Final = 5
_TITLE: Final = 15
_LEAST_COLUMN: Final = 20
_MOST_COLUMN: Final = 44


def job_lines(context: WorkContext, client: TorcClient, workflow_id: int, job_id: int, width: int) -> list[Line]:
    """Return what is known of a job; at most five requests, and one for each runner of its attempts.

    Args:
        width: Columns of the terminal.
    """
    from torc_framework.monitoring.log_files import attempts
    from torc_framework.monitoring.samples import job_usage

    job = client.get(JobRecord, job_id)
    found = attempts(context, client, workflow_id, job_id)["attempts"]
    asked = None
    if job.resource_requirements_id is not None:
        asked = client.get(ResourceRequirementsRecord, job.resource_requirements_id)
    status = status_cell(job.status or "")
    number = f" (job {job_id})  "
    name = shortened(one_line(job.name), max(_LEAST_COLUMN, width - text_width(number + status[0])))
    lines: list[Line] = [[(f"{name}{number}", "bold"), status]]
    if asked is not None:
        lines.append(
            f"Requests {asked.num_cpus} CPUs, {asked.memory} memory, {asked.num_gpus} GPUs, {asked.num_nodes} nodes, "
            f"{asked.runtime} ({one_line(asked.name)})"
        )
    lines += ["", *_attempt_lines(found, asked, width)]
    pairs = [(each["run_id"], each["compute_node_id"]) for each in found if each["compute_node_id"] is not None]
    usage = job_usage(client, workflow_id, job_id, pairs[-_MOST_ATTEMPTS:])
    lines += _usage_lines(found, asked, usage, width)
    commands = [f"  {one_line(line)}" for line in job.command.split("\n")]
    lines += ["", "Command", *(part for line in commands for part in wrapped(line, width))]
    if job.depends_on_job_ids:
        ids = ", ".join(str(each) for each in job.depends_on_job_ids[:20])
        lines += ["", f"Waits for {count_text(len(job.depends_on_job_ids), 'job')}: {ids}"]
    return lines


def _shown(found: Sequence[Mapping[str, Any]], width: int) -> tuple[list[Mapping[str, Any]], int]:
    """Return the newest attempts that fit side by side, and the width of their columns."""
    room = max(_LEAST_COLUMN, width - _TITLE - 3)
    count = max(1, min(_MOST_ATTEMPTS, len(found), room // (_LEAST_COLUMN + 1)))
    return [*reversed(found)][:count], min(_MOST_COLUMN, room // count - 1)


def _row(title: str, columns: Sequence[Sequence[Cell]], width: int) -> Line:
    """Return one row of the table of attempts."""
    cells: list[Cell] = [(f"  {fitted(title, _TITLE)} ", "dim")]
    for column in columns:
        used = sum(text_width(text) for text, _ in column)
        cells += [*column, (" " * max(1, width + 1 - used), "")]
    return cells


def _attempt_lines(
    found: Sequence[Mapping[str, Any]], asked: ResourceRequirementsRecord | None, width: int
) -> list[Line]:
    """Return the attempts as columns, the newest at the left."""
    if not found:
        return ["It has not run."]
    shown, column = _shown(found, width)
    rows: dict[str, list[Cell]] = {
        "Run, attempt": [(f"{each['run_id']}, {each['attempt_id']}", "bold") for each in shown],
        "Status": [status_cell(str(each["status"])) for each in shown],
        "Ending": [(one_line(each["exit_class"] or ""), "") for each in shown],
        "Host": [(one_line(each["hostname"] or ""), "") for each in shown],
    }
    results = [each["result"] for each in shown]
    memory = None if asked is None else float(parse_memory(asked.memory))
    runtime = None if asked is None else float(parse_duration(asked.runtime))
    rows["Return code"] = [("" if each is None else str(each.return_code), "") for each in results]
    rows["Ended"] = [("" if each is None else time_text(each.completion_time), "") for each in results]
    for title, cell in _USES.items():
        rows[title] = [("", "") if each is None else cell(each, memory, runtime) for each in results]
    more = "" if len(shown) == len(found) else f", the newest {len(shown)}"
    lines: list[Line] = [f"{count_text(len(found), 'attempt')}{more}; the newest at the left"]
    for title, values in rows.items():
        if any(text for text, _ in values):
            lines.append(_row(title, [[(fitted(text, column), style)] for text, style in values], column))
    for each in results:
        if each is not None and each.reason:
            lines.append(f"  {each.run_id}, {each.attempt_id}: {one_line(each.reason)}")
    return lines


def _time(result: ResultRecord, _memory: float | None, runtime: float | None) -> Cell:
    seconds = 60 * result.exec_time_minutes
    return _used(duration_text(seconds), seconds, runtime)


def _peak(result: ResultRecord, memory: float | None, _runtime: float | None) -> Cell:
    peak = result.peak_memory_bytes
    return ("", "") if peak is None else _used(size_text(peak), peak, memory)


def _cpu(result: ResultRecord, _memory: float | None, _runtime: float | None) -> Cell:
    return ("" if result.avg_cpu_percent is None else f"{result.avg_cpu_percent:.0f}%", "")


_USES: Final = {"Time": _time, "Peak memory": _peak, "Mean CPU": _cpu}
"""What an attempt used, by title; of memory and time with the share of the request."""


def _used(text: str, used: float, requested: float | None) -> Cell:
    """Return a used amount with its share of the request; more than that has the style of values beyond a limit."""
    if not requested:
        return text, ""
    return f"{text}, {100 * used / requested:.0f}%", OVER if used > requested else ""


def _usage_lines(
    found: Sequence[Mapping[str, Any]],
    asked: ResourceRequirementsRecord | None,
    usage: Mapping[tuple[int, int], Sequence[Any]],
    width: int,
) -> list[Line]:
    """Return CPU and memory over time of the attempts that are shown, as sparklines under their columns."""
    if not usage:
        return []
    shown, column = _shown(found, width)
    cpus = None if asked is None else 100.0 * asked.num_cpus
    memory = None if asked is None else float(parse_memory(asked.memory))
    series = [usage.get((each["run_id"], each["attempt_id"]), ()) for each in shown]
    of_request = "; the highest block is the request" if asked is not None else ""
    return [
        "",
        f"CPU and memory over time{of_request} (m: plots)",
        _row("CPU", [sparkline([each.cpu_percent for each in one], column, cpus) for one in series], column),
        _row("Memory", [sparkline([each.memory_bytes for each in one], column, memory) for one in series], column),
    ]
