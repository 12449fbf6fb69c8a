"""What the client needs of the object that carries its requests to a server."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from torc_framework.client.http.connection import Connection, HttpResponse, RequestBody


class RequestOptions(TypedDict, total=False):
    """The arguments of a request that may be left out; `transport.Transport.request` describes them."""

    query: dict[str, Any] | None
    body: "RequestBody | None"
    content_type: str
    timeout: float | None
    repeatable: bool


class RequestSender(Protocol):
    """Sends requests and returns the bodies of their responses; `transport.Transport` describes the methods."""

    @property
    def url(self) -> str:
        """The base URL without credentials, for messages."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables with which another process uses the same server as the same user."""

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> bytes:
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
