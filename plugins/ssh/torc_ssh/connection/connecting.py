"""The choice between the two ways to connect."""

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.interface import SshConnection, SshSettings
from torc_ssh.connection.ssh_connection import connect_by_system


async def connect(address: HostAddress, settings: SshSettings) -> SshConnection:
    """Connect to a host and log in.

    A log-in that the host drops because of too many others (``MaxStartups``) is tried again, within the time of
    ``settings``.

    Raises:
        ConnectError: the host cannot be connected to; the reason does not name it.
    """
    if settings.ssh_command:
        return await connect_by_system(address, settings)
    from torc_ssh.connection.asyncssh_connection import connect_by_asyncssh  # its import takes 0.3 s

    return await connect_by_asyncssh(address, settings)
