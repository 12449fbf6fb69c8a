"""Tests of HTTPS: it works with fitting certificates, and each mistake in them has a message."""

import json
import ssl
import subprocess
import sys
from http.client import HTTPSConnection
from pathlib import Path

import pytest
import trustme

COMMAND = [
    sys.executable,
    "-m",
    "torc_framework.cli.programs.torc_server",
    "run",
    "--port",
    "0",
    "--database",
    "torc.db",
]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority."""
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Path:
    """A folder with a certificate for localhost, its key, and another's key."""
    for name in ("", "other-"):
        issued = authority.issue_cert("localhost")
        issued.private_key_pem.write_to_path(tmp_path / f"{name}key.pem")
        for pem in issued.cert_chain_pems:
            pem.write_to_path(tmp_path / f"{name}cert.pem", append=True)
    return tmp_path


def test_a_server_speaks_https(files: Path, torc_env: dict[str, str], authority: trustme.CA) -> None:
    """To clients that trust its certificate; plain HTTP gets no answer, and the end is clean."""
    flags = ["--https", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    process = subprocess.Popen(
        [*COMMAND, *flags], cwd=files, env=torc_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        port = int(process.stdout.readline().strip().removeprefix("TORC_SERVER_PORT="))
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        connection = HTTPSConnection("localhost", port, timeout=30, context=trusting)
        for _ in range(2):  # the second over the same connection
            connection.request("GET", "/torc-service/v1/ping")
            answer = connection.getresponse()
            assert json.loads(answer.read()) == {"status": "ok"}
        assert connection.sock.version() in ("TLSv1.2", "TLSv1.3")
        connection.close()
        stranger = HTTPSConnection("localhost", port, timeout=30)
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.request("GET", "/torc-service/v1/ping")
        stranger.close()
    finally:
        process.terminate()
        code = process.wait(30)
        log = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
    assert (code, f"url=https://127.0.0.1:{port}/torc-service/v1" in log) == (0, True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--https"], "--https needs --tls-cert FILE and --tls-key FILE"),
        (["--https", "--tls-cert", "cert.pem"], "--https needs --tls-key FILE"),
        (["--tls-cert", "cert.pem"], "a certificate or key is given, but not --https"),
        (["--https", "--tls-cert", "no.pem", "--tls-key", "key.pem"], "cannot read --tls-cert no.pem: No such file"),
        (["--https", "--tls-cert", "cert.pem", "--tls-key", "."], "cannot read --tls-key .: Is a directory"),
        (["--https", "--tls-cert", "key.pem", "--tls-key", "key.pem"], "--tls-cert key.pem holds no certificate"),
        (["--https", "--tls-cert", "cert.pem", "--tls-key", "cert.pem"], "--tls-key cert.pem holds no private key"),
        (
            ["--https", "--tls-cert", "cert.pem", "--tls-key", "other-key.pem"],
            "--tls-key other-key.pem is not the key of the certificate cert.pem",
        ),
        (["--https", "--tls-cert", "cut.pem", "--tls-key", "key.pem"], "cannot use --tls-cert cut.pem"),
        (["--https", "--tls-cert", "cert.pem", "--tls-key", "locked.pem"], "--tls-key locked.pem is encrypted"),
    ],
)
def test_files_that_will_not_do_are_told(files: Path, torc_env: dict[str, str], flags: list[str], message: str) -> None:
    """One line, exit code 2, before a database is made."""
    whole = (files / "cert.pem").read_text()
    (files / "cut.pem").write_text(whole[:100] + whole[200:])
    (files / "locked.pem").write_text(
        "-----BEGIN ENCRYPTED PRIVATE " + "KEY-----\nMIIF\n-----END ENCRYPTED PRIVATE KEY-----\n"
    )
    done = subprocess.run(
        [*COMMAND, *flags], cwd=files, env=torc_env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {message}")
    assert not (files / "torc.db").exists()
