"""Attempts as commands for a host."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from torc_framework.api import Attempt
from torc_framework.api.supervision import AttemptCommand
from torc_ssh.connection import ConnectError, SshConnection
from torc_ssh.executor.work_folder import WorkFolder

MESSAGE_BYTES: Final = 2 << 20
"""About so many bytes of commands are sent in one message."""
API_VARIABLE: Final = "TORC_API_URL"


def attempt_command(attempt: Attempt, folder: WorkFolder, default_shell: str, api_port: int) -> AttemptCommand:
    """Return the command of an attempt, with the paths and variables that are right on the host.

    Args:
        attempt: The attempt.
        folder: Working folder on the host.
        default_shell: Shell of attempts that name none.
        api_port: Port of the host that leads to the server; 0 if there is none.
    """
    environment = folder.environment(attempt.environment)
    if api_port and API_VARIABLE in environment:
        environment[API_VARIABLE] = (
            urlsplit(environment[API_VARIABLE])._replace(netloc=f"127.0.0.1:{api_port}").geturl()
        )
    return AttemptCommand(
        attempt.key.job_id,
        attempt.key.attempt_id,
        attempt.command,
        environment,
        folder.log(attempt.stdout_path),
        folder.log(attempt.stderr_path),
        attempt.working_dir if folder.is_shared else folder.remote,
        attempt.lane,
        attempt.shell or default_shell,
        attempt.memory_limit_bytes,
    )


def in_messages(commands: Iterable[AttemptCommand]) -> list[list[AttemptCommand]]:
    """Return the commands in parts of about `MESSAGE_BYTES`, in their order."""
    parts: list[list[AttemptCommand]] = []
    size = MESSAGE_BYTES
    for command in commands:
        own = len(command.command) + sum(len(name) + len(value) for name, value in command.environment.items())
        if size + own > MESSAGE_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(command)
        size += own
    return parts


async def forward_api(connection: SshConnection, api_url: str, port: int) -> int:
    """Let a port of the host lead to the server, and return it: the same one as before if that is possible.

    Raises:
        ConnectError: the host refuses.
    """
    parts = urlsplit(api_url)
    server = parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "https" else 80)
    if port:
        with suppress(ConnectError):
            return await connection.forward_remote_port(*server, port)
    return await connection.forward_remote_port(*server)
