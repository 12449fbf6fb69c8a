"""The output of a running container, written to the files of its attempt.

The log of a container may be rotated away, a connection may be cut, and the runner may be replaced. The program in the
container therefore keeps the output, and the reader tells it by an annotation of the pod what it has: the number of its
last request to repeat, the bytes that it has of both streams, and the encoding in which it wants what follows. The
program is never more than 4 MiB ahead of that, and repeats everything from there for each new number.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, frozen

from torc_framework.api import ContainedFolder
from torc_k8s.cluster import Cluster, ClusterError, ClusterUnreachable, NotStarted
from torc_k8s.container.message import ContainerEnd
from torc_k8s.container.program import LOG
from torc_k8s.container.records import LogEnd, LogItem, LogStart, Record, RecordParser

ACKNOWLEDGE_BYTES: Final = 1024 * 1024
"""The program is told at least so often what the reader has."""
PROBE_S: Final = 2.0
"""When a new reading brings nothing for so long, the reader asks for what follows: it may have been rotated away."""
ROTATION_BYTES: Final = 512 * 1024
"""From this size on a log may be rotated (``containerLogMaxSize`` of the kubelet, 10 MiB unless a site sets it)."""
LINE_BYTES: Final = 50
"""What the container runtime adds to each line of a log, in bytes."""
MOST_QUIET_S: Final = 60.0
"""A reading of a log that may be rotated begins again after so long without news: kubelets lose their readers then."""
OVERLAP_S: Final = 30.0
"""Such a reading begins so long before the last news."""
REPEAT_S: Final = 10.0
"""A request to repeat that brought nothing for so long is made again."""
MOST_REPEATS: Final = 6
"""After so many requests that brought nothing the bytes count as lost."""
FULL_DISK_PAUSE_S: Final = 5.0
MOST_WRITES: Final = 3
"""After the container's end a file that cannot be written is tried so often."""
_FIRST_PAUSE_S: Final = 0.2
_MOST_PAUSE_S: Final = 5.0
_NAMES: Final = {"o": "standard output", "e": "standard error"}


@frozen
class LogResult:
    """How the reading of a log ended.

    Attributes:
        problem: What is missing; None if nothing is.
    """

    problem: str | None = None


@define(eq=False)
class _StreamFile:
    """A file to which a stream of the job is appended.

    Attributes:
        path: Its path.
        folder: The folder that it must not leave; "" is its own.
        have: How many bytes of the stream are in it, or were given up.
        lost: How many bytes were given up.
    """

    path: str
    folder: str = ""
    have: int = 0
    lost: int = 0
    _descriptor: int = -1

    def open(self) -> None:
        """Open the file, or go on where an earlier reader stopped."""
        if self._descriptor < 0:
            self._descriptor = open_log(self.path, self.folder)
            self.have = max(self.have, os.fstat(self._descriptor).st_size)

    def append(self, data: bytes) -> None:
        """Write the next bytes of the stream."""
        rest = memoryview(data)
        while rest:
            written = os.write(self._descriptor, rest)
            self.have += written
            rest = rest[written:]

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def open_log(path: str, folder: str) -> int:
    """Return a descriptor of a file to which output is appended; a missing one is made.

    Args:
        path: The file, or the null device.
        folder: The folder that it must not leave; "" is its own.

    Raises:
        OSError: it cannot be opened, it is a link, or it is not below the folder.
    """
    if path == os.devnull:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    within = ContainedFolder(Path(folder or os.path.dirname(path)))  # noqa: PTH120 - Path is made of the result
    return within.open_to_append(os.path.relpath(path, within.path))


