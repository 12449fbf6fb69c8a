"""Executors that run fewer attempts, keep other output or offer other things than they promise: a suite for each."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from docs_executor import Nice, Suite, observing

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptWaiting,
    Capabilities,
    ExitObservation,
    LaunchSite,
    Resources,
)


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
