"""``torc slurm``: schedulers, allocations and what Slurm says of them."""

from torc_framework.api.commands import CommandGroup
from torc_slurm.commands import bad_nodes, calls, generate, regenerate

app = CommandGroup("Slurm: schedulers, allocations, and what Slurm says of them.")
bad_nodes.register(app)
calls.register(app)
generate.register(app)
regenerate.register(app)
