"""Tests of TLS in the client: which certificates it trusts, and its messages about others."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trustme
from scripted_server import OK

from torc_framework.client import TorcClient, make_api
from torc_framework.errors import ConfigError, ServerUnreachableError


@contextmanager
def https_server(authority: trustme.CA, *names: str) -> Iterator[int]:
    """Answer every request with OK, under a certificate for these names; yield the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as secure:
            while secure.recv(65536):
                secure.sendall(OK)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def test_a_server_of_a_named_authority_is_trusted(
    authority: trustme.CA, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named as an argument or by the environment; the connection is kept like any other."""
    with https_server(authority, "localhost") as port:
        with TorcClient(f"https://localhost:{port}", tls_ca=ca_file) as client:
            assert [client.ping(), client.ping()] == [{"status": "ok"}] * 2
        monkeypatch.setenv("TORC_TLS_CA", str(ca_file))
        with make_api(f"https://localhost:{port}") as client:
            assert client.ping() == {"status": "ok"}


def test_a_stranger_is_refused_at_once(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrusted certificate is not retried; the message contains a remedy."""
    monkeypatch.delenv("TORC_TLS_CA", raising=False)
    with https_server(authority, "localhost") as port, make_api(f"https://localhost:{port}", patience=3600) as client:
        with pytest.raises(ServerUnreachableError, match=r"not trusted \(.+\); name a file .* in TORC_TLS_CA"):
            client.ping()
        with make_api(f"https://localhost:{port}", verify_tls=False) as careless:
            assert careless.ping() == {"status": "ok"}


def test_a_certificate_of_another_host_is_refused(authority: trustme.CA, ca_file: Path) -> None:
    with (
        https_server(authority, "torc.example.org") as port,
        TorcClient(f"https://localhost:{port}", tls_ca=ca_file) as client,
        pytest.raises(ServerUnreachableError, match=r"not valid for 'localhost'; write the host in the URL"),
    ):
        client.ping()


def test_a_server_that_does_not_encrypt_is_recognised(ca_file: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with (
        listener,
        TorcClient(f"https://127.0.0.1:{listener.getsockname()[1]}") as client,
        pytest.raises(ServerUnreachableError, match="does not speak https; try http://"),
    ):
        client.ping()
    thread.join(20)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"ca\.pem.*TORC_TLS_CA"):
        TorcClient("https://localhost", tls_ca=path)
