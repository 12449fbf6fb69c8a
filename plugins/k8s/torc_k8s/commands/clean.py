"""``torc k8s clean``: removes what runners that are gone have left in the cluster."""

from operator import attrgetter
from typing import Annotated, Any, Final

import typer
from attrs import frozen

from torc_framework.api import ComputeNodeRecord, ScheduledComputeNodeRecord
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
from torc_k8s.executor.leftovers import Leftover, find_leftovers, remove_pods, remove_scope
from torc_k8s.pods.facts import PodFacts
from torc_k8s.workers.worker_pods import selector as worker_selector
from torc_k8s.workers.worker_states import is_kept

PATIENCE_S: Final = 10.0


@frozen
class _StoredEnds:
    """The ends of a workflow's runners that the server has stored completely.

    Attributes:
        scopes: Scopes of runners outside of the cluster.
        workers: Names of worker pods.
    """

    scopes: frozenset[str]
    workers: frozenset[str]


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

    Worker pods that have ended go too, unless the option keep_pods of the executor keeps them. What belongs to a runner
    that works, or whose jobs the next run continues, stays; so does what belongs to a workflow of the same number on
    another server.

    Examples:
        torc k8s clean 42 --dry-run
        torc k8s clean 42 --kept
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    options = executor_options(session, session.plugins(skip_untrusted=True), "k8s").get("k8s", {})
    address = ClusterAddress(*(str(options.get(name) or "") for name in ("kubeconfig", "context", "namespace")))
    keep = "none" if kept else str(options.get("keep_pods") or "none")
    stored = _stored_ends(session, chosen)
    found, workers = loop_thread.run(_clean(address, chosen, stored, keep=keep, kept=kept, dry_run=dry_run))
    if session.wants_json:
        removed = [_row(each, kept) for each in found]
        print_json({"workflow_id": chosen, "dry_run": dry_run, "removed": removed, "workers": workers})
    elif found or workers:
        print("Would remove:" if dry_run else "Removed:")
        if found:
            print_table(_COLUMNS, found)
        for name in workers:
            print(f"worker pod {name}")
    else:
        print(f"Runners of workflow {chosen} that are gone have left nothing in the cluster.")


def _stored_ends(session: Session, workflow_id: int) -> _StoredEnds:
    """Return the runners and worker pods whose ends the server has stored."""
    scopes = set()
    for node in session.client.iterate(ComputeNodeRecord, workflow_id=workflow_id):
        described = node.scheduler if isinstance(node.scheduler, dict) else {}
        state = (described.get("state") or {}).get("k8s") or {}
        if not node.is_active and state.get("scope"):
            scopes.add(str(state["scope"]))
    allocations = session.client.iterate(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    workers = {each.batch_id for each in allocations if each.scheduler_type == "k8s" and each.status == "complete"}
    return _StoredEnds(frozenset(scopes), frozenset(filter(None, workers)))


async def _clean(
    address: ClusterAddress, workflow_id: int, stored: _StoredEnds, *, keep: str, kept: bool, dry_run: bool
) -> tuple[list[Leftover], list[str]]:
    """Remove what is left; return it: by runner outside of the cluster, and the names of worker pods."""
    cluster = await Cluster.open(address, patience_s=PATIENCE_S)
    try:
        found = [each for each in await find_leftovers(cluster, workflow_id) if each.scope in stored.scopes]
        found = [each for each in found if each.pods or kept or not each.kept]
        listed, _ = await cluster.list("pods", labels=worker_selector(workflow_id), patience_s=PATIENCE_S)
        workers = {pod["metadata"]["name"]: pod for pod in listed if _is_removable(PodFacts.of(pod), stored, keep)}
        if not dry_run:
            for each in found:
                await remove_scope(cluster, each.scope, patience_s=PATIENCE_S, kept=kept)
            await remove_pods(cluster, workers.values(), patience_s=PATIENCE_S)
        return found, sorted(workers)
    finally:
        await cluster.close()


def _is_removable(facts: PodFacts, stored: _StoredEnds, keep_pods: str) -> bool:
    """Return whether a worker pod has ended, its end is stored, and the option does not keep it."""
    return facts.is_over and facts.name in stored.workers and not is_kept(facts, keep_pods)


def _row(each: Leftover, kept: bool) -> dict[str, Any]:
    return {"scope": each.scope, "pods": each.pods + (each.kept if kept else [])}


_COLUMNS: Final[list[Column]] = [
    ("Runner", attrgetter("scope")),
    ("Pods", lambda each: str(len(each.pods))),
    ("Kept pods", lambda each: str(len(each.kept))),
]
