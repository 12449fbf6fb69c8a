"""What a runner on another machine gets to reach the server, directly and through a tunnel."""

from pathlib import Path

import pytest
from torc_ssh.remote_runners.server_access import ServerAccess

from torc_framework.api import UserError


def access(url: str, *, for_tunnel: bool = False, **more: str) -> ServerAccess:
    return ServerAccess.of_client({"TORC_API_URL": url, **more}, for_tunnel=for_tunnel)


def test_a_password_file_becomes_its_content(tmp_path: Path) -> None:
    """Its path means nothing on another machine."""
    (tmp_path / "password").write_text("secret words\n")
    found = access("http://lab:8080/x", TORC_USERNAME="ann", TORC_PASSWORD_FILE=str(tmp_path / "password"))
    assert found.environment == {
        "TORC_API_URL": "http://lab:8080/x",
        "TORC_USERNAME": "ann",
        "TORC_PASSWORD": "secret words",
    }
    with pytest.raises(UserError, match="cannot read the password file"):
        access("http://lab", TORC_PASSWORD_FILE=str(tmp_path / "missing"))


def test_certificates_are_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    assert access("https://lab", TORC_TLS_CA=str(tmp_path / "ca.pem")).tls_ca == tmp_path / "ca.pem"
    with pytest.raises(UserError, match="need a file with certificates"):
        access("https://lab", TORC_TLS_CA=str(tmp_path))


@pytest.mark.parametrize(
    ("url", "through", "is_loopback"),
    [
        ("http://127.0.0.1:8080/torc-service/v1", "http://127.0.0.1:4000/torc-service/v1", True),
        ("http://localhost:8080/x", "http://127.0.0.1:4000/x", True),
        ("http://lab.example.org/x", "http://127.0.0.1:4000/x", False),
        ("https://localhost:8443/x", "https://localhost:4000/x", True),
        ("http://[::1]:8080/x", "http://127.0.0.1:4000/x", True),
    ],
)
def test_addresses_through_a_tunnel(url: str, through: str, is_loopback: bool) -> None:
    found = access(url, for_tunnel=True)
    assert found.through_port(4000)["TORC_API_URL"] == through
    assert found.is_loopback is is_loopback


@pytest.mark.parametrize("url", ["https://lab/x", "https://[::1]:8443/x"])
def test_a_certificate_does_not_hold_for_the_end_of_a_tunnel(url: str) -> None:
    """It is at 127.0.0.1 on the host."""
    with pytest.raises(UserError, match=r"--tunnel: runners would reach https://.* as https://localhost"):
        access(url, for_tunnel=True)


@pytest.mark.parametrize(("url", "port"), [("http://lab", 80), ("https://localhost/x", 443), ("http://lab:81", 81)])
def test_ports(url: str, port: int) -> None:
    assert access(url).port == port
