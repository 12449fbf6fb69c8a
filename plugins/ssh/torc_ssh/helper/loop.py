"""The loop of the helper: one thread that reads requests, writes answers and pieces of files, watches descriptors."""

from __future__ import annotations

import collections
import fcntl
import os
import queue
import select
import threading
import time
from typing import Any, Callable

from torc_ssh.helper.window import Window
from torc_ssh.helper.wire import FrameReader, encode_message, piece_header

STDIN, STDOUT = 0, 1
READ_BYTES = 1 << 18
WORKERS = 8
TICK_S = 1.0
MOST_OUTGOING_BYTES = 4 << 20
"""With so many bytes of messages to write, the loop reads nothing more."""
_F_SETPIPE_SZ = 1031
_PIPE_BYTES = 1 << 20


class HelperLoop:
    """Reads frames from standard input and writes frames to standard output, without ever waiting for either.

    Work that may wait for a disk or a process is done by worker threads (`submit`), which hand their results back to
    the thread of the loop (`post`). All other methods are for the thread of the loop only.

    Args:
        on_message: Called for each message.
    """

    def __init__(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        self._on_message = on_message
        self._reader = FrameReader()
        self._posted: collections.deque[Callable[[], None]] = collections.deque()
        self._wake_read, self._wake_write = os.pipe()
        self._messages: list[bytes] = []
        self._waiting_bytes = 0
        self._unwritten = memoryview(b"")
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._workers = 0
        self._poller = select.poll()
        self._handlers: dict[int, Callable[[], None]] = {self._wake_read: self._take_posted, STDIN: self._read}
        self._is_writable = True
        self._mask = {STDIN: 0, STDOUT: 0}
        self.window = Window()
        self.on_piece: Callable[[int, bytes], None] = lambda stream, data: None
        """Is called with stream number and bytes of each piece."""
        self.next_piece: Callable[[], tuple[int, bytes] | None] = lambda: None
        """Returns the next piece to send while the window is open; None if there is none at present."""
        self.on_tick: Callable[[], None] = lambda: None
        """Is called about once in `TICK_S`."""
        self.is_ended = False
        for fd in (self._wake_read, self._wake_write, STDIN, STDOUT):
            os.set_blocking(fd, False)
        for fd in (STDIN, STDOUT):
            try:
                fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                continue  # it is a socket, or the user has too many large pipes
        self._poller.register(self._wake_read, select.POLLIN)

    def run(self, first_bytes: bytes) -> None:
        """Work until standard input or standard output ends.

        Args:
            first_bytes: What was read from standard input before.
        """
        self._feed(first_bytes)
        next_tick = time.monotonic() + TICK_S
        while not self.is_ended:
            self._flush()
            self._set_masks()
            ready = self._poller.poll(max(0.0, next_tick - time.monotonic()) * 1000)
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                self.on_tick()
            for fd, _ in ready:
                if fd == STDOUT:
                    self._is_writable = True
                elif fd in self._handlers:
                    self._handlers[fd]()

    def _set_masks(self) -> None:
        """Watch standard input unless too much is to be written, and standard output only if something is."""
        reads = self._waiting_bytes < MOST_OUTGOING_BYTES
        for fd, mask in ((STDIN, select.POLLIN if reads else 0), (STDOUT, 0 if self._is_writable else select.POLLOUT)):
            if mask == self._mask[fd]:
                continue
            self._mask[fd] = mask
            if mask:
                self._poller.register(fd, mask)
            else:
                self._poller.unregister(fd)

    def watch(self, fd: int, handler: Callable[[], None]) -> None:
        """Call a function whenever a descriptor is readable."""
        self._handlers[fd] = handler
        self._poller.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor."""
        if self._handlers.pop(fd, None) is not None:
            self._poller.unregister(fd)

    # --- input -----------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            data = os.read(STDIN, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._feed(data)
        else:
            self.is_ended = True

    def _feed(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            if isinstance(frame, dict):
                self._on_message(frame)
            else:
                self.on_piece(*frame)

    # --- output ----------------------------------------------------------------------------------

    @property
    def is_congested(self) -> bool:
        """So much is to be written that what can wait should wait."""
        return self._waiting_bytes >= MOST_OUTGOING_BYTES // 4

    def send(self, message: dict[str, Any]) -> None:
        """Write a message, before all pieces that are not being written yet."""
        frame = encode_message(message)
        self._messages.append(frame)
        self._waiting_bytes += len(frame)

    def _flush(self) -> None:
        """Write as much as standard output accepts."""
        while self._is_writable:
            if not self._unwritten and not self._take_output():
                return
            try:
                self._unwritten = self._unwritten[os.write(STDOUT, self._unwritten) :]
            except BlockingIOError:
                self._is_writable = False
            except OSError:
                self.is_ended = True
                return

    def _take_output(self) -> bool:
        """Take the next bytes to write, messages before pieces; return False if there are none."""
        if self._messages:
            self._unwritten = memoryview(b"".join(self._messages))
            self._messages.clear()
            self._waiting_bytes = 0
            return True
        found = self.next_piece() if self.window.is_open else None
        if found is None:
            return False
        stream, data = found
        self.window.record_sent(stream, len(data))
        self._unwritten = memoryview(piece_header(stream, len(data)) + data)
        return True

    # --- threads ---------------------------------------------------------------------------------

    def submit(self, job: Callable[[], None]) -> None:
        """Have a worker thread call a function, which must not raise."""
        if self._workers < WORKERS:
            self._workers += 1
            threading.Thread(target=self._work, daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            job()
            del job  # its data are not kept until the next one

    def post(self, function: Callable[[], None]) -> None:
        """Have the loop call a function; for worker threads."""
        self._posted.append(function)
        try:
            os.write(self._wake_write, b"x")
        except BlockingIOError:
            pass  # the pipe is full of wakes already

    def take_posted_until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Call the functions that were posted, and nothing else, until a condition holds or the time is over."""
        deadline = time.monotonic() + timeout_s
        while not condition() and time.monotonic() < deadline:
            if select.select([self._wake_read], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._take_posted()

    def _take_posted(self) -> None:
        try:
            os.read(self._wake_read, READ_BYTES)
        except BlockingIOError:
            pass
        while self._posted:
            self._posted.popleft()()
