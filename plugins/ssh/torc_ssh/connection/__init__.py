"""Connections over SSH: what the system's ``ssh`` does with configuration, keys and known hosts, without questions."""

from torc_ssh.connection.connecting import connect
from torc_ssh.connection.interface import Channel, ConnectError, SshConnection, SshSettings

__all__ = ["Channel", "ConnectError", "SshConnection", "SshSettings", "connect"]
