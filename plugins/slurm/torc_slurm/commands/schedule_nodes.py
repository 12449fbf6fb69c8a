"""``torc slurm schedule-nodes``: requests allocations for a workflow."""

from pathlib import Path
from typing import Annotated

import typer

from torc_framework.api import SlurmSchedulerRecord, UserError
from torc_framework.api.commands import (
    CommandGroup,
    NodeRequest,
    Session,
    WorkflowId,
    allocator_of,
    obtain_nodes,
    pick_workflow,
    print_json,
    require_lasting_server,
    session_of,
)


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("schedule-nodes")(schedule_nodes)


def schedule_nodes(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    scheduler_config_id: Annotated[
        int | None, typer.Option("--scheduler-config-id", metavar="ID", help="Scheduler (default: the only one).")
    ] = None,
    num_hpc_jobs: Annotated[int, typer.Option("--num-hpc-jobs", "-n", min=1, help="Allocations to request.")] = 1,
    start_one_worker_per_node: Annotated[
        bool, typer.Option("--start-one-worker-per-node", help="Start a runner on each node of an allocation.")
    ] = False,
    max_parallel_jobs: Annotated[
        int | None, typer.Option("--max-parallel-jobs", "-m", min=1, help="Most jobs of a runner at once.")
    ] = None,
    job_prefix: Annotated[
        str, typer.Option("--job-prefix", "-j", help="What the names of the batch jobs begin with.")
    ] = "worker",
    keep_submission_scripts: Annotated[
        bool, typer.Option("--keep-submission-scripts", help="Keep the submitted scripts.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "--output-dir", "-o", help="Folder for logs (default: output).")
    ] = None,
    poll_interval: Annotated[
        int, typer.Option("--poll-interval", "-p", min=0, help="Accepted; a runner is woken and never polls.")
    ] = 60,
) -> None:
    """Request Slurm allocations; in these, runners run the waiting jobs of a workflow.

    A scheduler of the workflow describes the allocation: 'torc slurm list' shows its schedulers, 'torc slurm
    create' makes one.

    Examples:
        torc slurm schedule-nodes 12
        torc slurm schedule-nodes 12 --num-hpc-jobs 4
    """
    session = session_of(ctx)
    require_lasting_server(session)
    chosen = pick_workflow(session, workflow_id)
    _check_workflow(session, chosen)
    options = {"keep_submission_scripts": True} if keep_submission_scripts else {}
    folder = output or session.config.client.run.output_dir
    wishes = NodeRequest(
        _choose_scheduler(session, chosen, scheduler_config_id),
        folder,
        num_hpc_jobs,
        start_one_worker_per_node,
        max_parallel_jobs,
        job_prefix,
    )
    folder.mkdir(parents=True, exist_ok=True)
    found = obtain_nodes(session.client, allocator_of(session, chosen, "slurm", **options), chosen, wishes)
    if session.wants_json:
        print_json({"workflow_id": chosen, "allocations": found})
        return
    print(f"Submitted {len(found)} allocation(s) for workflow {chosen}: {', '.join(n.batch_id for n in found)}")


def _check_workflow(session: Session, workflow_id: int) -> None:
    """Check that the workflow has jobs for new nodes.

    Raises:
        UserError: it is not initialized, complete or canceled.
    """
    client = session.client
    if client.is_uninitialized(workflow_id):
        raise UserError(f"workflow {workflow_id} is not initialized: 'torc workflows initialize {workflow_id}' does it")
    state = client.is_complete(workflow_id)
    if state.is_complete or state.is_canceled:
        how = "canceled" if state.is_canceled else "complete"
        raise UserError(f"workflow {workflow_id} is {how}: nodes would find no job")


def _choose_scheduler(session: Session, workflow_id: int, wanted: int | None) -> int:
    """Return the id of the named scheduler, or of the workflow's only one.

    Raises:
        UserError: it is not one of the workflow's schedulers; or none is named and the workflow has none or several.
    """
    known = {each.id or 0: each for each in session.client.find(SlurmSchedulerRecord, workflow_id=workflow_id)}
    if wanted is None and len(known) == 1:
        return next(iter(known))
    if wanted in known:
        return int(wanted or 0)
    names = ", ".join(f"{id_} ({each.name})" for id_, each in known.items())
    what = "--scheduler-config-id is missing" if wanted is None else f"no scheduler {wanted} in workflow {workflow_id}"
    raise UserError(f"{what}; there are {names}" if known else f"{what}: there are none; 'torc slurm create' makes one")
