"""What the client needs of the object that carries its requests to a server."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torc_framework.client.http.connection import Connection, HttpResponse, RequestBody


class RequestSender(Protocol):
    """Sends requests and returns the bodies of their responses; `transport.Transport` describes the methods."""

    @property
    def url(self) -> str:
        """The base URL without credentials, for messages."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables with which another process uses the same server as the same user."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: "RequestBody | None" = None,
        content_type: str = "application/json",
        timeout: float | None = None,
        repeatable: bool = False,
    ) -> bytes:
        """Return the body of a successful response."""

    def begin(
        self, path: str, *, query: dict[str, Any] | None, headers: str, timeout: float
    ) -> "tuple[Connection, HttpResponse]":
        """Request a response that does not end."""

    def save(
        self, path: str, *, query: dict[str, Any] | None, write: Callable[[bytes], object], timeout: float
    ) -> "HttpResponse":
        """Pass the body of a response of any size on as it arrives."""

    def close(self) -> None:
        """Close all connections."""
