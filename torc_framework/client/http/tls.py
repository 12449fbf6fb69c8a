"""TLS settings of connections, and messages for certificates that are not accepted."""

import os
import ssl
from pathlib import Path

from torc_framework.errors import ConfigError


def tls_context(ca: str | Path | None, *, verify: bool) -> ssl.SSLContext:
    """Return the TLS settings of a connection.

    Args:
        ca: File or folder of certificates to trust besides the system's.
        verify: Refuse servers whose certificate is not trusted or is for another host.

    Raises:
        ConfigError: ``ca`` cannot be read or holds no certificates.
    """
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ca is not None:
        path = Path(os.path.expanduser(ca))  # noqa: PTH111 - Path.expanduser raises for an unknown user
        try:
            context.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
        except ssl.SSLError as error:
            raise ConfigError(f"{path} (TORC_TLS_CA) holds no certificates in PEM form") from error
        except OSError as error:
            raise ConfigError(f"cannot read the certificates of {path} (TORC_TLS_CA): {error.strerror}") from error
    return context


def tls_error_advice(error: Exception) -> str | None:
    """Return what is wrong with a server's encryption and what to do; None for any other error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        if "match" in reason:
            return f"{reason}; write the host in the URL as the certificate names it"
        return f"its certificate is not trusted ({reason}); name a file with the right CA in TORC_TLS_CA"
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "it does not speak https; try http://"
    return None
