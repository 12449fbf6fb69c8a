"""``torc k8s groups``: the groups of pods of a workflow, in the words of OSMO."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

import typer

from torc_framework.api import JobRecord, ResultRecord
from torc_framework.api.commands import (
    Column,
    CommandGroup,
    WorkflowId,
    pick_workflow,
    print_json,
    print_table,
    session_of,
)
from torc_k8s.groups.workflow_groups import groups_of, workflow_status


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("groups")(groups)


def groups(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Show jobs as groups of tasks: their statuses and exit codes as OSMO has them.

    A job that is a single pod is a group of one task. A job that did not run because another one failed is
    FAILED_UPSTREAM, code 3000.

    Examples:
        torc k8s groups 42
        torc k8s groups 42 -f json
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    client = session.client
    found = groups_of(
        client.iterate(JobRecord, workflow_id=chosen),
        client.iterate(ResultRecord, workflow_id=chosen),
        is_canceled=client.workflow_status(chosen).is_canceled,
    )
    status = workflow_status([group["status"] for group in found])
    if session.wants_json:
        print_json({"workflow_id": chosen, "status": status, "groups": found})
        return
    print(f"Workflow {chosen}: {status}")
    if found:
        print_table(_COLUMNS, list(_rows(found)))


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
]
