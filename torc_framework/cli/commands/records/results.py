"""``torc results``: the results of jobs."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import job_of_workflow
from torc_framework.cli.shared.output import peak_memory_text
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import parse_status, record_option
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.models.records import JobRecord, ResultRecord
from torc_framework.text.quantities import duration_text, percent_text

if TYPE_CHECKING:
    from torc_framework.client import TorcClient


def _find(client: "TorcClient", kind: type[ResultRecord], query: dict[str, Any]) -> Iterator[ResultRecord]:
    """Find results; the filter ``failed`` is applied here, since the server has none."""
    if not query.pop("failed", False):
        return client.iterate(kind, **query)
    first, most = query.pop("offset"), query.pop("limit")
    failed = (result for result in client.iterate(kind, **query) if result.return_code != 0)
    return islice(failed, first, None if most is None else first + most)


RESULTS = RecordCommands(
    record=ResultRecord,
    one="a result",
    several="results",
    columns=[
        ("ID", "id"),
        ("Job ID", "job_id"),
        ("WF ID", "workflow_id"),
        ("Run ID", "run_id"),
        ("Return Code", "return_code"),
        ("Exec Time", lambda result: duration_text(result.exec_time_minutes * 60)),
        ("Peak Mem", peak_memory_text),
        (
            "Peak CPU %",
            lambda result: None if result.peak_cpu_percent is None else percent_text(result.peak_cpu_percent),
        ),
        ("Completion Time", "completion_time"),
        ("Status", "status"),
    ],
    filters=(
        record_option("job_id", "--job-id", "-j", help="Only this job's."),
        record_option("run_id", "--run-id", "-r", help="Only this run's."),
        record_option("return_code", help="Only this return code."),
        record_option("failed", kind=bool, is_flag=True, help="Only return codes other than 0."),
        record_option("status", "--status", "-s", help="Only this status.", read=parse_status),
        record_option("compute_node_id", "--compute-node", help="Only of this compute node."),
        record_option("all_runs", kind=bool, is_flag=True, help="Also results of earlier runs and attempts."),
    ),
    notes={"list": "The latest of each job."},
    titled="results for workflow ID {}",
    find=_find,
    examples={"list": "12 --failed"},
)

app = CommandGroup("Results of jobs.")
RESULTS.add(app, "list")


@app.command("get")
def get(
    ctx: typer.Context,
    id_: Annotated[
        int | None,
        typer.Argument(metavar="[ID]", help="The result; with --job-id the workflow, which may be left out."),
    ] = None,
    *,
    job_id: Annotated[int | None, typer.Option("--job-id", "-j", help="Show the latest result of this job.")] = None,
) -> None:
    """Show one result, with all that was observed.

    Examples:
        torc results get 56
        torc results get 12 --job-id 345
    """
    client = session_of(ctx).client
    if job_id is not None:
        RESULTS.show_one(ctx, _latest_result(client, job_of_workflow(client, job_id, id_)))
    elif id_ is not None:
        RESULTS.show_one(ctx, client.get(ResultRecord, id_))
    else:
        raise UserError("which result? give its ID, or --job-id; 'torc results list WORKFLOW_ID' shows both")


def _latest_result(client: "TorcClient", job: JobRecord) -> ResultRecord:
    """Return the result of a job's last ended attempt.

    Raises:
        UserError: none of its attempts has ended.
    """
    found = client.find(ResultRecord, workflow_id=job.workflow_id, job_id=job.id, all_runs=True)
    if not found:
        raise UserError(f"job {job.id} ({job.name}) has no result: it is {job.status}, and no attempt of it has ended")
    return max(found, key=lambda result: (result.run_id, result.attempt_id, result.id))


RESULTS.add(app, "delete")
