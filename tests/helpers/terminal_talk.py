"""torc at a terminal: a test reads what it shows and answers its questions."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import eventually

DEADLINE_S = 60.0
Talk = Callable[..., tuple[int, str]]


def _sit_down() -> None:
    """Make the terminal this process's own, so that Ctrl-C becomes a signal, also where SIGINT was ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _sleeps(pid: int) -> bool:
    """Return whether a process waits in the kernel (proc(5), /proc/pid/stat)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def plain(shown: str) -> str:
    """Return what a terminal was sent, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.fixture
def talk(torc_env: dict[str, str], work: Path, server: str) -> Talk:
    """Run torc at a terminal; answer each expected text; return exit code and everything shown."""

    def run(*arguments: str, answers: list[tuple[str, str]] | None = None) -> tuple[int, str]:
        master, slave = pty.openpty()
        environment = {**torc_env, "TORC_API_URL": server, "TERM": "xterm", "COLUMNS": "100"}
        process = subprocess.Popen(
            ["torc", *arguments],
            cwd=work,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_sit_down,  # noqa: PLW1509 - no threads here
        )
        os.close(slave)
        shown, left, end = "", list(answers or []), time.monotonic() + DEADLINE_S
        while True:
            ready, _, _ = select.select([master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"silent for too long after: {shown}"
            try:
                chunk = os.read(master, 65536)
            except OSError:  # raised by Linux once the other end is closed
                chunk = b""
            if not chunk:
                break
            shown += chunk.decode("utf-8", "replace")
            if left and left[0][0] in shown:
                # CPython acts on a signal that arrives between the prompt and the read only after the read.
                eventually(lambda: _sleeps(process.pid), "the program does not wait for an answer")
                os.write(master, left.pop(0)[1].encode())
        os.close(master)
        return process.wait(DEADLINE_S), shown

    return run
