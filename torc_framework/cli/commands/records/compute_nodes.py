"""``torc compute-nodes``: the runners that worked on a workflow."""

import time
from typing import Annotated

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import RecordId
from torc_framework.cli.shared.output import print_json, seconds_text
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import record_option
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.models.runner_states import heard_seconds
from torc_framework.system.process_identity import known_runner_state
from torc_framework.text.quantities import size_text
from torc_framework.text.terminal import print_line


def _heard_text(node: ComputeNodeRecord) -> str:
    """Return how long ago an active runner was last heard of."""
    heard_s = heard_seconds(node)
    if not node.is_active or heard_s is None:
        return ""
    return f"{seconds_text(max(0.0, time.time() - heard_s))} ago"


NODES = RecordCommands(
    record=ComputeNodeRecord,
    one="a compute node",
    several="compute nodes",
    columns=[
        ("ID", "id"),
        ("Hostname", "hostname"),
        ("PID", "pid"),
        ("Type", "compute_node_type"),
        ("CPUs", "num_cpus"),
        ("Memory", lambda node: size_text(node.memory_gb * 1024**3)),
        ("GPUs", "num_gpus"),
        ("State", lambda node: known_runner_state(node, time.time())),
        ("Heard", _heard_text),
        ("Start Time", "start_time"),
        ("Duration", lambda node: seconds_text(node.duration_seconds)),
    ],
    filters=(
        record_option("hostname", help="Only those on this machine."),
        record_option("is_active", help="true: only active ones; false: only those that ended."),
        record_option(
            "scheduled_compute_node_id", "--scheduled-compute-node", kind=int, help="Only those of this allocation."
        ),
    ),
    short={"offset": "-o", "sort_by": "-s", "reverse_sort": "-r"},
    examples={"list": "12 --is-active true"},
)

app = CommandGroup("Runners that worked on a workflow.")
NODES.add(app, "get", "list")


@app.command("drain")
def drain(
    ctx: typer.Context,
    id_: RecordId,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let it take jobs again, unless it has ended.")] = False,
) -> None:
    """Ask a runner to take no more jobs: it ends when the jobs that it runs have ended.

    Jobs that it holds and has not begun are ready for other runners at once.

    Examples:
        torc compute-nodes drain 7
        torc compute-nodes drain 7 --undo
    """
    session = session_of(ctx)
    node = session.client.get(ComputeNodeRecord, id_)
    if not node.is_active:
        raise UserError(f"compute node {id_} has ended: there is nothing to drain")
    changed = session.client.update(ComputeNodeRecord, id_, {"is_draining": not undo})
    if session.wants_json:
        print_json(changed)
    elif undo:
        print_line(f"Compute node {id_} ({changed.hostname}) takes jobs again")
    else:
        print_line(f"Compute node {id_} ({changed.hostname}) takes no more jobs, and ends when its jobs have ended")
