"""Requests to one server: one kept-alive connection per thread, one retry where it is safe."""

import base64
import json
import select
import socket
import threading
import weakref
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from attrs import frozen

from torc_framework.client.connection import Answer, Connection
from torc_framework.errors import ApiError, ConfigError, ServerUnreachableError

API_PREFIX: Final = "/torc-service/v1"
"""Path under which every endpoint lives."""
_IDEMPOTENT: Final = frozenset({"GET", "PUT", "DELETE"})


def make_url(text: str) -> str:
    """Return the full base URL for what a person gives: with or without the path, without a slash at the end.

    Raises:
        ConfigError: the text is no http or https URL.
    """
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(
            f"{text!r} is not the URL of a Torc server; write for example http://localhost:8080{API_PREFIX}"
        )
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or API_PREFIX}"


@frozen
class _Address:
    """A base URL taken apart; ``shown`` holds no password."""

    secure: bool
    host: str
    port: int
    path: str
    authority: str
    shown: str
    username: str | None
    password: str | None

    @classmethod
    def parse(cls, url: str) -> "_Address":
        parts = urlsplit(make_url(url))
        secure = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if secure else 80)
        authority = parts.netloc.rpartition("@")[2]
        shown = f"{parts.scheme}://{authority}{parts.path}"
        username = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        return cls(secure, host, port, parts.path, authority, shown, username, password)


class _Kept:
    """The connection of one thread; it is closed when the thread ends."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class Transport:
    """Sends requests to one server and returns the bodies of its answers.

    May be used from any number of threads at once; each has its own connection.
    """

    def __init__(self, url: str, *, timeout: float, username: str | None, password: str | None) -> None:
        self._address = _Address.parse(url)
        self._timeout = timeout
        self._local = threading.local()
        self._all: weakref.WeakSet[_Kept] = weakref.WeakSet()
        self._headers = "Accept: application/json\r\nUser-Agent: torc-framework\r\nContent-Type: application/json\r\n"
        username = username if username is not None else self._address.username
        if username is not None:
            secret = password if password is not None else self._address.password or ""
            token = base64.b64encode(f"{username}:{secret}".encode()).decode()
            self._headers += f"Authorization: Basic {token}\r\n"

    @property
    def url(self) -> str:
        """The base URL, without credentials."""
        return self._address.shown

    def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Return the body of a successful answer.

        A kept-alive connection that the server has closed meanwhile is replaced. A request that
        failed on the way is sent again only if that can do no harm.

        Args:
            path: Path below the base URL, quoted.
            query: Query values; None values are left out, booleans become ``true`` and ``false``.
            timeout: Seconds to wait for any part of the answer; None is the client's own.

        Raises:
            ServerUnreachableError: no answer, or none in time.
            ApiError: an answer other than 2xx.
        """
        target = self._address.path + path + _query_text(query)
        for is_last in (False, True):
            connection, fresh = self._connection(timeout or self._timeout)
            try:
                return self._exchange(connection, method, target, body)
            except OSError as error:
                self._drop()
                if is_last or fresh or method not in _IDEMPOTENT or isinstance(error, TimeoutError):
                    raise self._unreachable(error) from error
        raise AssertionError("unreachable")  # the second round always returns or raises

    def close(self) -> None:
        """Close every connection; the next request opens another. No other thread may be in a request."""
        for kept in list(self._all):
            kept.connection.close()
        self._local.kept = None

    def _drop(self) -> None:
        """Close the calling thread's connection."""
        self._local.kept = None

    def _connection(self, timeout: float) -> tuple[Connection, bool]:
        """Return the thread's connection, and whether nothing was sent on it yet."""
        kept: _Kept | None = getattr(self._local, "kept", None)
        sock = kept.connection.sock if kept else None
        if kept is not None and sock is not None and not _is_stale(sock):
            sock.settimeout(timeout)
            return kept.connection, False
        self._drop()
        kept = _Kept(self._open(timeout))
        self._local.kept = kept
        self._all.add(kept)
        return kept.connection, True

    def _open(self, timeout: float) -> Connection:
        address = self._address
        try:
            sock = socket.create_connection((address.host, address.port), timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.secure:
                import ssl

                sock = ssl.create_default_context().wrap_socket(sock, server_hostname=address.host)
        except (OSError, UnicodeError) as error:
            raise self._unreachable(error) from error
        return Connection(sock, address.authority)

    def _exchange(self, connection: Connection, method: str, target: str, body: bytes | None) -> bytes:
        answer = connection.ask(method, target, self._headers, body)
        if not 200 <= answer.status < 300:
            raise _api_error(answer)
        return answer.content

    def _unreachable(self, error: Exception) -> ServerUnreachableError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else _reason(error)
        return ServerUnreachableError(
            f"no Torc server answers at {self.url}: {reason}; check that it runs, and --url or TORC_API_URL"
        )


def _reason(error: Exception) -> str:
    """Return an error's text without the number that precedes those of the system."""
    text = getattr(error, "strerror", None) or str(error)
    return text or type(error).__name__


def _is_stale(sock: socket.socket) -> bool:
    """Say whether an idle connection has something to read: the server closed it or broke the protocol."""
    poller = select.poll()
    poller.register(sock, select.POLLIN)
    return bool(poller.poll(0))


def _query_text(query: dict[str, Any] | None) -> str:
    if not query:
        return ""
    spelled = {True: "true", False: "false"}
    pairs = [
        (key, spelled[value] if isinstance(value, bool) else value) for key, value in query.items() if value is not None
    ]
    return "?" + urlencode(pairs, doseq=True, quote_via=quote) if pairs else ""


def _api_error(answer: Answer) -> ApiError:
    """Read the server's reason out of any of the shapes an error body can have."""
    status, text = answer.status, answer.content.decode("utf-8", "replace").strip()
    try:
        body = json.loads(text)
    except ValueError:
        return ApiError(status, text[:500] or f"HTTP {status} {answer.reason}")
    message = body
    if isinstance(body, dict):
        message = body.get("error", body.get("errorMessage", body.get("detail", body.get("message"))))
        if isinstance(message, dict):
            message = message.get("message")
    shown = message if isinstance(message, str) else text[:500]
    return ApiError(status, shown or f"HTTP {status} {answer.reason}", body)
