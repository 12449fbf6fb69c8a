"""``torc k8s groups``: the groups of pods of a workflow, in the words of OSMO."""

import sys
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

import typer

from torc_framework.api import ComputeNodeRecord, ConfigError, JobRecord, ResultRecord
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
from torc_k8s.cluster import Cluster, ClusterAddress, ClusterError, loop_thread
from torc_k8s.executor.live_members import Tasks, live_tasks
from torc_k8s.executor.names import EXECUTOR, is_scope
from torc_k8s.groups.workflow_groups import LIVE, groups_of, workflow_status

PATIENCE_S: Final = 5.0
"""How long the cluster is asked again while it does not answer; a person waits for it."""


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("groups")(groups)


def groups(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Show jobs as groups of tasks: their statuses and exit codes as OSMO has them.

    A job that is a single pod is a group of one task. A job that did not run because another one failed is
    FAILED_UPSTREAM, code 3000. While a job runs, each task has the status of its pod, which the cluster is asked for.

    Examples:
        torc k8s groups 42
        torc k8s groups 42 -f json
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    client = session.client
    jobs = [*client.iterate(JobRecord, workflow_id=chosen)]
    found = groups_of(
        jobs,
        client.iterate(ResultRecord, workflow_id=chosen),
        is_canceled=client.workflow_status(chosen).is_canceled,
        live=_live_tasks(session, chosen) if any(job.status in LIVE for job in jobs) else {},
    )
    status = workflow_status([group["status"] for group in found])
    if session.wants_json:
        print_json({"workflow_id": chosen, "status": status, "groups": found})
        return
    print(f"Workflow {chosen}: {status}")
    if found:
        print_table(_COLUMNS, list(_rows(found)))


def _live_tasks(session: Session, workflow_id: int) -> dict[tuple[int, int], Tasks]:
    """Return what the cluster says of the tasks of jobs that runners hold, by job and attempt.

    If the cluster does not answer, a line on standard error says so, and the server's statuses are shown.
    """
    options = executor_options(session, session.plugins(skip_untrusted=True), EXECUTOR).get(EXECUTOR, {})
    found: dict[tuple[int, int], Tasks] = {}
    for node in session.client.iterate(ComputeNodeRecord, workflow_id=workflow_id):
        described = node.scheduler if isinstance(node.scheduler, dict) else {}
        state = (described.get("state") or {}).get(EXECUTOR) or {}
        if node.is_active and is_scope(state.get("scope")):
            place = (str(state.get(name) or options.get(name) or "") for name in ("context", "namespace"))
            address = ClusterAddress(str(options.get("kubeconfig") or ""), *place)
            try:
                found |= loop_thread.run(_ask(address, str(state["scope"])))
            except (ClusterError, ConfigError) as error:
                print(f"the statuses of pods are not known: {error}", file=sys.stderr)
                break
    return found


async def _ask(address: ClusterAddress, scope: str) -> dict[tuple[int, int], Tasks]:
    cluster = await Cluster.open(address, patience_s=PATIENCE_S)
    try:
        return await live_tasks(cluster, scope, PATIENCE_S)
    finally:
        await cluster.close()


def _rows(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each task, with its group at the first."""
    for group in found:
        for place, task in enumerate(group["tasks"]):
            shown = {"group": group["name"], "group_status": group["status"]} if not place else {}
            yield {"group": "", "group_status": "", **shown, **task}


def _code(row: dict[str, Any]) -> str:
    return "" if row.get("code") is None else str(row["code"])


_COLUMNS: Final[list[Column]] = [
    ("Group", itemgetter("group")),
    ("Status", itemgetter("group_status")),
    ("Task", lambda row: f"{row['name']} (lead)" if row.get("lead") else str(row["name"])),
    ("Task status", itemgetter("status")),
    ("Code", _code),
    ("Retries", lambda row: str(row.get("retries") or "")),
    ("Message", lambda row: str(row.get("message") or "")),
]
