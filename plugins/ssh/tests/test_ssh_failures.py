"""The reasons for errors of asyncssh, of the system, and of the system's ssh."""

import errno
import socket

import asyncssh
import pytest
from torc_ssh.connection.failures import connect_error, loss_reason, was_dropped
from torc_ssh.connection.logins import DROPPED
from torc_ssh.connection.ssh_program import ssh_error


def system_error(number: int) -> OSError:
    """Return the error of asyncio for a connection that was refused with an error number."""
    return OSError(number, f"Connect call failed ('10.0.0.1', 22) {number}")


@pytest.mark.parametrize(
    ("error", "reason", "is_permanent"),
    [
        (TimeoutError(), "Connection timed out", False),
        (socket.gaierror(socket.EAI_NONAME, "no"), "Could not resolve the host name: no", True),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "Could not resolve the host name: later", False),
        (system_error(errno.ECONNREFUSED), "Connection refused", False),
        (system_error(errno.EHOSTUNREACH), "No route to host", False),
        (system_error(errno.ENETUNREACH), "Network is unreachable", False),
        (
            OSError("[Errno 111] x, [Errno 101] y"),
            "Connection refused; Network is unreachable",
            False,
        ),
        (ConnectionResetError(errno.ECONNRESET, "x"), DROPPED, False),
        (asyncssh.ConnectionLost("Connection lost"), DROPPED, False),
        (asyncssh.ProtocolError("Banner line too long"), "Banner line too long", False),
        (asyncssh.ProtocolNotSupported("x"), "the port does not speak SSH version 2", True),
        (asyncssh.KeyExchangeFailed("No match\nfound"), "No match found", True),
        (asyncssh.ServiceNotAvailable("x"), "x", False),
        (asyncssh.ChannelOpenError(2, "Connect failed"), "the jump host could not connect: Connect failed", False),
        (asyncssh.ChannelOpenError(1, "x"), "the jump host does not allow forwarding (AllowTcpForwarding)", True),
        (asyncssh.KeyImportError("Invalid private key"), "a private key cannot be used: Invalid private key", True),
        (
            asyncssh.KeyEncryptionError("Incorrect passphrase"),
            "a private key cannot be used: Incorrect passphrase",
            True,
        ),
        (ValueError("Unknown local username"), "Unknown local username", True),
    ],
)
def test_connect_error(error: Exception, reason: str, is_permanent: bool) -> None:
    found = connect_error(error)
    assert (found.reason, found.is_permanent) == (reason, is_permanent)


def test_faults_of_the_program_are_no_connect_errors() -> None:
    with pytest.raises(TypeError):
        connect_error(TypeError())


def test_dropped() -> None:
    assert was_dropped(ConnectionResetError())
    assert was_dropped(asyncssh.ConnectionLost("x"))
    assert not was_dropped(system_error(errno.ECONNREFUSED))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "the host closed the connection"),
        (asyncssh.ConnectionLost("Connection lost"), "the host closed the connection"),
        (asyncssh.ConnectionLost("Server not responding to keepalive"), "the host does not answer"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "Connection reset by peer"),
        (asyncssh.DisconnectError(2, "bye\nbye"), "the host closed the connection: bye bye"),
    ],
)
def test_loss_reason(error: Exception | None, reason: str) -> None:
    assert loss_reason(error) == reason


@pytest.mark.parametrize(
    ("text", "reason", "is_permanent"),
    [
        ("worker@h2: Permission denied (publickey).", "Permission denied (publickey)", True),
        ("ssh: connect to host h2 port 2222: Connection refused", "Connection refused", False),
        ("ssh: connect to host h2 port 22: Connection timed out\r\n", "Connection timed out", False),
        (
            "ssh: Could not resolve hostname no: Name or service not known",
            "Could not resolve the host name: Name or service not known",
            True,
        ),
        (
            "ssh: Could not resolve hostname no: Temporary failure in name resolution\r\n",
            "Could not resolve the host name: Temporary failure in name resolution",
            False,
        ),
        ("kex_exchange_identification: read: Connection reset by peer", DROPPED, False),
        (
            "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.1 port 22",
            DROPPED,
            False,
        ),
        ("Host key verification failed.", "Host key verification failed", True),
        ("Timeout, server h2 not responding.", "the host does not answer", False),
        ("client_loop: send disconnect: Broken pipe", "Broken pipe", False),
        (
            "/x/.ssh/config line 3: Bad configuration option: x",
            "SSH configuration: /x/.ssh/config line 3: Bad configuration option: x",
            True,
        ),
        (
            "channel 0: open failed: connect failed: No route to host\r\nstdio forwarding failed\r\n"
            "kex_exchange_identification: Connection closed by remote host",
            "the jump host could not connect: No route to host",
            False,
        ),
        ("one\ntwo\n\n", "two", False),
        ("", "ssh gave no reason", False),
    ],
)
def test_ssh_error(text: str, reason: str, is_permanent: bool) -> None:
    error = ssh_error(text)
    assert (error.reason, error.is_permanent) == (reason, is_permanent)
