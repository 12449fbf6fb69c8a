"""The tunnel from a host back to the server: its port on the host, and its end on a connection that was lost.

A runner keeps the address of the server for its life, so the port stays the same when the tunnel is opened again. The
host's ``sshd`` may keep the port of a connection that was lost for many minutes; it is then ended by its process id.
The runner's environment tells the port, and a file beside the runner's record the process.
"""

import asyncio
import json
import posixpath
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import asdict, define, frozen

from torc_framework.api import TorcError
from torc_ssh.connection import ConnectError
from torc_ssh.remote_runners.host_pool import Host, HostError
from torc_ssh.remote_runners.runner_process import RunnerFiles
from torc_ssh.remote_runners.server_access import URL, ServerAccess
from torc_ssh.session import HelperError, HostSession

PORT_PATIENCE_S: Final = 10.0
"""Time for the port to become free after the old connection was ended."""
_PROBE_TIMEOUT_S: Final = 10.0
_PROBE: Final = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as s:
    s.settimeout(5)
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    s.recv(1)
"""
"""Program that succeeds if a port answers or closes the connection; a dead tunnel does neither.

A tunnel whose server does not run closes the connection.
"""
_URL_OF: Final = "tr '\\0' '\\n' </proc/$1/environ | sed -n 's/^TORC_API_URL=//p'"
"""Script for ``sh`` that prints the address of the server in the environment of a process."""
_END: Final = """
import os, signal, sys
pid, start = int(sys.argv[1]), sys.argv[2]
with open("/proc/%d/stat" % pid) as file:
    found = file.read().rpartition(")")[2].split()[19]
if found == start:
    os.kill(pid, signal.SIGTERM)
"""
"""Program that ends a process if it still is the one that began at a time."""


class TakenPortError(TorcError):
    """The port of the tunnel is used, and not by a connection that was lost."""


@frozen
class TunnelEnd:
    """The end of a tunnel on the host, as the file beside the runner's record describes it.

    Attributes:
        port: The port.
        pid: Process of ``sshd`` that serves the connection.
        pid_start: When it began, in clock ticks since the boot.
        boot_id: The host's boot.
    """

    port: int
    pid: int
    pid_start: int
    boot_id: str


@define
class Tunnel:
    """The tunnel of one runner.

    Args:
        files: The runner's files.
        access: How this machine reaches the server.
    """

    files: RunnerFiles
    access: ServerAccess

    @property
    def _file(self) -> str:
        return posixpath.join(self.files.output_dir, f"torc_worker_{self.files.workflow_id}.tunnel")

    async def open(self, host: Host, port: int = 0) -> int:
        """Forward a port of the host to the server; return the port.

        Args:
            host: The host.
            port: The port at which a runner expects the server; 0 lets the host choose.

        Raises:
            TakenPortError: another program, such as another process like this one, has the port.
            HostError: the host does not allow it.
        """
        return await self._take(host, port) if port else await self._forward(host, 0)

    async def port_of_runner(self, session: HostSession, pid: int) -> int | None:
        """Return the port at which a runner expects the server; None if it was started without a tunnel."""
        answer = await session.request("run", argv=["/bin/sh", "-c", _URL_OF, "sh", str(pid)])
        url = str(answer["stdout"]).strip()
        try:
            port = urlsplit(url).port
        except ValueError:
            return None
        return port if port and url == self.access.through_port(port)[URL] != self.access.url else None

    async def _take(self, host: Host, port: int) -> int:
        """Forward a certain port; end the connection of the last tunnel if that has it and nothing answers there."""
        try:
            return await self._forward(host, port)
        except HostError:
            pass  # it is taken
        if await _answers(host.session, port):
            raise TakenPortError(
                f"port {port} leads to a server already: another 'torc remote run --tunnel' keeps this tunnel; "
                "end that one first"
            )
        known = await self._read(host.session)
        if known is not None and (known.port, known.boot_id) == (port, host.session.facts.boot_id):
            await _run_python(host.session, _END, str(known.pid), str(known.pid_start))
        clock = asyncio.get_running_loop()
        deadline = clock.time() + PORT_PATIENCE_S
        while True:
            try:
                return await self._forward(host, port)
            except HostError as error:
                if clock.time() > deadline:
                    raise TakenPortError(f"port {port}, at which the runner expects the server: {error}") from None
            await asyncio.sleep(0.5)

    async def _forward(self, host: Host, port: int) -> int:
        try:
            return await host.connection.forward_remote_port(self.access.host, self.access.port, port)
        except ConnectError as error:
            raise HostError(f"the host does not forward a port: {error.reason}") from None

    async def _read(self, session: HostSession) -> TunnelEnd | None:
        answer = await session.request("run", argv=["cat", self._file])
        try:
            values: Any = json.loads(str(answer["stdout"]))
            port, pid, start = numbers = [int(values[name]) for name in ("port", "pid", "pid_start")]
            found = TunnelEnd(port, pid, start, str(values["boot_id"]))
        except (ValueError, TypeError, KeyError):
            return None
        return found if 0 < found.port < 1 << 16 and min(numbers) > 0 else None

    async def remember(self, host: Host, port: int) -> None:
        """Store which connection serves the tunnel, so that a later one can end it."""
        pid, start = await _sshd_of(host.session)
        text = json.dumps(asdict(TunnelEnd(port, pid, start, host.session.facts.boot_id)))
        folder = self.files.output_dir
        script = 'umask 077; mkdir -p "$1" && cat >"$2.new" && mv "$2.new" "$2"'
        answer = await host.session.request("run", argv=["/bin/sh", "-c", script, "sh", folder, self._file], stdin=text)
        if answer["exit_code"] != 0:
            raise HostError(f"cannot write {self._file}: {str(answer['stderr']).strip()}")


async def _sshd_of(session: HostSession) -> tuple[int, int]:
    """Return process id and start of the ``sshd`` that serves the session, which is the helper's parent."""
    parent = int((await _stat(session, session.facts.pid))[1])
    return parent, int((await _stat(session, parent))[19])


async def _stat(session: HostSession, pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` that follow the name of the process (proc(5))."""
    answer = await session.request("run", argv=["cat", f"/proc/{pid}/stat"])
    fields = str(answer["stdout"]).rpartition(")")[2].split()
    if len(fields) < 20 or not (fields[1].isdigit() and fields[19].isdigit()):
        raise HelperError("failed", f"the host does not describe its process {pid}")
    return fields


async def _answers(session: HostSession, port: int) -> bool:
    return await _run_python(session, _PROBE, str(port))


async def _run_python(session: HostSession, program: str, *arguments: str) -> bool:
    argv = [session.facts.python, "-c", program, *arguments]
    answer = await session.request("run", argv=argv, timeout_s=_PROBE_TIMEOUT_S)
    return bool(answer["exit_code"] == 0)
