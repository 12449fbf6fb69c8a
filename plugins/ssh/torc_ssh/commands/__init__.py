"""Runners of torc on other machines, over SSH."""

from torc_framework.api.commands import CommandGroup
from torc_ssh.commands import logs, run, status, workers

app = CommandGroup("Runners of torc on other machines, over SSH.")
workers.register(app)
run.register(app)
status.register(app)
logs.register(app)
