"""``torc k8s schedule-nodes``: starts worker pods for a workflow."""

from pathlib import Path
from typing import Annotated, Any

import typer

from torc_framework.api import UserError
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
    num: Annotated[int, typer.Option("--num", "-n", min=1, max=1000, help="Worker pods to start.")] = 1,
    image: Annotated[
        str | None, typer.Option("--worker-image", "--image", metavar="IMAGE", help="Image of the pods; it has torc.")
    ] = None,
    cpus: Annotated[int | None, typer.Option("--cpus", min=1, help="CPUs of a pod.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Memory of a pod, such as 8g.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=0, help="GPUs of a pod.")] = None,
    walltime: Annotated[
        str | None, typer.Option("--walltime", metavar="TIME", help="Longest life of a pod, ISO 8601, such as PT4H.")
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option("--output-dir", "-o", metavar="DIR", help="Folder for logs in the pods.")
    ] = None,
    server_url: Annotated[
        str | None,
        typer.Option(
            "--worker-server-url", metavar="URL", help="URL at which pods reach the server, if it is another than here."
        ),
    ] = None,
    max_parallel_jobs: Annotated[
        int | None, typer.Option("--max-parallel-jobs", "-m", min=1, help="Most jobs of a pod at once.")
    ] = None,
    job_prefix: Annotated[
        str, typer.Option("--job-prefix", "-j", help="What the names of the requests begin with.")
    ] = "worker",
) -> None:
    """Start worker pods; in these, runners run the waiting jobs of a workflow, many in each pod.

    Jobs are processes in the pod, and so use its image. A pod ends when it finds no job. What is not given here comes
    from section [executor.k8s] of the configuration.

    Examples:
        torc k8s schedule-nodes 12 --num 4 --image registry.example.org/torc:0.1.0
        torc k8s schedule-nodes 12 --cpus 8 --memory 32g --walltime PT4H
    """
    session = session_of(ctx)
    require_lasting_server(session)
    chosen = pick_workflow(session, workflow_id)
    _check_workflow(session, chosen)
    given: dict[str, Any] = {
        "worker_image": image,
        "worker_cpus": cpus,
        "worker_memory": memory,
        "worker_gpus": gpus,
        "worker_walltime": walltime,
        "worker_output_dir": output_dir,
        "worker_server_url": server_url,
    }
    options = {name: value for name, value in given.items() if value is not None}
    wanted = NodeRequest(0, Path(), num, max_parallel_jobs=max_parallel_jobs, job_prefix=job_prefix)
    found = obtain_nodes(session.client, allocator_of(session, chosen, "k8s", **options), chosen, wanted)
    if session.wants_json:
        print_json({"workflow_id": chosen, "allocations": found})
        return
    print(f"Started {len(found)} worker pod(s) for workflow {chosen}: {', '.join(each.batch_id for each in found)}")


def _check_workflow(session: Session, workflow_id: int) -> None:
    """Check that the workflow has jobs for new workers.

    Raises:
        UserError: it is not initialized, complete or canceled.
    """
    client = session.client
    if client.is_uninitialized(workflow_id):
        raise UserError(f"workflow {workflow_id} is not initialized: 'torc workflows initialize {workflow_id}' does it")
    state = client.is_complete(workflow_id)
    if state.is_complete or state.is_canceled:
        how = "canceled" if state.is_canceled else "complete"
        raise UserError(f"workflow {workflow_id} is {how}: workers would find no job")
