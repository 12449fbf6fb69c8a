"""``torc job-dependencies``: dependencies between jobs, and the files and user data that jobs write and read."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import Limit, Offset, WorkflowId, pick_workflow
from torc_framework.cli.shared.output import Column
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import session_of

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

app = CommandGroup("Relations of a workflow's jobs to each other, to files and to user data.")

_ENDS: list[Column] = [
    ("Producer ID", "producer_job_id"),
    ("Producer", "producer_job_name"),
    ("Consumer ID", "consumer_job_id"),
    ("Consumer", "consumer_job_name"),
]
JOB_JOB: list[Column] = [
    ("Job ID", "job_id"),
    ("Job", "job_name"),
    ("Waits For ID", "depends_on_job_id"),
    ("Waits For", "depends_on_job_name"),
]
JOB_FILE: list[Column] = [("File ID", "file_id"), ("File", "file_name"), ("Path", "file_path"), *_ENDS]
JOB_USER_DATA: list[Column] = [("User Data ID", "user_data_id"), ("User Data", "user_data_name"), *_ENDS]


@app.command("job-job")
def job_job(ctx: typer.Context, workflow_id: WorkflowId = None, *, limit: Limit = 10_000, offset: Offset = 0) -> None:
    """List which jobs wait for which.

    Examples:
        torc job-dependencies job-job 12
    """
    show = _lister(ctx, workflow_id, limit, offset)
    show("dependencies", "dependencies", JOB_JOB, lambda client, chosen: client.job_dependencies(chosen))


@app.command("job-file")
def job_file(ctx: typer.Context, workflow_id: WorkflowId = None, *, limit: Limit = 10_000, offset: Offset = 0) -> None:
    """List which jobs write and read which files.

    Examples:
        torc job-dependencies job-file 12
    """
    show = _lister(ctx, workflow_id, limit, offset)
    show("relationships", "files of jobs", JOB_FILE, lambda client, chosen: client.job_file_relationships(chosen))


@app.command("job-user-data")
def job_user_data(
    ctx: typer.Context, workflow_id: WorkflowId = None, *, limit: Limit = 10_000, offset: Offset = 0
) -> None:
    """List which jobs write and read which user data.

    Examples:
        torc job-dependencies job-user-data 12
    """
    show = _lister(ctx, workflow_id, limit, offset)
    show(
        "relationships",
        "user data of jobs",
        JOB_USER_DATA,
        lambda client, chosen: client.job_user_data_relationships(chosen),
    )


_Ask = Callable[["TorcClient", int], Iterator[Any]]


def _lister(
    ctx: typer.Context, workflow_id: int | None, limit: int, offset: int
) -> Callable[[str, str, list[Column], _Ask], None]:
    """Return a function that prints a page of the relations that a client call returns."""

    def show(key: str, several: str, columns: list[Column], ask: _Ask) -> None:
        session = session_of(ctx)
        chosen = pick_workflow(session, workflow_id)
        found = islice(ask(session.client, chosen), offset, offset + limit if limit else None)  # 0 is all
        show_many(session, key, f"{several} of workflow {chosen}", columns, found)

    return show
