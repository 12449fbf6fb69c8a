"""``torc scheduled-compute-nodes``: allocations that were requested from a batch system."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import typer
from attrs import asdict

from torc_framework.cli.commands.records.jobs import JOBS
from torc_framework.cli.commands.records.queue_reasons import queue_reasons
from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import RecordId
from torc_framework.cli.shared.output import Column
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import record_option
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import session_of
from torc_framework.models.records import ScheduledComputeNodeRecord

_REASON: Final[Column] = ("Waits For", lambda row: row["pending_reason"] or "")


class _AllocationCommands(RecordCommands):
    """The commands on allocations; lists show why queued ones wait, if their batch system can be asked from here."""

    def show_many(
        self, ctx: typer.Context, records: Iterable[Any], title: str, total_of: Callable[[int], int] | None = None
    ) -> None:
        """Print records as ``list`` does."""
        rows = self.json_rows(ctx, records)
        columns = [*self.columns, _REASON] if any(row["pending_reason"] for row in rows) else self.columns
        show_many(session_of(ctx), self.several.replace(" ", "_"), title, columns, rows)

    def json_rows(self, ctx: typer.Context, records: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the records with the reasons; each batch system is asked once for all of them."""
        found = list(records)
        reasons = queue_reasons(session_of(ctx), found[0].workflow_id, found) if found else {}
        texts = {id_: str(reason) for id_, reason in reasons.items()}
        return [{**asdict(record), "pending_reason": texts.get(record.id)} for record in found]


SCHEDULED = _AllocationCommands(
    record=ScheduledComputeNodeRecord,
    one="a scheduled compute node",
    several="scheduled compute nodes",
    columns=[
        ("ID", "id"),
        ("Scheduler ID", "scheduler_id"),
        ("Config ID", "scheduler_config_id"),
        ("Type", "scheduler_type"),
        ("Status", "status"),
    ],
    filters=(
        record_option("scheduler_id", kind=str, help="Only the one with this id in the batch system."),
        record_option("scheduler_config_id", kind=str, help="Only those made from this scheduler."),
        record_option("status", help="Only this status: pending, active or complete."),
    ),
    short={"offset": "-o", "sort_by": "-s", "reverse_sort": "-r"},
)

app = CommandGroup("Allocations that were requested from a batch system.")
SCHEDULED.add(app, "get", "list")


@app.command("list-jobs")
def list_jobs(ctx: typer.Context, id_: RecordId) -> None:
    """List the jobs that ran, or run, in an allocation.

    Examples:
        torc scheduled-compute-nodes list-jobs 9
    """
    from torc_framework.allocations.jobs import jobs_of_allocation

    client = session_of(ctx).client
    found = jobs_of_allocation(client, client.get(ScheduledComputeNodeRecord, id_))
    JOBS.show_many(ctx, found, f"jobs of scheduled compute node {id_}")
