"""Runs recovery scripts between two attempts of a job, without making anything else wait."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import define, frozen

from torc_framework.runner.hand import JobInHand
from torc_framework.runner.log import RunnerLog


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
    """The scripts that are due and those that run. A script's failure is only logged.

    Args:
        working_dir: Where they run.
        log: The runner's log.
        watch: Called with a descriptor that becomes readable when one has ended.
        unwatch: Called with it afterwards.
    """

    def __init__(
        self, working_dir: str, log: RunnerLog, watch: Callable[[int], None], unwatch: Callable[[int], None]
    ) -> None:
        self._working_dir, self._log, self._watch, self._unwatch = working_dir, log, watch, unwatch
        self._orders: dict[int, ScriptOrder] = {}
        self._running: list[_Running] = []

    def order(self, job_id: int, order: ScriptOrder) -> None:
        """Have a script run before the next attempt of a job, if there is one."""
        self._orders[job_id] = order

    def call_off(self, job_ids: Iterable[int]) -> None:
        """There is no next attempt of these jobs, or its script has begun."""
        for job_id in job_ids:
            self._orders.pop(job_id, None)

    def begin(self, item: JobInHand) -> bool:
        """Start the script that is due before ``item`` runs; return whether there is one to wait for."""
        order = self._orders.pop(item.key.job_id, None)
        if order is None:
            return False
        try:
            process = self._start(order)
        except OSError as error:
            self._log.warning("recovery_script_not_started", job_id=item.key.job_id, reason=str(error))
            return False
        self._running.append(_Running(item, process, self._open(process.pid)))
        return True

    def _start(self, order: ScriptOrder) -> "subprocess.Popen[bytes]":
        with Path(order.log_path).open("wb") as log:
            return subprocess.Popen(
                ["bash", "-c", order.script],
                cwd=self._working_dir,
                env={**os.environ, **order.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _open(self, pid: int) -> int | None:
        try:
            fd = os.pidfd_open(pid)
        except OSError:  # a kernel before 5.3: `finished` is asked now and then anyway
            return None
        self._watch(fd)
        return fd

    def finished(self) -> list[JobInHand]:
        """Return the items whose scripts have ended."""
        if not self._running:
            return []
        ended = [each for each in self._running if each.process.poll() is not None]
        self._running = [each for each in self._running if each not in ended]
        for each in ended:
            if each.fd is not None:
                self._unwatch(each.fd)
                os.close(each.fd)
            if code := each.process.returncode:
                self._log.warning("recovery_script_failed", job_id=each.item.key.job_id, return_code=code)
        return [each.item for each in ended]

    def kill(self) -> None:
        """Kill all scripts; `finished` returns their items as always."""
        for each in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.process.pid, signal.SIGKILL)
