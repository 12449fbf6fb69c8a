"""``torc scheduled-compute-nodes``: allocations that were asked of a batch system."""

import typer

from torc_framework.cli.app import App
from torc_framework.cli.common import RecordId, session_of
from torc_framework.cli.jobs import JOBS
from torc_framework.cli.record_options import option
from torc_framework.cli.records import Records
from torc_framework.models.records import ScheduledComputeNodeRecord

SCHEDULED = Records(
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
        option("scheduler_id", kind=str, help="Only the one with this id in the batch system."),
        option("scheduler_config_id", kind=str, help="Only those made from this scheduler."),
        option("status", help="Only this status: pending, active or complete."),
    ),
    short={"offset": "-o", "sort_by": "-s", "reverse_sort": "-r"},
)

app = App("Allocations that were asked of a batch system.")
SCHEDULED.add(app, "get", "list")


@app.command("list-jobs")
def list_jobs(ctx: typer.Context, id_: RecordId) -> None:
    """List the jobs that ran, or run, in an allocation."""
    from torc_framework.reports.allocations import jobs_of_allocation

    client = session_of(ctx).client
    found = jobs_of_allocation(client, client.get(ScheduledComputeNodeRecord, id_))
    JOBS.show_many(ctx, found, f"jobs of scheduled compute node {id_}")
