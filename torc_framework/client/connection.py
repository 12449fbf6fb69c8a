"""One kept-alive HTTP/1.1 connection: a request out, the answer to it in.

The standard library's client spends more on the headers of an answer than a runner's exchange may
take as a whole, and takes three times as long to import. The parsing is left to httptools.
"""

import socket
from typing import Final

import httptools

CHUNK: Final = 1 << 18
"""Bytes taken from the socket at once."""


class BrokenAnswerError(OSError):
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

    def ask(self, method: str, target: str, headers: str, body: bytes | None) -> "Answer":
        """Send a request; return the whole answer.

        Args:
            target: Path and query, quoted.
            headers: Whole header lines, each with its line end.

        Raises:
            OSError: the connection failed on the way.
            BrokenAnswerError: the answer is not whole, or no HTTP.
        """
        answer = self.begin(method, target, headers, body)
        while not answer.is_whole:
            self.read_more(answer)
        return answer

    def begin(self, method: str, target: str, headers: str, body: bytes | None) -> "Answer":
        """Send a request; return the answer that is to come, nothing of which has arrived yet.

        Raises:
            OSError: the connection failed on the way.
        """
        assert self.sock is not None
        content = body or b""
        length = f"Content-Length: {len(content)}\r\n" if content or method in ("POST", "PUT") else ""
        head = f"{method} {target} HTTP/1.1\r\n{self._host}{headers}{length}\r\n".encode("latin-1")
        self.sock.sendall(head + content)
        return Answer()

    def read_more(self, answer: "Answer") -> None:
        """Wait for more of an answer; the connection is closed with one that is its last.

        Raises:
            OSError: the connection failed on the way.
            BrokenAnswerError: the answer is not whole, or no HTTP.
        """
        assert self.sock is not None
        answer.feed(self.sock.recv(CHUNK))
        if answer.is_whole and not answer.keeps_alive:
            self.close()


class Answer:
    """An answer as it arrives.

    Attributes:
        status: HTTP status.
        reason: The words that came with it.
        retry_after: When the server wants to be asked again, as it said it.
        is_whole: Nothing more will come.
        keeps_alive: The connection may be used again.
    """

    def __init__(self) -> None:
        self.status = 0
        self.reason = ""
        self.retry_after = ""
        self.is_whole = False
        self.keeps_alive = False
        self._chunks: list[bytes] = []
        self._ends_with_connection = True
        self._parser = httptools.HttpResponseParser(self)

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
            BrokenAnswerError: it is no HTTP, or ended too early.
        """
        if not chunk:
            if not self.status or not self._ends_with_connection:
                raise BrokenAnswerError("the server closed the connection without an answer")
            self.is_whole = True
            return
        try:
            self._parser.feed_data(chunk)
        except httptools.HttpParserError as error:
            raise BrokenAnswerError(f"the answer is no HTTP: {error}") from error

    def on_status(self, reason: bytes) -> None:
        """Called by the parser."""
        self.reason += reason.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        lower = name.lower()
        if lower in (b"content-length", b"transfer-encoding"):
            self._ends_with_connection = False
        elif lower == b"retry-after":
            self.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self.status = self._parser.get_status_code()

    def on_body(self, chunk: bytes) -> None:
        """Called by the parser."""
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self.keeps_alive = self._parser.should_keep_alive()
        self.is_whole = True
