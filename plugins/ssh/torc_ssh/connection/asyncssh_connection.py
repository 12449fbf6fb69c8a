"""Connections by asyncssh."""

import asyncio
import logging
from typing import Any, Final

import asyncssh

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.asyncssh_channel import AsyncsshChannel
from torc_ssh.connection.failures import connect_error, loss_reason, was_dropped
from torc_ssh.connection.host_config import HostConfig, encrypted_identities, read_host_config
from torc_ssh.connection.host_keys import HostKeyCheck
from torc_ssh.connection.interface import Channel, ConnectError, SshSettings
from torc_ssh.connection.jump_hosts import JumpLease, lease_jump
from torc_ssh.connection.logins import log_in

WINDOW_BYTES: Final = 16 << 20
"""Receive window of a channel: at 200 ms of latency the usual 2 MiB limit a transfer to 5 MB/s."""
CLOSE_S: Final = 2.0
"""An orderly end of a connection takes at most so long; then it is aborted."""
FASTEST_CIPHER: Final = "^aes128-gcm@openssh.com"

logging.getLogger("asyncssh").addHandler(logging.NullHandler())  # else warnings of asyncssh reach the terminal
logging.getLogger("asyncssh").propagate = False


class _Client(asyncssh.SSHClient):
    """What asyncssh asks during a log-in, and tells about the connection."""

    def __init__(self, keys: HostKeyCheck, jump: JumpLease | None) -> None:
        self._keys, self._jump = keys, jump
        self.refused_methods: dict[str, None] = {}
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        return self._keys.accepts(key)

    def public_key_auth_requested(self) -> None:
        self.refused_methods["publickey"] = None  # asked when all keys have been tried

    def kbdint_auth_requested(self) -> None:
        self.refused_methods["keyboard-interactive"] = None

    def password_auth_requested(self) -> None:
        self.refused_methods["password"] = None

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            jump_reason = "" if self._jump is None else self._jump.loss_reason()
            self.lost.set_result(jump_reason or loss_reason(exc))


class AsyncsshConnection:
    """A connection by asyncssh; the methods are those of `SshConnection`."""

    def __init__(
        self, connection: asyncssh.SSHClientConnection, lost: asyncio.Future[str], jump: JumpLease | None
    ) -> None:
        self.connection, self.lost, self._jump = connection, lost, jump

    async def start(self, command: str) -> Channel:
        try:
            _, channel = await self.connection.create_session(
                AsyncsshChannel, command, encoding=None, window=WINDOW_BYTES, request_pty=False
            )
        except asyncssh.ChannelOpenError as error:
            raise self._refusal("the host refuses another session (MaxSessions)", error) from None
        except (asyncssh.Error, OSError) as error:
            raise connect_error(error) from None
        assert isinstance(channel, AsyncsshChannel)
        return channel

    async def forward_remote_port(self, local_host: str, local_port: int, remote_port: int = 0) -> int:
        wanted = f"port {remote_port}" if remote_port else "a port"
        try:
            listener = await self.connection.forward_remote_port("localhost", remote_port, local_host, local_port)
        except (asyncssh.ChannelListenError, asyncssh.ChannelOpenError) as error:
            refusal = f"the host does not forward {wanted}: it is in use, or AllowTcpForwarding is no"
            raise self._refusal(refusal, error) from None
        except (asyncssh.Error, OSError) as error:
            raise connect_error(error) from None
        return listener.get_port()

    async def close(self) -> None:
        if not self.lost.done():
            self.lost.cancel()
        self.connection.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.connection.wait_closed()
        except TimeoutError:
            self.connection.abort()
        finally:
            await self._release()

    async def _release(self) -> None:
        if self._jump is not None:
            jump, self._jump = self._jump, None
            await jump.release()

    def _refusal(self, refusal: str, error: Exception) -> ConnectError:
        lost = self.lost.done() or (isinstance(error, asyncssh.ChannelOpenError) and "closed" in error.reason)
        return ConnectError("the connection is lost" if lost else refusal, is_permanent=False)


async def connect_by_asyncssh(
    address: HostAddress,
    settings: SshSettings,
    jumps: tuple[HostAddress, ...] | None = None,
    on_the_way_to: tuple[str, ...] = (),
) -> AsyncsshConnection:
    """Connect to a host, through its jump hosts.

    Args:
        address: the host.
        settings: how to connect.
        jumps: hosts to go through; None for those of the configuration.
        on_the_way_to: the hosts for which this one is a jump host.

    Raises:
        ConnectError: as `connect`.
    """
    config = await asyncio.to_thread(read_host_config, address, settings)
    hops = tuple(config.jumps) if jumps is None else jumps
    path = (*on_the_way_to, str(address))
    jump = await lease_jump(hops, settings, path, connect_by_asyncssh) if hops else None
    try:
        return await _log_in(address, config, settings, jump)
    except BaseException:
        if jump is not None:
            await jump.release()
        raise


async def _log_in(
    address: HostAddress, config: HostConfig, settings: SshSettings, jump: JumpLease | None
) -> AsyncsshConnection:
    """Log in to a host, again if it drops the connection."""
    keys = await HostKeyCheck.prepare(config)
    options = _options(address, config, settings) | keys.connect_options()
    timeout_s = config.connect_timeout_s or settings.connect_timeout_s
    client = _Client(keys, jump)

    def new_client() -> _Client:
        nonlocal client
        client = _Client(keys, jump)
        return client

    async def attempt() -> asyncssh.SSHClientConnection:
        async with asyncio.timeout(timeout_s):
            tunnel = None if jump is None else jump.connection
            return await asyncssh.connect(client_factory=new_client, tunnel=tunnel, **options)

    server = (config.host, config.port, None if jump is None else jump.hops)
    try:
        made = await log_in(server, attempt, was_dropped)
    except asyncssh.HostKeyNotVerifiable as error:
        raise keys.refusal(error) from None
    except asyncssh.PermissionDenied:
        raise ConnectError(await asyncio.to_thread(_denial, config, client), is_permanent=True) from None
    except (asyncssh.Error, OSError, ValueError) as error:
        raise connect_error(error) from None
    await keys.remember()
    return AsyncsshConnection(made, client.lost, jump)


def _options(address: HostAddress, config: HostConfig, settings: SshSettings) -> dict[str, Any]:
    """Return the arguments of ``asyncssh.connect`` that follow from the configuration and the settings."""
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port or (),
        "username": address.user or (),
        "config": config.files,
        "login_timeout": 0,  # the whole attempt is limited
        "connect_timeout": None,
        "keepalive_interval": config.keepalive_interval_s or settings.keepalive_interval_s,
        "keepalive_count_max": config.keepalive_count or settings.keepalive_count,
        "ignore_encrypted": True,
    }
    if config.identities is not None:
        options["client_keys"] = config.identities
    if config.certificates is not None:
        options["client_certs"] = config.certificates
    if not config.chooses_ciphers:
        options["encryption_algs"] = FASTEST_CIPHER
    return options


def _denial(config: HostConfig, client: _Client) -> str:
    """Return why a log-in was refused, and what may help; reads files."""
    methods = list(client.refused_methods)
    reason = f"Permission denied ({','.join(methods)})" if methods else "Permission denied"
    reason += f" for user {config.user}"
    encrypted = encrypted_identities(config)
    if encrypted:
        return f"{reason}; {encrypted[0]} needs a passphrase: add it to ssh-agent"
    if "publickey" not in methods and methods:
        return f"{reason}; the host asks questions at the log-in: use the system's ssh with --ssh-command ssh"
    return reason
