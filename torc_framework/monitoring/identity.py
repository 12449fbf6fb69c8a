"""The server behind the dashboard, and the identities with which requests are sent to it."""

import base64
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import asdict, define, frozen

from torc_framework.client import TorcClient
from torc_framework.client.http.address import Address
from torc_framework.client.http.password_file import read_password
from torc_framework.system.environment import variable
from torc_framework.system.user import user_name

if TYPE_CHECKING:
    import ssl

LIVE: Final = "live"
AWAY: Final = "away"
PROCESS: Final = "process"
"""Key of the identity of this process."""


@define
class UpstreamState:
    """Whether the server answers.

    Attributes:
        state: `LIVE` or `AWAY`.
        since: Seconds since the epoch.
        requires_login: The server refuses the identity of this process.
    """

    state: str = AWAY
    since: float = 0.0
    version: str | None = None
    error: str | None = "it was not asked yet"
    requires_login: bool = False

    def answered(self, version: str | None, *, requires_login: bool) -> None:
        """Note that the server answered."""
        if self.state != LIVE:
            self.state, self.since = LIVE, time.time()
        self.version = version or self.version
        self.error, self.requires_login = None, requires_login

    def did_not_answer(self, error: str) -> None:
        """Note that the server did not answer."""
        if self.state != AWAY or not self.since:
            self.state, self.since = AWAY, time.time()
        self.error = error


class UpstreamServer:
    """The torc-server behind the dashboard.

    Args:
        url: Base URL, without name and password; None while the server of ``--standalone`` is not running.
        tls_ca: File or folder of certificates to trust besides the system's.

    Raises:
        ConfigError: the URL or the certificates cannot be used.
    """

    def __init__(self, url: str | None, *, tls_ca: Path | None = None) -> None:
        self.tls_ca = tls_ca
        self.state = UpstreamState()
        self.address: Address | None = None
        self.move(url)

    def move(self, url: str | None) -> None:
        """Take another URL, or none, from now on."""
        self.address = None if url is None else Address.parse(url)

    @property
    def base(self) -> str | None:
        """The base URL; it may hold the token of a server of this process."""
        return None if self.address is None else self.address.base

    @property
    def shown(self) -> str | None:
        """The base URL for messages."""
        return None if self.address is None else self.address.shown

    def tls(self) -> "ssl.SSLContext | bool":
        """Return the TLS settings of connections."""
        if self.address is None or not self.address.secure:
            return False
        from torc_framework.client.http.tls import tls_context

        return tls_context(self.tls_ca, verify=True)


@frozen(repr=False)
class Credentials:
    """A name and a password at the server."""

    username: str
    password: str


class Identity:
    """A user of the server, with the client of that user.

    Args:
        key: `PROCESS`, or a text that no other identity has.
        credentials: Name and password; None sends none.
    """

    def __init__(self, key: str, upstream: UpstreamServer, credentials: Credentials | None) -> None:
        self.key = key
        self.credentials = credentials
        self._upstream = upstream
        self._lock = threading.Lock()
        self._client: TorcClient | None = None
        self._base: str | None = None

    @property
    def user(self) -> str:
        """The user's name."""
        return user_name() if self.credentials is None else self.credentials.username

    @property
    def headers(self) -> dict[str, str]:
        """The headers with which requests are sent as this user."""
        if self.credentials is None:
            return {}
        pair = f"{self.credentials.username}:{self.credentials.password}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    @property
    def client(self) -> TorcClient:
        """The client of this user, for the URL that the server has now.

        Raises:
            ServerUnreachableError: there is no server now.
        """
        from torc_framework.errors import ServerUnreachableError

        base = self._upstream.base
        if base is None:
            raise ServerUnreachableError("the server of this program is stopped")
        with self._lock:
            if self._client is None or base != self._base:
                user = {} if self.credentials is None else asdict(self.credentials)
                self._base, self._client = base, TorcClient(base, tls_ca=self._upstream.tls_ca, **user)
            return self._client

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables with which a child uses the server as this user."""
        return self.client.environment


def process_credentials(url: str | None, username: str | None) -> Credentials | None:
    """Return the name and password of this process: of the URL, else of ``TORC_PASSWORD`` or ``TORC_PASSWORD_FILE``.

    Args:
        url: Base URL of the server; may hold ``user:password@``.
        username: Configured user name.

    Raises:
        ConfigError: the password file cannot be used.
    """
    address = None if url is None else Address.parse(url)
    password = os.environ.get("TORC_PASSWORD") or None
    if password is None and (file := variable("TORC_PASSWORD_FILE")):
        password = read_password(file)
    if password is None and address is not None:
        password = address.password
    if password is None:
        return None
    return Credentials(username or (address.username if address else None) or user_name(), password)
