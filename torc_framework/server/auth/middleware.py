"""Who may talk to the server at all, and as whom: host names, the token of one's own server, passwords.

The door stands before everything else. What the caller may do is decided behind it, where the
workflow is known; see ``scopes``.
"""

import asyncio
import base64
import binascii
import hmac
import ipaddress
import logging
import math
import socket
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from torc_framework.errors import ConfigError
from torc_framework.server.auth.passwords import PasswordChecker, PasswordFile
from torc_framework.server.auth.throttle import LoginThrottle, TooManyLoginsError
from torc_framework.server.http.responses import error_response
from torc_framework.server.settings import API_PREFIX, ServerSettings
from torc_framework.store.access.checks import ANONYMOUS, Caller
from torc_framework.store.access.groups import set_admins
from torc_framework.store.database.base import Database

_log = logging.getLogger("torc.server.auth")
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="Torc", charset="UTF-8"'}
_MAX_SHOWN: Final = 64
MAX_DELAYED: Final = 256
"""Answers to wrong passwords that are delayed at once; further ones are refused at once with 429."""


class AuthError(Exception):
    """The request goes no further."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.headers = status, headers or {}
        super().__init__(message)


def add_authentication(app: Any, settings: ServerSettings, database: Database) -> None:
    """Put before the application what its settings ask for.

    Raises:
        ConfigError: the settings contradict each other, or the password file cannot be used.
    """
    login = Authenticator(settings) if settings.auth_file is not None else None
    for name in ("require_auth", "enforce_access_control"):
        if login is None and getattr(settings, name):
            raise ConfigError(f"{name} needs a password file: give --auth-file, or set TORC_AUTH_FILE")
    if settings.enforce_access_control or settings.admin_users:
        with database.write() as tx:
            set_admins(tx, settings.admin_users)
    if login is not None and not settings.https and loopback_host_names(settings) is None:
        _log.warning("passwords come over the network as they are: use --https, or a proxy that does")
    app.add_middleware(AuthMiddleware, settings=settings, login=login)


class AuthMiddleware:
    """Lets in, or refuses, each request; what it lets in knows its caller.

    Args:
        login: Names and passwords; None asks for none.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, login: "Authenticator | None") -> None:
        self._app = app
        self._login = login
        self._hosts = None if login is not None and login.is_required else loopback_host_names(settings)
        self._origins = frozenset(name.lower() for name in settings.allowed_hosts)
        self._prefix = None if settings.token is None else f"/~{settings.token}"
        ends = ("/health", "/metrics") if settings.open_metrics else ("/health",)
        self._open_paths = frozenset(start + end for start in ("", API_PREFIX) for end in ends)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            try:
                headers = dict(scope["headers"])
                self._check_token(scope)  # first, so that no line of the log holds it
                self._check_names(headers)
                if self._login is not None and scope["path"] not in self._open_paths:
                    address = (scope.get("client") or ("?",))[0]
                    scope["torc.caller"] = await self._login.caller(headers.get(b"authorization"), address)
            except AuthError as refused:
                answer = error_response(refused.status, str(refused))
                answer.headers.update(refused.headers)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check_names(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse what a stranger's web page sends through the browser of somebody who is allowed to.

        The page may give this machine a name of its own (DNS rebinding), or send requests across sites;
        programs that are no browsers send neither a wrong name nor an origin.
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
        """Refuse whoever does not know the token, and take it out of the path."""
        if self._prefix is None:
            return
        path: str = scope["path"]
        length = len(self._prefix)
        if not hmac.compare_digest(path[:length].encode(), self._prefix.encode()) or path[length : length + 1] != "/":
            raise AuthError(403, "this server belongs to one run of torc; its jobs reach it at TORC_API_URL")
        scope["root_path"] = self._prefix
        scope["path"] = path[length:]
        scope["raw_path"] = scope["raw_path"][length:]


class Authenticator:
    """Finds out who sends a request, from its name and password.

    Raises:
        ConfigError: the password file cannot be used.
    """

    def __init__(self, settings: ServerSettings) -> None:
        assert settings.auth_file is not None
        self._credentials = PasswordChecker(PasswordFile(settings.auth_file), settings.credential_cache_ttl_secs)
        self._throttle = LoginThrottle()
        self._delayed = 0
        self._enforces = settings.enforce_access_control
        self._admins = frozenset(settings.admin_users)
        self.is_required = settings.require_auth or settings.enforce_access_control
        """Nobody may stay anonymous."""
        _log.info("authentication is %s", "required" if self.is_required else "optional")

    async def caller(self, header: bytes | None, address: str) -> Caller:
        """Return who sends a request with this ``Authorization`` header.

        Raises:
            AuthError: the password is wrong, or there is none and must be.
        """
        if not header:
            if self.is_required:
                raise AuthError(401, "Authentication required but no credentials provided", _CHALLENGE)
            return Caller(ANONYMOUS)
        key = self._credentials.key(header)
        name = self._credentials.recall(key)
        if name is None:
            name = await self._checked(key, header, address)
        is_admin = name in self._admins
        return Caller(name, is_anonymous=False, is_admin=is_admin, is_restricted=self._enforces and not is_admin)

    async def _checked(self, key: bytes, header: bytes, address: str) -> str:
        """Return the name of a user whose password is right."""
        name, password = _parsed(header)
        try:
            if self._credentials.was_right(key):
                is_right = await self._credentials.check(key, name, password)
            else:
                async with self._throttle.turn(name, address):
                    is_right = await self._credentials.check(key, name, password)
        except TooManyLoginsError:
            raise AuthError(503, "too many log-ins at once; try again", {"Retry-After": "1"}) from None
        if not is_right:
            _log.warning("log-in failed: user=%s address=%s", _shown(name), address)
            await self._delay(self._throttle.failed(name, address), name)
            raise AuthError(401, f"Authentication failed for user {_shown(name)!r}", _CHALLENGE)
        _log.debug("log-in: user=%s address=%s", _shown(name), address)
        return name

    async def _delay(self, wait_s: float, name: str) -> None:
        """Let the answer to a wrong password wait.

        Raises:
            AuthError: too many answers are waiting.
        """
        if self._delayed >= MAX_DELAYED:
            after = str(math.ceil(wait_s) or 1)
            message = f"Too many failed log-ins of user {_shown(name)!r}; try again in {after} s"
            raise AuthError(429, message, {"Retry-After": after})
        self._delayed += 1
        try:
            await asyncio.sleep(wait_s)
        finally:
            self._delayed -= 1


def _parsed(header: bytes) -> tuple[str, str]:
    """Return the name and the password of an ``Authorization`` header.

    Raises:
        AuthError: it is not as basic authentication has it.
    """
    scheme, _, encoded = header.strip().partition(b" ")
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if scheme.lower() != b"basic" or not colon:
        raise AuthError(401, "Authorization: expected 'Basic', and user:password in base64", _CHALLENGE)
    return name, password


def _shown(name: str) -> str:
    """Return a name as it may stand in a log: one word."""
    return "".join(letter if letter.isprintable() and not letter.isspace() else "?" for letter in name[:_MAX_SHOWN])


# --- host names -----------------------------------------------------------------------------------


def loopback_host_names(settings: ServerSettings) -> frozenset[str] | None:
    """Return the names by which a server on the loopback interface may be called; None for other servers."""
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
    """Return the name of a ``Host`` header."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    return name.strip("[]").lower()
