"""The lists of a workflow: the columns of each, and how a page of it is read from the server."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import (
    EventRecord,
    FileRecord,
    Record,
    ResultRecord,
)
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.list_query import ListQuery, PageReader, filter_values
from torc_framework.tui.tables.looks import Cell, status_cell
from torc_framework.tui.tables.node_tables import ALLOCATION_COLUMNS, RUNNER_COLUMNS, allocation_reader, runner_reader
from torc_framework.tui.tables.value_cells import percent_cell, seconds_cell, size_cell, text_cell, time_text
from torc_framework.tui.tables.virtual_table import TableColumn, TableRow
from torc_framework.tui.tables.workflow_list import PAGE_ROWS

JOB_FIELDS: Final = ("id", "name", "status", "attempt", "exit", "class", "seconds", "peak_mem", "peak_cpu", "node")


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
        text_cell(job["id"]),
        text_cell(job["name"]),
        status_cell(job["status"]),
        text_cell(job["attempt"]),
        text_cell(job["exit"]),
        text_cell(ending),
        seconds_cell(job["seconds"]),
        size_cell(job["peak_mem"]),
        percent_cell(job["peak_cpu"]),
        text_cell(job["node"]),
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
        wanted = {**fixed, **filter_values(query.filter_text, filters)}
        if query.sort:
            wanted |= {"sort_by": query.sort.removeprefix("-"), "reverse_sort": query.sort.startswith("-")}
        page = client.page(kind, workflow_id=workflow_id, offset=offset, limit=PAGE_ROWS, **wanted)
        return [row(each) for each in page.items], page.total_count

    return read


_EVENT_COLUMNS: Final = ("event_type", "category", "severity", "job_id", "job_name")
"""Values of an event that stand in columns of their own."""


def _event_row(event: EventRecord) -> TableRow:
    data = event.data if isinstance(event.data, dict) else {}
    kind = str(data.get("event_type") or data.get("category") or "")
    severity = str(data.get("severity") or "")
    colour = {"error": "red", "warning": "yellow"}.get(severity, "")
    job = data.get("job_name") or data.get("job_id")
    rest = {name: value for name, value in data.items() if name not in _EVENT_COLUMNS and value is not None}
    first = [one_line(rest.pop("reason"))] if "reason" in rest else []
    text = " ".join([*first, *(f"{name}={one_line(value)}" for name, value in rest.items())])
    at = None if event.timestamp is None else event.timestamp / 1000
    return TableRow(
        event.id, ((time_text(at), "dim"), (one_line(kind), colour), text_cell(job), (text[:1000], "")), event
    )


def event_lines(event: EventRecord) -> list[str]:
    """Return the data of an event, one value on a line."""
    data = event.data if isinstance(event.data, dict) else {"data": event.data}
    return [f"{one_line(name)}: {one_line(value)}" for name, value in data.items()]


def _result_row(result: ResultRecord) -> TableRow:
    glyph = status_cell(result.status)
    cells: tuple[Cell, ...] = (
        text_cell(result.job_id),
        text_cell(f"{result.run_id}.{result.attempt_id}"),
        glyph,
        text_cell(result.return_code),
        text_cell(result.exit_class),
        seconds_cell(60 * result.exec_time_minutes),
        size_cell(result.peak_memory_bytes),
        percent_cell(result.avg_cpu_percent),
        (time_text(result.completion_time), "dim"),
        text_cell(result.reason),
    )
    return TableRow(result.id, cells, result)


def _file_row(file: FileRecord) -> TableRow:
    modified = "" if not file.st_mtime else time_text(file.st_mtime)
    return TableRow(file.id, (text_cell(file.id), text_cell(file.name), text_cell(file.path), (modified, "dim")), file)


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
            "a whole name, or path:PATH produced_by_job_id:JOB is_output:true",
            "name, path, st_mtime",
        ),
        RecordTable(
            "events",
            "Events",
            (
                TableColumn("TIME", 11),
                TableColumn("EVENT", 22),
                TableColumn("JOB", 10, grows=True),
                TableColumn("DATA", 20, grows=True),
            ),
            _records(EventRecord, _event_row, ("text", "category"), sort_by="id", reverse_sort=True),
            "torc events list {id}",
            "No events yet.",
            "a text in type or data, such as job_failed or train_17; category:job_failed: only this type",
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
            ALLOCATION_COLUMNS,
            allocation_reader(("status", "scheduler_type", "allocation_id")),
            "torc scheduled-compute-nodes list {id}",
            "No nodes were requested from a batch system.",
            "pending, active or complete",
        ),
        RecordTable(
            "runners",
            "Runners",
            RUNNER_COLUMNS,
            runner_reader(("hostname", "is_active")),
            "torc compute-nodes list {id}",
            "No runner has worked on it: x runs it here, s submits it.",
            "a host name, or is_active:true",
        ),
    )
}
"""All lists by name."""


def job_of(tab: str, row: TableRow | None) -> int | None:
    """Return the job that a row of a tab is about; None without one."""
    if row is None or row.record is None:
        return None
    record = row.record
    if tab == "jobs":
        return int(record["id"])
    if tab == "events":
        data = record.data if isinstance(record.data, dict) else {}
        return data.get("job_id") if isinstance(data.get("job_id"), int) else None
    return getattr(record, "job_id", None)
