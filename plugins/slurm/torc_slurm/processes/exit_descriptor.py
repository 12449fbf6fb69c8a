"""Descriptors that can be read when a child process has ended."""

import os
import threading
from contextlib import suppress


def exit_descriptor(pid: int) -> int:
    """Return a descriptor that can be read when a child has ended; it is not reaped by that.

    That is pidfd_open(2) of Linux 5.3. On an older kernel, a thread that waits for the child closes the other end
    of a pipe.
    """
    try:
        return os.pidfd_open(pid)
    except OSError:
        return pipe_exit_descriptor(pid)


def pipe_exit_descriptor(pid: int) -> int:
    """Return the descriptor of an older kernel."""
    reader, writer = os.pipe()

    def wait() -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.close(writer)

    threading.Thread(target=wait, name=f"waits for {pid}", daemon=True).start()
    return reader
