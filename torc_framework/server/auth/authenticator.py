"""`Authenticator`: finds the user of a request from its ``Authorization`` header, and delays guesses of passwords."""

import asyncio
import base64
import binascii
import logging
import math
import time
from typing import Final

from torc_framework.server.auth.passwords import PasswordChecker, PasswordFile
from torc_framework.server.auth.throttle import LoginThrottle, TooManyLoginsError
from torc_framework.server.settings import ServerSettings
from torc_framework.store.access.callers import ANONYMOUS, Caller

_log = logging.getLogger("torc.server.auth")
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="Torc", charset="UTF-8"'}
_MAX_SHOWN: Final = 64
MAX_DELAYED: Final = 256
"""Most responses to wrong passwords that are delayed at a time; further ones are refused at once with 429."""


class AuthError(Exception):
    """The request is refused before it reaches the application.

    Args:
        status: HTTP status.
        message: The reason, for the client.
        headers: Further headers of the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.headers = status, headers or {}
        super().__init__(message)


class Authenticator:
    """Finds the user who sends a request from the name and password in its header.

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
        """Requests without name and password are refused."""
        _log.info("authentication is %s", "required" if self.is_required else "optional")

    async def caller(self, header: bytes | None, address: str) -> Caller:
        """Return the user of a request with this ``Authorization`` header.

        Raises:
            AuthError: the password is wrong, or it is required and missing.
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
        """Return the name of the user after checking the password.

        Raises:
            AuthError: the password is wrong, or too many log-ins wait for their check.
        """
        name, password = _parsed(header)
        began = time.monotonic()
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
            wait_s = self._throttle.failed(name, address) - (time.monotonic() - began)
            await self._delay(max(wait_s, 0.0), name)  # a delayed response does not tell how long the check took
            raise AuthError(401, f"Authentication failed for user {_shown(name)!r}", _CHALLENGE)
        _log.debug("log-in: user=%s address=%s", _shown(name), address)
        return name

    async def _delay(self, wait_s: float, name: str) -> None:
        """Delay the response to a wrong password.

        Raises:
            AuthError: `MAX_DELAYED` responses are delayed already (429).
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
        AuthError: the header is not valid basic authentication.
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
    """Return a name for log lines and messages: shortened, without blanks and control characters."""
    return "".join(letter if letter.isprintable() and not letter.isspace() else "?" for letter in name[:_MAX_SHOWN])
