"""Tests of launchers: how ends are told, and what an attempt is given."""

import contextlib
import gc
import os
import re
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from torc_framework.api import AttemptKey
from torc_framework.testing.contracts.launcher_suite import LauncherSuite
from torc_framework.testing.support.clauses import require
from torc_framework.testing.support.guarded_launcher import STARTS_AT_ONCE
from torc_framework.testing.support.launcher_bench import ONE_END, LauncherBench

SIGNALS: Final = (
    *(signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT),
    *(signal.SIGPIPE, signal.SIGUSR1),
)
POLL_S: Final = 0.1
"""How long the fastest of some polls may take."""
POLLS: Final = 8
ALLOCATED_BYTES: Final = 48 * 2**20
LARGE_OUTPUT_BYTES: Final = 2**20
MANY: Final = 20
_CPU_TIMES: Final = re.compile(r"(\d+)m([\d.]+)s")


class LauncherEndTests(LauncherSuite):
    """Tests of starts and ends."""

    def test_exit_codes_arrive_as_they_were(self, bench: LauncherBench) -> None:
        """An exit code of 128+n is reported as a code, not as a signal."""
        codes = [0, 1, 2, 3, 42, 64, 125, 126, 127, 128, 130, 137, 143, 255]
        ends = bench.run(*[bench.attempt(f"exit {code}", job_id=code + 1) for code in codes])
        seen = [(end.exit_code, end.signal) for end in ends]
        require(seen == [(code, None) for code in codes], "exit codes 0 to 255 arrive as they were, signal None", seen)

    @pytest.mark.parametrize("number", SIGNALS)
    def test_signals_arrive_as_signals(self, bench: LauncherBench, number: signal.Signals) -> None:
        """An attempt that a signal ended has a signal and no exit code."""
        if int(number) in self.unseen_signals:
            pytest.skip(f"the suite says that this executor does not see signal {int(number)}")
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
        began = time.monotonic()
        (end,) = bench.run(bench.attempt("sleep 1"))
        elapsed_s = time.monotonic() - began
        require(end.started_at is not None and end.ended_at is not None, "start and end are observed", end)
        ran_s = (end.ended_at or 0) - (end.started_at or 0)
        is_true = 0.9 <= ran_s <= elapsed_s + 0.5
        require(is_true, "started_at and ended_at are the seconds at which the attempt began and ended", end)
        require((end.runtime_s or 0) >= 0.9, "duration_s is in seconds from start to end", end)

    def test_used_amounts_are_in_their_units(self, bench: LauncherBench) -> None:
        """CPU time is in seconds and memory in bytes, where they are measured."""
        fill = f"x=$(head -c {ALLOCATED_BYTES} /dev/zero | tr '\\0' x)"
        spin = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
        (end,) = bench.run(bench.attempt(f"{fill}; {spin}; times"))
        peak, cpu = end.peak_memory_bytes, end.cpu_time_s
        require(peak is None or peak >= ALLOCATED_BYTES // 4, "peak_memory_bytes is in bytes, of the attempt", end)
        require(peak is None or peak <= 100 * ALLOCATED_BYTES, "peak_memory_bytes is in bytes, of the attempt", end)
        measured = _CPU_TIMES.findall((bench.folder / "1.o").read_text())
        used_s = sum(60 * int(minutes) + float(seconds) for minutes, seconds in measured)
        is_true = cpu is None or used_s / 3 - 0.1 <= cpu <= 2 * used_s + 0.5
        require(is_true, "cpu_time_s is in seconds, user and system together", (cpu, f"the shell used {used_s} s"))

    def test_polling_does_not_wait(self, bench: LauncherBench) -> None:
        """`poll` returns at once while attempts run: a runner has one thread."""
        key = AttemptKey(1, 1)
        bench.start(bench.attempt("sleep 100"))
        bench.until(lambda: key in bench.started, "the start of an attempt is told")
        fastest_s = min(_seconds_of(bench.take_events) for _ in range(POLLS))
        clause = "poll returns without blocking: a runner has one thread"
        require(fastest_s <= POLL_S, clause, f"the fastest of {POLLS} polls took {fastest_s:.2f} s")
        require(not bench.ended, "an attempt that runs has not ended", bench.ended)

    def test_attempts_run_at_the_same_time(self, bench: LauncherBench) -> None:
        """Attempts that were started run beside each other, also two attempts of one job."""
        self._needs_files()
        meet = "echo up > {own}; while ! [ -e {other} ]; do sleep 0.05; done; exit {code}"
        first = bench.attempt(meet.format(own="a", other="b", code=21))
        logs: dict[str, Any] = {"stdout_path": str(bench.folder / "1.2.o"), "stderr_path": str(bench.folder / "1.2.e")}
        second = bench.attempt(meet.format(own="b", other="a", code=22), key=AttemptKey(1, 2), **logs)
        bench.start(first, second)
        bench.until(lambda: len(bench.ended) == 2, "attempts that were started run at the same time")
        codes = [bench.ended[each.key].exit_code for each in (first, second)]
        require(codes == [21, 22], "an end belongs to its attempt, also with two attempts of one job", codes)

    def test_no_end_is_lost(self, bench: LauncherBench) -> None:
        """Ends that `poll` has not returned yet survive every other call, and are then returned once."""
        self._needs_files()
        attempts = [bench.attempt(f"echo over; exit {number}", job_id=number) for number in range(1, 6)]
        bench.start(*attempts)
        logs = [bench.folder / f"{number}.o" for number in range(1, 6)]
        deadline = time.monotonic() + self.patience_s
        while not all(log.exists() and log.read_text() == "over\n" for log in logs):
            require(time.monotonic() < deadline, "attempts run on their own: nobody has to poll", logs)
            time.sleep(0.05)
        time.sleep(0.3)
        keys = [attempt.key for attempt in attempts]
        bench.launcher.processes(keys)
        bench.launcher.memory_limited(keys)
        bench.launcher.stop(keys[:3], force=False)
        bench.launcher.stop(keys[:3], force=True)
        bench.launcher.withdraw(keys)
        bench.launcher.state()
        bench.start(bench.attempt("exit 9", job_id=9))
        bench.until(lambda: len(bench.ended) == 6, ONE_END)
        codes = [bench.ended[key].exit_code for key in keys]
        clause = "an end that came before a stop is told as it was: no call but poll takes it"
        require(codes == [1, 2, 3, 4, 5], clause, codes)
        for _ in range(5):
            bench.take_events()

    def test_stored_ends_are_dropped(self, bench: LauncherBench) -> None:
        """`ends_stored` affects neither other attempts nor later ones; unknown and repeated keys are ignored."""
        first, second, third = (AttemptKey(job, 1) for job in (1, 2, 3))
        bench.run(bench.attempt("exit 21"), bench.attempt("exit 22", job_id=2))
        bench.start(bench.attempt("sleep 1; exit 23", job_id=3))
        bench.launcher.ends_stored([first, AttemptKey(77, 1)])
        bench.launcher.ends_stored([first, second])
        bench.launcher.stop([first], force=True)
        bench.until(lambda: third in bench.ended, ONE_END)
        require(bench.ended[third].exit_code == 23, "ends_stored is for attempts that have ended", bench.ended[third])

    def test_two_launchers_do_not_meet(self, bench: LauncherBench) -> None:
        """Two launchers of one process tell the ends of their own attempts only."""
        other = self.make_bench(bench.folder / "other")
        try:
            # The second ends while the first launcher is asked, which would tell of it.
            bench.start(bench.attempt("sleep 0.8; exit 31"))
            other.start(other.attempt("sleep 0.2; exit 32", job_id=2))
            bench.until(lambda: bench.ended, ONE_END)
            other.until(lambda: other.ended, ONE_END)
            codes = [end.exit_code for each in (bench, other) for end in each.ended.values()]
            require(codes == [31, 32], "a launcher tells of its own attempts alone", codes)
        finally:
            other.finish()

    def test_resources_are_released(self, bench: LauncherBench) -> None:
        """Ended attempts and closed launchers leave no descriptors, threads and child processes behind."""
        for number in range(4):
            bench.run(bench.attempt("true", job_id=number + 1))
        before = _held()
        bench.run(*[bench.attempt("true", job_id=number) for number in range(100, 100 + MANY)])
        _require_no_more(before, f"an attempt that ended holds nothing: {MANY} attempts")
        for cycle in range(3):
            if cycle == 1:
                before = _held()
            other = self.make_bench(bench.folder / f"cycle{cycle}")
            other.run(*[other.attempt("true", job_id=number) for number in (1, 2, 3)])
            other.finish()
        _require_no_more(before, "close releases all resources: 2 launchers")

    def test_starting_does_not_wait(self, bench: LauncherBench) -> None:
        """`start` does not wait for the attempt: a runner has one thread."""
        self._needs_files()
        gate = bench.folder / "gate"
        overdue = threading.Timer(self.patience_s, gate.touch)
        overdue.start()
        bench.start(bench.attempt(f"while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 4"))
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
                0 < bench.launcher.poll_interval_s <= 60,
                "a launcher without wait_fd is polled: poll_interval_s says how often, in seconds",
                bench.launcher.poll_interval_s,
            )
            return
        bench.start(bench.attempt("sleep 0.3"))
        while not bench.ended:
            ready, _, _ = select.select([descriptor], [], [], self.patience_s)
            require(ready, "wait_fd is readable as soon as poll has news", bench.started)
            bench.take_events()
        require(bench.launcher.wait_fd() == descriptor, "wait_fd is the same as long as the launcher lives")
        bench.start(bench.attempt("sleep 100", job_id=2))
        bench.until(lambda: AttemptKey(2, 1) in bench.started, "the start of an attempt is told")
        wakes = 0
        while wakes < 20 and select.select([descriptor], [], [], 0.3)[0]:
            bench.take_events()
            wakes += 1
        require(wakes < 20, "poll takes what made wait_fd readable: else the runner spins", f"{wakes} times")


