"""Executors whose polls, events and observations break a promise; the suite of each names it."""

import os
import time
from typing import Any

from attrs import evolve
from docs_executor import Nice, Suite, observing

from torc_framework.api import (
    AttemptEnded,
    AttemptStarted,
)


class TestPollBlocks(Suite):
    only = "test_polling_does_not_wait"
    promise = "poll returns without blocking"

    class executor(Nice):
        def poll(self) -> list[Any]:
            for process, _ in self.live.values():
                process.wait()
            return super().poll()


class TestPollSleeps(Suite):
    only = "test_polling_does_not_wait"
    promise = "poll returns without blocking"

    class executor(Nice):
        def poll(self) -> list[Any]:
            time.sleep(0.2)
            return super().poll()


class TestPollSleepsLong(Suite):
    promise = "poll returns without blocking"

    class executor(Nice):
        def poll(self) -> list[Any]:
            time.sleep(2)
            return super().poll()


class TestPollWaitsForOne(Suite):
    only = "test_polling_does_not_wait"
    promise = "poll returns without blocking"

    class executor(Nice):
        def poll(self) -> list[Any]:
            began = time.monotonic()
            while not (events := super().poll()) and self.live and time.monotonic() - began < 60:
                time.sleep(0.01)
            return events


class TestStartedInMilliseconds(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "started_at is in seconds since the epoch"
    executor = observing(lambda end: {"started_at": end.started_at and end.started_at * 1000})


class TestEndedInMilliseconds(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "ended_at is in seconds since the epoch"
    executor = observing(lambda end: {"ended_at": end.ended_at and end.ended_at * 1000})


class TestMonotonicTimes(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "is in seconds since the epoch"
    executor = observing(lambda end: {"started_at": time.monotonic() - 1, "ended_at": time.monotonic()})


class TestStartEventInMilliseconds(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "at of AttemptStarted is in seconds"

    class executor(Nice):
        def poll(self) -> list[Any]:
            return [evolve(e, at=e.at * 1000) if isinstance(e, AttemptStarted) else e for e in super().poll()]


class TestCpuInMilliseconds(Suite):
    only = "test_used_amounts_are_in_their_units"
    patience_s = 60.0  # the job of this test works for a second of CPU time
    promise = "cpu_time_s is in seconds"
    executor = observing(lambda end: {"cpu_time_s": 1000 * (os.times().children_user + 0.01)})


class TestCpuOfAllAttempts(Suite):
    only = "test_used_amounts_are_in_their_units"
    patience_s = 60.0  # the job of this test works for a second of CPU time
    promise = "cpu_time_s is in seconds"
    executor = observing(lambda end: {"cpu_time_s": os.times().children_user + 100})


class TestDurationInMilliseconds(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "duration_s is in seconds"
    executor = observing(
        lambda end: {"duration_s": end.started_at and end.ended_at and (end.ended_at - end.started_at) * 1000}
    )


class TestMemoryInKib(Suite):
    only = "test_used_amounts_are_in_their_units"
    patience_s = 60.0  # the job of this test works for a second of CPU time
    promise = "peak_memory_bytes is in bytes"
    executor = observing(lambda end: {"peak_memory_bytes": None if end.launch_error else 9000})


class TestTimesOfThePoll(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "the seconds at which the attempt began and ended"
    executor = observing(lambda end: {"started_at": end.started_at and end.ended_at})


class TestLosesReapedEnds(Suite):
    only = "test_no_end_is_lost"
    promise = "every started attempt gives exactly one AttemptEnded"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            for key in keys:
                if key in self.live and self.live[key][0].poll() is not None:
                    del self.live[key]
                else:
                    super().stop([key], force=force)


class TestLosesSecondEnd(Suite):
    only = "test_each_attempt_has_one_start_and_one_end"
    promise = "every started attempt gives exactly one AttemptEnded"

    class executor(Nice):
        def poll(self) -> list[Any]:
            return super().poll()[:2]


class TestSaysItTwice(Suite):
    only = "test_each_attempt_has_one_start_and_one_end"
    promise = "exactly one AttemptEnded"

    class executor(Nice):
        told: Any = None

        def poll(self) -> list[Any]:
            events = super().poll()
            again, self.told = self.told, events[-1] if events else None
            return [*events, again] if isinstance(again, AttemptEnded) else events


class TestEndsOfOthers(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "events are about attempts that this launcher was given"

    class executor(Nice):
        def poll(self) -> list[Any]:
            return [
                evolve(e, key=evolve(e.key, job_id=e.key.job_id + 1)) if isinstance(e, AttemptEnded) else e
                for e in super().poll()
            ]


_EVERYWHERE: dict[Any, Any] = {}


class TestSharedState(Suite):
    only = "test_two_launchers_do_not_meet"
    promise = "this launcher was given"

    class executor(Nice):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.live = _EVERYWHERE


class TestSignalsAsCodes(Suite):
    only = "test_signals_arrive_as_signals[9]"
    promise = "has that signal"
    executor = observing(lambda end: {"signal": None, "exit_code": 128 + end.signal} if end.signal else {})


class TestSignalAndCode(Suite):
    only = "test_signals_arrive_as_signals[9]"
    promise = "never both"
    executor = observing(lambda end: {"exit_code": 128 + end.signal} if end.signal else {})


class TestNegativeCodes(Suite):
    only = "test_signals_arrive_as_signals[9]"
    promise = "exit_code is from 0 to 255"
    executor = observing(lambda end: {"signal": None, "exit_code": -end.signal} if end.signal else {})


class TestWaitStatus(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "arrive as they were"
    executor = observing(lambda end: {"exit_code": end.exit_code and min(end.exit_code * 2, 255)})
