"""The sampler: one thread that measures all attempts of a runner.

It spends its time in short system calls, which release the interpreter to the runner's own thread. A separate process
would cost more than it saves.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from attrs import define, field, frozen

from torc_framework.executors import AttemptKey
from torc_framework.resource_samples import ResourceSample, SeriesWriter
from torc_framework.runner.monitor.gpu_memory import GpuMeter
from torc_framework.runner.monitor.process_tree import ProcessTree, TreeUsage
from torc_framework.system.processes import start_thread_with_retry

TICK_S: Final = 1.0
"""Attempts are sampled at whole ticks, so that all samples of one moment have the same time."""
GUARD_TICK_S: Final = 0.25
"""How often attempts are measured whose memory is limited."""
CLOSE_PATIENCE_S: Final = 5.0
"""How long a runner that ends waits for a sample that is being written."""


@frozen
class AttemptUsage:
    """Usage of one attempt, from its samples; bytes, and percent of one core."""

    samples: int
    peak_memory_bytes: int
    avg_memory_bytes: int
    peak_cpu_percent: float
    peak_processes: int
    cpu_time_s: float
    peak_gpu_memory_bytes: int | None = None
    cgroup_peak_memory_bytes: int | None = None


@define(eq=False)
class SampledAttempt:
    """One attempt that is sampled.

    Attributes:
        born: Its start on the monotonic clock.
        limit_bytes: Use of more memory than this is reported at once; None is unlimited.
        is_over_limit: That was reported.
    """

    key: AttemptKey
    job_name: str
    tree: ProcessTree
    born: float
    limit_bytes: int | None = None
    is_over_limit: bool = False
    samples: int = 0
    _seen_at: float = field(default=0.0, init=False)
    _cpu_s: float = field(default=0.0, init=False)
    _cpu_total_s: float = field(default=0.0, init=False)
    _memory_sum: int = field(default=0, init=False)
    _peak_memory: int = field(default=0, init=False)
    _peak_cpu: float = field(default=0.0, init=False)
    _peak_processes: int = field(default=0, init=False)
    _peak_gpu: int | None = field(default=None, init=False)
    _cgroup_peak: int | None = field(default=None, init=False)

    def record(self, moment: TreeUsage, cgroup_peak: int | None, now: float) -> float:
        """Add a sample; return the CPU usage since the last one, in percent of a core."""
        since = self._seen_at if self.samples else self.born
        # The sum is smaller than before if a process with its CPU time has left the tree.
        used = max(0.0, moment.cpu_s - self._cpu_s)
        percent = 100 * used / max(now - since, 0.01)
        self.samples += 1
        self._seen_at, self._cpu_s = now, moment.cpu_s
        self._cpu_total_s += used
        self._memory_sum += moment.memory_bytes
        self._peak_memory = max(self._peak_memory, moment.memory_bytes)
        self._peak_cpu = max(self._peak_cpu, percent)
        self._peak_processes = max(self._peak_processes, moment.processes)
        self._peak_gpu = _larger(self._peak_gpu, moment.gpu_memory_bytes)
        self._cgroup_peak = _larger(self._cgroup_peak, cgroup_peak)
        return percent

    def exceeds(self, moment: TreeUsage) -> bool:
        """Return whether this is the first measurement above the limit."""
        if self.is_over_limit or self.limit_bytes is None or moment.memory_bytes <= self.limit_bytes:
            return False
        self.is_over_limit = True
        return True

    def usage(self) -> AttemptUsage | None:
        """Return the usage; None if there is no sample."""
        if not self.samples:
            return None
        return AttemptUsage(
            self.samples,
            self._peak_memory,
            self._memory_sum // self.samples,
            self._peak_cpu,
            self._peak_processes,
            self._cpu_total_s,
            self._peak_gpu,
            self._cgroup_peak,
        )


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


class Sampler:
    """Samples attempts at whole seconds; its thread exists once there is something to sample.

    Args:
        interval_s: Seconds between two samples of an attempt; the first comes at the next tick.
        open_series: Opens the file for all samples; None keeps peaks and means alone.
        on_trouble: Called in the sampler's thread when samples cannot be written; sampling continues.
        on_excess: Called in the sampler's thread once for each attempt that exceeds its memory limit.
    """

    def __init__(
        self,
        interval_s: int,
        open_series: Callable[[], SeriesWriter] | None,
        on_trouble: Callable[[str], None],
        on_excess: Callable[[AttemptKey], None] = lambda _key: None,
    ) -> None:
        self._on_excess = on_excess
        self._interval_s, self._open_series, self._on_trouble = interval_s, open_series, on_trouble
        self._watches: dict[AttemptKey, SampledAttempt] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._series: SeriesWriter | None = None

    def add(self, watches: Iterable[SampledAttempt]) -> None:
        """Start sampling attempts."""
        with self._changed:
            self._watches.update((watch.key, watch) for watch in watches)
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="torc-monitor", daemon=True)
            start_thread_with_retry(self._thread)

    def remove(self, key: AttemptKey) -> AttemptUsage | None:
        """Stop sampling an attempt; return its usage."""
        with self._changed:
            watch = self._watches.pop(key, None)
            return None if watch is None else watch.usage()

    def close(self) -> None:
        """Stop sampling."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_PATIENCE_S)

    def _work(self) -> None:
        gpus = GpuMeter()
        while (due := self._wait()) is not None:
            samples = self._sample(due, gpus.bytes_by_pid())
            if self._open_series is not None and samples:
                self._keep(samples, {watch.key.job_id: watch.job_name for watch in due if watch.samples == 1})
        if self._series is not None:
            self._series.close()

    def _wait(self) -> list[SampledAttempt] | None:
        """Wait for the next tick at which attempts are due; return these, or None when the sampler closes."""
        with self._changed:
            while True:
                while not self._watches and not self._closing:
                    self._changed.wait()
                now = time.monotonic()
                tick = int(now / TICK_S) + 1
                while not self._closing and (left := tick * TICK_S - time.monotonic()) > 0:
                    self._changed.wait(min(left, self._guard()))
                if self._closing:
                    return None
                is_common = tick % self._interval_s == 0
                if due := [watch for watch in self._watches.values() if is_common or not watch.samples]:
                    return due

    def _guard(self) -> float:
        """Measure the attempts whose memory is limited; return the seconds until the next time.

        These measurements are not written to the file of samples; one above the limit counts for the peak.
        """
        limited = [watch for watch in self._watches.values() if watch.limit_bytes is not None]
        for watch in limited:
            moment = watch.tree.measure()
            if moment is not None and watch.exceeds(moment):
                watch.record(moment, None, time.monotonic())
                self._on_excess(watch.key)
        return GUARD_TICK_S if limited else TICK_S

    def _sample(self, due: list[SampledAttempt], gpu_bytes: dict[int, int] | None) -> list[ResourceSample]:
        at = time.time()
        measured = [
            (watch, moment, watch.tree.cgroup_peak_bytes(), time.monotonic())
            for watch in due
            if (moment := watch.tree.measure(gpu_bytes)) is not None  # else it has ended; its launcher reports that
        ]
        with self._changed:
            percents = [watch.record(moment, peak, now) for watch, moment, peak, now in measured]
        for watch, moment, _, _ in measured:
            if watch.exceeds(moment):
                self._on_excess(watch.key)
        return [
            ResourceSample(
                watch.key.job_id,
                at,
                round(percent, 2),
                moment.memory_bytes,
                moment.processes,
                watch.key.attempt_id,
                moment.gpu_memory_bytes,
            )
            for (watch, moment, _, _), percent in zip(measured, percents, strict=True)
        ]

    def _keep(self, samples: list[ResourceSample], names: dict[int, str]) -> None:
        """Write samples; if the file cannot be written, no more are written and the runner goes on."""
        try:
            if self._series is None and self._open_series is not None:
                self._series = self._open_series()
            if self._series is not None:
                self._series.add(samples, names)
        except OSError as error:
            self._open_series = None
            with suppress(Exception):
                self._on_trouble(str(error))
