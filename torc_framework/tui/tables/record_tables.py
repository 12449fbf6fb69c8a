"""The lists of a workflow: the columns of each, and how a page of it is read from the server."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import (
    ComputeNodeRecord,
    EventRecord,
    FileRecord,
    Record,
    ResultRecord,
    ScheduledComputeNodeRecord,
)
from torc_framework.text.quantities import duration_text, size_text
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.looks import Cell, status_cell
from torc_framework.tui.tables.virtual_table import PAGE_ROWS, TableColumn, TableRow

JOB_FIELDS: Final = ("id", "name", "status", "attempt", "exit", "class", "seconds", "peak_mem", "peak_cpu", "node")


@frozen
class ListQuery:
    """What a list shows: a filter, and an order.

    Attributes:
        filter_text: Text of the filter language for jobs; ``field:value`` terms for records.
        sort: A field, ``-`` before it for the reverse order; empty is the list's own.
    """

    filter_text: str = ""
    sort: str = ""


PageReader = Callable[[TorcClient, int, ListQuery, int], tuple[list[TableRow], int]]
"""Reads the page that begins with a row of a list of a workflow; returns its rows and the number of all."""


@frozen
class RecordTable:
    """One list.

    Attributes:
        filter_help: What may stand in its filter; empty if it has none.

    """

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    read: PageReader
    command: str
    empty: str = "Nothing here."
    filter_help: str = ""
    sort_help: str = ""


# --- cells ----------------------------------------------------------------------------------------


def time_text(value: Any) -> str:
    """Return a time of a record as clock time of this machine's zone, with the day unless it is today."""
    try:
        moment = (
            datetime.fromtimestamp(value).astimezone()
            if isinstance(value, int | float)
            else datetime.fromisoformat(str(value)).astimezone()
        )
    except (ValueError, OverflowError, OSError):
        return ""
    today = datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%m-%d %H:%M")


def _text(value: Any) -> Cell:
    return ("" if value is None else one_line(value), "")


def _seconds(value: Any) -> Cell:
    return ("" if value is None else duration_text(float(value)), "")


def _size(value: Any) -> Cell:
    return ("" if value is None else size_text(float(value)), "")


def _percent(value: Any) -> Cell:
    return ("" if value is None else f"{value:.0f}%", "")


# --- jobs -----------------------------------------------------------------------------------------


def _jobs(client: TorcClient, workflow_id: int, query: ListQuery, offset: int) -> tuple[list[TableRow], int]:
    part = client.job_columns(
        workflow_id,
        JOB_FIELDS,
        filter_text=query.filter_text,
        sort=query.sort or "id",
        offset=offset,
        limit=PAGE_ROWS,
    )
    columns = [part.columns[name] for name in JOB_FIELDS]
    return [_job_row(dict(zip(JOB_FIELDS, values, strict=True))) for values in zip(*columns, strict=True)], part.total


def _job_row(job: Mapping[str, Any]) -> TableRow:
    glyph, colour = status_cell(job["status"], with_word=False)
    ending = job["class"] if job["status"] in ("failed", "terminated", "pending_failed") else ""
    cells: tuple[Cell, ...] = (
        (glyph, colour),
        _text(job["id"]),
        _text(job["name"]),
        status_cell(job["status"]),
        _text(job["attempt"]),
        _text(job["exit"]),
        _text(ending),
        _seconds(job["seconds"]),
        _size(job["peak_mem"]),
        _percent(job["peak_cpu"]),
        _text(job["node"]),
    )
    return TableRow(job["id"], cells, dict(job))


_JOB_COLUMNS: Final = (
    TableColumn("", 1),
    TableColumn("ID", 7, is_right=True),
    TableColumn("NAME", 16, grows=True),
    TableColumn("STATUS", 16, from_width=90),
    TableColumn("TRY", 3, is_right=True),
    TableColumn("EXIT", 4, is_right=True),
    TableColumn("ENDING", 11),
    TableColumn("TIME", 12, is_right=True),
    TableColumn("PEAK MEM", 9, is_right=True, from_width=100),
    TableColumn("CPU", 6, is_right=True, from_width=110),
    TableColumn("NODE", 14, from_width=125),
)


