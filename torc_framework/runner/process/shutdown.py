"""Requests to end a runner: signals, and the end of its walltime."""

from collections.abc import Iterator

from attrs import define, frozen

from torc_framework.runner.process.signals import RunnerSignals
from torc_framework.runner.process.walltime import Walltime


@frozen
class ShutdownRequest:
    """The runner has to end.

    Attributes:
        cause: Name of the signal, or which time is over. It is stored with the results of the stopped attempts.
        is_signal: It came by a signal.
        is_forced: It is not the first signal, so that what runs is killed.
    """

    cause: str
    is_signal: bool
    is_forced: bool = False


@define
class ShutdownRequests:
    """Detects new requests."""

    _interrupts: RunnerSignals
    _walltime: Walltime
    _signals: int = 0
    _is_time_over: bool = False

    def new(self, now: float) -> Iterator[ShutdownRequest]:
        """Yield the requests since the last call."""
        left = self._walltime.left_s(now)
        if left is not None and left <= 0 and not self._is_time_over:
            self._is_time_over = True
            yield ShutdownRequest(self._walltime.cause, is_signal=False)
        if self._interrupts.count > self._signals:
            self._signals = self._interrupts.count
            yield ShutdownRequest(self._interrupts.last, is_signal=True, is_forced=self._signals > 1)