class LauncherGivenTests(LauncherSuite):
    """Tests of what an attempt is given, and of attempts that cannot be started."""

    def test_output_is_at_the_promised_paths(self, bench: LauncherBench) -> None:
        """The files hold the output byte by byte, also if it is no text."""
        bench.run(bench.attempt(r"printf 'out\000\377\n'; printf 'err\n' >&2; exit 3"))
        out, err = bench.folder / "1.o", bench.folder / "1.e"
        for path in (out, err):
            require(path.exists(), "logs are at stdout_path and stderr_path when the end is told", path)
        require(out.read_bytes() == b"out\0\xff\n", "standard output is kept as it was written", out.read_bytes())
        require(err.read_bytes() == b"err\n", "standard error is kept apart", err.read_bytes())

    def test_both_streams_may_have_one_file(self, bench: LauncherBench) -> None:
        """If both paths are the same, that file has both streams in the order of writing."""
        command = "echo one; echo two >&2; echo three; echo four >&2"
        bench.run(bench.attempt(command, stderr_path=str(bench.folder / "1.o")))
        said = (bench.folder / "1.o").read_text()
        promise = "a file that is stdout_path and stderr_path gets both in the order of writing"
        require(said == "one\ntwo\nthree\nfour\n", promise, said)

    def test_output_may_go_nowhere(self, bench: LauncherBench) -> None:
        """A stream whose path is the null device is dropped, and the other one is kept."""
        nowhere: dict[str, Any] = {"stdout_path": os.devnull, "stderr_path": os.devnull}
        (end,) = bench.run(bench.attempt("echo one; echo two >&2; exit 4", **nowhere))
        require(end.exit_code == 4, "an attempt whose output goes to the null device runs as others do", end)
        bench.run(bench.attempt("echo one; echo two >&2", job_id=2, stdout_path=os.devnull))
        bench.run(bench.attempt("echo one; echo two >&2", job_id=3, stderr_path=os.devnull))
        kept = {path.name: path.read_text() for path in bench.folder.glob("[123].[oe]")}
        promise = "output goes to no file but those that stdout_path and stderr_path name"
        require(kept == {"2.e": "two\n", "3.o": "one\n"}, promise, kept)
        require(Path(os.devnull).is_char_device(), "the null device stays what it is")

    def test_the_attempts_environment_wins(self, bench: LauncherBench) -> None:
        """Variables of the attempt override the executor's, and arrive unchanged with any characters."""
        value = "a 'b' \"c\" $HOME `d`\nsecond line ä"
        environment = {"TORC_JOB_ID": "1", "HOME": "/elsewhere", "CONTRACT_VALUE": value}
        bench.run(bench.attempt('printf "%s|%s" "$HOME" "$CONTRACT_VALUE"; test -n "$PATH"', environment=environment))
        said = (bench.folder / "1.o").read_text(encoding="utf-8")
        require(said == f"/elsewhere|{value}", "the attempt's environment wins, and its values arrive unchanged", said)
        require(bench.ended[AttemptKey(1, 1)].exit_code == 0, "there is a PATH, so that programs are found")

    def test_variables_do_not_leak(self, bench: LauncherBench) -> None:
        """The variables of one attempt are not those of another."""
        bench.run(bench.attempt("true", environment={"CONTRACT_VALUE": "1"}))
        bench.run(bench.attempt('printf "%s" "${CONTRACT_VALUE-unset}"', job_id=2))
        said = (bench.folder / "2.o").read_text()
        require(said == "unset", "an attempt does not get the variables of another one", said)

    def test_much_output_does_not_block(self, bench: LauncherBench) -> None:
        """An attempt writes as much as it wants to, to both streams."""
        write = f"head -c {LARGE_OUTPUT_BYTES} /dev/zero"
        (end,) = bench.run(bench.attempt(f"{write}; {write} >&2; exit 8"))
        sizes = [(bench.folder / name).stat().st_size for name in ("1.o", "1.e")]
        require(sizes == [LARGE_OUTPUT_BYTES] * 2, "all output is in the logs when the end is told", sizes)
        require(end.exit_code == 8, "an attempt with much output ends with its own code", end)

    def test_the_shell_is_the_attempts(self, bench: LauncherBench) -> None:
        """The shell that the job names runs the command."""
        self._needs_this_machine()
        if shutil.which("bash") is None:
            pytest.skip("there is no bash here")
        bench.run(bench.attempt('printf "%s" "${BASH_VERSION:+bash}"; [[ a == a ]]', shell="bash"))
        said = (bench.folder / "1.o").read_text()
        require(said == "bash", "the shell that the attempt names runs its command: shell_command(attempt.shell)", said)

    def test_it_runs_where_it_is_told(self, bench: LauncherBench) -> None:
        """It runs in the given folder, also if the name needs quoting."""
        self._needs_this_machine()
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

    def test_output_files_are_looked_for_where_it_ran(self, bench: LauncherBench) -> None:
        """Where the launcher checks outputs, it reports which files are missing, and whether all were written."""
        self._needs("checks_outputs")
        write = "echo made > 'a file.txt'"
        bench.run(bench.attempt(write, outputs=("a file.txt", "gone/b.txt")))
        bench.run(bench.attempt(write, job_id=2, outputs=("a file.txt",)))
        some, all_of_them = (bench.ended[AttemptKey(job, 1)] for job in (1, 2))
        clause = "missing_outputs are the declared output files that are not there, as they were declared"
        require(some.missing_outputs == ("gone/b.txt",) and all_of_them.missing_outputs == (), clause, some)
        are_told = all_of_them.outputs_written is True and some.outputs_written is False
        clause = "outputs_written tells whether all declared output files were written since the start"
        require(are_told, clause, (some.outputs_written, all_of_them.outputs_written))

    def test_what_cannot_be_started_is_reported(self, bench: LauncherBench) -> None:
        """`start` does not raise; the attempt ends with ``launch_error``, and others are not affected."""
        self._needs_this_machine()
        wrong = bench.attempt("true", job_id=1, working_dir=str(bench.folder / "gone"))
        bench.start(wrong, bench.attempt("exit 6", job_id=2))
        bench.until(lambda: len(bench.ended) == 2, ONE_END)
        end = bench.ended[wrong.key]
        clause = "an attempt that could not be started ends with launch_error, and neither code nor signal"
        require(end.launch_error and end.exit_code is None and end.signal is None, clause, end)
        require(
            bench.ended[AttemptKey(2, 1)].exit_code == 6, "one failed start does not disturb the others", bench.ended
        )

    def test_too_long_a_command_is_reported(self, bench: LauncherBench) -> None:
        """A command that is longer than the kernel permits runs all the same, or ends with ``launch_error``."""
        bench.start(bench.attempt(f"exit 5 # {'x' * 2**22}"), bench.attempt("exit 6", job_id=2))
        bench.until(lambda: len(bench.ended) == 2, ONE_END)
        long, short = (bench.ended[AttemptKey(job, 1)] for job in (1, 2))
        is_told = long.launch_error is not None or long.exit_code == 5
        require(is_told, "an attempt that could not be started ends with launch_error", long)
        require(short.exit_code == 6, "one failed start does not disturb the others", short)


def _seconds_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _held() -> dict[str, int]:
    """Return the numbers of open descriptors, threads and child processes of this process."""
    gc.collect()
    children = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children += path.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return {"descriptors": descriptors, "threads": threading.active_count(), "child processes": children}


def _require_no_more(before: dict[str, int], clause: str) -> None:
    """Fail if more than a few further resources are held, also after a moment."""
    for _ in range(120):  # connections that a launcher keeps for a while may end meanwhile
        now = _held()
        more = {name: now[name] - count for name, count in before.items() if now[name] > count + 1}
        if not more:
            return
        time.sleep(0.05)
    require(False, f"{clause}; released are descriptors, threads and child processes", more)
