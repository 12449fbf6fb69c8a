"""A runner killed with SIGKILL loses no end; a killed shepherd only those that nobody could see."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from local_bench import Bench, is_gone
from torc_local.journal import Journal

from torc_framework.api import AttemptKey

pytestmark = pytest.mark.crash

VICTIM = """
import select, sys
from pathlib import Path
from torc_local.launcher import LocalLauncher, LocalOptions
from torc_framework.api import Attempt, AttemptKey, RunnerContext
folder = sys.argv[1]
launcher = LocalLauncher(LocalOptions(), RunnerContext(1, 1, folder, str(Path.cwd()), "http://127.0.0.1:1"))
def attempt(i, command):
    return Attempt(AttemptKey(i, 1), "a", command, {}, f"{folder}/{i}.o", f"{folder}/{i}.e", str(Path.cwd()))
commands = sys.argv[2:]
launcher.start([attempt(i, c) for i, c in enumerate(commands, 1) if not c.startswith("QUEUE")])
launcher.queue([attempt(i, c[5:]) for i, c in enumerate(commands, 1) if c.startswith("QUEUE")])
print(launcher.state()["journal"], flush=True)
while True:
    select.select([launcher.wait_fd()], [], [])
    launcher.poll()
"""


class Victim:
    """A runner in a process of its own, to be killed."""

    def __init__(self, folder: Path, *commands: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(folder), *commands], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.state = {"journal": self.process.stdout.readline().strip()}

    def kill(self) -> None:
        """Kill it as the kernel does when memory runs out."""
        self.process.kill()
        self.process.communicate()

    def journal(self) -> Journal:
        """Return what its journal says now."""
        journal = Journal(Path(self.state["journal"]))
        journal.read()
        return journal

    def has_seen_end_of(self, job: int) -> bool:
        """Say whether the end of a job is in its journal."""
        return self.journal().entries[job, 1].is_over()

    def shepherd(self) -> int:
        """Return the pid of its shepherd."""
        (child,) = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(child)


def keys(*jobs: int) -> list[AttemptKey]:
    """Return first attempts of jobs."""
    return [AttemptKey(job, 1) for job in jobs]


def test_attempts_outlive_their_runner(bench: Bench, tmp_path: Path) -> None:
    """Ended before, ended in between, ended later: each is reported once with its true end."""
    gate = tmp_path / "gate"
    victim = Victim(
        tmp_path,
        "exit 11",
        "sleep 0.3; exit 12",
        f"echo up; while ! [ -e {gate} ]; do sleep 0.02; done; exit 13",
        "kill -SEGV $$",
    )
    bench.wait_for_file("3.o")
    bench.until(lambda: victim.has_seen_end_of(1))
    victim.kill()
    adoption = bench.launcher.adopt(victim.state, keys(1, 2, 3, 4, 5))
    assert adoption.adopted == tuple(keys(1, 2, 3, 4))
    assert adoption.never_started == tuple(keys(5))
    assert adoption.unknown == ()
    bench.until(lambda: len(bench.ended) == 3)
    assert set(bench.launcher.processes(keys(1, 2, 3, 4))) == set(keys(1, 2, 3, 4)) - bench.ended.keys()
    gate.touch()
    bench.until(lambda: len(bench.ended) == 4)
    codes = {key.job_id: (seen.exit_code, seen.signal) for key, seen in bench.ended.items()}
    assert codes == {1: (11, None), 2: (12, None), 3: (13, None), 4: (None, signal.SIGSEGV)}
    assert all(seen.peak_memory_bytes or seen.raw for seen in bench.ended.values())


def test_nothing_is_begun_after_the_runner_is_gone(bench: Bench, tmp_path: Path) -> None:
    """What was queued is free for others."""
    victim = Victim(tmp_path, "echo up; sleep 0.4; exit 1", f"QUEUEtouch {tmp_path}/ran")
    bench.wait_for_file("1.o")
    victim.kill()
    adoption = bench.launcher.adopt(victim.state, keys(1, 2))
    assert adoption.never_started == tuple(keys(2))
    bench.until(lambda: bench.ended)
    assert bench.ended[AttemptKey(1, 1)].exit_code == 1
    assert not (tmp_path / "ran").exists()


def test_adopted_attempts_can_be_stopped(bench: Bench, tmp_path: Path) -> None:
    """With all their processes."""
    victim = Victim(tmp_path, f"sleep 100 & echo $! > {tmp_path}/pid; wait")
    child = int(bench.wait_for_file("pid"))
    victim.kill()
    assert bench.launcher.adopt(victim.state, keys(1)).adopted == tuple(keys(1))
    bench.launcher.stop(keys(1), force=True)
    bench.until(lambda: bench.ended)
    assert bench.ended[AttemptKey(1, 1)].signal == signal.SIGKILL
    bench.until(lambda: is_gone(child))


def test_ends_can_be_adopted_twice(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    """The second runner may be killed as well before it has reported."""
    victim = Victim(tmp_path, "echo up; sleep 0.2; exit 21")
    first, second = make_bench(), make_bench()
    first.wait_for_file("1.o")
    victim.kill()
    for bench in (first, second):
        assert bench.launcher.adopt(victim.state, keys(1)).adopted == tuple(keys(1))
    for bench in (first, second):
        bench.until(lambda bench=bench: bench.ended)
        assert bench.ended[AttemptKey(1, 1)].exit_code == 21


def test_shepherd_killed_with_its_runner(bench: Bench, tmp_path: Path) -> None:
    """What it had written counts; what still runs is waited for; the rest is unknown."""
    gate = tmp_path / "gate"
    victim = Victim(
        tmp_path,
        "exit 31",
        f"echo up; while ! [ -e {gate} ]; do sleep 0.02; done; exit 32",
        f"echo $$ > {tmp_path}/pid; sleep 100",
    )
    bench.wait_for_file("2.o")
    third = int(bench.wait_for_file("pid"))
    bench.until(lambda: victim.has_seen_end_of(1))
    shepherd = victim.shepherd()
    victim.process.send_signal(signal.SIGSTOP)
    os.kill(shepherd, signal.SIGKILL)
    victim.kill()
    os.killpg(third, signal.SIGKILL)
    bench.until(lambda: not victim.journal().entries[3, 1].is_alive())
    adoption = bench.launcher.adopt(victim.state, keys(1, 2, 3, 4))
    assert adoption.adopted == tuple(keys(1, 2))
    assert adoption.unknown == tuple(keys(3))
    assert adoption.never_started == tuple(keys(4))
    bench.until(lambda: AttemptKey(1, 1) in bench.ended)
    assert bench.ended[AttemptKey(1, 1)].exit_code == 31
    assert AttemptKey(2, 1) not in bench.ended
    gate.touch()
    bench.until(lambda: AttemptKey(2, 1) in bench.ended)
    assert bench.ended[AttemptKey(2, 1)].lost


def test_a_killed_shepherd_is_replaced(bench: Bench, tmp_path: Path) -> None:
    """Its runner goes on: known ends are told, running attempts watched, waiting ones given to a new one."""
    bench.launcher.start([bench.attempt("echo up; sleep 0.5; exit 1", job_id=1)])
    bench.launcher.queue([bench.attempt("exit 2", job_id=2)])
    bench.wait_for_file("1.o")
    os.kill(bench.launcher._shepherd, signal.SIGKILL)
    bench.until(lambda: AttemptKey(1, 1) in bench.ended)
    assert bench.ended[AttemptKey(1, 1)].lost
    bench.launcher.start([bench.attempt("exit 2", job_id=2)])
    (third,) = bench.run(bench.attempt("exit 3", job_id=3))
    assert third.exit_code == 3
    bench.until(lambda: AttemptKey(2, 1) in bench.ended)
    assert bench.ended[AttemptKey(2, 1)].exit_code == 2


def test_unknown_journal_knows_nothing(bench: Bench, tmp_path: Path) -> None:
    """A deleted output folder does not stop the next runner."""
    assert bench.launcher.adopt({"journal": str(tmp_path / "gone")}, keys(1)).unknown == tuple(keys(1))
    assert bench.launcher.adopt({}, keys(1)).unknown == tuple(keys(1))


def test_a_reused_pid_is_not_taken_for_the_attempt(tmp_path: Path) -> None:
    """The process must have begun when the journal says."""
    path = tmp_path / "j"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    path.write_text(f"H {boot}\nI 1 1\nS 1 1 {os.getpid()} 1.5 1000.0\nI 2 1\nI 3")
    journal = Journal(path)
    journal.read()
    assert not journal.entries[1, 1].is_alive()
    assert not journal.entries[2, 1].is_over()
    assert set(journal.entries) == {(1, 1), (2, 1)}, "a half-written line is not read"
