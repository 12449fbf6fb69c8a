"""``torc slurm``: schedulers, allocations and what Slurm says of them."""

from torc_framework.api.commands import CommandGroup
from torc_slurm.commands import calls, generate

app = CommandGroup("Slurm: schedulers, allocations, and what Slurm says of them.")
calls.register(app)
generate.register(app)
