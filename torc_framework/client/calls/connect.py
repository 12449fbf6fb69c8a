"""From what a person or an environment says about a server to a client of it."""

import os
from pathlib import Path
from typing import Final

from torc_framework.client.calls.base import DEFAULT_TIMEOUT_S
from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.errors import ConfigError
from torc_framework.system.user import user_name

DEFAULT_PATIENCE_S: Final = 10.0
"""Seconds in which scripts ask again where that is safe: a server that restarts is back by then."""


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
        url: Base URL, with or without the path ``/torc-service/v1``; else that of ``TORC_API_URL``.
        username: Who you are, on a server with passwords; else that of ``TORC_USERNAME``, else your login name if
            there is a password.
        password: Your password; else that of ``TORC_PASSWORD``, else the only line of the file that
            ``TORC_PASSWORD_FILE`` names, to which only its owner may have access (mode 0600).
        timeout: Seconds a request may wait for the server.
        patience: Seconds in which a request that failed is sent again where that can do no harm; 0 is never.
        tls_ca: File or folder with certificates to trust besides the system's; else that of ``TORC_TLS_CA``.
        verify_tls: Refuse https servers whose certificate is not trusted or names another host.

    Raises:
        ConfigError: no URL is known, it is none, or the certificates or the password file cannot be used.
    """
    url = url or os.environ.get("TORC_API_URL")
    if not url:
        raise ConfigError("which server? give its URL, or set TORC_API_URL")
    password_file = None
    if password is None:
        password = os.environ.get("TORC_PASSWORD") or None
        password_file = os.environ.get("TORC_PASSWORD_FILE") or None
    username = username if username is not None else os.environ.get("TORC_USERNAME")
    if (password is not None or password_file is not None) and username is None and "@" not in url:
        username = user_name()
    return TorcClient(
        url,
        username=username,
        password=password,
        password_file=password_file,
        timeout=timeout,
        patience=patience,
        tls_ca=tls_ca or os.environ.get("TORC_TLS_CA") or None,
        verify_tls=verify_tls,
    )
