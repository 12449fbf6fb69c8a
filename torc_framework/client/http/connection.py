"""One kept-alive HTTP/1.1 connection: a request out, the answer to it in.

The standard library's client spends more on the headers of an answer than a runner's exchange may
take as a whole, and takes three times as long to import. The parsing is left to httptools.
"""

import socket
from collections.abc import Callable
from typing import Final

import httptools
from attrs import frozen

CHUNK: Final = 1 << 18
"""Bytes taken from the socket at once."""


class BrokenResponseError(OSError):
    """The server closed the connection before its answer was whole, or does not speak HTTP."""


class Connection:
    """Speaks HTTP over a connected socket, one request at a time.

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

    def ask(self, method: str, target: str, headers: str, body: bytes | None) -> "HttpResponse":
        """Send a request; return the whole answer. Any exception, also one that a signal raises, closes the connection.

        Args:
            target: Path and query, quoted.
            headers: Whole header lines, each with its line end.

        Raises:
            OSError: the connection failed on the way.
            BrokenResponseError: the answer is not whole, or no HTTP.
        """
        try:
            answer = self.begin(method, target, headers, body)
            while not answer.is_whole:
                self.read_more(answer)
        except BaseException:
            self.close()  # what is left of the answer must not be read as the answer to another request
            raise
        return answer

    def begin(self, method: str, target: str, headers: str, body: bytes | None) -> "HttpResponse":
        """Send a request; return the answer that is to come, nothing of which has arrived yet.

        Raises:
            OSError: the connection failed on the way.
        """
        assert self.sock is not None
        content = body or b""
        length = f"Content-Length: {len(content)}\r\n" if content or method in ("POST", "PUT") else ""
        head = f"{method} {target} HTTP/1.1\r\n{self._host}{headers}{length}\r\n".encode("latin-1")
        self.sock.sendall(head + content)
        return HttpResponse()

    def read_more(self, answer: "HttpResponse") -> None:
        """Wait for more of an answer; the connection is closed with one that is its last.

        Raises:
            OSError: the connection failed on the way.
            BrokenResponseError: the answer is not whole, or no HTTP.
        """
        assert self.sock is not None
        answer.feed(self.sock.recv(CHUNK))
        if answer.is_whole and not answer.keeps_alive:
            self.close()


class HttpResponse:
    """An answer as it arrives.

    Attributes:
        status: HTTP status; 0 until the headers are whole.
        is_whole: Nothing more will come.
        keeps_alive: The connection may be used again.
    """

    def __init__(self) -> None:
        self.status = 0
        self.is_whole = False
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
        """The words that came with the status."""
        return b"".join(self._reason).decode("latin-1")

    @property
    def retry_after(self) -> str:
        """When the server wants to be asked again, as the server wrote it."""
        return self._header(b"retry-after").decode("latin-1")

    @property
    def content(self) -> bytes:
        """The body."""
        return b"".join(self._chunks)

    def take(self) -> bytes:
        """Return what has arrived of the body since the last call, and keep it no longer."""
        content = self.content
        self._chunks.clear()
        return content

    def feed(self, chunk: bytes) -> None:
        """Take in what has arrived; nothing means that the connection is closed.

        Raises:
            BrokenResponseError: it is no HTTP, ended too early, or more than one answer came.
        """
        if not chunk:
            if not self.status or self._has_length():
                raise BrokenResponseError("the server closed the connection without an answer")
            self.is_whole = True
            return
        try:
            self._parser.feed_data(chunk)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise BrokenResponseError(f"the answer is no HTTP: {error}") from error
        if not self.status and not self._headers_to_come:
            self.status = self._parser.get_status_code()
        if not self._messages_to_come:
            # llhttp forgets "Connection: close" when a message is complete, so its own answer is of no use here.
            closes = b"close" in self._header(b"connection").lower()
            self.keeps_alive = self._parser.get_http_version() == "1.1" and not closes
            self.is_whole = True

    def _has_length(self) -> bool:
        """Tell whether the headers say where the body ends (RFC 9112, section 6.3)."""
        return bool(self._header(b"content-length") or self._header(b"transfer-encoding"))

    def _header(self, name: bytes) -> bytes:
        """Return the value of the first header of this lower-case name; empty if there is none."""
        return next((value for key, value in self._headers.items() if key.lower() == name), b"")


@frozen
class _Callbacks:
    """What the parser calls, builtin methods only.

    The interpreter runs signal handlers between instructions of Python code. With no such code inside the parser, a
    KeyboardInterrupt is never raised there, where httptools would turn it into a parser's error.
    """

    on_status: Callable[[bytes], None]
    on_header: Callable[[bytes, bytes], bytes]
    on_headers_complete: Callable[[], None]
    on_body: Callable[[bytes], None]
    on_message_complete: Callable[[], object]
