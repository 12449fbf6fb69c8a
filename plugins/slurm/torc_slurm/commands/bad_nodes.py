"""``torc slurm bad-nodes``: nodes that failed and that new allocations exclude for a while."""

from datetime import UTC, datetime
from operator import itemgetter
from typing import Annotated, Final

import typer

from torc_framework.api import UserError
from torc_framework.api.commands import Column, CommandGroup, executor_options, print_json, print_table, session_of
from torc_slurm.cluster.bad_nodes import BadNodes
from torc_slurm.shared.options import SlurmOptions


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("bad-nodes")(bad_nodes)


def bad_nodes(
    ctx: typer.Context,
    *,
    forget: Annotated[
        list[str] | None, typer.Option("--forget", metavar="NODE", help="Forget a node; may be repeated.")
    ] = None,
    forget_all: Annotated[bool, typer.Option("--forget-all", help="Forget all of them.")] = False,
) -> None:
    """Show nodes that failed under your allocations; new allocations exclude them.

    A node is excluded for the time of the executor's option --exclude-failed-nodes-s.

    Examples:
        torc slurm bad-nodes
        torc slurm bad-nodes --forget n0123
    """
    session = session_of(ctx)
    memory = BadNodes.of_user()
    if forget or forget_all:
        gone = memory.forget(None if forget_all else forget)
        unknown = [node for node in forget or () if node not in gone]
        if unknown:
            raise UserError(f"not among the nodes that failed: {', '.join(unknown)}")
    options = SlurmOptions(**executor_options(session, session.plugins(skip_untrusted=True), "slurm").get("slurm", {}))
    rows = [
        {"node": node, "failed_at": f"{datetime.fromtimestamp(facts['at'], UTC):%Y-%m-%dT%H:%M:%SZ}", **facts}
        for node, facts in memory.failed_within(options.exclude_failed_nodes_s).items()
    ]
    if session.wants_json:
        print_json({"excluded_for_s": options.exclude_failed_nodes_s, "bad_nodes": rows})
    elif rows:
        print_table(_COLUMNS, rows)
    else:
        print("No node failed lately.")


_COLUMNS: Final[list[Column]] = [
    ("Node", itemgetter("node")),
    ("Failed at", itemgetter("failed_at")),
    ("Reason", itemgetter("reason")),
]
