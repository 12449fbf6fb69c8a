"""Executors that start, stop or release attempts otherwise than they promise; the suite of each names it."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from attrs import evolve
from docs_executor import Nice, Suite, observing

from torc_framework.api import (
    AttemptEnded,
)


class TestStopsLeaders(Suite):
    only = "test_a_forced_stop_is_sigkill_to_all_processes"
    promise = "children included"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            for key in keys:
                if key in self.live:
                    self.live[key][0].send_signal(9 if force else 15)


class TestStopsAll(Suite):
    only = "test_a_stop_is_for_its_attempts"
    promise = "stop leaves other attempts alone"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            super().stop(list(self.live), force=force)


class TestStopsTheFirst(Suite):
    only = "test_a_stop_is_for_its_attempts"
    promise = "stop ends each of the given attempts"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            super().stop(list(keys)[:1], force=force)


class TestReadsKeysTwice(Suite):
    only = "test_a_stop_is_for_its_attempts"
    promise = "stop"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            if any(key in self.live for key in keys):
                super().stop(keys, force=force)


class TestAlwaysKills(Suite):
    only = "test_a_gentle_stop_is_sigterm"
    promise = "an attempt that catches SIGTERM ends with its own code"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            super().stop(keys, force=True)


class TestStopWaits(Suite):
    only = "test_a_stop_returns_at_once"
    promise = "stop returns at once"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            wanted = list(keys)
            super().stop(wanted, force=force)
            for key in wanted:
                if key in self.live:
                    try:
                        self.live[key][0].wait(3)
                    except subprocess.TimeoutExpired:
                        continue


class TestStopRaises(Suite):
    only = "test_a_late_stop_is_harmless"
    promise = "stop does not raise"

    class executor(Nice):
        def stop(self, keys: Any, *, force: bool) -> None:
            for key in keys:
                os.killpg(self.live[key][0].pid, signal.SIGKILL if force else signal.SIGTERM)


class TestIgnoresTheFolder(Suite):
    only = "test_it_runs_where_it_is_told"
    promise = "runs in its working_dir"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            return super().spawn(evolve(attempt, working_dir=self.context.working_dir))


class TestChangesTheFolder(Suite):
    only = "test_it_runs_where_it_is_told"
    promise = "leaves the runner's folder"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            os.chdir(attempt.working_dir)
            return super().spawn(attempt)


class TestIgnoresTheEnvironment(Suite):
    only = "test_the_attempts_environment_wins"
    promise = "environment wins"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            return super().spawn(evolve(attempt, environment={"TORC_JOB_ID": "1"}))


class TestChangesTheEnvironment(Suite):
    only = "test_the_attempts_environment_wins"
    promise = "leaves the runner's folder, environment"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            os.environ.update(attempt.environment)
            return super().spawn(attempt)


class TestKeepsVariables(Suite):
    only = "test_variables_do_not_leak"
    promise = "does not get the variables of another one"

    class executor(Nice):
        known: dict[str, str] = {}

        def spawn(self, attempt: Any) -> Any:
            self.known = {**self.known, **attempt.environment}
            return super().spawn(evolve(attempt, environment=self.known))


class TestChangesAttempts(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "leaves the attempts that it is given as they are"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            attempt.environment["NICE"] = "1"
            return super().spawn(attempt)


class TestEmptiesTheList(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "leaves the attempts that it is given as they are"

    class executor(Nice):
        def start(self, attempts: Any) -> None:
            while attempts:
                super().start([attempts.pop(0)])


class TestLeaksDescriptors(Suite):
    only = "test_resources_are_released"
    promise = "descriptors, threads and child processes"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            os.open(attempt.working_dir, os.O_RDONLY)
            return super().spawn(attempt)


class TestLeaksThreads(Suite):
    only = "test_resources_are_released"
    promise = "descriptors, threads and child processes"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
            return super().spawn(attempt)


class TestLeaksPipesOfLaunchers(Suite):
    only = "test_resources_are_released"
    promise = "close releases all resources"

    class executor(Nice):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.pipe = os.pipe()


class TestSwallowsLaunchErrors(Suite):
    only = "test_what_cannot_be_started_is_reported"
    promise = "every started attempt gives exactly one AttemptEnded"

    class executor(Nice):
        def start(self, attempts: Any) -> None:
            super().start(attempts)
            self.events = [e for e in self.events if not isinstance(e, AttemptEnded)]


class TestLaunchErrorsAreCodes(Suite):
    only = "test_what_cannot_be_started_is_reported"
    promise = "ends with launch_error"
    executor = observing(lambda end: {"launch_error": None, "exit_code": 127} if end.launch_error else {})


class TestLaunchErrorsAreNothing(Suite):
    only = "test_what_cannot_be_started_is_reported"
    promise = "has an exit code, a signal or a launch_error"
    executor = observing(lambda end: {"launch_error": None})


class TestStartRaises(Suite):
    only = "test_what_cannot_be_started_is_reported"
    promise = "start does not raise"

    class executor(Nice):
        def start(self, attempts: Any) -> None:
            for attempt in attempts:
                Path(attempt.working_dir).resolve(strict=True)
            super().start(attempts)


class TestLaunchBlocks(Suite):
    only = "test_polling_does_not_wait"
    promise = "start returns at once"

    class executor(Nice):
        def start(self, attempts: Any) -> None:
            super().start(attempts)
            for process, _ in self.live.values():
                process.wait()


class TestCloseBlocks(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "close returns soon"

    class executor(Nice):
        def close(self) -> None:
            threading.Event().wait()
