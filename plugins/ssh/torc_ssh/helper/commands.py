"""Short commands that the helper runs to their end."""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import Any

from torc_ssh.helper.errors import INVALID, RefusedRequestError

MOST_OUTPUT_BYTES = 1 << 20


def run(
    argv: list[str],
    environment: dict[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 60.0,
    cwd: str | None = None,
) -> dict[str, Any]:
    """Run a command in a session of its own; return its exit code and the beginnings of its outputs.

    The outputs are read until the command ends; what its children write later is lost. After the timeout its process
    group is killed, and ``timed_out`` is true. The exit code is minus the number of the signal that ended it.

    Args:
        argv: The words of the command.
        environment: Variables beyond those of the helper.
        stdin: Text for its standard input.
        timeout_s: How long it may run.
        cwd: Its working folder, the home folder by default.
    """
    import subprocess

    if not argv:
        raise RefusedRequestError(INVALID, "the command is empty")
    process = subprocess.Popen(
        [os.fsencode(word) for word in argv],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        start_new_session=True,
    )
    with process:
        try:
            outputs, timed_out = _talk(process, os.fsencode(stdin), time.monotonic() + timeout_s)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return {
            "exit_code": process.wait(),
            "stdout": os.fsdecode(bytes(outputs["stdout"])),
            "stderr": os.fsdecode(bytes(outputs["stderr"])),
            "timed_out": timed_out,
        }


def _talk(process: Any, text: bytes, deadline: float) -> tuple[dict[str, bytearray], bool]:
    """Write standard input and read both outputs until the process ends or the deadline passes."""
    outputs = {"stdout": bytearray(), "stderr": bytearray()}
    unwritten = memoryview(text)
    with selectors.DefaultSelector() as selector:
        for name in outputs:
            selector.register(getattr(process, name), selectors.EVENT_READ, name)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")
        while time.monotonic() < deadline:
            is_over = process.poll() is not None
            ready = selector.select(0 if is_over else min(0.05, max(0.0, deadline - time.monotonic())))
            for key, _ in ready:
                if key.data == "stdin":
                    unwritten = _write_some(key.fd, unwritten)
                    if not unwritten:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                taken = outputs[key.data]
                taken += data[: MOST_OUTPUT_BYTES - len(taken)]
            if is_over and not any(key.data != "stdin" for key, _ in ready):
                return outputs, False
    return outputs, True


def _write_some(fd: int, data: memoryview) -> memoryview:
    try:
        return data[os.write(fd, data) :]
    except BlockingIOError:
        return data
    except OSError:
        return memoryview(b"")
