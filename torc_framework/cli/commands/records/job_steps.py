"""``torc jobs retry``, ``cancel`` and ``terminate``: steps of single jobs, with a preview."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.models.records import JobRecord

_FIELDS: Final = ("id", "name", "status", "attempt")
_PAGE: Final = 1_000
_IDS_IN_FILTER: Final = 200
_NAMED: Final = 10
"""Most names of jobs in one line."""
_REASON: Final = "a person decided so"
_STEPS: Final[Mapping[str, tuple[tuple[str, ...], str, str]]] = {
    "cancel": (("uninitialized", "blocked", "ready"), "disabled", "excluded from the workflow"),
    "cancel --undo": (("disabled",), "uninitialized", "a part of the workflow again"),
    "terminate": (("pending", "running"), "pending_failed", "taken from its runner, which stops it"),
}
"""Steps: the statuses of jobs for which they are, the status that jobs get, and what happens to them."""
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
_JobIds = Annotated[list[int], typer.Argument(metavar="JOB...", help="Ids of jobs.")]


def retry(
    ctx: typer.Context,
    workflow_id: Annotated[int, typer.Argument(metavar="WORKFLOW_ID", help="The workflow.")],
    jobs: Annotated[
        list[int] | None, typer.Argument(metavar="[JOB]...", help="Ids (default: all that failed).")
    ] = None,
    *,
    filter_text: Annotated[
        str,
        typer.Option("--filter", "-q", metavar="FILTER", help="Only jobs that a filter finds, such as 'class:oom'."),
    ] = "",
    dry_run: _DryRun = False,
) -> None:
    """Make failed jobs ready again; 'torc run' then runs them and what follows them.

    Terminated jobs count as failed. All of them or none are retried, when the workflow is over. Their requests stay as
    they are; 'torc recover' raises them.

    Examples:
        torc jobs retry 12
        torc jobs retry 12 345 346
        torc jobs retry 12 --filter 'class:oom node:n07' --dry-run
    """
    from torc_framework.models.recovery import RecoveryOrder, Repair

    session = session_of(ctx)
    client = session.client
    run_id = client.workflow_status(workflow_id).run_id
    found = [*_failed_jobs(client, workflow_id, jobs, filter_text)]
    if jobs and (others := sorted({*jobs} - {job["id"] for job in found})):
        named = ", ".join(str(each) for each in others[:_NAMED])
        raise UserError(f"not among the failed jobs of workflow {workflow_id}: {named}")
    count = 0
    if found:
        repairs = [Repair(job["id"], job["attempt"], _REASON) for job in found]
        count = client.recover(workflow_id, RecoveryOrder(run_id, repairs, dry_run)).reset_count
    if session.wants_json:
        ids = [job["id"] for job in found]
        print_json({"workflow_id": workflow_id, "dry_run": dry_run, "retried_job_ids": ids, "reset_jobs": count})
    elif not found:
        print_line(f"No failed job of workflow {workflow_id} is meant: nothing to retry.")
    else:
        verb = "Would retry" if dry_run else "Retries"
        more = f"; with what follows them {count_text(count, 'job')} run again" if count > len(found) else ""
        print_line(f"{verb} {count_text(len(found), 'job')}: {_names(found)}{more}.")
        if not dry_run:
            print_line(f"Next: torc run {workflow_id}")


def cancel(
    ctx: typer.Context,
    jobs: _JobIds,
    *,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Take excluded jobs in again; 'torc workflows reinitialize' makes them ready."),
    ] = False,
    dry_run: _DryRun = False,
) -> None:
    """Exclude jobs that have not begun; what depends on them goes on waiting.

    Examples:
        torc jobs cancel 345
        torc jobs cancel 345 346 --dry-run
        torc jobs cancel 345 --undo
    """
    _carry_out(ctx, "cancel --undo" if undo else "cancel", jobs, dry_run=dry_run)


def terminate(ctx: typer.Context, jobs: _JobIds, *, dry_run: _DryRun = False) -> None:
    """Stop running jobs; they wait for your verdict then ('torc pending').

    Examples:
        torc jobs terminate 345
        torc jobs terminate 345 346 --dry-run
    """
    _carry_out(ctx, "terminate", jobs, dry_run=dry_run)


def _carry_out(ctx: typer.Context, step: str, job_ids: Sequence[int], *, dry_run: bool) -> None:
    """Check all jobs, then do the step of each one.

    Raises:
        UserError: the step is not for a job in its present status; nothing was done.
    """
    from torc_framework.models.records import JobRecord

    session = session_of(ctx)
    client, (statuses, status, what) = session.client, _STEPS[step]
    found = [client.get(JobRecord, job_id) for job_id in dict.fromkeys(job_ids)]
    for job in found:
        if job.status not in statuses:
            expected = ", ".join(each.replace("_", " ") for each in statuses)
            raise UserError(f"job {job.id} is {_word(job)}: {step} is for jobs that are {expected}")
    for job in found:
        if not dry_run:
            client.change_job_status(job.id or 0, status, client.workflow_status(job.workflow_id).run_id)
        if not session.wants_json:
            verb = "would be" if dry_run else "is"
            print_line(f"Job {job.id} ({job.name}), which {'is' if dry_run else 'was'} {_word(job)}, {verb} {what}.")
    if session.wants_json:
        print_json({"dry_run": dry_run, "step": step, "job_ids": [job.id for job in found]})


def _word(job: "JobRecord") -> str:
    return (job.status or "").replace("_", " ")


def _failed_jobs(
    client: "TorcClient", workflow_id: int, job_ids: Sequence[int] | None, filter_text: str
) -> Iterator[dict[str, Any]]:
    """Yield the failed and terminated jobs among those that ids and a filter name; without them all."""
    parts = [""]
    if job_ids:
        unique = list(dict.fromkeys(job_ids))
        blocks = (unique[at : at + _IDS_IN_FILTER] for at in range(0, len(unique), _IDS_IN_FILTER))
        parts = [f"id:{','.join(str(each) for each in block)} " for block in blocks]
    for part in parts:
        last: int | None = None
        while True:
            wanted = f"status:failed,terminated {part}{filter_text}"
            table = client.job_columns(workflow_id, _FIELDS, filter_text=wanted, after_id=last, limit=_PAGE)
            rows = [*zip(*(table.columns[name] for name in _FIELDS), strict=True)]
            yield from (dict(zip(_FIELDS, row, strict=True)) for row in rows)
            if len(rows) < _PAGE:
                break
            last = rows[-1][0]


def _names(found: Sequence[Mapping[str, Any]]) -> str:
    names = ", ".join(job["name"] for job in found[:_NAMED])
    return names if len(found) <= _NAMED else f"{names} and {count_text(len(found) - _NAMED)} more"
