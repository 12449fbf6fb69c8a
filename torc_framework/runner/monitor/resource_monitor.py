"""The resource monitor of a runner: which attempts are sampled, and what is reported when they end."""

import heapq
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from torc_framework.executors import AttemptKey, Launcher, RunnerContext
from torc_framework.models.exchange import EndedReport
from torc_framework.models.exits import ExitObservation
from torc_framework.resource_samples import SeriesWriter, series_path
from torc_framework.runner.attempts.held_jobs import HeldJob
from torc_framework.runner.monitor.config import MonitorConfig, read_config
from torc_framework.runner.monitor.process_tree import ProcessTree
from torc_framework.runner.monitor.sampler import AttemptUsage, SampledAttempt, Sampler
from torc_framework.runner.process.runner_log import RunnerLog

FIRST_SAMPLE_S: Final = 0.8
"""Attempts are sampled from this age. For shorter ones the kernel's accounting is enough."""
FIRST_GUARD_S: Final = 0.1
"""The same for attempts whose memory is limited."""
ASK_AGAIN_S: Final = 1.0
"""When a launcher is asked again that did not know an attempt's processes."""


@frozen
class MeasuredEnding:
    """An ending with its measurements: the observation, and further values of the result."""

    observation: ExitObservation
    avg_memory_bytes: int | None = None
    peak_cpu_percent: float | None = None
    avg_cpu_percent: float | None = None

    def complete(self, report: EndedReport) -> None:
        """Set the values in a report for which the observation has no fields."""
        report.avg_memory_bytes = self.avg_memory_bytes
        report.peak_cpu_percent, report.avg_cpu_percent = self.peak_cpu_percent, self.avg_cpu_percent


