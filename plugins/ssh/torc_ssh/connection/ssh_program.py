"""The system's ``ssh`` as a program: its argument lists, its configuration for a host, what its errors mean."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.interface import ConnectError, SshSettings
from torc_ssh.connection.logins import DROPPED

ANSWER_S: Final = 20.0
"""Longest time for what ``ssh`` does without a connection, or over one that exists."""


@frozen
class ProgramOutput:
    """What a program that has ended printed, and its exit code."""

    status: int
    stdout: str
    stderr: str


@frozen
class SshProgram:
    """The command line of ``ssh``, and the host that it is used for."""

    command: tuple[str, ...]
    destination: tuple[str, ...]

    @classmethod
    def of(cls, address: HostAddress, settings: SshSettings) -> "SshProgram":
        """Return the program of ``settings`` for a host.

        Raises:
            ConnectError: the command line cannot be divided into words.
        """
        try:
            command = tuple(shlex.split(settings.ssh_command))
        except ValueError as error:
            raise ConnectError(f"ssh command {settings.ssh_command!r}: {error}", is_permanent=True) from None
        user = () if address.user is None else ("-l", address.user)
        port = () if address.port is None else ("-p", str(address.port))
        return cls(command, (*user, *port, address.host))

    def words(self, *options: str, remote_command: str | None = None) -> list[str]:
        """Return the argument list for some options, and for a command on the host."""
        return [*self.command, *options, *self.destination, *(() if remote_command is None else (remote_command,))]

    async def run(self, *options: str, timeout_s: float = ANSWER_S) -> ProgramOutput:
        """Run ``ssh`` with options to its end, without a terminal.

        Raises:
            ConnectError: it cannot be started, or does not end in time.
        """
        process = await start_program(self.words(*options), stdin=asyncio.subprocess.DEVNULL)
        try:
            async with asyncio.timeout(timeout_s):
                stdout, stderr = await process.communicate()
        except TimeoutError:
            raise ConnectError(f"{self.command[0]} did not end within {timeout_s:.0f} s", is_permanent=False) from None
        finally:
            await end_program(process)
        assert process.returncode is not None
        return ProgramOutput(process.returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    async def configuration(self) -> dict[str, str]:
        """Return what ``ssh -G`` says for the host: the last value of each keyword, in small letters.

        Raises:
            ConnectError: the configuration has an error; the reason names file and line.
        """
        output = await self.run("-G")
        if output.status:
            problem = " ".join(output.stderr.split()) or f"{self.command[0]} -G ended with {output.status}"
            raise ConnectError(f"SSH configuration: {problem}", is_permanent=True)
        pairs = (line.partition(" ") for line in output.stdout.splitlines())
        return {keyword: value for keyword, _, value in pairs}


async def start_program(words: Sequence[str], *, has_terminal: bool = False, **streams: Any) -> Process:
    """Start a program, with pipes; without a terminal a Ctrl-C there does not reach it.

    Raises:
        ConnectError: it cannot be started.
    """
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    options: dict[str, Any] = {**pipes, **streams, "start_new_session": not has_terminal}
    start = asyncio.ensure_future(asyncio.create_subprocess_exec(*words, **options))
    try:
        return await asyncio.shield(start)  # CPython 3.11 waits for ever in a start that is cancelled
    except OSError as error:
        raise ConnectError(f"{words[0]} cannot be started: {error.strerror}", is_permanent=True) from None
    except asyncio.CancelledError:
        start.add_done_callback(_kill_started)
        raise


def _kill_started(start: asyncio.Future[Process]) -> None:
    """Kill a program of which no one has taken note."""
    if not start.cancelled() and start.exception() is None:
        kill_program(start.result())


def kill_program(process: Process) -> None:
    """Kill a program if it still runs.

    ``Process.kill`` would first ask the system whether the program has ended, and so take its exit code away from the
    thread in which asyncio waits for it: that reports 255 then and writes a warning to the terminal.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


async def end_program(process: Process) -> None:
    """Kill a program if it still runs, and wait until it has ended."""
    kill_program(process)
    await process.wait()


def ssh_error(text: str) -> ConnectError:
    """Return the error that messages of ``ssh`` stand for: the first row that fits, or else the last line."""
    for pattern, reason, is_permanent in _REASONS:
        found = re.search(pattern, text)
        if found is not None:
            return ConnectError(found.expand(reason).strip(), is_permanent=is_permanent)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ConnectError(lines[-1] if lines else "ssh gave no reason", is_permanent=False)


_SYSTEM_ERRORS: Final = "Connection refused|No route to host|Network is unreachable|Connection timed out"
_REASONS: Final = (
    (
        r"(?s)IDENTIFICATION HAS CHANGED.*?fingerprint for the (\S+) key sent by the remote host is\s+(\S+?)\.?\s"
        r".*?Offending \S+ key in ([^\n]+?):(\d+)\s.*?Host key for (\S+) has changed",
        r"the host key has changed: the host shows another key (\1 \2) than \3 line \4. "
        r"If the host was installed anew, remove the old key: ssh-keygen -R \5 -f \3. "
        r"If it was not, another machine may answer in its place",
        True,
    ),
    (r"REVOKED HOST KEY|was revoked", "the host key is revoked", True),
    (r"Host key verification failed", "Host key verification failed", True),
    (r"Permission denied \(([^)]*)\)", r"Permission denied (\1)", True),
    (r"Too many authentication failures", "Too many authentication failures", True),
    (r"Could not resolve hostname [^:]*: (Temporary failure[^\n\r]*)", r"Could not resolve the host name: \1", False),
    (r"Could not resolve hostname [^:]*: ([^\n\r]*)", r"Could not resolve the host name: \1", True),
    (r"administratively prohibited", "the jump host does not allow forwarding (AllowTcpForwarding)", True),
    (r"open failed: connect failed: ([^\n\r]*)", r"the jump host could not connect: \1", False),
    (r"jumphost loop via ([^\n\r]*)", r"ProxyJump of \1 leads back to \1", True),
    (rf"connect to [^\n]*: ({_SYSTEM_ERRORS})", r"\1", False),
    (r"Timeout, server \S+ not responding", "the host does not answer", False),
    (r"Connection to \S+ closed by remote host", "the host closed the connection", False),
    (r"client_loop: send disconnect: ([^\n\r]*)", r"\1", False),
    (r"kex_exchange_identification|Connection (reset|closed) by", DROPPED, False),
    (r"Connection timed out", "Connection timed out", False),
    (r"(?m)^(\S+) line (\d+): ([^\n\r]*)", r"SSH configuration: \1 line \2: \3", True),
)
"""Pattern in what ``ssh`` writes, the reason, and whether it is permanent."""
