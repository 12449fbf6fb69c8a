"""Executors that break a promise; the suite of each names it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from doc_pages import executor_of_the_docs

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    AttemptWaiting,
    Capabilities,
    ExitObservation,
    Launcher,
    LaunchSite,
    Resources,
)
from torc_framework.testing import ExecutorContract

if TYPE_CHECKING:

    class Nice(Launcher):
        """What the docs' executor has, which mypy cannot read."""

        live: dict[Any, Any]
        events: list[Any]

        def poll(self) -> list[Any]: ...
        def spawn(self, attempt: Any) -> Any: ...
        def start(self, attempts: Sequence[Any]) -> None: ...
        def stop(self, keys: Any, *, force: bool) -> None: ...

else:
    Nice = executor_of_the_docs()


def observing(change: Callable[[ExitObservation], dict[str, Any]]) -> type[Nice]:
    """Return an executor whose observations are changed."""

    class Changed(Nice):
        def poll(self) -> list[Any]:
            return [
                evolve(event, observation=evolve(event.observation, **change(event.observation)))
                if isinstance(event, AttemptEnded)
                else event
                for event in super().poll()
            ]

    return Changed


class Suite(ExecutorContract):
    patience_s = 4.0


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


class TestOneAtATime(Suite):
    only = "test_attempts_run_at_the_same_time"
    promise = "run at the same time"

    class executor(Nice):
        waiting: Any = ()

        def start(self, attempts: Any) -> None:
            self.waiting = [*self.waiting, *attempts]

        def poll(self) -> list[Any]:
            if not self.live and self.waiting:
                first, *self.waiting = self.waiting
                super().start([first])
            return super().poll()


class TestOneAttemptOfAJob(Suite):
    only = "test_attempts_run_at_the_same_time"
    promise = "attempts"

    class executor(Nice):
        def start(self, attempts: Any) -> None:
            for attempt in attempts:
                if not any(key.job_id == attempt.key.job_id for key in self.live):
                    super().start([attempt])


class TestPipesFill(Suite):
    only = "test_much_output_does_not_block"
    promise = "every started attempt gives exactly one AttemptEnded"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            words = ["sh", "-c", attempt.command]
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=attempt.working_dir,
                env={**os.environ, **attempt.environment},
                start_new_session=True,
            )
            process.attempt = attempt  # type: ignore[attr-defined]  # a defect need not be pretty
            return process

        def poll(self) -> list[Any]:
            for process, _ in self.live.values():
                if process.poll() is not None:
                    out, err = process.communicate()
                    Path(process.attempt.stdout_path).write_bytes(out)
                    Path(process.attempt.stderr_path).write_bytes(err)
            return super().poll()


class TestOneLog(Suite):
    only = "test_output_is_at_the_promised_paths"
    promise = "standard output is kept as it was written"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            Path(attempt.stderr_path).touch()
            return super().spawn(evolve(attempt, command=f"exec 2>&1\n{attempt.command}"))


class TestLastStreamWins(Suite):
    only = "test_both_streams_may_have_one_file"
    promise = "gets both in the order of writing"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            process = super().spawn(evolve(attempt, stderr_path=f"{attempt.stdout_path}.more"))
            process.wait()
            more = Path(f"{attempt.stdout_path}.more")
            Path(attempt.stderr_path).write_bytes(more.read_bytes())
            return process


class TestOutputIsAlwaysKept(Suite):
    only = "test_output_may_go_nowhere"
    promise = "output goes to no file but those"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            out = f"{attempt.working_dir}/{attempt.key.job_id}.o"
            return super().spawn(evolve(attempt, stdout_path=out))


class TestAnotherShell(Suite):
    only = "test_the_shell_is_the_attempts"
    promise = "the shell that the attempt names"

    class executor(Nice):
        def spawn(self, attempt: Any) -> Any:
            return super().spawn(evolve(attempt, shell="sh"))


class TestStalePids(Suite):
    only = "test_processes_are_those_asked_for"
    promise = "processes leaves out attempts that have ended"

    class executor(Nice):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.pids: dict[Any, list[int]] = {}

        def poll(self) -> list[Any]:
            self.pids.update({key: [process.pid] for key, (process, _) in self.live.items()})
            return super().poll()

        def processes(self, keys: Any) -> Any:
            return {key: self.pids[key] for key in keys if key in self.pids}


class TestNamesTheRunner(Suite):
    only = "test_processes_are_those_asked_for"
    promise = "the attempt's own first processes"

    class executor(Nice):
        def processes(self, keys: Any) -> Any:
            return {key: [os.getpid()] for key in keys if key in self.live}


class TestAlwaysReadable(Suite):
    only = "test_a_descriptor_wakes_the_runner"
    promise = "else the runner spins"

    class executor(Nice):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.read, self.write = os.pipe()
            os.write(self.write, b"x")

        def wait_fd(self) -> int:
            return self.read

        def close(self) -> None:
            os.close(self.read)
            os.close(self.write)


class TestNeverReadable(Suite):
    only = "test_a_descriptor_wakes_the_runner"
    promise = "wait_fd is readable as soon as poll has news"

    class executor(Nice):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.read, self.write = os.pipe()

        def wait_fd(self) -> int:
            return self.read

        def close(self) -> None:
            os.close(self.read)
            os.close(self.write)


class TestIntervalInMilliseconds(Suite):
    only = "test_a_descriptor_wakes_the_runner"
    promise = "poll_interval_s says how often, in seconds"

    class executor(Nice):
        poll_interval_s = 200


