"""Connections by the system's ssh: a master with a control socket, and one process for each channel."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import weakref
from asyncio.subprocess import DEVNULL
from pathlib import Path
from typing import Any, Final

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.interface import Channel, ConnectError, SshSettings
from torc_ssh.connection.logins import DROPPED, log_in
from torc_ssh.connection.ssh_channel import ProcessChannel
from torc_ssh.connection.ssh_log import MasterLog
from torc_ssh.connection.ssh_program import SshProgram, end_program, ssh_error, start_program

MASTER_ENDED: Final = "the master of the system's ssh ended"
PERSIST_S: Final = 60
"""A master whose user is gone, as after kill -9, ends after this time."""
LOG_IN_S: Final = 180.0
"""Longest time for a log-in with questions at the terminal; sshd usually gives 120 s."""
LONGEST_FOLDER: Final = 60
"""The path of a control socket has at most 107 characters, of which ssh uses 17 while it makes it."""

_SESSION: Final = ("-T", "-x", "-o", "ControlMaster=no", "-o", "ProxyCommand=false")
"""A channel never makes a connection of its own, which would ask for a log-in again."""


class SystemConnection:
    """A connection by the system's ssh; the methods are those of `SshConnection`."""

    def __init__(self, program: SshProgram, socket: Path, master: "_OwnMaster | None") -> None:
        self._program, self._socket, self._master = program, socket, master
        self._channels: set[ProcessChannel] = set()
        self._watch: asyncio.Task[None] | None = None
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def watch(self) -> None:
        """Begin to notice the end of the master: a connection to its socket lives as long as the master.

        Raises:
            ConnectError: the master has ended.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError as error:
            raise ConnectError(f"control socket {self._socket}: {error.strerror}", is_permanent=False) from None
        self._watch = asyncio.ensure_future(self._wait_for_end(reader, writer))

    async def start(self, command: str) -> Channel:
        if self.lost.done():
            raise ConnectError("the connection is lost", is_permanent=False)
        words = self._program.words(*self._on_socket(), *_SESSION, remote_command=command)
        channel = ProcessChannel(await start_program(words), self.lost)
        self._channels = {one for one in self._channels if one.is_open} | {channel}
        return channel

    async def forward_remote_port(self, local_host: str, local_port: int, remote_port: int = 0) -> int:
        host = f"[{local_host}]" if ":" in local_host else local_host
        wanted = f"localhost:{remote_port}:{host}:{local_port}"
        output = await self._program.run(*self._on_socket(), "-O", "forward", "-R", wanted)
        number = output.stdout.strip()
        if output.status or (not remote_port and not number.isdecimal()):
            what = f"port {remote_port}" if remote_port else "a port"
            refusal = f"the host does not forward {what}: it is in use, or AllowTcpForwarding is no"
            raise ConnectError("the connection is lost" if self.lost.done() else refusal, is_permanent=False)
        return remote_port or int(number)

    async def close(self) -> None:
        if not self.lost.done():
            self.lost.cancel()
        for channel in self._channels:
            channel.close()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        if self._master is not None:
            master, self._master = self._master, None
            with contextlib.suppress(ConnectError):
                await self._program.run(*self._on_socket(), "-O", "exit")
            master.clean_up()
        await asyncio.gather(*(channel.wait_closed() for channel in self._channels))
        self._channels.clear()

    async def _wait_for_end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError):
                while await reader.read(4096):
                    pass
            reason = MASTER_ENDED if self._master is None else await self._master.end_reason()
            if not self.lost.done():
                self.lost.set_result(reason)
        finally:
            writer.close()

    def _on_socket(self) -> tuple[str, str]:
        return "-o", f"ControlPath={self._socket}"


async def connect_by_system(address: HostAddress, settings: SshSettings) -> SystemConnection:
    """Connect to a host by the system's ssh; a master of the user is used if there is one.

    Raises:
        ConnectError: as `connect`.
    """
    program = SshProgram.of(address, settings)
    configuration = await program.configuration()
    socket = configuration.get("controlpath", "none")
    if socket != "none" and (await program.run("-O", "check")).status == 0:
        connection = SystemConnection(program, Path(socket), None)
    else:
        connection = await _make_master(program, configuration, settings)
    try:
        await connection.watch()
    except BaseException:
        await connection.close()
        raise
    return connection


class _OwnMaster:
    """A master that this process has started: the folder of its socket, and its messages."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="torc-ssh-", dir=_folder_for_sockets())
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.socket, self.log = Path(folder, "socket"), MasterLog()

    async def end_reason(self) -> str:
        """Return why the master ended, from its messages."""
        text = await self.log.text()
        return ssh_error(text).reason if text.strip() else MASTER_ENDED

    def clean_up(self) -> None:
        """Remove what is left of it."""
        self.log.close()
        self._remove_folder()


