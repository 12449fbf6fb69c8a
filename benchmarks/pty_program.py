"""A program in a terminal of its own: what is typed into it, what it writes, and what it costs."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_QUIET_S: Final = 0.4
"""Seconds without output after which a program has drawn what it had to draw."""
_PAUSE_S: Final = 0.005
_DEADLINE_S: Final = 60.0


class PtyProgram:
    """One program, which leads the session of a pseudo-terminal.

    Args:
        command: The program and its arguments.
        environment: All its variables.
        folder: Where it runs.
        columns: Width of the terminal.
        lines: Height of the terminal.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, *, columns: int, lines: int
    ) -> None:
        self._terminal, program_side = pty.openpty()
        self.resize(columns, lines)
        self.written: list[bytes] = []
        self._changed_at = self.began_at = time.perf_counter()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],  # util-linux; the terminal becomes the program's controlling one
            stdin=program_side,
            stdout=program_side,
            stderr=program_side,
            cwd=folder,
            env=dict(environment),
        )
        os.close(program_side)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._terminal, 1 << 16)
            except OSError:  # the program has closed its side
                return
            if not piece:
                return
            self.written.append(piece)
            self._changed_at = time.perf_counter()

    def type(self, keys: str) -> None:
        """Send what keys send."""
        os.write(self._terminal, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: str, since: int = 0) -> float:
        """Wait until the program has written a text; return the seconds since its start.

        Args:
            text: What stands in the output without a control sequence between.
            since: Pieces of output that are not looked at.

        Raises:
            TimeoutError: it did not within a minute.
        """
        wanted, end = text.encode(), time.perf_counter() + _DEADLINE_S
        while wanted not in b"".join(self.written[since:]):
            if time.perf_counter() > end:
                raise TimeoutError(f"{text!r} was not written; the end was {b''.join(self.written)[-2000:]!r}")
            time.sleep(_PAUSE_S)
        return self._changed_at - self.began_at

    def settle(self, quiet_s: float = _QUIET_S) -> int:
        """Wait until nothing is written for a while; return how many pieces there are.

        Raises:
            TimeoutError: the program went on writing for a minute.
        """
        end = time.perf_counter() + _DEADLINE_S
        while time.perf_counter() - self._changed_at < quiet_s:
            if time.perf_counter() > end:
                raise TimeoutError(f"the program goes on writing; the end was {b''.join(self.written)[-2000:]!r}")
            time.sleep(_PAUSE_S)
        return len(self.written)

    def bytes_for(self, keys: str, quiet_s: float = _QUIET_S) -> int:
        """Type keys and return how many bytes the program writes until it is quiet."""
        before = self.settle(quiet_s)
        self.type(keys)
        time.sleep(quiet_s)
        self.settle(quiet_s)
        return sum(map(len, self.written[before:]))

    def cpu_s(self) -> float:
        """Return the CPU seconds that the program has used, without its children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self, *, peak: bool = False) -> float:
        """Return its memory, MB: the present, or the largest so far."""
        name = "VmHWM:" if peak else "VmRSS:"
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name))

    def close(self) -> None:
        """End the program."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        os.close(self._terminal)
