"""The contract suite of executors that launch."""

import json
import os
import select
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import has

from torc_framework.api import AttemptKey, ExitObservation, Launcher
from torc_framework.testing.support.clauses import broken, require
from torc_framework.testing.support.launcher_bench import ONE_END, DyingRunner, LauncherBench, context

STARTS_AT_ONCE = "start returns at once; attempts run on their own"


class ExecutorContract:
    """Tests that every executor that launches passes; attempts are short shell commands.

    Attributes:
        executor: The launcher's class.
        options: Values of its options.
        patience_s: How long an event may take to arrive; clusters are slow.
        shares_files: Its attempts see the runner's folders; False for one that runs them elsewhere.
        sees_signals: It observes that a signal ended an attempt; one that does not reports the exit code 128+n.
    """

    executor: ClassVar[type[Launcher]]
    options: ClassVar[Mapping[str, Any]] = {}
    patience_s: ClassVar[float] = 60.0
    shares_files: ClassVar[bool] = True
    sees_signals: ClassVar[bool] = True

    def make_launcher(self, folder: Path) -> Launcher:
        """Return a launcher whose output goes to ``folder``; override it if yours needs more."""
        return self.executor(self.executor.Options(**self.options), context(folder))

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[LauncherBench]:
        """A launcher in a folder of its own; attempts that still run at the end are killed."""
        bench = LauncherBench(tmp_path, self.make_launcher(tmp_path), self.patience_s)
        yield bench
        bench.finish()

    def _needs(self, capability: str) -> None:
        if not getattr(self.executor.capabilities, capability):
            pytest.skip(f"its capabilities do not say {capability}")

    def _needs_files(self) -> None:
        if not self.shares_files:
            pytest.skip("its attempts do not see the runner's folders")

    # --- name, capabilities, state ------------------------------------------------------------------

    def test_it_introduces_itself(self) -> None:
        """It has a name, a description, capabilities with their methods, and a class of options."""
        kind = self.executor
        require(
            isinstance(getattr(kind, "name", None), str) and kind.name, "an executor has a name, for --executor", kind
        )
        require(kind.description, "description says in a sentence where attempts run", kind)
        require(kind.capabilities.can_launch, "capabilities of a Launcher say can_launch", kind.capabilities)
        require(has(kind.Options), "Options is an attrs class whose fields are declared with option()", kind.Options)
        overrides = {"survives_runner": "adopt", "queues": "queue"}
        for capability, method in overrides.items():
            if getattr(kind.capabilities, capability):
                own = getattr(kind, method) is not getattr(Launcher, method)
                require(own, f"an executor that says {capability} implements {method}", kind)

    def test_its_state_can_be_stored(self, bench: LauncherBench) -> None:
        """`state` returns JSON values: they are stored with the runner's record."""
        state = bench.launcher.state()
        require(json.loads(json.dumps(state)) == state, "state() answers with JSON values", state)

    # --- ends ---------------------------------------------------------------------------------------

    def test_exit_codes_arrive_as_they_were(self, bench: LauncherBench) -> None:
        """An exit code of 128+n is reported as a code, not as a signal."""
        codes = [0, 1, 2, 3, 42, 125, 130, 137, 143, 255]
        ends = bench.run(*[bench.attempt(f"exit {code}", job_id=code + 1) for code in codes])
        seen = [(end.exit_code, end.signal) for end in ends]
        require(seen == [(code, None) for code in codes], "exit codes 0 to 255 arrive as they were, signal None", seen)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT])
    def test_signals_arrive_as_signals(self, bench: LauncherBench, number: signal.Signals) -> None:
        """An attempt that a signal ended has a signal and no exit code."""
        (end,) = bench.run(bench.attempt(f"kill -{int(number)} $$; sleep 100"))
        expected = (None, int(number)) if self.sees_signals else (128 + number, None)
        clause = "an attempt that a signal ended has that signal, exit_code None, and the signal is at its default"
        require((end.exit_code, end.signal) == expected, clause, end)

    def test_each_attempt_has_one_start_and_one_end(self, bench: LauncherBench) -> None:
        """Each of many attempts gives one start and one end, and no event afterwards."""
        ends = bench.run(*[bench.attempt(f"exit {number % 5}", job_id=number) for number in range(1, 31)])
        codes = [end.exit_code for end in ends]
        require(codes == [number % 5 for number in range(1, 31)], "an end belongs to its attempt", codes)
        bench.run(bench.attempt("true", job_id=99))
        require(len(bench.order) == 31, ONE_END, bench.order)

    def test_an_observation_says_who_and_when(self, bench: LauncherBench) -> None:
        """An observation holds its executor and the times, in seconds since the epoch, and no inference."""
        (end,) = bench.run(bench.attempt("sleep 0.2"))
        require(end.executor == self.executor.name, "an observation names its executor", end)
        require(end.started_at is not None and end.ended_at is not None, "start and end are observed", end)
        require((end.runtime_s or 0) > 0, "the end is after the start", (end.started_at, end.ended_at))
        unset = (end.stop_reason, end.lost, end.missing_outputs, end.launch_error)
        require(
            unset == (None, False, (), None), "a launcher infers nothing: what the runner knows is left to it", unset
        )

    def test_starting_does_not_wait(self, bench: LauncherBench) -> None:
        """`start` does not wait for the attempt: a runner has one thread."""
        self._needs_files()
        gate = bench.folder / "gate"
        overdue = threading.Timer(self.patience_s, gate.touch)
        overdue.start()
        bench.launcher.start([bench.attempt(f"while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 4")])
        waited = gate.exists()
        overdue.cancel()
        require(not waited, STARTS_AT_ONCE, "it returned when the attempt was over")
        require(not bench.ended, STARTS_AT_ONCE, bench.ended)
        gate.touch()
        bench.until(lambda: bench.ended, ONE_END)

    def test_nothing_is_no_news(self, bench: LauncherBench) -> None:
        """`poll` returns an empty list when nothing has happened."""
        require(list(bench.launcher.poll()) == [], "poll of an idle launcher returns an empty list")
        bench.launcher.start([])
        require(list(bench.launcher.poll()) == [], "starting nothing gives no news")

    def test_a_descriptor_wakes_the_runner(self, bench: LauncherBench) -> None:
        """A descriptor, if there is one, is readable when there are events."""
        descriptor = bench.launcher.wait_fd()
        if descriptor is None:
            require(
                bench.launcher.poll_interval_s > 0, "a launcher without wait_fd is polled: poll_interval_s says when"
            )
            return
        bench.launcher.start([bench.attempt("sleep 0.3")])
        while not bench.ended:
            ready, _, _ = select.select([descriptor], [], [], self.patience_s)
            require(ready, "wait_fd is readable as soon as poll has news", bench.started)
            bench.take_events()

    # --- what an attempt is given --------------------------------------------------------------------

    def test_output_is_at_the_promised_paths(self, bench: LauncherBench) -> None:
        """The files hold the output byte by byte, also if it is no text."""
        bench.run(bench.attempt(r"printf 'out\000\377\n'; printf 'err\n' >&2; exit 3"))
        out, err = bench.folder / "1.o", bench.folder / "1.e"
        for path in (out, err):
            require(path.exists(), "logs are at stdout_path and stderr_path when the end is told", path)
        require(out.read_bytes() == b"out\0\xff\n", "standard output is kept as it was written", out.read_bytes())
        require(err.read_bytes() == b"err\n", "standard error is kept apart", err.read_bytes())

    def test_the_attempts_environment_wins(self, bench: LauncherBench) -> None:
        """Variables of the attempt override the executor's, and arrive unchanged with any characters."""
        value = "a 'b' \"c\" $HOME `d`\nsecond line ä"
        environment = {"TORC_JOB_ID": "1", "HOME": "/elsewhere", "CONTRACT_VALUE": value}
        bench.run(bench.attempt('printf "%s|%s" "$HOME" "$CONTRACT_VALUE"; test -n "$PATH"', environment=environment))
        said = (bench.folder / "1.o").read_text(encoding="utf-8")
        require(said == f"/elsewhere|{value}", "the attempt's environment wins, and its values arrive unchanged", said)
        require(bench.ended[AttemptKey(1, 1)].exit_code == 0, "there is a PATH, so that programs are found")

    def test_it_runs_where_it_is_told(self, bench: LauncherBench) -> None:
        """It runs in the given folder, also if the name needs quoting."""
        self._needs_files()
        folder = bench.folder / "a folder's $name"
        folder.mkdir()
        bench.run(bench.attempt("pwd", working_dir=str(folder)))
        said = (bench.folder / "1.o").read_text().strip()
        require(Path(said).resolve() == folder.resolve(), "an attempt runs in its working_dir", said)

    def test_there_is_nothing_to_read(self, bench: LauncherBench) -> None:
        """Standard input is empty, so that a program that reads it does not wait."""
        (end,) = bench.run(bench.attempt("cat"))
        require(end.exit_code == 0, "standard input is empty", end)

    def test_the_command_is_for_a_shell(self, bench: LauncherBench) -> None:
        """Quotes, pipes and several lines reach the shell unchanged."""
        bench.run(bench.attempt("set -- 'a  b' \"c\"\nprintf '%s\\n' \"$@\" | sort -r\n# end"))
        said = (bench.folder / "1.o").read_text()
        require(said == "c\na  b\n", "the command is text for the shell, unchanged", said)

    # --- what cannot be started ----------------------------------------------------------------------

    def test_what_cannot_be_started_is_reported(self, bench: LauncherBench) -> None:
        """`start` does not raise; the attempt ends with ``launch_error``, and others are not affected."""
        self._needs_files()
        wrong = bench.attempt("true", job_id=1, working_dir=str(bench.folder / "gone"))
        try:
            bench.launcher.start([wrong, bench.attempt("exit 6", job_id=2)])
        except Exception as error:
            broken("start does not raise for an attempt that cannot be started", error)
        bench.until(lambda: len(bench.ended) == 2, ONE_END)
        end = bench.ended[wrong.key]
        clause = "an attempt that could not be started ends with launch_error, and neither code nor signal"
        require(end.launch_error and end.exit_code is None and end.signal is None, clause, end)
        require(
            bench.ended[AttemptKey(2, 1)].exit_code == 6, "one failed start does not disturb the others", bench.ended
        )

    # --- stops ----------------------------------------------------------------------------------------

    def test_a_gentle_stop_is_sigterm(self, bench: LauncherBench) -> None:
        """A stop without force sends SIGTERM, which the attempt may handle."""
        self._needs_files()
        bench.launcher.start([bench.attempt("trap 'echo cleaned; exit 3' TERM; echo up; while :; do sleep 0.05; done")])
        bench.wait_for("1.o")
        bench.launcher.stop([AttemptKey(1, 1)], force=False)
        bench.until(lambda: bench.ended, "a gentle stop is SIGTERM, which an attempt may catch and then end")
        end = bench.ended[AttemptKey(1, 1)]
        require(end.exit_code == 3, "an attempt that catches SIGTERM ends with its own code", end)
        said = (bench.folder / "1.o").read_text()
        require(said == "up\ncleaned\n", "what it writes while it ends is kept", said)

    def test_a_forced_stop_is_sigkill_to_all_processes(self, bench: LauncherBench) -> None:
        """A forced stop kills all processes, also children and those that ignore SIGTERM."""
        self._needs_files()
        inner = f"trap '' TERM; echo $$ > '{bench.folder}/inner'; while :; do sleep 0.05; done"
        command = f'trap "" TERM; sh -c "{inner.replace("$", chr(92) + "$")}" & wait; wait'
        bench.launcher.start([bench.attempt(command)])
        inner_pid = int(bench.wait_for("inner"))
        bench.launcher.stop([AttemptKey(1, 1)], force=False)
        bench.launcher.stop([AttemptKey(1, 1)], force=True)
        bench.until(lambda: bench.ended, "a forced stop ends an attempt that ignores SIGTERM")
        end = bench.ended[AttemptKey(1, 1)]
        expected = (None, 9) if self.sees_signals else (137, None)
        require((end.exit_code, end.signal) == expected, "an attempt that was killed has signal 9", end)
        bench.until(lambda: _is_gone(inner_pid), "a forced stop reaches all processes of an attempt, children included")

    def test_a_late_stop_is_harmless(self, bench: LauncherBench) -> None:
        """A stop of ended or unknown attempts is ignored."""
        bench.run(bench.attempt("true"))
        bench.launcher.stop([AttemptKey(1, 1), AttemptKey(77, 1)], force=True)
        (end,) = bench.run(bench.attempt("exit 5", job_id=2))
        require(end.exit_code == 5, "stopping unknown or ended attempts is ignored", end)
        require(len(bench.ended) == 2, ONE_END, bench.ended)

    def test_processes_are_those_asked_for(self, bench: LauncherBench) -> None:
        """`processes` names the pids of running attempts, or none if they run elsewhere."""
        key = AttemptKey(1, 1)
        bench.launcher.start([bench.attempt("sleep 100")])
        bench.until(lambda: key in bench.started, "the start of an attempt is told")
        found = bench.launcher.processes([key, AttemptKey(77, 1)])
        require(set(found) <= {key}, "processes answers for running attempts that were asked for", found)
        for pid in found.get(key, ()):
            require(not _is_gone(pid), "processes names living processes of this machine", found)

    # --- lanes ----------------------------------------------------------------------------------------

    def test_queued_attempts_follow_in_their_lane(self, bench: LauncherBench) -> None:
        """Queued attempts begin one after the other when one of their lane ends, not when one of another lane does."""
        self._needs("queues")
        log = bench.folder / "log"
        step = [bench.attempt(f"echo +{n} >> '{log}'; sleep 0.02; echo -{n} >> '{log}'", job_id=n) for n in range(1, 6)]
        bench.launcher.start([step[0]])
        bench.launcher.queue(step[1:])
        bench.run(bench.attempt("exit 1", job_id=50, lane=1))
        bench.until(lambda: len(bench.ended) == 6, "a queued attempt begins when a running one of its lane ends")
        order = log.read_text().split()
        expected = [f"{sign}{n}" for n in range(1, 6) for sign in "+-"]
        require(order == expected, "queued attempts of a lane run one after the other, in their order", order)

    def test_queued_attempts_can_be_given_back(self, bench: LauncherBench) -> None:
        """`withdraw` and `stop` give queued attempts back; `withdraw` does not affect running ones."""
        self._needs("queues")
        first, second, third = (AttemptKey(job, 1) for job in (1, 2, 3))
        bench.launcher.start([bench.attempt("sleep 100")])
        bench.launcher.queue([bench.attempt("exit 1", job_id=2), bench.attempt("exit 1", job_id=3)])
        bench.until(lambda: first in bench.started, "the start of an attempt is told")
        bench.launcher.withdraw([first, second])
        bench.until(lambda: second in bench.returned, "withdraw gives a queued attempt back as AttemptWithdrawn")
        require(first not in bench.ended, "withdraw leaves alone what has begun", bench.ended)
        bench.launcher.stop([first, third], force=True)
        bench.until(
            lambda: first in bench.ended and third in bench.returned,
            "a queued attempt that is stopped is given back as AttemptWithdrawn, and never begins",
        )
        require(not {second, third} & bench.started.keys(), "what was given back never begins", bench.started)

    def test_a_queued_attempt_can_be_started_at_once(self, bench: LauncherBench) -> None:
        """`start` of a queued attempt begins it at once, and it runs once."""
        self._needs("queues")
        second = bench.attempt("echo ran >> ran", job_id=2)
        bench.launcher.start([bench.attempt("sleep 100")])
        bench.launcher.queue([second])
        bench.launcher.start([second])
        bench.until(lambda: second.key in bench.ended, "start of a queued attempt begins it at once")
        bench.launcher.stop([AttemptKey(1, 1)], force=True)
        bench.until(lambda: len(bench.ended) == 2, ONE_END)
        ran = (bench.folder / "ran").read_text()
        require(ran == "ran\n", "an attempt runs once, however often it is ordered", ran)

    # --- after a crash --------------------------------------------------------------------------------

    def test_attempts_outlive_their_runner(self, bench: LauncherBench) -> None:
        """Attempts that ended before the kill, before the adoption or after it are reported once, truly."""
        self._needs("survives_runner")
        gate = bench.folder / "gate"
        commands = ("echo up; exit 11", f"echo up; while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 12")
        runner = DyingRunner(self.executor, self.options, bench.folder, *commands)
        for name in ("1.o", "2.o"):
            bench.wait_for(name)
        state = runner.kill()
        keys = [AttemptKey(job, 1) for job in (1, 2, 3)]
        adoption = bench.launcher.adopt(state, keys)
        answered = sorted([*adoption.adopted, *adoption.never_started, *adoption.unknown])
        require(answered == keys, "adopt answers for each attempt that it is asked about, once", adoption)
        require(set(keys[:2]) <= set(adoption.adopted), "attempts that were begun survive their runner", adoption)
        require(keys[2] not in adoption.adopted, "what was never begun cannot be adopted", adoption)
        bench.until(lambda: keys[0] in bench.ended, "the end of an adopted attempt arrives by poll")
        require(keys[1] not in bench.ended, "an adopted attempt runs on", bench.ended)
        gate.touch()
        bench.until(lambda: keys[1] in bench.ended, "the end of an adopted attempt arrives by poll")
        codes = [_code(bench.ended[key]) for key in keys[:2]]
        require(codes == [11, 12], "an adopted attempt has its true end", codes)
        bench.launcher.forget(state)

    def test_what_is_not_known_is_said_to_be_unknown(self, bench: LauncherBench) -> None:
        """`adopt` reports attempts as unknown if their files were deleted."""
        keys = [AttemptKey(1, 1), AttemptKey(2, 1)]
        adoption = bench.launcher.adopt({}, keys)
        require(adoption.adopted == (), "without a state there is nothing to adopt", adoption)
        answered = sorted([*adoption.never_started, *adoption.unknown])
        require(answered == keys, "adopt answers for each attempt that it is asked about", adoption)


def _code(end: ExitObservation) -> int | None:
    return end.exit_code


def _is_gone(pid: int) -> bool:
    """Return whether a process of this machine has ended; a zombie counts as ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return False