async def _make_master(program: SshProgram, configuration: dict[str, str], settings: SshSettings) -> SystemConnection:
    """Log in with a new master; if that is refused and there is a terminal, once more with questions."""
    master = _OwnMaster()
    words = program.words(*_master_options(configuration, settings, master.socket))
    server = configuration.get("proxyjump") or (configuration.get("hostname"), configuration.get("port"))
    try:
        try:
            await log_in(server, lambda: _log_in_silently(words, master, settings.connect_timeout_s), _is_dropped)
        except ConnectError as refusal:
            if not _may_ask(program, refusal):
                raise _with_advice(refusal) from None
            await _log_in_at_terminal(program, words)
    except BaseException:
        master.clean_up()
        raise
    master.log.close_writing_end()
    master.log.clear()
    return SystemConnection(program, master.socket, master)


def _master_options(configuration: dict[str, str], settings: SshSettings, socket: Path) -> list[str]:
    """Return the options of a master: what the user has configured comes first."""
    options = {
        "ControlMaster": "yes",
        "ControlPath": str(socket),
        "ControlPersist": str(PERSIST_S),
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "RemoteCommand": "none",
        "ForwardX11": "no",
        "LogLevel": "INFO",
        "NumberOfPasswordPrompts": "1",
    }
    if configuration.get("stricthostkeychecking", "ask") == "ask":
        options["StrictHostKeyChecking"] = "accept-new"
    if configuration.get("connecttimeout", "none") == "none":
        options["ConnectTimeout"] = str(max(1, round(settings.connect_timeout_s)))
    if configuration.get("serveraliveinterval", "0") == "0":
        options["ServerAliveInterval"] = str(max(1, round(settings.keepalive_interval_s)))
        options["ServerAliveCountMax"] = str(settings.keepalive_count)
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return [*words, "-N", "-f"]


async def _log_in_silently(words: list[str], master: _OwnMaster, timeout_s: float) -> None:
    """Log in without questions.

    Raises:
        ConnectError: the log-in failed.
    """
    master.log.close()
    master.log = await MasterLog.open()
    silent = [words[0], "-v", "-o", "BatchMode=yes", *words[1:]]
    if await _run(silent, timeout_s, stdin=DEVNULL, stdout=DEVNULL, stderr=master.log.writing_end):
        master.log.close_writing_end()
        raise ssh_error(await master.log.text())


async def _log_in_at_terminal(program: SshProgram, words: list[str]) -> None:
    """Log in while the person at the terminal answers the questions of the host: one log-in after the other.

    Raises:
        ConnectError: the log-in failed; ``ssh`` has told the person why.
    """
    _asked.add(program.destination)
    async with _terminals.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        sys.stderr.write(f"Log-in to {program.destination[-1]} by {program.command[0]}:\n")
        sys.stderr.flush()
        if await _run(words, LOG_IN_S, has_terminal=True, stdin=None, stdout=None, stderr=None):
            raise ConnectError("Permission denied (the log-in at the terminal failed)", is_permanent=True)


async def _run(words: list[str], timeout_s: float, **options: Any) -> int:
    """Return the exit code of ``ssh``, which ends when the log-in has failed or the master is in the background."""
    process = await start_program(words, **options)
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait()
    except TimeoutError:
        raise ConnectError("Connection timed out", is_permanent=False) from None
    finally:
        await end_program(process)


def _may_ask(program: SshProgram, refusal: ConnectError) -> bool:
    """Return whether a log-in that was refused may be tried with questions: once for each host, at a terminal."""
    if not refusal.reason.startswith(("Permission denied", "Host key verification failed")):
        return False
    try:
        with Path("/dev/tty").open("rb", buffering=0) as terminal:
            is_in_foreground = os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
    return is_in_foreground and sys.stdin.isatty() and program.destination not in _asked


def _with_advice(refusal: ConnectError) -> ConnectError:
    """Return a refusal with what a person can do if the host asks questions."""
    if "keyboard-interactive" not in refusal.reason and "password" not in refusal.reason:
        return refusal
    advice = "log in once at a terminal with ControlMaster and ControlPath, and leave that connection open"
    return ConnectError(f"{refusal.reason}; {advice}", is_permanent=refusal.is_permanent)


def _is_dropped(error: Exception) -> bool:
    return isinstance(error, ConnectError) and error.reason == DROPPED


def _folder_for_sockets() -> str:
    """Return the folder of temporary files, or ``/tmp`` if its path is too long for sockets."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= LONGEST_FOLDER else "/tmp"


_asked: Final[set[tuple[str, ...]]] = set()
"""The hosts about which the person at the terminal was asked: never again in this process."""
_terminals: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = weakref.WeakKeyDictionary()
