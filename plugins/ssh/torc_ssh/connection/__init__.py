"""Connections over SSH: what the system's ``ssh`` does with configuration, keys and known hosts, without questions."""

from typing import Final

from torc_framework.api import LoopThread
from torc_ssh.connection.connecting import connect
from torc_ssh.connection.interface import Channel, ConnectError, SshConnection, SshSettings

loop_thread: Final = LoopThread("torc-ssh")
"""All connections of a process."""

__all__ = ["Channel", "ConnectError", "SshConnection", "SshSettings", "connect", "loop_thread"]
