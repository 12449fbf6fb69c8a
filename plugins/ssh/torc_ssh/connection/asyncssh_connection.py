"""Connections by asyncssh."""

import asyncio
import logging
from typing import Any, Final
from weakref import WeakSet

import asyncssh

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.asyncssh_channel import AsyncsshChannel
from torc_ssh.connection.failures import connect_error, loss_reason, was_dropped
from torc_ssh.connection.host_config import HostConfig, encrypted_identities, read_host_config
from torc_ssh.connection.host_keys import HostKeyCheck
from torc_ssh.connection.interface import Channel, ConnectError, SshSettings
from torc_ssh.connection.logins import log_in
from torc_ssh.connection.shared_connections import ConnectionLease, Hops, lease_connection

WINDOW_BYTES: Final = 16 << 20
"""Receive window of a channel: at 200 ms of latency the usual 2 MiB limit a transfer to 5 MB/s."""
CLOSE_S: Final = 2.0
"""An orderly end of a connection takes at most so long; then it is aborted."""
FASTEST_CIPHER: Final = "^aes128-gcm@openssh.com"

logging.getLogger("asyncssh").addHandler(logging.NullHandler())  # else warnings of asyncssh reach the terminal
logging.getLogger("asyncssh").propagate = False


class _Client(asyncssh.SSHClient):
    """What asyncssh asks during a log-in, and tells about the connection."""

    def __init__(self, keys: HostKeyCheck, jump: ConnectionLease | None) -> None:
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
            lost = None if self._jump is None else self._jump.lost
            if self._jump is not None and lost is not None and lost.done() and not lost.cancelled():
                self.lost.set_result(f"jump host {self._jump.hops[-1]}: {lost.result()}")
            else:
                self.lost.set_result(loss_reason(exc))


class _LoggedInConnection:
    """A connection that has logged in."""

    def __init__(
        self, connection: asyncssh.SSHClientConnection, lost: asyncio.Future[str], jump: ConnectionLease | None
    ) -> None:
        self.connection, self.lost, self._jump = connection, lost, jump

    async def close(self) -> None:
        """End the connection, and the use of its jump host."""
        if not self.lost.done():
            self.lost.cancel()
        self.connection.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.connection.wait_closed()
        except TimeoutError:
            self.connection.abort()
        finally:
            if self._jump is not None:
                await self._jump.release()


class AsyncsshConnection:
    """The use of a connection by asyncssh; the methods are those of `SshConnection`."""

    def __init__(self, lease: ConnectionLease) -> None:
        self._lease = lease
        self._channels: WeakSet[AsyncsshChannel] = WeakSet()
        self._forwarded: list[asyncssh.SSHListener] = []
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        lease.lost.add_done_callback(self._take_loss)

    async def start(self, command: str) -> Channel:
        try:
            _, channel = await self._lease.connection.create_session(
                AsyncsshChannel, command, encoding=None, window=WINDOW_BYTES, request_pty=False
            )
        except asyncssh.ChannelOpenError as error:
            raise self._refusal("the host refuses another session (MaxSessions)", error) from None
        except (asyncssh.Error, OSError) as error:
            raise connect_error(error) from None
        assert isinstance(channel, AsyncsshChannel)
        self._channels.add(channel)
        return channel

    async def forward_remote_port(self, local_host: str, local_port: int, remote_port: int = 0) -> int:
        wanted = f"port {remote_port}" if remote_port else "a port"
        try:
            listener = await self._lease.connection.forward_remote_port(
                "localhost", remote_port, local_host, local_port
            )
        except (asyncssh.ChannelListenError, asyncssh.ChannelOpenError) as error:
            refusal = f"the host does not forward {wanted}: it is in use, or AllowTcpForwarding is no"
            raise self._refusal(refusal, error) from None
        except (asyncssh.Error, OSError) as error:
            raise connect_error(error) from None
        self._forwarded.append(listener)
        return int(listener.get_port())

    async def close(self) -> None:
        if not self.lost.done():
            self.lost.cancel()
        for channel in list(self._channels):
            channel.close()
        for listener in self._forwarded:
            listener.close()
        await self._lease.release()

    def _take_loss(self, lost: asyncio.Future[str]) -> None:
        if not self.lost.done() and not lost.cancelled():
            self.lost.set_result(lost.result())

    def _refusal(self, refusal: str, error: Exception) -> ConnectError:
        lost = self.lost.done() or (isinstance(error, asyncssh.ChannelOpenError) and "closed" in error.reason)
        return ConnectError("the connection is lost" if lost else refusal, is_permanent=False)


async def connect_by_asyncssh(address: HostAddress, settings: SshSettings) -> AsyncsshConnection:
    """Connect to a host, through its jump hosts; one connection to a host serves all who connect to it.

    Raises:
        ConnectError: as `connect`.
    """
    return AsyncsshConnection(await lease_connection((address,), settings, _open))


async def _open(hops: Hops, settings: SshSettings) -> _LoggedInConnection:
    """Connect to the last of some hosts through the others; to the first one as the configuration says."""
    address = hops[-1]
    config = await asyncio.to_thread(read_host_config, address, settings)
    before = hops[:-1] or tuple(config.jumps)
    if before:
        await asyncio.to_thread(_check_jumps, address, before, settings)
    jump = await _lease_jump(before, settings) if before else None
    try:
        return await _log_in(address, config, settings, jump)
    except BaseException:
        if jump is not None:
            await jump.release()
        raise


def _check_jumps(address: HostAddress, before: Hops, settings: SshSettings) -> None:
    """Raise ConnectError if the jump hosts of a host lead back to one of them."""
    way = {str(address)}
    while before:
        for hop in reversed(before):
            if str(hop) in way:
                raise ConnectError(f"ProxyJump of {hop} leads back to {hop}", is_permanent=True)
            way.add(str(hop))
        before = tuple(read_host_config(before[0], settings).jumps)


async def _lease_jump(hops: Hops, settings: SshSettings) -> ConnectionLease:
    try:
        return await lease_connection(hops, settings, _open)
    except ConnectError as error:
        raise ConnectError(f"jump host {hops[-1]}: {error.reason}", is_permanent=error.is_permanent) from None


async def _log_in(
    address: HostAddress, config: HostConfig, settings: SshSettings, jump: ConnectionLease | None
) -> _LoggedInConnection:
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
    return _LoggedInConnection(made, client.lost, jump)


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
