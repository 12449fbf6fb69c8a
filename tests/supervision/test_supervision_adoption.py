"""No end of an attempt is lost when runner or supervisor are killed with SIGKILL."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from local_bench import Bench, child_of, is_gone
from waiting import let_pass

from torc_framework.api import AttemptKey
from torc_framework.supervision.journal import Journal

pytestmark = pytest.mark.crash

VICTIM = """
import select, sys
from pathlib import Path
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
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


class LauncherProcess:
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
        """Return the present content of its journal."""
        return read(Path(self.state["journal"]))

    def has_seen_end_of(self, job: int) -> bool:
        """Return whether the end of a job is in its journal."""
        return self.journal().entries[job, 1].is_over()

    def supervisor(self) -> int:
        """Return the pid of its supervisor."""
        return child_of(self.reaper())

    def reaper(self) -> int:
        """Return the pid of the parent of its supervisor."""
        return child_of(self.process.pid)


def read(path: Path) -> Journal:
    """Return the present records of a journal."""
    journal = Journal(path)
    journal.read()
    journal.close()
    return journal


def keys(*jobs: int) -> list[AttemptKey]:
    """Return first attempts of jobs."""
    return [AttemptKey(job, 1) for job in jobs]


def test_attempts_outlive_their_runner(bench: Bench, tmp_path: Path) -> None:
    """Ended before, ended in between, ended later: each is reported once with its true end."""
    gate = tmp_path / "gate"
    victim = LauncherProcess(
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
    victim = LauncherProcess(tmp_path, "echo up; sleep 0.4; exit 1", f"QUEUEtouch {tmp_path}/ran")
    bench.wait_for_file("1.o")
    victim.kill()
    adoption = bench.launcher.adopt(victim.state, keys(1, 2))
    assert adoption.never_started == tuple(keys(2))
    bench.until(lambda: bench.ended)
    assert bench.ended[AttemptKey(1, 1)].exit_code == 1
    assert not (tmp_path / "ran").exists()


def test_adopted_attempts_can_be_stopped(bench: Bench, tmp_path: Path) -> None:
    """With all their processes."""
    victim = LauncherProcess(tmp_path, f"sleep 100 & echo $! > {tmp_path}/pid; wait")
    child = int(bench.wait_for_file("pid"))
    victim.kill()
    assert bench.launcher.adopt(victim.state, keys(1)).adopted == tuple(keys(1))
    bench.launcher.stop(keys(1), force=True)
    bench.until(lambda: bench.ended)
    assert bench.ended[AttemptKey(1, 1)].signal == signal.SIGKILL
    bench.until(lambda: is_gone(child))


def test_ends_can_be_adopted_twice(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    """The second runner may be killed as well before it has reported."""
    victim = LauncherProcess(tmp_path, "echo up; sleep 0.2; exit 21")
    first, second = make_bench(), make_bench()
    first.wait_for_file("1.o")
    victim.kill()
    for bench in (first, second):
        assert bench.launcher.adopt(victim.state, keys(1)).adopted == tuple(keys(1))
    for bench in (first, second):
        bench.until(partial(getattr, bench, "ended"))
        assert bench.ended[AttemptKey(1, 1)].exit_code == 21


def test_all_three_processes_killed(bench: Bench, tmp_path: Path) -> None:
    """What it had written counts; what still runs is waited for; the rest is unknown."""
    gate = tmp_path / "gate"
    victim = LauncherProcess(
        tmp_path,
        "exit 31",
        f"echo up; while ! [ -e {gate} ]; do sleep 0.02; done; exit 32",
        f"echo $$ > {tmp_path}/pid; sleep 100",
    )
    bench.wait_for_file("2.o")
    third = int(bench.wait_for_file("pid"))
    bench.until(lambda: victim.has_seen_end_of(1))
    supervisor = victim.supervisor()
    victim.process.send_signal(signal.SIGSTOP)
    os.kill(victim.reaper(), signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
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


def test_supervisor_killed_with_its_runner(bench: Bench, tmp_path: Path) -> None:
    """The reaper is left, and writes the ends of all that ran."""
    gate = tmp_path / "gate"
    victim = LauncherProcess(tmp_path, "exit 31", f"echo up; while ! [ -e {gate} ]; do sleep 0.02; done; exit 32")
    bench.wait_for_file("2.o")
    bench.until(lambda: victim.has_seen_end_of(1))
    supervisor = victim.supervisor()
    victim.kill()
    os.kill(supervisor, signal.SIGKILL)
    adoption = bench.launcher.adopt(victim.state, keys(1, 2, 3))
    assert adoption.adopted == tuple(keys(1, 2))
    assert adoption.never_started == tuple(keys(3))
    gate.touch()
    bench.until(lambda: len(bench.ended) == 2)
    assert [bench.ended[key].exit_code for key in keys(1, 2)] == [31, 32]


def test_a_killed_supervisor_is_replaced(bench: Bench, tmp_path: Path) -> None:
    """The runner continues: all ends are reported as they were, and unstarted attempts go to a new supervisor."""
    bench.launcher.start([bench.attempt("echo up; sleep 0.5; exit 1", job_id=1)])
    bench.launcher.queue([bench.attempt("exit 2", job_id=2)])
    bench.wait_for_file("1.o")
    bench.kill_supervisor()
    bench.until(lambda: AttemptKey(1, 1) in bench.ended)
    assert bench.ended[AttemptKey(1, 1)].exit_code == 1
    assert 0.4 < (bench.ended[AttemptKey(1, 1)].duration_s or 0) < 10
    bench.launcher.start([bench.attempt("exit 2", job_id=2)])
    (third,) = bench.run(bench.attempt("exit 3", job_id=3))
    assert third.exit_code == 3
    bench.until(lambda: AttemptKey(2, 1) in bench.ended)
    assert bench.ended[AttemptKey(2, 1)].exit_code == 2


def test_an_attempt_that_kills_its_parent_costs_its_neighbours_nothing(bench: Bench) -> None:
    """Each attempt runs once and has its own end, also the one that killed the supervisor.

    One killer at a time: another one would begin as a child of the reaper, and kill that.
    """
    ran = bench.folder / "ran"
    neighbours = [
        bench.attempt(f"echo {i} >>{ran}; sleep 0.{i % 4}; exit {i}", job_id=i) for i in range(1, 40) if i % 10
    ]
    killers = [bench.attempt(f"echo {i} >>{ran}; kill -9 $PPID; exit {i}", job_id=i) for i in (10, 20, 30)]
    for number, killer in enumerate(killers):
        bench.run(*neighbours[12 * number : 12 * number + 7], killer, *neighbours[12 * number + 7 : 12 * (number + 1)])
    assert {key.job_id: seen.exit_code for key, seen in bench.ended.items()} == {i: i for i in range(1, 40)}
    assert sorted(map(int, ran.read_text().split())) == list(range(1, 40)), "each ran once"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_supervisors_killed_at_random(bench: Bench, seed: int) -> None:
    """Short attempts, so that each moment in the life of one is met: none runs twice, no end is lost."""
    chance = random.Random(seed)
    ran = bench.folder / "ran"
    count, kills = 400, 12
    moments = sorted(chance.sample(range(count - 50), kills))
    bench.launcher.start([bench.attempt(f"echo 1 >>{ran}; exit {1 % 200}", job_id=1)])
    for start in range(2, count, 8):
        bench.launcher.start(
            [bench.attempt(f"echo {i} >>{ran}; exit {i % 200}", job_id=i) for i in range(start, min(count, start + 8))]
        )
        if moments and start > moments[0]:
            moments.pop(0)
            let_pass(chance.random() * 0.01)
            bench.kill_supervisor()
    bench.until(lambda: len(bench.ended) == count - 1)
    assert {key.job_id: seen.exit_code for key, seen in bench.ended.items()} == {i: i % 200 for i in range(1, count)}
    assert sorted(map(int, ran.read_text().split())) == list(range(1, count)), "each ran once"


def test_a_stop_that_a_killed_supervisor_did_not_get(bench: Bench) -> None:
    """The runner asks again: an attempt that runs is stopped, one that was not begun comes back."""
    bench.launcher.start([bench.attempt("echo up; exec sleep 100")])
    bench.launcher.queue([bench.attempt("true", job_id=2)])
    bench.wait_for_file("1.o")
    supervisor = bench.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    bench.launcher.stop(keys(1, 2), force=True)
    os.kill(supervisor, signal.SIGKILL)
    bench.until(lambda: AttemptKey(1, 1) in bench.ended)
    assert bench.ended[AttemptKey(1, 1)].signal == signal.SIGKILL
    assert bench.returned == set(keys(2))


def test_a_killed_reaper_costs_nothing(bench: Bench) -> None:
    """The supervisor continues."""
    bench.launcher.start([bench.attempt("echo up; sleep 0.3; exit 5")])
    bench.wait_for_file("1.o")
    os.kill(bench.reaper(), signal.SIGKILL)
    (second,) = bench.run(bench.attempt("exit 6", job_id=2))
    bench.until(lambda: len(bench.ended) == 2)
    assert (bench.ended[AttemptKey(1, 1)].exit_code, second.exit_code) == (5, 6)


def test_the_folder_of_the_journal_may_be_removed(bench: Bench) -> None:
    """Also when the supervisor is killed after that: its ends can still be read."""
    bench.launcher.start([bench.attempt(f"rm -rf {bench.folder}/.torc_runner; echo up; sleep 0.3; exit 5")])
    bench.wait_for_file("1.o")
    bench.kill_supervisor()
    (second,) = bench.run(bench.attempt("exit 6", job_id=2))
    bench.until(lambda: len(bench.ended) == 2)
    assert (bench.ended[AttemptKey(1, 1)].exit_code, second.exit_code) == (5, 6)


def test_unknown_journal_knows_nothing(bench: Bench, tmp_path: Path) -> None:
    """A deleted output folder does not stop the next runner."""
    assert bench.launcher.adopt({"journal": str(tmp_path / "gone")}, keys(1)).unknown == tuple(keys(1))
    assert bench.launcher.adopt({}, keys(1)).unknown == tuple(keys(1))


def test_a_reused_pid_is_not_taken_for_the_attempt(tmp_path: Path) -> None:
    """The process must have begun when the journal says."""
    path = tmp_path / "j"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    path.write_text(f"H {boot}\nI 1 1\nS 1 1 {os.getpid()} 1.5 1000.0\nI 2 1\nI 3")
    journal = read(path)
    assert not journal.entries[1, 1].is_alive()
    assert not journal.entries[2, 1].is_over()
    assert set(journal.entries) == {(1, 1), (2, 1)}, "a half-written line is not read"