class ContainerLogReader:
    """Follows the log of one container and appends what the job writes to two files, each byte once.

    Args:
        cluster: The cluster.
        pod: Name of the pod.
        container: Name of the container.
        stdout_path: File for the job's standard output. What it contains is taken for the beginning of the output, as
            an earlier reader wrote it.
        stderr_path: File for standard error.
        folder: The folder that both must not leave; by default that of each file.
    """

    def __init__(
        self, cluster: Cluster, pod: str, container: str, stdout_path: str, stderr_path: str, *, folder: str = ""
    ) -> None:
        self._cluster, self._pod, self._container = cluster, pod, container
        self._files = {"o": _StreamFile(stdout_path, folder), "e": _StreamFile(stderr_path, folder)}
        self._parser = RecordParser(pod)
        self._has_ended = asyncio.Event()
        self._sizes: tuple[int, int] | None = None
        self._all_there = asyncio.Event()
        self._answer_due = asyncio.Event()
        self._acknowledged = (0, 0)
        self._waits = self._is_reading = False
        self._received = 0
        self._items = 0
        self._quiet_s = PROBE_S
        self._news_at = time.monotonic()
        self._request = self._repeats = 0
        self._wanted: tuple[int, int] | None = None
        self._encoding = "t"
        self._timer: asyncio.TimerHandle | None = None
        self._write_error: OSError | None = None

    def ended(self, end: ContainerEnd | None) -> None:
        """Note that the container has ended, so that its log grows no more; ``end`` is what its program reported."""
        self._has_ended.set()
        if end is not None and end.stdout_bytes is not None and end.stderr_bytes is not None:
            self._sizes = end.stdout_bytes, end.stderr_bytes
            self._check_end()

    async def run(self) -> LogResult:
        """Read until everything is there, or the container has ended and its log has no more.

        A call that was cancelled can be repeated: the next one goes on where it stopped.

        Raises:
            OSError: a file cannot be opened.
        """
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(self._all_there.wait())]
        try:
            for file in self._files.values():
                file.open()
            self._check_end()
            if self._wanted is not None:
                self._after(REPEAT_S, self._ask_again)
            if not self._all_there.is_set():
                reading = asyncio.create_task(self._read())
                tasks += [reading, asyncio.create_task(self._answer())]
                await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
                if reading.done() and not self._all_there.is_set():
                    return LogResult(reading.result())
            return LogResult(self._loss())
        finally:
            self._stop_timer()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for file in self._files.values():
                file.close()

    # --- the log ---------------------------------------------------------------------------------

    async def _read(self) -> str:
        """Read the log again and again; return what is missing once it has no more."""
        pause_s, writes = _FIRST_PAUSE_S, 0
        while True:
            is_last, before = self._has_ended.is_set(), self._have
            problem = await self._read_once(follow=not is_last)
            if self._write_error is not None:
                writes += is_last
                if writes >= MOST_WRITES:
                    return f"{self._write_error.filename}: {self._write_error.strerror}"
                await self._pause(FULL_DISK_PAUSE_S)
                continue
            if is_last and not isinstance(problem, ClusterUnreachable):
                return self._finish(problem)
            pause_s = _FIRST_PAUSE_S if self._have != before else min(pause_s * 2, _MOST_PAUSE_S)
            await self._pause(pause_s * random.uniform(0.5, 1.5))

    async def _pause(self, pause_s: float) -> None:
        """Wait; the end of the container shortens a wait that began before it."""
        if self._has_ended.is_set():
            await asyncio.sleep(pause_s)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._has_ended.wait(), pause_s)

    async def _read_once(self, *, follow: bool) -> ClusterError | None:
        """Read the log; return why the reading ended, None at its end or if it brings nothing any more."""
        self._parser.reset()
        self._write_error, self._is_reading, self._items = None, follow, 0
        may_be_rotated = self._received > ROTATION_BYTES
        since_s = time.monotonic() - self._news_at + OVERLAP_S if follow and may_be_rotated else None
        if follow and self._wanted is None:
            self._after(PROBE_S, self._probe)
        try:
            async with (
                asyncio.timeout(self._quiet_s if since_s is not None else None) as patience,
                aclosing(self._cluster.log(self._pod, self._container, follow=follow, since_s=since_s)) as pieces,
            ):
                async for piece in pieces:
                    self._received += len(piece) + LINE_BYTES * piece.count(b"\n")
                    self._take(self._parser.feed(piece))
                    if follow and self._received > ROTATION_BYTES:
                        patience.reschedule(asyncio.get_running_loop().time() + self._quiet_s)
        except ClusterError as error:
            return error
        except TimeoutError:
            self._quiet_s = min(self._quiet_s * 2, MOST_QUIET_S)
        except OSError as error:
            self._write_error = error
        finally:
            self._is_reading = False
        return None

    def _finish(self, problem: ClusterError | None) -> str:
        """Return what is missing of a log that has ended without everything."""
        if self._sizes is None:
            with suppress(OSError):
                self._take(self._parser.rest())
        if problem is not None and not isinstance(problem, NotStarted):
            return f"the log can no longer be read: {problem}"
        if self._sizes is None:
            return "the container was killed before all output was copied to its log"
        return self._loss() or "the output is incomplete"

    def _loss(self) -> str | None:
        """Return how many bytes are missing, None if none are."""
        sizes = self._sizes or self._have
        lost = {
            name: max(size - file.have, 0) + file.lost
            for (name, file), size in zip(self._files.items(), sizes, strict=True)
        }
        words = [f"{count} bytes of {_NAMES[name]}" for name, count in lost.items() if count]
        return f"{' and '.join(words)} are missing: the log of the container was rotated or removed" if words else None

    # --- records ---------------------------------------------------------------------------------

    @property
    def _have(self) -> tuple[int, int]:
        return self._files["o"].have, self._files["e"].have

    def _take(self, items: list[LogItem]) -> None:
        for item in items:
            match item:
                case Record():
                    self._write(item)
                case LogStart():
                    pass
                case LogEnd():
                    self._sizes, self._waits = item.sizes, item.waits
                    if not self._has_all():
                        self._lack(None)
                    elif item.waits:
                        self._answer_due.set()
        if items:
            self._items += len(items)
            self._check_end()
            if sum(self._have) - sum(self._acknowledged) >= ACKNOWLEDGE_BYTES:
                self._answer_due.set()

    def _write(self, record: Record) -> None:
        file = self._files[record.stream]
        if record.offset > file.have:
            self._lack(record)
        if record.offset <= file.have < record.offset + len(record.data):
            try:
                file.append(record.data[file.have - record.offset :])
            except OSError as error:
                raise OSError(error.errno, error.strerror, file.path) from None
            self._quiet_s, self._news_at = PROBE_S, time.monotonic()
            if self._wanted is not None and sum(self._have) > sum(self._wanted):
                self._wanted, self._repeats = None, 0
                self._encoding, self._parser.skipped = "t", 0

    def _has_all(self) -> bool:
        return self._sizes is not None and all(have >= size for have, size in zip(self._have, self._sizes, strict=True))

    def _check_end(self) -> None:
        """Finish once everything is there and the program does not wait to hear it."""
        if self._has_all() and (not self._waits or self._has_ended.is_set()):
            self._all_there.set()

    # --- what is missing -------------------------------------------------------------------------

    def _lack(self, record: Record | None) -> None:
        """Ask for what is missing before a record, or before the end of the log; give it up if that is in vain."""
        if self._has_ended.is_set() or self._repeats >= MOST_REPEATS:
            if record is not None:
                file = self._files[record.stream]
                file.lost += record.offset - file.have
                file.have = record.offset
            return
        if self._wanted != self._have:
            self._encoding = "x" if self._parser.skipped else "t"
            self._ask()

    def _ask(self) -> None:
        self._wanted = self._have
        self._repeats += 1
        self._request_all()
        self._after(REPEAT_S, self._ask_again)

    def _ask_again(self) -> None:
        if self._wanted == self._have and self._repeats < MOST_REPEATS:
            self._ask()

    def _probe(self) -> None:
        """Ask for what follows, in case that it was in a part of the log that was rotated away."""
        if self._is_reading and not self._items and self._wanted is None:
            self._request_all()

    def _request_all(self) -> None:
        self._request = max(self._request + 1, int(time.time() * 1000))
        self._answer_due.set()

    def _after(self, delay_s: float, call: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(delay_s, call)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # --- answers ---------------------------------------------------------------------------------

    async def _answer(self) -> None:
        """Tell the program what is there, whenever that is due."""
        pause_s = _FIRST_PAUSE_S
        while True:
            await self._answer_due.wait()
            self._answer_due.clear()
            have, request = self._have, self._request
            text = f"{request} {have[0]} {have[1]} {self._encoding}"
            try:
                await self._cluster.patch("pods", self._pod, {"metadata": {"annotations": {LOG: text}}})
            except ClusterUnreachable:
                self._answer_due.set()
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
                pause_s = min(pause_s * 2, _MOST_PAUSE_S)
                continue
            except ClusterError:  # the pod is gone, or the account may not change it: the end of the container follows
                await asyncio.sleep(_MOST_PAUSE_S)
                continue
            pause_s, self._acknowledged = _FIRST_PAUSE_S, have
            if self._has_all() and self._have == have:
                self._waits = False
                self._check_end()
