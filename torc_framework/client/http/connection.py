"""One kept-alive HTTP/1.1 connection, which sends requests and parses responses with httptools.

The standard library's client spends more time on the headers of a response than a runner's exchange may take as a
whole, and takes three times as long to import.
"""

import os
import socket
from collections.abc import Callable
from typing import IO, Final

import httptools
from attrs import frozen

CHUNK: Final = 1 << 18
"""Most bytes that are read from the socket at once."""

RequestBody = bytes | IO[bytes]
"""A body in memory, or in a file."""


class BrokenResponseError(OSError):
    """The server closed the connection before its response was complete, or did not send HTTP."""


class Connection:
    """HTTP over a connected socket, one request at a time.

    Attributes:
        sock: The socket; None after `close`.
    """

    def __init__(self, sock: socket.socket, host: str) -> None:
        self.sock: socket.socket | None = sock
        self._host = f"Host: {host}\r\n"

    def close(self) -> None:
        """Close the socket."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def request(self, method: str, target: str, headers: str, body: RequestBody | None) -> "HttpResponse":
        """Send a request; return the complete response. Any exception, also one of a signal, closes the connection.

        Args:
            method: HTTP method.
            target: Path and query, quoted.
            headers: Header lines, each with its line end.
            body: Body of the request; a file is sent from its start.

        Raises:
            OSError: the connection failed.
            BrokenResponseError: the response is incomplete or not HTTP.
        """
        try:
            response = self.begin(method, target, headers, body)
            while not response.is_complete:
                self.read_more(response)
        except BaseException:
            self.close()  # the rest of this response must not be read as the response to another request
            raise
        return response

    def begin(self, method: str, target: str, headers: str, body: RequestBody | None) -> "HttpResponse":
        """Send a request; return its response, of which nothing has arrived yet.

        Raises:
            OSError: the connection failed.
        """
        assert self.sock is not None
        content = body or b""
        size = len(content) if isinstance(content, bytes) else os.fstat(content.fileno()).st_size
        length = f"Content-Length: {size}\r\n" if size or method in ("POST", "PUT") else ""
        head = f"{method} {target} HTTP/1.1\r\n{self._host}{headers}{length}\r\n".encode("latin-1")
        if isinstance(content, bytes):
            self.sock.sendall(head + content)
        else:
            self.sock.sendall(head)
            self.sock.sendfile(content)
        return HttpResponse()

    def read_more(self, response: "HttpResponse") -> None:
        """Wait for more of a response; close the connection if the response is complete and the last on it.

        Raises:
            OSError: the connection failed.
            BrokenResponseError: the response is incomplete or not HTTP.
        """
        assert self.sock is not None
        response.feed(self.sock.recv(CHUNK))
        if response.is_complete and not response.keeps_alive:
            self.close()


class HttpResponse:
    """A response while it arrives.

    Attributes:
        status: HTTP status; 0 until the headers are complete.
        is_complete: The response has arrived completely.
        keeps_alive: The connection may be used for another request.
    """

    def __init__(self) -> None:
        self.status = 0
        self.is_complete = False
        self.keeps_alive = False
        self._reason: list[bytes] = []
        self._headers: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self._headers_to_come = [True]
        self._messages_to_come = [True]
        callbacks = _Callbacks(
            on_status=self._reason.append,
            on_header=self._headers.setdefault,
            on_headers_complete=self._headers_to_come.clear,
            on_body=self._chunks.append,
            on_message_complete=self._messages_to_come.pop,
        )
        self._parser = httptools.HttpResponseParser(callbacks)

    @property
    def reason(self) -> str:
        """The reason phrase of the status line."""
        return b"".join(self._reason).decode("latin-1")

    @property
    def retry_after(self) -> str:
        """The header ``Retry-After``; empty if there is none."""
        return self.header(b"retry-after").decode("latin-1")

    @property
    def content(self) -> bytes:
        """The body."""
        return b"".join(self._chunks)

    def take_body(self) -> bytes:
        """Return and forget the part of the body that has arrived since the last call."""
        content = self.content
        self._chunks.clear()
        return content

    def feed(self, chunk: bytes) -> None:
        """Parse a chunk that has arrived; an empty one means that the connection is closed.

        Raises:
            BrokenResponseError: the response is not HTTP, ended too early, or is followed by another one.
        """
        if not chunk:
            if not self.status or self._has_length():
                raise BrokenResponseError("the server closed the connection without a response")
            self.is_complete = True
            return
        try:
            self._parser.feed_data(chunk)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise BrokenResponseError(f"the response is not HTTP: {error}") from error
        if not self.status and not self._headers_to_come:
            self.status = self._parser.get_status_code()
        if not self._messages_to_come:
            # llhttp drops "Connection: close" when a message is complete, so its should_keep_alive() is wrong here.
            closes = b"close" in self.header(b"connection").lower()
            self.keeps_alive = self._parser.get_http_version() == "1.1" and not closes
            self.is_complete = True

    def _has_length(self) -> bool:
        """Return whether the headers determine the end of the body (RFC 9112, section 6.3)."""
        return bool(self.header(b"content-length") or self.header(b"transfer-encoding"))

    def header(self, name: bytes) -> bytes:
        """Return the value of the first header with this lower-case name; empty if there is none."""
        return next((value for key, value in self._headers.items() if key.lower() == name), b"")


@frozen
class _Callbacks:
    """The parser's callbacks, all of them builtin methods.

    The interpreter runs signal handlers between instructions of Python code. As the parser runs no such code, a
    KeyboardInterrupt is not raised inside it, where httptools would turn it into an error of the parser.
    """

    on_status: Callable[[bytes], None]
    on_header: Callable[[bytes, bytes], bytes]
    on_headers_complete: Callable[[], None]
    on_body: Callable[[bytes], None]
    on_message_complete: Callable[[], object]
