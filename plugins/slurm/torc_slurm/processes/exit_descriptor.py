"""File descriptors that are readable once a child process has ended."""

import os
import threading
from contextlib import suppress


def exit_descriptor(pid: int) -> int:
    """Return a descriptor that is readable once a child has ended; reading it does not reap the child.

    It is made by pidfd_open(2), which Linux has since 5.3. On an older kernel it is a pipe whose other end is closed by
    a thread that waits for the child.
    """
    try:
        return os.pidfd_open(pid)
    except OSError:
        return pipe_exit_descriptor(pid)


def pipe_exit_descriptor(pid: int) -> int:
    """Return the descriptor for a kernel without pidfd_open(2)."""
    reader, writer = os.pipe()

    def wait() -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.close(writer)

    threading.Thread(target=wait, name=f"waits for {pid}", daemon=True).start()
    return reader
