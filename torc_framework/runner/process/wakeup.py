"""What the runner's thread waits for: file descriptors, other threads and signals."""

import contextlib
import os
import selectors
import threading


class Wakeup:
    """Lets one thread wait until a watched descriptor is readable or another thread or a signal wakes it.

    All methods but `wake` are called in the thread that waits.

    Attributes:
        write_fd: A byte that a signal handler writes there wakes the thread, too.
    """

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._closed = False
        self._selector = selectors.DefaultSelector()
        self.watch(self._read_fd)

    def watch(self, fd: int) -> None:
        """Return from `wait` when this descriptor is readable."""
        self._selector.register(fd, selectors.EVENT_READ)

    def unwatch(self, fd: int) -> None:
        """Watch a descriptor no more."""
        self._selector.unregister(fd)

    def wake(self) -> None:
        """Wake the thread, from any thread; nothing happens after `close`."""
        with self._lock, contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            if not self._closed:
                os.write(self.write_fd, b"w")

    def wait(self, seconds: float) -> None:
        """Wait until there is a reason to go on, so long at most."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.fd == self._read_fd:
                with contextlib.suppress(BlockingIOError):
                    while os.read(self._read_fd, 4096):
                        pass

    def close(self) -> None:
        """Release all descriptors of its own."""
        self._selector.close()
        with self._lock:
            self._closed = True
            os.close(self._read_fd)
            os.close(self.write_fd)
