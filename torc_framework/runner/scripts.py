"""Runs recovery scripts between two attempts of a job, without making anything else wait."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from attrs import define, frozen

from torc_framework.runner.hand import JobInHand


@frozen
class ScriptOrder:
    """A recovery script that is due if the retry is granted.

    Attributes:
        script: Text for ``bash -c``.
        environment: That of the failed attempt, with ``TORC_RETURN_CODE``.
        log_path: Gets what it prints.
    """

    script: str
    environment: dict[str, str]
    log_path: str


@define
class _Running:
    item: JobInHand
    process: "subprocess.Popen[bytes]"
    fd: int | None


class RecoveryScripts:
    """The scripts that run now.

    Args:
        working_dir: Where they run.
        watch: Called with a descriptor that becomes readable when one has ended.
        unwatch: Called with it afterwards.
    """

    def __init__(self, working_dir: str, watch: Callable[[int], None], unwatch: Callable[[int], None]) -> None:
        self._working_dir, self._watch, self._unwatch = working_dir, watch, unwatch
        self._running: list[_Running] = []

    def __len__(self) -> int:
        return len(self._running)

    def start(self, item: JobInHand, order: ScriptOrder) -> str | None:
        """Start a script before ``item`` runs; return why it could not be, if so."""
        try:
            with Path(order.log_path).open("wb") as log:
                process = subprocess.Popen(
                    ["bash", "-c", order.script],
                    cwd=self._working_dir,
                    env={**os.environ, **order.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            return str(error)
        self._running.append(_Running(item, process, self._open(process.pid)))
        return None

    def _open(self, pid: int) -> int | None:
        try:
            fd = os.pidfd_open(pid)
        except OSError:  # a kernel before 5.3: `finished` is asked now and then anyway
            return None
        self._watch(fd)
        return fd

    def finished(self) -> list[tuple[JobInHand, int]]:
        """Return the items whose scripts have ended, each with the script's return code."""
        if not self._running:
            return []
        ended = [each for each in self._running if each.process.poll() is not None]
        self._running = [each for each in self._running if each not in ended]
        for each in ended:
            if each.fd is not None:
                self._unwatch(each.fd)
                os.close(each.fd)
        return [(each.item, each.process.returncode) for each in ended]

    def kill(self) -> None:
        """Kill all scripts; `finished` returns their items as always."""
        for each in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.process.pid, signal.SIGKILL)