class TestStateIsNoJson(Suite):
    only = "test_its_state_can_be_stored"
    promise = "state() answers with JSON values"

    class executor(Nice):
        def state(self) -> Any:
            return {"pids": {process.pid for process, _ in self.live.values()}}


class TestBoastsOfQueues(Suite):
    only = "test_it_introduces_itself"
    promise = "says queues implements queue"

    class executor(Nice):
        capabilities = Capabilities(can_launch=True, queues=True)


class TestBoastsOfSurvival(Suite):
    only = "test_it_introduces_itself"
    promise = "says survives_runner implements adopt"

    class executor(Nice):
        capabilities = Capabilities(can_launch=True, survives_runner=True)


class TestHasNoSite(Suite):
    only = "test_its_sites_have_names"
    promise = "sites answers with a list of at least one name"

    class executor(Nice):
        @classmethod
        def sites(cls, options: Any, context: Any) -> list[str]:
            return []


class TestNamesASiteTwice(Suite):
    only = "test_its_sites_have_names"
    promise = "all different"

    class executor(Nice):
        @classmethod
        def sites(cls, options: Any, context: Any) -> list[str]:
            return ["a", "b", "a"]


class TestOtherSitesEachTime(Suite):
    only = "test_its_sites_have_names"
    promise = "sites answers the same when asked again"

    class executor(Nice):
        asked = 0

        @classmethod
        def sites(cls, options: Any, context: Any) -> list[str]:
            cls.asked += 1
            return [f"host{cls.asked}"]


class TestAcceptsPerhaps(Suite):
    only = "test_its_sites_have_names"
    promise = "accepts_attempts is True or False"

    class executor(Nice):
        accepts_attempts: Any = "yes"


class TestHostnameIsAnAddressObject(Suite):
    only = "test_its_sites_have_names"
    promise = "hostname of LaunchSite is a name or None"

    class executor(Nice):
        def launch_site(self) -> Any:
            return LaunchSite(Resources(1, 1), hostname=Path("h1"))  # type: ignore[arg-type] # that is the defect


class TestKnowsTooMuch(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "a launcher infers nothing"
    executor = observing(lambda end: {"missing_outputs": ("x",)})


def looking(missing: Callable[[Attempt], tuple[str, ...]], are_written: bool) -> type[Nice]:
    """Return an executor that says to look for output files, and reports these."""

    class Looking(Nice):
        capabilities = evolve(Nice.capabilities, checks_outputs=True)

        def __init__(self, options: Any, context: Any) -> None:
            super().__init__(options, context)
            self.given: dict[AttemptKey, Attempt] = {}

        def start(self, attempts: Any) -> None:
            self.given |= {attempt.key: attempt for attempt in attempts}
            super().start(attempts)

        def poll(self) -> list[Any]:
            return [
                evolve(event, observation=self.with_outputs(event)) if isinstance(event, AttemptEnded) else event
                for event in super().poll()
            ]

        def with_outputs(self, event: AttemptEnded) -> ExitObservation:
            absent = missing(self.given[event.key])
            return evolve(event.observation, missing_outputs=absent, outputs_written=are_written and not absent)

    return Looking


def absent_outputs(attempt: Attempt) -> tuple[str, ...]:
    return tuple(path for path in attempt.outputs if not Path(attempt.working_dir, path).exists())


class TestLooksForNoOutputs(Suite):
    only = "test_output_files_are_looked_for_where_it_ran"
    promise = "missing_outputs are the declared output files that are not there"
    executor = looking(lambda attempt: (), True)


class TestDoesNotTellThatOutputsAreWritten(Suite):
    only = "test_output_files_are_looked_for_where_it_ran"
    promise = "outputs_written tells whether all declared output files were written"
    executor = looking(absent_outputs, False)


class TestAnotherName(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "an observation names its executor"
    executor = observing(lambda end: {"executor": "local"})


class TestRawObjects(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "raw holds JSON values"
    executor = observing(lambda end: {"raw": {"path": Path("/")}})


class TestNothingEnds(Suite):
    only = "test_exit_codes_arrive_as_they_were"
    promise = "exactly one AttemptEnded"

    class executor(Nice):
        def poll(self) -> list[Any]:
            return [event for event in super().poll() if not isinstance(event, AttemptEnded)]


class TestWaitsAfterTheStart(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "only an attempt that has not begun waits"

    class executor(Nice):
        def poll(self) -> list[Any]:
            events = super().poll()
            return [each for event in events for each in (event, AttemptWaiting(event.key, "NoRoom"))]


class TestWaitsForNothing(Suite):
    only = "test_an_observation_says_who_and_when"
    promise = "what an attempt waits for is text, or None"

    class executor(Nice):
        waiting: Sequence[Any] = ()

        def start(self, attempts: Any) -> None:
            super().start(attempts)
            self.waiting = [AttemptWaiting(attempt.key, " ") for attempt in attempts]

        def poll(self) -> list[Any]:
            events, self.waiting = [*self.waiting, *super().poll()], []
            return events


class TestStopsWhatIsNotStored(Suite):
    only = "test_stored_ends_are_dropped"
    promise = "ends_stored is for attempts that have ended"

    class executor(Nice):
        def ends_stored(self, keys: Any) -> None:
            self.stop(list(self.live), force=True)


class TestKnowsStoredAttemptsOnly(Suite):
    only = "test_stored_ends_are_dropped"
    promise = "ends_stored does not raise: unknown attempts are ignored"

    class executor(Nice):
        def ends_stored(self, keys: Any) -> None:
            for key in keys:
                del self.live[key]