class ResourceMonitor:
    """Measures the attempts of one runner. All methods are called in the runner's thread and return at once.

    Args:
        config_text: The workflow's ``resource_monitor_config``; one that cannot be read counts as absent.
        launcher: Returns the launcher of a name.
        context: The runner.
        log: Gets warnings; an error of the monitor never ends a runner.
        on_excess: Wakes the runner, from any thread, when `exceeded` has new attempts; None sets no limits.
    """

    def __init__(
        self,
        config_text: str | None,
        launcher: Callable[[str], Launcher],
        context: RunnerContext,
        log: RunnerLog,
        on_excess: Callable[[], None] | None = None,
    ) -> None:
        self._launcher, self._log, self._on_excess = launcher, log, on_excess
        self._config = self._read(config_text)
        path = series_path(Path(context.output_dir), context.hostname, context.workflow_id, context.run_id)
        self._sampler = Sampler(
            self._config.interval_s,
            (lambda: SeriesWriter(path)) if self._config.keeps_series else None,
            lambda reason: log.warning("samples_not_kept", reason=reason),
            self._note_excess,
        )
        self._limited: dict[AttemptKey, HeldJob] = {}
        self._excesses: deque[AttemptKey] = deque()
        self._young: dict[AttemptKey, HeldJob] = {}
        self._due: list[tuple[float, float, AttemptKey]] = []
        """When to ask for an attempt's processes, when it began on the same clock, and which it is."""

    def _read(self, text: str | None) -> MonitorConfig:
        try:
            return read_config(text)
        except ValueError as error:
            self._log.warning("resource_monitor_config_ignored", reason=str(error))
            return MonitorConfig()

    def begin(self, item: HeldJob, now: float, age_s: float) -> None:
        """Monitor an attempt that has run for ``age_s`` seconds."""
        is_limited = self._on_excess is not None and item.job.resources.runtime_s is not None  # has own requirements
        if (self._config.enabled or is_limited) and item.key not in self._young:
            if is_limited:
                self._limited[item.key] = item
            self._young[item.key] = item
            first = FIRST_GUARD_S if is_limited else FIRST_SAMPLE_S
            heapq.heappush(self._due, (now + max(0.0, first - age_s), now - age_s, item.key))

    def exceeded(self) -> list[HeldJob]:
        """Return the attempts that use more memory than they requested, each once."""
        found = []
        while self._excesses:
            if (item := self._limited.get(self._excesses.popleft())) is not None:
                found.append(item)
        return found

    def _note_excess(self, key: AttemptKey) -> None:
        self._excesses.append(key)
        if self._on_excess is not None:
            self._on_excess()

    def start_due_samples(self, now: float) -> None:
        """Start sampling the attempts that have reached their age."""
        if not self._due or self._due[0][0] > now:
            return
        births: dict[str, dict[AttemptKey, float]] = {}
        while self._due and self._due[0][0] <= now:
            _, born, key = heapq.heappop(self._due)
            if (item := self._young.get(key)) is not None:
                births.setdefault(item.executor, {})[key] = born
        for executor, born_at in births.items():
            self._find_processes(executor, born_at, now)

    def next_due(self) -> float | None:
        """Return when `start_due_samples` should be called again."""
        while self._due and self._due[0][2] not in self._young:
            heapq.heappop(self._due)  # it is over
        return self._due[0][0] if self._due else None

    def _find_processes(self, executor: str, born_at: dict[AttemptKey, float], now: float) -> None:
        launcher = self._launcher(executor)
        try:
            found = launcher.processes(born_at)
            held = launcher.memory_limited([key for key in found if key in self._limited])
        except Exception as error:  # an error of an executor must not end the runner
            self._log.warning("processes_unknown", executor=executor, reason=f"{type(error).__name__}: {error}")
            for key in born_at:
                del self._young[key]
            return
        self._sampler.add(
            SampledAttempt(
                key,
                self._young.pop(key).job.name,
                ProcessTree(pids),
                born_at[key],
                None if key in held else self._limit_bytes(key),
            )
            for key, pids in found.items()
            if pids
        )
        if launcher.__class__.processes is not Launcher.processes:
            missing = [key for key in born_at if not found.get(key)]
            for key in missing:
                heapq.heappush(self._due, (now + ASK_AGAIN_S, born_at[key], key))

    def _limit_bytes(self, key: AttemptKey) -> int | None:
        item = self._limited.get(key)
        return None if item is None else item.job.resources.memory_bytes

    def end(self, key: AttemptKey, seen: ExitObservation) -> MeasuredEnding:
        """Stop monitoring an attempt that has ended; return its observation with the measurements."""
        self._young.pop(key, None)
        self._limited.pop(key, None)
        return with_measurements(seen, self._sampler.remove(key))

    def close(self) -> None:
        """Sample nothing any more."""
        self._sampler.close()


def with_measurements(seen: ExitObservation, usage: AttemptUsage | None) -> MeasuredEnding:
    """Join the kernel's accounting with the samples.

    The kernel accounts the peak of the largest process and the CPU time of all processes that were waited for. Samples
    hold the sum over all processes, but not what happened between two of them.
    """
    runtime_s, cpu_s = seen.runtime_s, seen.cpu_time_s
    if usage is not None:
        raw = {
            "samples": usage.samples,
            "peak_processes": usage.peak_processes,
            "peak_gpu_memory_bytes": usage.peak_gpu_memory_bytes,
            "cgroup_peak_memory_bytes": seen.raw.get("cgroup_peak_memory_bytes", usage.cgroup_peak_memory_bytes),
        }
        seen = evolve(
            seen,
            peak_memory_bytes=max(seen.peak_memory_bytes or 0, usage.peak_memory_bytes),
            raw={**seen.raw, **{name: value for name, value in raw.items() if value is not None}},
        )
        cpu_s = max(cpu_s or 0.0, usage.cpu_time_s)
    mean = 100 * cpu_s / runtime_s if cpu_s is not None and runtime_s else None
    peaks = [value for value in (mean, usage.peak_cpu_percent if usage else None) if value is not None]
    return MeasuredEnding(
        seen,
        avg_memory_bytes=usage.avg_memory_bytes if usage else None,
        peak_cpu_percent=round(max(peaks), 2) if peaks else None,
        avg_cpu_percent=None if mean is None else round(mean, 2),
    )
