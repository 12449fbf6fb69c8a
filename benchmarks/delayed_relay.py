"""A relay in front of a Unix socket that delays every byte, as a network does; run as a program it prints its port.

``python benchmarks/delayed_relay.py SOCKET MILLISECONDS`` listens on a free port of the loopback interface and passes
each connection on to the socket; each direction takes half of the milliseconds.
"""

import asyncio
import sys
from pathlib import Path

CHUNK_BYTES = 256 * 1024


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Write what is read, each piece ``delay_s`` after it was read, until the end of the stream."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def write() -> None:
        while True:
            due, piece = await pieces.get()
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            if not piece:
                writer.close()
                return
            writer.write(piece)

    writing = asyncio.create_task(write())
    try:
        while piece := await reader.read(CHUNK_BYTES):
            pieces.put_nowait((loop.time() + delay_s, piece))
    except ConnectionError:
        pass
    pieces.put_nowait((loop.time(), b""))
    await writing


async def relay(path: Path, delay_s: float) -> None:
    """Listen and pass connections on until the process is ended."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target_reader, target_writer = await asyncio.open_unix_connection(str(path))
        both = pass_on(reader, target_writer, delay_s), pass_on(target_reader, writer, delay_s)
        await asyncio.gather(*both, return_exceptions=True)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(Path(sys.argv[1]), float(sys.argv[2]) / 2000))