# --- records --------------------------------------------------------------------------------------


def _records(kind: type[Record], row: Callable[[Any], TableRow], filters: Sequence[str], **fixed: Any) -> PageReader:
    def read(client: TorcClient, workflow_id: int, query: ListQuery, offset: int) -> tuple[list[TableRow], int]:
        wanted = {**fixed, **_filter_values(query.filter_text, filters)}
        if query.sort:
            wanted |= {"sort_by": query.sort.removeprefix("-"), "reverse_sort": query.sort.startswith("-")}
        page = client.page(kind, workflow_id=workflow_id, offset=offset, limit=PAGE_ROWS, **wanted)
        return [row(each) for each in page.items], page.total_count

    return read


def _filter_values(text: str, filters: Sequence[str]) -> dict[str, str]:
    """Return ``field:value`` terms as the server's list filters; a term without a field is for the first."""
    found = {}
    for term in text.split():
        name, separator, value = term.partition(":")
        if separator and name in filters:
            found[name] = value
        elif filters:
            found[filters[0]] = term
    return found


def _event_row(event: EventRecord) -> TableRow:
    data = event.data if isinstance(event.data, dict) else {}
    kind = str(data.get("event_type") or data.get("category") or "")
    severity = str(data.get("severity") or "")
    colour = {"error": "red", "warning": "yellow"}.get(severity, "")
    rest = {name: value for name, value in data.items() if name not in ("event_type", "category", "severity")}
    text = " ".join(f"{name}={one_line(value)}" for name, value in rest.items() if value is not None)
    at = None if event.timestamp is None else event.timestamp / 1000
    return TableRow(event.id, ((time_text(at), "dim"), (one_line(kind), colour), (text[:1000], "")), event)


def _result_row(result: ResultRecord) -> TableRow:
    glyph = status_cell(result.status)
    cells: tuple[Cell, ...] = (
        _text(result.job_id),
        _text(f"{result.run_id}.{result.attempt_id}"),
        glyph,
        _text(result.return_code),
        _text(result.exit_class),
        _seconds(60 * result.exec_time_minutes),
        _size(result.peak_memory_bytes),
        _percent(result.avg_cpu_percent),
        (time_text(result.completion_time), "dim"),
        _text(result.reason),
    )
    return TableRow(result.id, cells, result)


def _file_row(file: FileRecord) -> TableRow:
    modified = "" if not file.st_mtime else time_text(file.st_mtime)
    return TableRow(file.id, (_text(file.id), _text(file.name), _text(file.path), (modified, "dim")), file)


def _allocation_row(node: ScheduledComputeNodeRecord) -> TableRow:
    colour = {"active": "green", "pending": "yellow"}.get(node.status, "dim")
    cells: tuple[Cell, ...] = (
        _text(node.id),
        _text(node.batch_id),
        (node.status, colour),
        _text(node.scheduler_type),
        _text(node.scheduler_config_id),
        _text(node.request),
    )
    return TableRow(node.id, cells, node)


def _runner_row(node: ComputeNodeRecord) -> TableRow:
    cells: tuple[Cell, ...] = (
        _text(node.id),
        _text(node.hostname),
        ("works", "green") if node.is_active else ("ended", "dim"),
        _text(node.compute_node_type),
        _text(node.num_cpus),
        _size(node.memory_gb * 1024**3),
        _text(node.num_gpus),
        (time_text(node.start_time), "dim"),
        (walltime_left(node), "yellow"),
    )
    return TableRow(node.id, cells, node)


def walltime_left(node: ComputeNodeRecord) -> str:
    """Return how much of a runner's walltime is left; empty without one, and after its end."""
    from torc_framework.models.resources import parse_duration

    if not node.is_active or not node.time_limit:
        return ""
    try:
        began = datetime.fromisoformat(node.start_time)
        left = parse_duration(node.time_limit) - (datetime.now().astimezone() - began).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"{duration_text(left)} left" if left > 0 else "over"


