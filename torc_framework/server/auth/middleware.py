"""The middleware that decides who may use the server at all: host names, the token of an embedded server, log-ins.

It precedes the application. What a user may do is decided later, when the workflow of the request is known; see
`torc_framework.server.auth.permissions`.
"""

import hmac
import ipaddress
import logging
import socket
from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from torc_framework.errors import ConfigError
from torc_framework.server.auth.authenticator import Authenticator, AuthError
from torc_framework.server.http.responses import error_response
from torc_framework.server.settings import API_PREFIX, ServerSettings
from torc_framework.store.access.groups import set_admins
from torc_framework.store.database.base import Database

_log = logging.getLogger("torc.server.auth")


def add_authentication(app: Any, settings: ServerSettings, database: Database) -> None:
    """Add the middleware with an authenticator if the settings name a password file; store the administrators.

    Raises:
        ConfigError: the settings contradict each other, or the password file cannot be used.
    """
    authenticator = Authenticator(settings) if settings.auth_file is not None else None
    for name in ("require_auth", "enforce_access_control"):
        if authenticator is None and getattr(settings, name):
            raise ConfigError(f"{name} needs a password file: give --auth-file, or set TORC_AUTH_FILE")
    if settings.enforce_access_control or settings.admin_users:
        with database.write() as tx:
            set_admins(tx, settings.admin_users)
    if authenticator is not None and not settings.https and loopback_host_names(settings) is None:
        _log.warning("passwords come over the network as they are: use --https, or a proxy that does")
    app.add_middleware(AuthMiddleware, settings=settings, authenticator=authenticator)


class AuthMiddleware:
    """Refuses requests without the right host name, token or password; adds the caller to the scope of the others.

    Args:
        app: The application.
        settings: Settings of the server.
        authenticator: Checks names and passwords; None accepts requests without them.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, authenticator: Authenticator | None) -> None:
        self._app = app
        self._authenticator = authenticator
        is_required = authenticator is not None and authenticator.is_required
        self._hosts = None if is_required else loopback_host_names(settings)
        self._origins = frozenset(name.lower() for name in settings.allowed_hosts)
        self._prefix = None if settings.token is None else f"/~{settings.token}"
        ends = ("/health", "/metrics") if settings.open_metrics else ("/health",)
        self._open_paths = frozenset(start + end for start in ("", API_PREFIX) for end in ends)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            try:
                headers = dict(scope["headers"])
                self._check_token(scope)  # first, because it takes the token out of the path that is logged
                self._check_names(headers)
                if self._authenticator is not None and scope["path"] not in self._open_paths:
                    address = (scope.get("client") or ("?",))[0]
                    scope["torc.caller"] = await self._authenticator.caller(headers.get(b"authorization"), address)
            except AuthError as refused:
                answer = error_response(refused.status, str(refused))
                answer.headers.update(refused.headers)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check_names(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse requests that another site's web page sends through a user's browser.

        Such a page may point a host name of its own to this machine (DNS rebinding), or send cross-site requests. Other
        programs than browsers send neither a wrong host name nor an origin.
        """
        host = headers.get(b"host", b"").decode("latin-1")
        if host and self._hosts is not None and _without_port(host) not in self._hosts:
            raise AuthError(403, f"this server is not called {host[:100]!r}; allow the name with --allowed-host")
        if (sent := headers.get(b"origin")) is None:
            return
        origin = sent.decode("latin-1").rpartition("//")[2]
        if origin.lower() != host.lower() and _without_port(origin) not in self._origins:
            raise AuthError(403, f"web pages of {origin[:100]!r} may not call this server; see --allowed-host")

    def _check_token(self, scope: MutableMapping[str, Any]) -> None:
        """Refuse a request without the token; remove the token from its path."""
        if self._prefix is None:
            return
        path: str = scope["path"]
        length = len(self._prefix)
        if not hmac.compare_digest(path[:length].encode(), self._prefix.encode()) or path[length : length + 1] != "/":
            raise AuthError(403, "this server belongs to one user's runs of torc; their jobs reach it at TORC_API_URL")
        scope["root_path"] = self._prefix
        scope["path"] = path[length:]
        scope["raw_path"] = scope["raw_path"][length:]


def loopback_host_names(settings: ServerSettings) -> frozenset[str] | None:
    """Return the accepted host names of a server on the loopback interface; None for other servers."""
    addresses = _addresses(settings.url)
    if not addresses or not all(ipaddress.ip_address(address).is_loopback for address in addresses):
        return None
    given = {name.lower() for name in (settings.url, *settings.allowed_hosts)}
    return frozenset({"localhost", "127.0.0.1", "::1", *addresses, *given})


def _addresses(host: str) -> set[str]:
    try:
        return {str(found[4][0]).partition("%")[0] for found in socket.getaddrinfo(host, None)}
    except OSError:
        return set()


def _without_port(host: str) -> str:
    """Return the host name of a ``Host`` header."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    return name.strip("[]").lower()
