"""`make_api`: a client made from arguments and environment variables."""

import os
from pathlib import Path
from typing import Final

from torc_framework.client.calls.base import DEFAULT_TIMEOUT_S
from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.client.http.address import make_url
from torc_framework.errors import ConfigError
from torc_framework.system.environment import variable
from torc_framework.system.user import user_name

DEFAULT_PATIENCE_S: Final = 10.0
"""Seconds for which scripts repeat failed requests where that is safe; a restart of a server takes less."""


def make_api(
    url: str | None = None,
    username: str | None = None,
    password: str | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
    patience: float = DEFAULT_PATIENCE_S,
    tls_ca: str | Path | None = None,
    verify_tls: bool = True,
) -> TorcClient:
    """Return a client of a server; use it in ``with``, or close it.

    Args:
        url: Base URL, with or without the path ``/torc-service/v1``; by default ``TORC_API_URL``.
        username: User name on a server with passwords; by default ``TORC_USERNAME``, and if there is a password, your
            login name.
        password: Password; by default ``TORC_PASSWORD``, then the only line of the file that ``TORC_PASSWORD_FILE``
            names, to which only its owner may have access (mode 0600).
        timeout: Seconds that a request may wait for the server.
        patience: Seconds for which a failed request is repeated where that is safe; 0 repeats none.
        tls_ca: File or folder of certificates to trust besides the system's; by default ``TORC_TLS_CA``.
        verify_tls: Refuse https servers whose certificate is not trusted or is for another host.

    Raises:
        ConfigError: the URL is missing or malformed, an environment variable is empty, or the certificates or the
            password file cannot be used.
    """
    if not url and (url := variable("TORC_API_URL")):
        url = _checked_url(url)
    if not url:
        raise ConfigError("which server? give its URL, or set TORC_API_URL")
    password_file = None
    if password is None:
        password = os.environ.get("TORC_PASSWORD") or None
        password_file = variable("TORC_PASSWORD_FILE")
    username = username if username is not None else variable("TORC_USERNAME")
    if (password is not None or password_file is not None) and username is None and "@" not in url:
        username = user_name()
    return TorcClient(
        url,
        username=username,
        password=password,
        password_file=password_file,
        timeout=timeout,
        patience=patience,
        tls_ca=tls_ca or variable("TORC_TLS_CA"),
        verify_tls=verify_tls,
    )


def _checked_url(text: str) -> str:
    try:
        return make_url(text)
    except ConfigError as error:
        raise ConfigError(f"environment variable TORC_API_URL: {error}") from None
