"""What a connection is, whichever program or library makes it."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

from attrs import frozen

from torc_framework.api import TorcError


@frozen
class SshSettings:
    """How hosts are connected to.

    Args:
        connect_timeout_s: longest time from the first packet to the end of the log-in; ``ConnectTimeout`` of the SSH
            configuration comes first.
        keepalive_interval_s: a host that has sent nothing for this long is asked for an answer; ``ServerAliveInterval``
            of the SSH configuration comes first.
        keepalive_count: the connection is lost after this many questions without an answer; ``ServerAliveCountMax``
            of the SSH configuration comes first.
        ssh_command: the command line of the system's ``ssh``, such as ``ssh -F site.cfg``, which then makes the
            connections, with a control socket; empty for connections without it.
        config_files: SSH configuration files instead of ``~/.ssh/config`` and ``/etc/ssh/ssh_config``; not used with
            ``ssh_command``.
    """

    connect_timeout_s: float = 30
    keepalive_interval_s: float = 15
    keepalive_count: int = 3
    ssh_command: str = ""
    config_files: tuple[Path, ...] | None = None


LONGEST_REASON: Final = 600
"""Characters of a reason that are kept; some come from the host."""


def one_line(text: str) -> str:
    """Return a text that a host may have chosen as one line, without control characters, and not too long."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text[: 8 * LONGEST_REASON]).split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}..."


class ConnectError(TorcError):
    """A host could not be connected to.

    Args:
        reason: one line, such as ``Permission denied (publickey)``, without the name of the host.
        is_permanent: another attempt fails in the same way until a person changes something: a host key that has
            changed, a log-in that is refused, a name that is unknown, a wrong configuration.
    """

    def __init__(self, reason: str, *, is_permanent: bool) -> None:
        self.reason, self.is_permanent = one_line(reason), is_permanent
        super().__init__(self.reason)


class Channel(Protocol):
    """A command on the host, and its standard input and output."""

    async def read(self, n: int) -> bytes:
        """Return 1 to ``n`` bytes of the standard output; empty at its end, also if the connection is lost."""

    def write(self, data: bytes) -> None:
        """Append to the standard input; ignored after `close` and after a loss. Does not wait: see `drain`."""

    async def drain(self) -> None:
        """Wait until most of what was written has been sent; return at once if the connection is lost."""

    def write_eof(self) -> None:
        """End the standard input."""

    async def exit_status(self) -> int | None:
        """Wait for the end of the command, and return its exit code.

        A signal is a negative number; None means that the end is not known, as after a loss. The standard output has
        to be read meanwhile, and a signal is often reported as the exit code of a shell.
        """

    def stderr_tail(self) -> str:
        """Return the last 8 KiB of the standard error so far."""

    def close(self) -> None:
        """End the channel without waiting; the command on the host may go on."""


class SshConnection(Protocol):
    """A connection to a host, over which any number of channels are multiplexed.

    All methods are called in the event loop in which the connection was made.
    """

    lost: asyncio.Future[str]
    """Gets the reason, one line, when the connection is lost; `close` cancels it."""

    async def start(self, command: str) -> Channel:
        """Start a command in the login shell of the host.

        Raises:
            ConnectError: the host refuses another session, or the connection is lost.
        """

    async def forward_remote_port(self, local_host: str, local_port: int, remote_port: int = 0) -> int:
        """Let the host's loopback port lead to a port that is reachable from here; return the host's port.

        Args:
            local_host: host to which connections are made from here.
            local_port: its port.
            remote_port: port on the host; 0 lets the host choose.

        Raises:
            ConnectError: the host refuses, or the connection is lost.
        """

    async def close(self) -> None:
        """End the connection and all of its channels; may be called several times."""
