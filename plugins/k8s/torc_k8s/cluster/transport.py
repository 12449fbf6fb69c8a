"""Requests to one cluster over HTTP: credentials that are renewed, limits of time and size, errors as sentences."""

import asyncio
import contextlib
import json
import logging
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Final

from attrs import define, field

from torc_framework.api import ConfigError
from torc_k8s.cluster.address import ClusterAddress
from torc_k8s.cluster.errors import ClusterError, ClusterUnreachable, one_line, refusal
from torc_k8s.cluster.login import Login, find_access, log_in

CONNECT_S: Final = 10.0
ANSWER_S: Final = 30.0
"""A request that is answered at once has so long in all."""
ANSWER_LIMIT: Final = 64 * 1024 * 1024
"""Most bytes of one answer. The API bounds an object by about 1.5 MiB."""
RENEW_PAUSE_S: Final = 5.0
"""Credentials that are refused are loaded again at most so often."""
_REFUSAL_LIMIT: Final = 64 * 1024

_log = logging.getLogger(__name__)


class AnswerTooLarge(ClusterError):  # noqa: N818 - says what the answer is
    """An answer is larger than `ANSWER_LIMIT`."""


@define
class ApiTransport:
    """Sends requests by the current login, and replaces the login when its credentials expire or are refused.

    Args:
        address: The cluster's address.
    """

    address: ClusterAddress
    _login: Login = field(init=False)
    _logins: list[Login] = field(factory=list, init=False)
    """The current login, and older ones with requests under way."""
    _loaded_at: float = field(default=0.0, init=False)
    _is_closed: bool = field(default=False, init=False)
    _generation: int = field(default=0, init=False)
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def open(self) -> None:
        """Load kubeconfig and credentials; no request is sent.

        Raises:
            ConfigError, ClusterUnreachable: as `find_access` and `log_in`.
        """
        self._login = await log_in(await find_access(self.address))
        self._logins.append(self._login)
        self._loaded_at = asyncio.get_running_loop().time()

    @property
    def url(self) -> str:
        """The address of the API server."""
        return str(self._login.client.configuration.host)

    @property
    def namespace(self) -> str:
        """The namespace of the address, else of the context or account."""
        return self._login.access.namespace

    @property
    def account(self) -> str:
        """The account or context, for sentences."""
        return self._login.access.account

    @property
    def where(self) -> str:
        """The cluster, for sentences."""
        return f"the cluster {self.url}"

    async def close(self) -> None:
        """Close the session; requests under way end with `ClusterUnreachable`."""
        self._is_closed = True
        for login in [*self._logins]:
            await login.close()

    async def document(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Send a request and return its answer.

        Raises:
            ClusterError: it was refused.
            ClusterUnreachable: it was not answered.
            AnswerTooLarge: the answer exceeds `ANSWER_LIMIT`.
        """
        async with self.answer(method, path, body, content_type=content_type, total_s=ANSWER_S) as response:
            data = await bounded_body(response, ANSWER_LIMIT)
            if data is None:
                raise AnswerTooLarge(f"an answer of {self.where} is larger than {ANSWER_LIMIT} bytes: {method} {path}")
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise ClusterUnreachable(
                f"{self.where} answers with something that is not of Kubernetes: {one_line(repr(data[:200]))}; "
                "check the server's address in the kubeconfig, and proxies on the way"
            )
        return document

    @contextlib.asynccontextmanager
    async def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        total_s: float | None = None,
        begin_s: float | None = None,
        silence_s: float | None = None,
    ) -> AsyncIterator[Any]:
        """Send a request and yield its answer, an ``aiohttp.ClientResponse`` with a status below 400.

        Args:
            method: The HTTP method.
            path: Path and query.
            body: What is sent as JSON.
            content_type: The type of the body.
            total_s: Most seconds until the end of the answer; None without a limit.
            begin_s: Most seconds until its head; None without a limit.
            silence_s: Most seconds without a byte; None without a limit.

        Raises:
            ClusterError: it was refused.
            ClusterUnreachable: it was not answered, or the connection was lost.
        """
        import aiohttp

        if self._is_closed:
            raise ClusterUnreachable(f"{self.where} is no longer used: its connection was closed")
        timeout = aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_S, sock_read=silence_s)
        await self._renew_in_time()
        for is_last in (False, True):
            login, generation, token = self._login, self._generation, object()
            response = None
            try:
                with self._errors():
                    try:
                        async with asyncio.timeout(begin_s) as limit:
                            login.under_way[token] = partial(limit.reschedule, 0.0)
                            response = await self._send(login, (method, path, body, content_type), timeout)
                    except aiohttp.ClientSSLError:
                        if is_last or not await self._renew(generation):
                            raise
                        continue
                    login.under_way[token] = response.close
                    if response.status == 401 and not is_last and await self._renew(generation):
                        continue
                    async with response:
                        if response.status >= 400:
                            raise await self._refused(response)
                        yield response
                return
            finally:
                if response is not None:
                    response.close()  # without an effect on one that was read to its end
                login.under_way.pop(token, None)
                if login.is_retired and not login.under_way:
                    await self._end(login)

    async def _send(self, login: Login, request: tuple[str, str, Any, str], timeout: Any) -> Any:
        method, path, body, content_type = request
        from multidict import CIMultiDict
        from yarl import URL

        headers = CIMultiDict([*login.headers, ("Content-Type", content_type)])
        url = URL(f"{login.client.configuration.host}{path}", encoded=True)
        answer = await login.client.request(method, url, headers=headers, body=body, _request_timeout=timeout)
        return answer.response

    async def _refused(self, response: Any) -> ClusterError:
        data = await bounded_body(response, _REFUSAL_LIMIT) or b""
        seconds = re.fullmatch(r"[0-9]{1,9}", response.headers.get("Retry-After", ""))
        retry_after_s = float(seconds[0]) if seconds else None
        return refusal(response.status, data, account=self.account, where=self.where, retry_after_s=retry_after_s)

    async def _end(self, login: Login) -> None:
        self._logins.remove(login)
        await login.close()

    async def _renew_in_time(self) -> None:
        """Load the credentials again if they soon expire; those at hand serve on if that fails."""
        after_s, age_s = self._login.access.renew_after_s, asyncio.get_running_loop().time() - self._loaded_at
        if after_s is None or age_s < after_s:
            return
        try:
            await self._renew(self._generation)
        except ClusterError as error:
            _log.debug("credentials were not renewed: %s", error)

    async def _renew(self, generation: int) -> bool:
        """Load the credentials again unless that was done since a generation; return whether that was done.

        Raises:
            ClusterUnreachable: kubeconfig or credentials cannot be loaded at present.
        """
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if generation != self._generation:
                return True
            if now - self._loaded_at < RENEW_PAUSE_S:
                return False
            self._loaded_at, old = now, self._login
            try:
                self._login = await log_in(await find_access(self.address), old)
            except ConfigError as error:
                raise ClusterUnreachable(str(error)) from error
            self._generation += 1
            if self._login is not old:
                self._logins.append(self._login)
                old.is_retired = True
                if not old.under_way:
                    await self._end(old)
            return True

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of connections into `ClusterUnreachable`."""
        import aiohttp

        try:
            yield
        except (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            reason = "is no longer used: its connection was closed" if self._is_closed else reason_of(error)
            raise ClusterUnreachable(f"{self.where} {reason}") from error


async def bounded_body(response: Any, limit: int) -> bytes | None:
    """Return the body of an answer, or None if it has more bytes."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > limit:
            response.close()
            return None
        pieces.append(piece)
    return b"".join(pieces)


def reason_of(error: BaseException) -> str:
    """Return why a cluster was not reached, as the end of a sentence that begins with the cluster."""
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    for kinds, text in _reasons():
        if isinstance(error, kinds) or isinstance(cause, kinds):
            said = getattr(error, "message", None) or str(cause) or type(cause).__name__
            return text.format(one_line(str(said), 200))
    return f"cannot be reached: {one_line(str(error) or type(error).__name__, 300)}"


def _reasons() -> tuple[tuple[tuple[type[BaseException], ...], str], ...]:
    """Return the sentences by the classes of errors, of which the first that fits counts."""
    import aiohttp

    return (
        (
            (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError),
            "shows a certificate that its certificate-authority does not confirm ({}); correct the authority or "
            "tls-server-name of the cluster in the kubeconfig",
        ),
        ((ssl.SSLError,), "refuses the TLS connection ({}); an expired client certificate is one reason"),
        ((aiohttp.ClientHttpProxyError,), "is behind a proxy that refuses the connection: {}"),
        ((aiohttp.ClientProxyConnectionError,), "is behind a proxy that cannot be reached: {}"),
        ((TimeoutError,), "does not answer in time"),
        (
            (aiohttp.ClientConnectorDNSError,),
            "has a name that cannot be resolved; check the server's address in the kubeconfig",
        ),
        ((ConnectionRefusedError,), "refuses connections; it is not running, or the kubeconfig names another port"),
        ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError), "closed the connection"),
    )
