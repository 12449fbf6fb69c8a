"""Runners of torc on other machines, over SSH."""

from torc_framework.api.commands import CommandGroup
from torc_ssh.commands import workers

app = CommandGroup("Runners of torc on other machines, over SSH.")
workers.register(app)