RECORD_TABLES: Final[Mapping[str, RecordTable]] = {
    table.name: table
    for table in (
        RecordTable(
            "jobs",
            "Jobs",
            _JOB_COLUMNS,
            _jobs,
            "torc jobs list {id}",
            "No job matches.",
            "status:failed exit:137 name:train* peak_mem>4g text",
            "name, status, seconds, peak_mem, ended ...; -seconds: longest first",
        ),
        RecordTable(
            "files",
            "Files",
            (
                TableColumn("ID", 6, is_right=True),
                TableColumn("NAME", 12, grows=True),
                TableColumn("PATH", 20, grows=True),
                TableColumn("MODIFIED", 11),
            ),
            _records(FileRecord, _file_row, ("name", "path", "produced_by_job_id", "is_output")),
            "torc files list {id}",
            "This workflow has no files.",
            "a name, or path:PATH produced_by_job_id:JOB is_output:true",
            "name, path, st_mtime",
        ),
        RecordTable(
            "events",
            "Events",
            (TableColumn("TIME", 11), TableColumn("EVENT", 24), TableColumn("DATA", 20, grows=True)),
            _records(EventRecord, _event_row, ("category",), sort_by="id", reverse_sort=True),
            "torc events list {id}",
            "No events yet.",
            "a type of event, such as job_failed",
        ),
        RecordTable(
            "results",
            "Results",
            (
                TableColumn("JOB", 7, is_right=True),
                TableColumn("RUN", 5),
                TableColumn("STATUS", 12),
                TableColumn("CODE", 4, is_right=True),
                TableColumn("ENDING", 10),
                TableColumn("TIME", 10, is_right=True),
                TableColumn("PEAK MEM", 9, is_right=True),
                TableColumn("CPU", 6, is_right=True, from_width=90),
                TableColumn("ENDED", 11, from_width=90),
                TableColumn("REASON", 10, grows=True, from_width=100),
            ),
            _records(
                ResultRecord,
                _result_row,
                ("job_id", "run_id", "return_code", "status", "compute_node_id", "all_runs"),
            ),
            "torc results list {id}",
            "No job has ended yet.",
            "a job's id, or status:failed return_code:1 run_id:2 all_runs:true",
            "job_id, return_code, exec_time_minutes, peak_memory_bytes, completion_time",
        ),
        RecordTable(
            "allocations",
            "Scheduled Nodes",
            (
                TableColumn("ID", 6, is_right=True),
                TableColumn("BATCH JOB", 14),
                TableColumn("STATE", 9),
                TableColumn("KIND", 9),
                TableColumn("SCHEDULER", 9, is_right=True),
                TableColumn("REQUEST", 10, grows=True),
            ),
            _records(ScheduledComputeNodeRecord, _allocation_row, ("status", "scheduler_type", "allocation_id")),
            "torc scheduled-compute-nodes list {id}",
            "No nodes were requested from a batch system.",
            "pending, active or complete",
        ),
        RecordTable(
            "runners",
            "Runners",
            (
                TableColumn("ID", 6, is_right=True),
                TableColumn("HOST", 12, grows=True),
                TableColumn("STATE", 6),
                TableColumn("KIND", 8),
                TableColumn("CPUS", 5, is_right=True),
                TableColumn("MEMORY", 9, is_right=True),
                TableColumn("GPUS", 4, is_right=True),
                TableColumn("STARTED", 11),
                TableColumn("WALLTIME", 16, from_width=90),
            ),
            _records(ComputeNodeRecord, _runner_row, ("hostname", "is_active")),
            "torc compute-nodes list {id}",
            "No runner has worked on it: x runs it here, s submits it.",
            "a host name, or is_active:true",
        ),
    )
}
"""All lists by name."""
