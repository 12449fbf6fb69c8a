"""``torc k8s clean``: removes what runners that are gone have left in the cluster."""

from operator import attrgetter
from typing import Annotated, Any, Final

import typer

from torc_framework.api import ComputeNodeRecord
from torc_framework.api.commands import (
    Column,
    CommandGroup,
    Session,
    WorkflowId,
    executor_options,
    pick_workflow,
    print_json,
    print_table,
    session_of,
)
from torc_k8s.cluster import Cluster, ClusterAddress, loop_thread
from torc_k8s.executor.leftovers import Leftover, find_leftovers, remove_scope

PATIENCE_S: Final = 10.0


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("clean")(clean)


def clean(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    kept: Annotated[bool, typer.Option("--kept", help="Also remove pods that keep_pods keeps.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
) -> None:
    """Remove what runners of a workflow have left in the cluster: pods, Secrets and ConfigMaps.

    What belongs to a runner that works, or whose jobs the next run continues, stays; so does what belongs to a workflow
    of the same number on another server.

    Examples:
        torc k8s clean 42 --dry-run
        torc k8s clean 42 --kept
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    options = executor_options(session, session.plugins(skip_untrusted=True), "k8s").get("k8s", {})
    address = ClusterAddress(*(str(options.get(name) or "") for name in ("kubeconfig", "context", "namespace")))
    found = loop_thread.run(_clean(address, chosen, _ended_scopes(session, chosen), kept=kept, dry_run=dry_run))
    if session.wants_json:
        print_json({"workflow_id": chosen, "dry_run": dry_run, "removed": [_row(each, kept) for each in found]})
    elif found:
        print("Would remove:" if dry_run else "Removed:")
        print_table(_COLUMNS, found)
    else:
        print(f"Runners of workflow {chosen} that are gone have left nothing in the cluster.")


def _ended_scopes(session: Session, workflow_id: int) -> set[str]:
    """Return the scopes of runners whose ends the server has stored completely."""
    found = set()
    for node in session.client.iterate(ComputeNodeRecord, workflow_id=workflow_id):
        described = node.scheduler if isinstance(node.scheduler, dict) else {}
        state = (described.get("state") or {}).get("k8s") or {}
        if not node.is_active and state.get("scope"):
            found.add(str(state["scope"]))
    return found


async def _clean(
    address: ClusterAddress, workflow_id: int, ended: set[str], *, kept: bool, dry_run: bool
) -> list[Leftover]:
    cluster = await Cluster.open(address, patience_s=PATIENCE_S)
    try:
        found = [each for each in await find_leftovers(cluster, workflow_id) if each.scope in ended]
        found = [each for each in found if each.pods or kept or not each.kept]
        if not dry_run:
            for each in found:
                await remove_scope(cluster, each.scope, patience_s=PATIENCE_S, kept=kept)
        return found
    finally:
        await cluster.close()


def _row(each: Leftover, kept: bool) -> dict[str, Any]:
    return {"scope": each.scope, "pods": each.pods + (each.kept if kept else [])}


_COLUMNS: Final[list[Column]] = [
    ("Runner", attrgetter("scope")),
    ("Pods", lambda each: str(len(each.pods))),
    ("Kept pods", lambda each: str(len(each.kept))),
]
