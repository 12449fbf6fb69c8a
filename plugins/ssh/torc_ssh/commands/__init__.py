"""Runners of torc on other machines, over SSH."""

from torc_framework.api.commands import CommandGroup
from torc_ssh.commands import logs, run, status, workers

app = CommandGroup(
    """Runners of torc on other machines, over SSH.

    Examples:
        torc remote run 42 --workers workers.txt
        torc remote status 42
        torc remote stop 42
        torc remote collect-logs 42 -l logs
    """
)
workers.register(app)
run.register(app)
status.register(app)
logs.register(app)
