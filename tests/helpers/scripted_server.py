"""A server that does as it is told, request by request."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}'
Handler = Callable[[socket.socket, bytes], bool]


@contextmanager
def scripted(*handlers: Handler) -> Iterator[tuple[str, list[bytes]]]:
    """Serve one request after the other by these handlers; one that returns False closes its connection.

    Yields the base URL and the list of requests seen.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []

    def serve() -> None:
        left = list(handlers)
        with suppress(OSError):  # the client has closed the connection
            while left:
                connection, _ = listener.accept()
                with connection:
                    keep = True
                    while keep and left and (request := _request(connection)):
                        seen.append(request)
                        keep = left.pop(0)(connection, request)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        listener.close()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(content: bytes, *, then_close: bool = False) -> Handler:
    def handle(connection: socket.socket, _: bytes) -> bool:
        connection.sendall(content)
        return not then_close

    return handle


def hang_up(_: socket.socket, __: bytes) -> bool:
    return False


def json_answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
