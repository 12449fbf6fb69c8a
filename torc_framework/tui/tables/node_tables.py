"""The lists of runners and of allocations: their load, how much of their walltime is left, what hinders them."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from torc_framework.client import TorcClient
from torc_framework.models.progress import RunnerLoad
from torc_framework.models.records import HINDRANCE, ComputeNodeRecord, ScheduledComputeNodeRecord
from torc_framework.models.resources import parse_duration
from torc_framework.system.process_identity import known_runner_state
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.status_text import RUNNER_LOOKS
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.list_query import ListQuery, PageReader, filter_values
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.tables.value_cells import size_cell, text_cell, time_text
from torc_framework.tui.tables.virtual_table import TableColumn, TableRow
from torc_framework.tui.tables.workflow_list import PAGE_ROWS

_MOST_ACTIVE: Final = 1_000
"""Active runners that are looked for, to find those of allocations."""
RUNNER_COLUMNS: Final = (
    TableColumn("ID", 5, is_right=True),
    TableColumn("HOST", 10, grows=True),
    TableColumn("STATE", 8),
    TableColumn("JOBS", 5, is_right=True),
    TableColumn("CPUS", 9, is_right=True),
    TableColumn("MEMORY", 9, is_right=True, from_width=100),
    TableColumn("GPUS", 4, is_right=True, from_width=100),
    TableColumn("KIND", 6),
    TableColumn("STARTED", 11),
    TableColumn("LEFT", 12, is_right=True),
    TableColumn("NOTE", 12, grows=True, from_width=110),
)
ALLOCATION_COLUMNS: Final = (
    TableColumn("ID", 5, is_right=True),
    TableColumn("BATCH JOB", 12),
    TableColumn("STATE", 9),
    TableColumn("KIND", 6),
    TableColumn("HOST", 10, grows=True),
    TableColumn("JOBS", 5, is_right=True),
    TableColumn("CPUS", 9, is_right=True),
    TableColumn("LEFT", 12, is_right=True),
    TableColumn("SCHEDULER", 9, is_right=True, from_width=100),
    TableColumn("REQUEST", 10, grows=True, from_width=110),
)


def runner_reader(filters: Sequence[str]) -> PageReader:
    """Return the reader of the list of runners."""

    def read(client: TorcClient, workflow_id: int, query: ListQuery, offset: int) -> tuple[list[TableRow], int]:
        wanted = {"sort_by": "id", "reverse_sort": True, **filter_values(query.filter_text, filters)}
        page = client.page(ComputeNodeRecord, workflow_id=workflow_id, offset=offset, limit=PAGE_ROWS, **wanted)
        loads = _loads(client, workflow_id) if any(node.is_active for node in page.items) else {}
        return [_runner_row(node, loads.get(node.id or 0)) for node in page.items], page.total_count

    return read


def allocation_reader(filters: Sequence[str]) -> PageReader:
    """Return the reader of the list of allocations; each that is active has its runner beside it."""

    def read(client: TorcClient, workflow_id: int, query: ListQuery, offset: int) -> tuple[list[TableRow], int]:
        wanted = {"sort_by": "id", "reverse_sort": True, **filter_values(query.filter_text, filters)}
        page = client.page(
            ScheduledComputeNodeRecord, workflow_id=workflow_id, offset=offset, limit=PAGE_ROWS, **wanted
        )
        loads: Mapping[int, RunnerLoad] = {}
        runners: dict[int, ComputeNodeRecord] = {}
        if any(each.status == "active" for each in page.items):
            loads = _loads(client, workflow_id)
            active = client.find(ComputeNodeRecord, workflow_id=workflow_id, is_active=True, limit=_MOST_ACTIVE)
            runners = {_allocation_of(node): node for node in active}
        return [_allocation_row(each, runners.get(each.id or -1), loads) for each in page.items], page.total_count

    return read


def _loads(client: TorcClient, workflow_id: int) -> Mapping[int, RunnerLoad]:
    return {load.compute_node_id: load for load in client.progress(workflow_id).loads}


def _allocation_of(node: ComputeNodeRecord) -> int:
    """Return the record of the allocation in which a runner works; 0 if it works in none."""
    described = node.scheduler if isinstance(node.scheduler, dict) else {}
    found = described.get("scheduler_id")
    return found if isinstance(found, int) else 0


def _load_cells(node: ComputeNodeRecord, load: RunnerLoad | None) -> tuple[Cell, Cell]:
    """Return the jobs that run at a runner and those it claimed, and the CPUs that the first requested of its own."""
    if not node.is_active:
        return ("", ""), text_cell(node.num_cpus)
    load = load or RunnerLoad(node.id or 0, 0, 0, 0)
    style = "green" if load.num_cpus >= node.num_cpus else ""
    claimed = f", {count_text(load.claimed)} claimed" if load.claimed else ""
    return (f"{count_text(load.jobs)}{claimed}", ""), (f"{load.num_cpus} of {node.num_cpus}", style)


def _runner_row(node: ComputeNodeRecord, load: RunnerLoad | None) -> TableRow:
    look = RUNNER_LOOKS[known_runner_state(node, time.time())]
    cells: tuple[Cell, ...] = (
        text_cell(node.id),
        text_cell(node.hostname),
        (look.word, look.colour),
        *_load_cells(node, load),
        size_cell(node.memory_gb * 1024**3),
        text_cell(node.num_gpus),
        text_cell(node.compute_node_type),
        (time_text(node.start_time), "dim"),
        _left_cell(node),
        (_hindrance(node), "red"),
    )
    return TableRow(node.id, cells, node)


def _allocation_row(
    record: ScheduledComputeNodeRecord, node: ComputeNodeRecord | None, loads: Mapping[int, RunnerLoad]
) -> TableRow:
    colour = {"active": "green", "pending": "yellow"}.get(record.status, "dim")
    nothing: Cell = ("", "")
    jobs, cpus = (nothing, nothing) if node is None else _load_cells(node, loads.get(node.id or 0))
    cells: tuple[Cell, ...] = (
        text_cell(record.id),
        text_cell(record.batch_id),
        (record.status, colour),
        text_cell(record.scheduler_type),
        text_cell(None if node is None else node.hostname),
        jobs,
        cpus,
        nothing if node is None else _left_cell(node),
        text_cell(record.scheduler_config_id),
        text_cell(record.request),
    )
    return TableRow(record.id, cells, record)


def _hindrance(node: ComputeNodeRecord) -> str:
    """Return why a runner cannot start attempts now; empty if nothing is known to hinder it."""
    described = node.scheduler if isinstance(node.scheduler, dict) else {}
    found = described.get(HINDRANCE)
    return one_line(found.get("reason", "")) if isinstance(found, dict) and node.is_active else ""


def _left_cell(node: ComputeNodeRecord) -> Cell:
    """Return how much of a runner's walltime is left: nothing without one, and after its end."""
    if not node.is_active or not node.time_limit:
        return "", ""
    try:
        began = datetime.fromisoformat(node.start_time)
        left = parse_duration(node.time_limit) - (datetime.now().astimezone() - began).total_seconds()
    except (ValueError, TypeError):
        return "", ""
    return (duration_text(left), "yellow") if left > 0 else ("over", "red")
