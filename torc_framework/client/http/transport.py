"""`Transport`: requests to one server over kept-alive connections, repeated where that is safe."""

import base64
import json
import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torc_framework.client.http.address import Address, query_string
from torc_framework.client.http.connection import Connection, HttpResponse, RequestBody
from torc_framework.client.http.password_file import read_password
from torc_framework.client.http.retries import REFUSALS, Backoff, FailedRequest, RetryRule, retry_after_seconds
from torc_framework.errors import ApiError, ServerUnreachableError

if TYPE_CHECKING:
    import ssl

_IDEMPOTENT: Final = frozenset({"GET", "PUT", "DELETE"})


class Transport:
    """Sends requests to one server and returns the bodies of its responses.

    It may be used from any number of threads at once. Each request has a connection of its own, which is kept for the
    next request only after the complete response was read. A request that ends in any other way, such as by
    KeyboardInterrupt or by an exception of the caller's signal handler, closes its connection.

    Args:
        url: Base URL; may hold ``user:password@``.
        timeout: Seconds to wait for any part of a response.
        username: User name, on a server with passwords.
        password: Password.
        password_file: File with the password if ``password`` is None; see `password_file.read_password`.
        patience: Seconds for which a failed request is repeated where that is safe; 0 repeats none.
        tls_ca: File or folder of certificates to trust besides the system's.
        verify_tls: Refuse https servers whose certificate is not trusted or is for another host.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        username: str | None = None,
        password: str | None = None,
        password_file: str | Path | None = None,
        patience: float = 0.0,
        tls_ca: "str | Path | None" = None,
        verify_tls: bool = True,
    ) -> None:
        self._idle: list[Connection] = []
        """Open connections that no request uses, the last used one at the end."""
        self._address = Address.parse(url)
        self._timeout = timeout
        self._patience = patience
        self._pid = os.getpid()
        self._tls: ssl.SSLContext | None = None
        if self._address.secure:
            from torc_framework.client.http.tls import tls_context

            self._tls = tls_context(tls_ca, verify=verify_tls)
        self._headers = "Accept: application/json\r\nUser-Agent: torc-framework\r\n"
        username = username if username is not None else self._address.username
        self.environment = {"TORC_API_URL": self._address.base}
        """Environment variables with which another process uses the same server as the same user.

        They hold the path of the password file if there is one, otherwise the password.
        """
        if username is not None:
            variable = {}
            if password is None and password_file is not None:
                password = read_password(password_file)
                variable = {"TORC_PASSWORD_FILE": str(Path(password_file).expanduser().absolute())}
            secret = password if password is not None else self._address.password or ""
            token = base64.b64encode(f"{username}:{secret}".encode()).decode()
            self._headers += f"Authorization: Basic {token}\r\n"
            self.environment |= {"TORC_USERNAME": username, **(variable or {"TORC_PASSWORD": secret})}
        if tls_ca is not None:
            self.environment["TORC_TLS_CA"] = str(Path(tls_ca).absolute())

    def __del__(self) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The base URL without credentials, for messages."""
        return self._address.shown

    def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: RequestBody | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
        repeatable: bool = False,
    ) -> bytes:
        """Return the body of a successful response.

        Args:
            method: HTTP method.
            path: Path below the base URL, quoted.
            query: Values of the query; None values are left out, booleans become ``true`` and ``false``.
            body: Body of the request.
            content_type: Media type of the body.
            timeout: Seconds to wait for any part of the response; None is the transport's own.
            repeatable: The request is idempotent although its method is POST.

        Raises:
            ServerUnreachableError: there was no response, or none in time. The server may have carried out the request
                if it is not idempotent; then the message contains that.
            ApiError: the status of the response is not 2xx.
        """
        target = self._address.path + path + query_string(query)
        headers = f"{self._headers}Content-Type: {content_type}\r\n"
        is_idempotent = repeatable or method in _IDEMPOTENT
        backoff = Backoff(self._patience) if self._patience else None
        while True:
            outcome = self._send(method, target, headers, body, timeout or self._timeout, is_idempotent=is_idempotent)
            if not isinstance(outcome, FailedRequest):
                return outcome
            pause = backoff.pause_before_retry(outcome, is_idempotent=is_idempotent) if backoff else None
            if pause is None:
                raise outcome.error from outcome.cause
            time.sleep(pause)

    def begin(
        self, path: str, *, query: dict[str, Any] | None, headers: str, timeout: float
    ) -> tuple[Connection, HttpResponse]:
        """Request a response that does not end, on a connection of its own; return both when its headers have arrived.

        Args:
            path: Path below the base URL, quoted.
            query: Values of the query.
            headers: Further header lines, each with its line end.
            timeout: Seconds to wait for any part of the response.

        Raises:
            ServerUnreachableError: there was no response, or none in time.
            ApiError: the status of the response is not 2xx.
        """
        begun = self._begin(path, query, headers, timeout)
        if isinstance(begun, FailedRequest):
            raise begun.error from begun.cause
        return begun

    def save(
        self, path: str, *, query: dict[str, Any] | None, write: Callable[[bytes], object], timeout: float
    ) -> HttpResponse:
        """Pass the body of a response of any size on as it arrives; return the response without its body.

        The request is repeated, where that is safe, only until the first byte of the body.

        Args:
            path: Path below the base URL, quoted.
            query: Values of the query.
            write: Gets one part of the body after the other; the parts before an error are not the whole body.
            timeout: Seconds to wait for any part of the response.

        Raises:
            ServerUnreachableError: there was no response, none in time, or an incomplete one.
            ApiError: the status of the response is not 2xx.
            OSError: ``write`` raises it.
        """
        backoff = Backoff(self._patience) if self._patience else None
        while isinstance(begun := self._begin(path, query, "", timeout), FailedRequest):
            pause = backoff.pause_before_retry(begun, is_idempotent=True) if backoff else None
            if pause is None:
                raise begun.error from begun.cause
            time.sleep(pause)
        connection, response = begun
        try:
            write(response.take_body())
            while not response.is_complete:
                try:
                    connection.read_more(response)
                except OSError as error:
                    raise self._no_response("GET", error, is_idempotent=True) from error
                write(response.take_body())
        finally:
            connection.close()
        return response

    def close(self) -> None:
        """Close all connections; the next request opens a new one. No other thread may be sending a request."""
        while self._idle:
            self._idle.pop().close()

    # --- one attempt ------------------------------------------------------------------------------

    def _begin(
        self, path: str, query: dict[str, Any] | None, headers: str, timeout: float
    ) -> tuple[Connection, HttpResponse] | FailedRequest:
        """Send a GET request once on a new connection; return both when the headers have arrived, or the failure."""
        try:
            connection = self._open(timeout)
        except (OSError, UnicodeError) as error:
            return self._not_connected(error)
        try:
            target = self._address.path + path + query_string(query)
            response = connection.begin("GET", target, self._headers + headers, None)
            while not response.is_complete and not 200 <= response.status < 300:
                connection.read_more(response)
        except OSError as error:
            connection.close()
            rule = RetryRule.NEVER if isinstance(error, TimeoutError) else RetryRule.IF_IDEMPOTENT
            return FailedRequest(self._no_response("GET", error, is_idempotent=True), rule, error)
        except BaseException:
            connection.close()
            raise
        if not 200 <= response.status < 300:
            connection.close()
            return _refusal(response)
        return connection, response

    def _send(
        self,
        method: str,
        target: str,
        headers: str,
        body: RequestBody | None,
        timeout: float,
        *,
        is_idempotent: bool,
    ) -> bytes | FailedRequest:
        """Send a request once; return the body of the response, or the failure.

        If the server has closed a kept-alive connection meanwhile, the request is sent on a new one.
        """
        for is_last in (False, True):
            try:
                connection, fresh = self._connection_for_request(timeout)
            except (OSError, UnicodeError) as error:
                return self._not_connected(error)
            try:
                response = connection.request(method, target, headers, body)
            except OSError as error:
                late = isinstance(error, TimeoutError)
                if is_last or fresh or late or not is_idempotent:
                    retry_rule = RetryRule.NEVER if late else RetryRule.IF_IDEMPOTENT
                    return FailedRequest(self._no_response(method, error, is_idempotent), retry_rule, error)
            else:
                if connection.sock is not None:
                    self._idle.append(connection)
                return response.content if 200 <= response.status < 300 else _refusal(response)
        raise AssertionError("unreachable")  # the second round always returns

    def _connection_for_request(self, timeout: float) -> tuple[Connection, bool]:
        """Return a connection for one request, and whether it is new."""
        if self._pid != os.getpid():  # this process was forked, and its parent uses the connections
            self._idle, self._pid = [], os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if connection.sock is not None and not _is_stale(connection.sock):
                connection.sock.settimeout(timeout)
                return connection, False
            connection.close()
        return self._open(timeout), True

    def _open(self, timeout: float) -> Connection:
        address = self._address
        # Python imports its tables of international names for a text, and not for bytes.
        host: Any = address.host.encode() if address.host.isascii() else address.host
        sock = socket.create_connection((host, address.port), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            sock = self._tls.wrap_socket(sock, server_hostname=address.host)
        return Connection(sock, address.authority)

    # --- errors -----------------------------------------------------------------------------------

    def _not_connected(self, error: Exception) -> FailedRequest:
        distrust = None
        if self._tls is not None:
            from torc_framework.client.http.tls import tls_error_advice

            distrust = tls_error_advice(error)
        if distrust is not None:
            distrusted = ServerUnreachableError(f"{self.url}: {distrust}")
            distrusted.is_permanent = True
            return FailedRequest(distrusted, RetryRule.NEVER, error)
        unreachable = self._unreachable(_reason(error))
        unreachable.is_permanent = isinstance(error, (socket.gaierror, UnicodeError))  # no such host
        return FailedRequest(unreachable, RetryRule.ALWAYS, error)

    def _no_response(self, method: str, error: OSError, is_idempotent: bool) -> ServerUnreachableError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else _reason(error)
        if is_idempotent:
            return self._unreachable(reason)
        return self._unreachable(f"{reason}; this {method} may have been carried out, so it was not sent again")

    def _unreachable(self, reason: str) -> ServerUnreachableError:
        return ServerUnreachableError(
            f"no Torc server answers at {self.url}: {reason}; check that it runs ('torc-server run' starts one), and "
            "--url or TORC_API_URL"
        )


def _reason(error: Exception) -> str:
    """Return an error's text without the error number of the system."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = getattr(error, "strerror", None) or str(error)
    return text or type(error).__name__


def _is_stale(sock: socket.socket) -> bool:
    """Return whether an idle connection is readable: the server has closed it, or has sent data without a request."""
    poller = select.poll()
    poller.register(sock, select.POLLIN)
    return bool(poller.poll(0))


def _refusal(response: HttpResponse) -> FailedRequest:
    error, retry_rule = _api_error(response), REFUSALS.get(response.status, RetryRule.NEVER)
    if retry_rule is RetryRule.NEVER or not response.retry_after:
        return FailedRequest(error, retry_rule)
    return FailedRequest(error, RetryRule.ALWAYS, after_s=retry_after_seconds(response.retry_after))


def _api_error(response: HttpResponse) -> ApiError:
    """Return the error of a response, with the server's reason from any of the shapes that an error body can have."""
    status, text = response.status, response.content.decode("utf-8", "replace").strip()
    try:
        body = json.loads(text)
    except ValueError:
        return ApiError(status, text[:500] or f"HTTP {status} {response.reason}")
    message = body
    if isinstance(body, dict):
        message = body.get("error", body.get("errorMessage", body.get("detail", body.get("message"))))
        if isinstance(message, dict):
            message = message.get("message")
    shown = message if isinstance(message, str) else text[:500]
    return ApiError(status, shown or f"HTTP {status} {response.reason}", body)
