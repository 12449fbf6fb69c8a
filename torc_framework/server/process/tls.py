"""Checks of an HTTPS server's certificate and key before it listens, with one error message for each mistake."""

import ssl
from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.errors import ConfigError
from torc_framework.server.settings import ServerSettings

_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_ENCRYPTED: Final = ("BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED")


@frozen
class TlsFiles:
    """Paths of a certificate chain and of the private key that fits it."""

    certificate: Path
    key: Path


def tls_files(settings: ServerSettings) -> TlsFiles | None:
    """Return the files of an HTTPS server; None for plain HTTP.

    Raises:
        ConfigError: a file is missing, unreadable or of another kind, or key and certificate do not fit each other.
    """
    certificate, key = settings.tls_cert, settings.tls_key
    if not settings.https:
        if certificate or key:
            raise ConfigError("a certificate or key is given, but not --https")
        return None
    if certificate is None or key is None:
        missing = [name for name, path in (("--tls-cert FILE", certificate), ("--tls-key FILE", key)) if path is None]
        raise ConfigError(f"--https needs {' and '.join(missing)}")
    if _CERTIFICATE not in _text("--tls-cert", certificate):
        raise ConfigError(f"--tls-cert {certificate} holds no certificate in PEM form")
    secret = _text("--tls-key", key)
    if any(mark in secret for mark in _ENCRYPTED):
        raise ConfigError(f"--tls-key {key} is encrypted; a server needs a key without a password")
    if "PRIVATE KEY-----" not in secret:
        raise ConfigError(f"--tls-key {key} holds no private key in PEM form")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"--tls-key {key} is not the key of the certificate {certificate}") from error
        raise ConfigError(
            f"cannot use --tls-cert {certificate} with --tls-key {key}: {error.reason or error}"
        ) from error
    return TlsFiles(certificate, key)


def _text(flag: str, path: Path) -> str:
    try:
        return path.read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigError(f"cannot read {flag} {path}: {error.strerror}") from error
