"""Schedulers, allocations and accounting of Slurm."""

from torc_framework.api.commands import CommandGroup
from torc_slurm.commands import (
    bad_nodes,
    calls,
    generate,
    parse_logs,
    regenerate,
    sacct,
    schedule_nodes,
    schedulers,
)

app = CommandGroup(
    "Schedulers, allocations and accounting of Slurm.",
    sections={
        "Schedulers": ("create", "list", "get", "update", "delete"),
        "Plan and submit": ("generate", "regenerate", "schedule-nodes"),
        "Ask": ("sacct", "parse-logs", "calls", "bad-nodes"),
    },
)
schedulers.register(app)
schedule_nodes.register(app)
generate.register(app)
regenerate.register(app)
sacct.register(app)
parse_logs.register(app)
calls.register(app)
bad_nodes.register(app)
