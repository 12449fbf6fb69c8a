"""``torc compute-nodes``: the runners that worked on a workflow."""

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.output import seconds_text
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import record_option
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.text.quantities import size_text

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
        ("Active", lambda node: "yes" if node.is_active else "no"),
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
