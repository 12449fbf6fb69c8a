"""Tests of launchers: stops, and the processes of attempts."""

import os
import time
from pathlib import Path
from typing import Final

from torc_framework.api import AttemptKey
from torc_framework.testing.contracts.launcher_suite import LauncherSuite
from torc_framework.testing.support.clauses import require
from torc_framework.testing.support.launcher_bench import ONE_END, LauncherBench

STOP_S: Final = 1.0
"""How long the fastest of some stops may take."""


class LauncherStopTests(LauncherSuite):
    """Tests of stops."""

    def test_a_gentle_stop_is_sigterm(self, bench: LauncherBench) -> None:
        """A stop without force sends SIGTERM, which the attempt may handle."""
        self._needs_files()
        bench.start(bench.attempt("trap 'echo cleaned; exit 3' TERM; echo up; while :; do sleep 0.05; done"))
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
        bench.start(bench.attempt(command))
        bench.wait_for("inner")
        bench.launcher.stop([AttemptKey(1, 1)], force=False)
        bench.launcher.stop([AttemptKey(1, 1)], force=True)
        bench.until(lambda: bench.ended, "a forced stop ends an attempt that ignores SIGTERM")
        end = bench.ended[AttemptKey(1, 1)]
        expected = (None, 9) if self.sees_signals else (137, None)
        require((end.exit_code, end.signal) == expected, "an attempt that was killed has signal 9", end)
        clause = "a forced stop reaches all processes of an attempt, children included"
        bench.until(lambda: not bench.processes_left(), clause)

    def test_a_gentle_stop_reaches_children(self, bench: LauncherBench) -> None:
        """A stop without force sends SIGTERM to all processes of the attempt."""
        self._needs_files()
        child = "trap 'echo child >> ends; exit 0' TERM; echo up > child; while :; do sleep 0.05; done"
        command = f"""trap 'wait; exit 3' TERM; sh -c "{child}" & echo up; wait; wait"""
        bench.start(bench.attempt(command, supports_termination=True))
        bench.wait_for("child")
        bench.launcher.stop([AttemptKey(1, 1)], force=False)
        ends = bench.folder / "ends"
        bench.until(ends.exists, "a gentle stop is SIGTERM to all processes of an attempt, children included")

    def test_a_stop_returns_at_once(self, bench: LauncherBench) -> None:
        """`stop` does not wait for the end, also if the attempt takes its time."""
        key = AttemptKey(1, 1)
        bench.start(bench.attempt("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        bench.wait_for("1.o")
        took_s = []
        for _ in range(3):
            began = time.monotonic()
            bench.launcher.stop([key], force=False)
            took_s.append(time.monotonic() - began)
        require(min(took_s) < STOP_S, "stop returns at once: the end arrives through poll", took_s)
        bench.take_events()
        require(not bench.ended, "an attempt that ignores SIGTERM runs on until it is stopped by force", bench.ended)

    def test_a_stop_is_for_its_attempts(self, bench: LauncherBench) -> None:
        """A stop ends the given attempts, and no others."""
        self._needs_files()
        gate = bench.folder / "gate"
        first, second, third = (AttemptKey(job, 1) for job in (1, 2, 3))
        wait = f"echo up; while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 5"
        bench.start(*[bench.attempt(wait, job_id=job) for job in (1, 2, 3)])
        for job in (1, 2, 3):
            bench.wait_for(f"{job}.o")
        bench.launcher.stop([second, third], force=False)
        bench.until(lambda: {second, third} <= bench.ended.keys(), "stop ends each of the given attempts")
        expected = (None, 15) if self.sees_signals else (143, None)
        for key in (second, third):
            end = bench.ended[key]
            clause = "an attempt that a gentle stop ended has signal 15"
            require((end.exit_code, end.signal) == expected, clause, end)
        bench.take_events()
        require(first not in bench.ended, "stop leaves other attempts alone", bench.ended)
        gate.touch()
        bench.until(lambda: first in bench.ended, ONE_END)
        require(bench.ended[first].exit_code == 5, "stop leaves other attempts alone", bench.ended[first])

    def test_a_late_stop_is_harmless(self, bench: LauncherBench) -> None:
        """A stop of ended or unknown attempts is ignored."""
        bench.run(bench.attempt("true"))
        bench.launcher.stop([AttemptKey(1, 1), AttemptKey(77, 1)], force=True)
        (end,) = bench.run(bench.attempt("exit 5", job_id=2))
        require(end.exit_code == 5, "stopping unknown or ended attempts is ignored", end)
        require(len(bench.ended) == 2, ONE_END, bench.ended)

    def test_processes_are_those_asked_for(self, bench: LauncherBench) -> None:
        """`processes` names the pids of running attempts, or none if they run elsewhere."""
        self._needs_this_machine()
        key, other = AttemptKey(1, 1), AttemptKey(2, 1)
        bench.start(bench.attempt("echo $$; exec sleep 100"), bench.attempt("echo $$; exec sleep 100", job_id=2))
        shell = int(bench.wait_for("1.o"))
        bench.wait_for("2.o")
        bench.until(lambda: key in bench.started, "the start of an attempt is told")
        found = bench.launcher.processes([key, AttemptKey(77, 1)])
        require(set(found) <= {key}, "processes answers for running attempts that were asked for", found)
        pids = found.get(key, ())
        for pid in pids:
            require(not is_gone(pid), "processes names living processes of this machine", found)
        is_own = not pids or not set(pids).isdisjoint(_ancestors(shell))
        require(is_own and os.getpid() not in pids, "processes names the attempt's own first processes", (pids, shell))
        bench.launcher.stop([key], force=True)
        bench.until(lambda: key in bench.ended, "a forced stop ends an attempt")
        found = bench.launcher.processes([key, other])
        require(key not in found, "processes leaves out attempts that have ended: pids are used again", found)
        require(key not in bench.launcher.memory_limited([key]), "memory_limited leaves out attempts that have ended")

    def test_withdraw_leaves_running_attempts_alone(self, bench: LauncherBench) -> None:
        """`withdraw` affects queued attempts only."""
        self._needs_files()
        gate = bench.folder / "gate"
        bench.start(bench.attempt(f"echo up; while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 7"))
        bench.wait_for("1.o")
        bench.launcher.withdraw([AttemptKey(1, 1), AttemptKey(77, 1)])
        bench.take_events()
        require(not bench.ended and not bench.returned, "withdraw leaves alone what has begun", bench.ended)
        gate.touch()
        bench.until(lambda: bench.ended, ONE_END)
        require(bench.ended[AttemptKey(1, 1)].exit_code == 7, "withdraw leaves alone what has begun", bench.ended)


def is_gone(pid: int) -> bool:
    """Return whether a process of this machine has ended; a zombie counts as ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except ProcessLookupError:
        return True
    except FileNotFoundError:
        return Path("/proc/self/stat").exists()  # it ended just now, unless this system has no such files
    except OSError:
        return False


def _ancestors(pid: int) -> set[int]:
    """Return a process of this machine with its parents, grandparents and so on."""
    found: set[int] = set()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found
