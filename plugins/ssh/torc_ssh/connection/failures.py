"""Why a connection could not be made or was lost: one clear reason for each error of asyncssh and of the system."""

import os
import re
import socket
from collections.abc import Callable
from typing import Final

import asyncssh

from torc_ssh.connection.interface import ConnectError, one_line
from torc_ssh.connection.logins import DROPPED

_Reason = tuple[str, bool]
"""The text, and whether the error is permanent."""

_PERMANENT_NAME_ERRORS: Final = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}

_CHANNEL_REASONS: Final = {
    asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED: ("the jump host does not allow forwarding (AllowTcpForwarding)", True),
}


def was_dropped(error: BaseException) -> bool:
    """Return whether a host closed the connection before the log-in, as sshd does at its limit ``MaxStartups``."""
    return isinstance(error, ConnectionResetError | BrokenPipeError | asyncssh.ConnectionLost)


def connect_error(error: BaseException) -> ConnectError:
    """Return the error for an exception that ended an attempt to connect."""
    for kind, reason_of in _REASONS:
        if isinstance(error, kind):
            reason, is_permanent = reason_of(error)
            return ConnectError(reason, is_permanent=is_permanent)
    raise error


def loss_reason(error: BaseException | None) -> str:
    """Return why a connection that was made is lost, in one line."""
    if error is None:
        return "the host closed the connection"
    if isinstance(error, asyncssh.ConnectionLost):
        return _LOSSES.get(error.reason, error.reason)
    if isinstance(error, asyncssh.DisconnectError):
        return one_line(f"the host closed the connection: {error.reason}")
    return one_line(_system_reason(error)[0])


_LOSSES: Final = {
    "Connection lost": "the host closed the connection",
    "Server not responding to keepalive": "the host does not answer",
}


def _system_reason(error: BaseException) -> _Reason:
    """Return the reason of an OSError; asyncio joins those of several addresses in one text."""
    number = getattr(error, "errno", None)
    numbers = [number] if number is not None else [int(text) for text in re.findall(r"\[Errno (\d+)\]", str(error))]
    texts = dict.fromkeys(os.strerror(one) for one in numbers)
    return "; ".join(texts) or str(error) or type(error).__name__, False


def _name_reason(error: BaseException) -> _Reason:
    number = getattr(error, "errno", None)
    return f"Could not resolve the host name: {getattr(error, 'strerror', error)}", number in _PERMANENT_NAME_ERRORS


def _channel_reason(error: BaseException) -> _Reason:
    """Return the reason for which a jump host made no connection to the next host."""
    assert isinstance(error, asyncssh.ChannelOpenError)
    return _CHANNEL_REASONS.get(error.code, (f"the jump host could not connect: {error.reason}", False))


def _disconnect_reason(error: BaseException) -> _Reason:
    assert isinstance(error, asyncssh.DisconnectError)
    return error.reason or type(error).__name__, False


def _permanent_text(error: BaseException) -> _Reason:
    return getattr(error, "reason", None) or str(error), True


def _key_reason(error: BaseException) -> _Reason:
    return f"a private key cannot be used: {error}", True


def _fixed(reason: str, *, is_permanent: bool = False) -> Callable[[BaseException], _Reason]:
    return lambda _error: (reason, is_permanent)


_REASONS: Final[tuple[tuple[type[BaseException], Callable[[BaseException], _Reason]], ...]] = (
    (TimeoutError, _fixed("Connection timed out")),
    (socket.gaierror, _name_reason),
    (ConnectionResetError, _fixed(DROPPED)),
    (BrokenPipeError, _fixed(DROPPED)),
    (asyncssh.ConnectionLost, _fixed(DROPPED)),
    (asyncssh.ChannelOpenError, _channel_reason),
    (asyncssh.KeyExchangeFailed, _permanent_text),
    (asyncssh.ProtocolNotSupported, _fixed("the port does not speak SSH version 2", is_permanent=True)),
    (asyncssh.HostKeyNotVerifiable, _permanent_text),
    (asyncssh.PermissionDenied, _permanent_text),
    (asyncssh.IllegalUserName, _permanent_text),
    (asyncssh.DisconnectError, _disconnect_reason),
    (asyncssh.KeyImportError, _key_reason),
    (asyncssh.KeyEncryptionError, _key_reason),
    (asyncssh.Error, _disconnect_reason),
    (OSError, _system_reason),
    (ValueError, _permanent_text),
)
"""The first row whose class an exception has gives its reason."""
