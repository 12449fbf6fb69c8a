"""``torc explain``: explains why a job, or the jobs of a workflow, do not run."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import ApiError, UserError, suggestion
from torc_framework.models.records import JobRecord
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.cli.shared.session import Session
    from torc_framework.explain import WorkflowState


def explain(
    ctx: typer.Context,
    what: Annotated[
        int | None, typer.Argument(metavar="[WORKFLOW_ID|JOB_ID]", help="A workflow or, if there is none, a job.")
    ] = None,
    *,
    job: Annotated[
        str | None, typer.Option("--job", "-j", metavar="NAME|ID", help="This job; a name needs its workflow's id.")
    ] = None,
) -> None:
    """Explain why jobs do not run, or will run again, and which command changes that.

    For a job: the jobs that it waits for and the root cause among them, requirements that no runner meets, a
    missing verdict or initialization, or the lack of a runner. For a workflow: the same for groups of jobs,
    groups that need an action of yours first. An id that both a workflow and a job have is taken for the
    workflow; '--job ID' means the job.

    Examples:
        torc explain 12
        torc explain 12 --job train_3
    """
    from torc_framework.explain import explain_job, explain_workflow

    session = session_of(ctx)
    client = session.client
    if what is None and job is None:
        raise UserError("explain what? give the id of a workflow or of a job; 'torc workflows list' shows them")
    chosen = None if job is None else _job(client, what, job)
    if chosen is None and what is not None:
        try:
            state = _workflow_state(session, what)
        except ApiError as error:
            if error.status != 404:
                raise
            chosen = client.get(JobRecord, what)
    if chosen is not None:
        state = _workflow_state(session, chosen.workflow_id)
        found = explain_job(state, state.jobs.get(chosen.id or 0, chosen))
        print_json(found) if session.wants_json else _print_job(found)
    else:
        found = explain_workflow(state)
        print_json(found) if session.wants_json else _print_workflow(found)


app = single_command(explain)


def _workflow_state(session: "Session", workflow_id: int) -> "WorkflowState":
    """Return the server's records of a workflow, with what this machine knows of its runners and executors."""
    from torc_framework.cli.commands.records.queue_reasons import queue_reasons
    from torc_framework.explain import read_workflow_state
    from torc_framework.system.process_identity import is_dead_runner

    return read_workflow_state(
        session.client,
        workflow_id,
        is_dead=is_dead_runner,
        executors=session.executors,
        reasons=lambda queued_allocations: [*queue_reasons(session, workflow_id, queued_allocations).values()],
    )


def _job(client: Any, workflow_id: int | None, name: str) -> JobRecord:
    """Return the job of a name or id, in a workflow if one is given.

    Raises:
        UserError: there is no such job, or several jobs have the name.
    """
    if workflow_id is not None:
        found: list[JobRecord] = client.find(JobRecord, workflow_id=workflow_id, name=name, limit=2)
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"workflow {workflow_id} has several jobs {name!r}; give the id of one")
    if name.isascii() and name.isdigit():
        record: JobRecord = client.get(JobRecord, int(name))
        if workflow_id in (None, record.workflow_id):
            return record
        raise UserError(f"job {name} is in workflow {record.workflow_id}, not in {workflow_id}")
    if workflow_id is None:
        raise UserError(f"--job {name}: give the workflow's id before it, or the job's id")
    known = [each.name for each in client.iterate(JobRecord, workflow_id=workflow_id, limit=1000)]
    raise UserError(f"workflow {workflow_id} has no job {name!r}{suggestion(name, known)}")


def _print_job(found: dict[str, Any]) -> None:
    print_line(f"Job {found['job_id']} ({found['job_name']}) is {found['status']}: {found['text']}.")
    for other in found["waits_for"][:10]:
        print_line(f"  waits for job {other['job_id']} ({other['job_name']}), {other['status']}: {other['text']}")
    if (more := found["waits_for_count"] - 10) > 0:
        print(f"  and for {more} more jobs")
    root = found["root"]
    if root is not None:
        print_line(f"The root of it is job {root['job_id']} ({root['job_name']}), {root['status']}: {root['text']}.")
    _print_commands(found["commands"])


def _print_workflow(found: dict[str, Any]) -> None:
    done = found["job_counts"].get("completed", 0)
    print_line(
        f"Workflow {found['workflow_id']} ({found['workflow_name']}): {done} of {found['total_jobs']} jobs completed."
    )
    print(f"Active runners: {found['active_runners']}, queued allocations: {found['queued_allocations']}")
    for group in found["groups"]:
        names = ", ".join(f"{name} ({id_})" for id_, name in zip(group["job_ids"], group["job_names"], strict=True))
        more = ", ..." if group["count"] > len(group["job_ids"]) else ""
        jobs = "1 job is" if group["count"] == 1 else f"{group['count']} jobs are"
        print()
        print_line(f"{'!' if group['is_problem'] else '-'} {jobs} {group['status']}: {group['text']}")
        print_line(f"    {names}{more}")
        if (root := group["root"]) is not None:
            print_line(f"    root: job {root['job_id']} ({root['job_name']}), {root['status']}: {root['text']}")
    if not found["groups"]:
        print("Nothing is left to run." if found["total_jobs"] else "It has no jobs.")
    _print_commands(found["commands"])


def _print_commands(commands: list[str]) -> None:
    if commands:
        print("\nTo go on:")
        for command in commands:
            print(f"  {command}")
