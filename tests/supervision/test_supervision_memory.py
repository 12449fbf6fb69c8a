"""Memory limits of attempts by control groups of this machine, and the kernel's counters in their observations."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from local_bench import Bench, child_of, context, is_gone, python
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
from waiting import eventually

from torc_framework.api import AttemptKey, ConfigError, ExitClass, ExitObservation, classify_exit
from torc_framework.supervision import cgroup_location
from torc_framework.supervision.supervisor import cgroups

if TYPE_CHECKING:
    from torc_framework.supervision.supervisor.cgroups import Cgroup

LIMIT = 100 << 20
GREEDY = python("x = bytearray(500 << 20)")
CHILD = GREEDY.removeprefix("exec ")
"""The same as a child of the shell."""


@pytest.fixture(scope="module")
def place() -> Cgroup:
    """The group in which control groups can be created."""
    try:
        return cgroup_location.find_parent(cgroup_location.own_cgroup())
    except cgroup_location.CgroupsUnavailable as error:
        pytest.skip(f"control groups: {error}")


@pytest.fixture
def limited(place: Cgroup, tmp_path: Path) -> Iterator[Bench]:
    """A launcher of a runner that enforces limits; it leaves no group behind."""
    where = evolve(context(tmp_path), enforces_limits=True)
    bench = Bench(tmp_path, LocalLauncher(LocalOptions(memory_cgroup="require"), where))
    yield bench
    bench.launcher.stop(bench.started.keys() - bench.ended.keys(), force=True)
    bench.launcher.close()
    assert left(bench, place) == []


def left(bench: Bench, place: Cgroup) -> list[str]:
    """Return the existing groups of attempts."""
    stem = Path(bench.launcher.state()["journal"]).stem
    return sorted(path.name for path in Path(place[1]).glob(f"torc_{stem}.*"))


def run(bench: Bench, command: str) -> ExitObservation:
    """Run an attempt that asks for `LIMIT`, and return what the runner would make of its end."""
    (seen,) = bench.run(bench.attempt(command, memory_limit_bytes=LIMIT))
    return evolve(seen, memory_limit_bytes=LIMIT)


def test_a_process_that_takes_too_much_at_once_is_killed_by_the_kernel(limited: Bench, place: Cgroup) -> None:
    """No sampler could be so quick. The peak is the limit, or a little more where binaries are counted in."""
    seen = run(limited, GREEDY)
    assert (seen.signal, seen.exit_code, seen.oom_kills) == (signal.SIGKILL, None, 1)
    assert seen.peak_memory_bytes is not None
    assert 0.9 * LIMIT < seen.peak_memory_bytes < 1.2 * LIMIT
    assert 0.9 * LIMIT < seen.raw["cgroup_peak_memory_bytes"] <= LIMIT
    verdict = classify_exit(seen)
    assert (verdict.exit_class, verdict.confidence) == (ExitClass.OOM, 1.0)
    assert verdict.reason == "the kernel killed a process of it at the 100 MiB of memory it asked for"
    limited.until(lambda: not left(limited, place))


@pytest.mark.parametrize(("ending", "code", "confidence"), [("exit 5", 5, 0.9), ("exit $?", 137, 1.0)])
def test_a_shell_whose_child_was_killed_ran_out_of_memory(
    limited: Bench, ending: str, code: int, confidence: float
) -> None:
    """Whatever it makes of it, as long as it fails."""
    seen = run(limited, f"{CHILD}; {ending}")
    assert (seen.exit_code, seen.oom_kills) == (code, 1)
    verdict = classify_exit(seen)
    assert (verdict.exit_class, verdict.confidence) == (ExitClass.OOM, confidence)


def test_an_attempt_that_deals_with_it_succeeds(limited: Bench) -> None:
    """Trying with less after a kill is a way to work."""
    seen = run(limited, f"{CHILD} || exit 0")
    assert (seen.exit_code, seen.oom_kills) == (0, 1)
    assert classify_exit(seen).exit_class is ExitClass.SUCCESS


FAMILY = """
import os, subprocess, sys
held = 'x = bytearray(b"x") * (70 << 20); input()'
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE)
os.wait()
os._exit(3)
"""


def test_all_processes_of_an_attempt_count_together(limited: Bench) -> None:
    """Two that hold 70 MB each are too much for 100 MB."""
    (limited.folder / "family.py").write_text(FAMILY)
    seen = run(limited, f"exec {sys.executable} {limited.folder}/family.py")
    assert (seen.exit_code, seen.oom_kills) == (3, 1)
    assert classify_exit(seen).exit_class is ExitClass.OOM


def test_memory_within_the_limit_changes_nothing(limited: Bench) -> None:
    """The kernel's count is 0, which is observed too."""
    seen = run(limited, python("x = bytearray(50 << 20)"))
    assert (seen.exit_code, seen.oom_kills) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_is_a_crash(limited: Bench, number: int) -> None:
    """Also within a group of its own."""
    seen = run(limited, python(f"import os; os.kill(os.getpid(), {number})"))
    assert (seen.signal, seen.oom_kills) == (number, 0)
    assert classify_exit(seen).exit_class is ExitClass.SIGNALED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_strangers_signal_is_no_lack_of_memory(limited: Bench, number: int) -> None:
    """Neither for the process itself nor for a child of a shell."""
    first = limited.attempt("exec sleep 100", 1, memory_limit_bytes=LIMIT)
    second = limited.attempt(f"sleep 100 & echo $! >{limited.folder}/child; wait $!", 2, memory_limit_bytes=LIMIT)
    limited.launcher.start([first, second])
    child = int(limited.wait_for_file("child"))
    limited.until(lambda: first.key in limited.started)
    for pid in (*limited.launcher.processes([first.key])[first.key], child):
        os.kill(pid, number)
    limited.until(lambda: len(limited.ended) == 2)
    own, shell = limited.ended[first.key], limited.ended[second.key]
    assert (own.signal, own.oom_kills) == (number, 0)
    assert (shell.exit_code, shell.oom_kills) == (128 + number, 0)
    assert classify_exit(own).exit_class is ExitClass.SIGNALED
    assert classify_exit(shell).exit_class is ExitClass.USER_ERROR


def test_what_an_attempt_leaves_behind_goes_on_elsewhere(limited: Bench, place: Cgroup) -> None:
    """As without a group: the attempt ended by itself, so that processes that it left are not killed."""
    run(limited, f"sleep 100 & echo $! >{limited.folder}/pid; exit 0")
    limited.until(lambda: not left(limited, place))
    pid = int(limited.text("pid"))
    try:
        assert not is_gone(pid)
        home = cgroup_location.own_cgroup()
        assert home is not None
        assert str(pid) in Path(home[1], cgroups.MEMBERS_FILE).read_text().split()
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("force", [False, True])
def test_what_is_stopped_leaves_no_process_behind(limited: Bench, place: Cgroup, force: bool) -> None:
    """Also those who have made themselves a session of their own."""
    attempt = limited.attempt(f"setsid sleep 100 & echo $! >{limited.folder}/pid; sleep 100", memory_limit_bytes=LIMIT)
    free = limited.attempt("sleep 100", 2)
    limited.launcher.start([attempt, free])
    pid = int(limited.wait_for_file("pid"))
    assert len(left(limited, place)) == 1
    limited.until(lambda: len(limited.started) == 2)
    assert limited.launcher.memory_limited([attempt.key, free.key, AttemptKey(3, 1)]) == [attempt.key]
    limited.launcher.stop([attempt.key, free.key], force=force)
    limited.until(lambda: len(limited.ended) == 2)
    limited.until(lambda: not left(limited, place))
    assert is_gone(pid)


def test_queued_and_long_attempts_are_held_too(limited: Bench) -> None:
    """One that takes another's place, and one whose command is too long for an argument."""
    first = limited.attempt("exit 0", 1, memory_limit_bytes=LIMIT)
    second = limited.attempt(GREEDY, 2, memory_limit_bytes=LIMIT)
    third = limited.attempt(f"true {'x' * 140_000}\n{GREEDY}", 3, memory_limit_bytes=LIMIT)
    limited.launcher.start([first])
    limited.launcher.queue([second])
    limited.launcher.start([third])
    limited.until(lambda: len(limited.ended) == 3)
    assert [limited.ended[key].oom_kills for key in (first.key, second.key, third.key)] == [0, 1, 1]


@pytest.mark.parametrize("shell", ["", "bash -e", "bash --norc -o pipefail", f"{sys.executable} -B"])
@pytest.mark.parametrize("size", [0, 200_000])
def test_every_shell_and_folder_may_be_held(limited: Bench, tmp_path: Path, shell: str, size: int) -> None:
    """Shells with options, other programs as shells, other folders, long commands: each runs, and within its limit."""
    check = "import os, sys; sys.exit(9 if os.getcwd() == os.environ['THERE'] else 1)"
    command = check if "python" in shell else f"{sys.executable} -c {shlex.quote(check)}; exit $?"
    changes: dict[str, Any] = {"shell": shell, "working_dir": str(tmp_path), "environment": {"THERE": str(tmp_path)}}
    held = evolve(limited.attempt(command + "\n#" * bool(size) + "x" * size, **changes), memory_limit_bytes=LIMIT)
    (seen,) = limited.run(held)
    assert seen.exit_code == 9, limited.text("1.e")
    assert seen.raw["cgroup_peak_memory_bytes"]


def test_attempts_that_ask_for_nothing_have_no_group(limited: Bench, place: Cgroup) -> None:
    """They run as ever."""
    attempt = limited.attempt(f"echo >{limited.folder}/begun; sleep 100")
    limited.launcher.start([attempt])
    limited.until((limited.folder / "begun").exists)
    assert left(limited, place) == []
    limited.launcher.stop([attempt.key], force=True)
    limited.until(lambda: limited.ended)
    assert limited.ended[attempt.key].oom_kills is None


def test_groups_can_be_declined(place: Cgroup, tmp_path: Path) -> None:
    """With ``memory_cgroup off`` no group is created."""
    launcher = LocalLauncher(LocalOptions(memory_cgroup="off"), evolve(context(tmp_path), enforces_limits=True))
    bench = Bench(tmp_path, launcher)
    (seen,) = bench.run(bench.attempt(CHILD, memory_limit_bytes=LIMIT))
    launcher.close()
    assert (seen.exit_code, seen.oom_kills) == (0, None)


def test_where_groups_are_required_their_absence_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error before anything runs, with the reason and the fix; only where limits are enforced."""
    monkeypatch.setattr(cgroup_location, "own_cgroup", lambda: (1, str(tmp_path / "nowhere")))
    enforcing = evolve(context(tmp_path), enforces_limits=True)
    with pytest.raises(ConfigError, match=r"memory_cgroup .*'require', but no control group can be made in .*auto"):
        LocalLauncher(LocalOptions(memory_cgroup="require"), enforcing)
    LocalLauncher(LocalOptions(memory_cgroup="require"), context(tmp_path)).close()


def test_where_groups_cannot_be_made_attempts_run_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The resource monitor limits them, as for every executor; the runner logs the reason once."""
    caplog.set_level("INFO", "torc_framework.supervision")
    monkeypatch.setattr(cgroup_location, "own_cgroup", lambda: (1, str(tmp_path / "nowhere")))
    launcher = LocalLauncher(LocalOptions(), evolve(context(tmp_path), enforces_limits=True))
    bench = Bench(tmp_path, launcher)
    attempts = [bench.attempt("exit 3", number, memory_limit_bytes=LIMIT) for number in (1, 2)]
    seen = bench.run(*attempts)
    launcher.close()
    assert [(each.exit_code, each.oom_kills) for each in seen] == [(3, None)] * 2
    (told,) = caplog.messages
    assert told.startswith("event=no_memory_cgroups reason='no control group can be made in ")


# --- attempts without a group of their own ---------------------------------------------------------

SHARING = """
import os, select, sys
from pathlib import Path
Path(sys.argv[2], "tasks" if sys.argv[1] == "1" else "cgroup.procs").write_text("0")
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
from torc_framework.api import Attempt, AttemptEnded, AttemptKey, RunnerContext, classify_exit
folder, commands = sys.argv[3], sys.argv[4:]
launcher = LocalLauncher(LocalOptions(), RunnerContext(1, 1, folder, str(Path.cwd()), "http://127.0.0.1:1"))
launcher.start([
    Attempt(AttemptKey(i, 1), "a", command, {}, f"{folder}/{i}.o", f"{folder}/{i}.e", str(Path.cwd()))
    for i, command in enumerate(commands, 1)
])
seen = {}
while len(seen) < len(commands):
    select.select([launcher.wait_fd()], [], [], 1)
    seen |= {news.key.job_id: news.observation for news in launcher.poll() if isinstance(news, AttemptEnded)}
for _, one in sorted(seen.items()):
    verdict = classify_exit(one)
    kills = one.raw.get("shared_oom_kills"), one.raw.get("shared_attempts")
    print(verdict.exit_class.value, verdict.confidence, *kills)
launcher.close()
"""


@pytest.fixture
def crowded(place: Cgroup, tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Run attempts in one group of 200 MB that they share with their runner; return the verdicts."""
    group = place[0], f"{place[1]}/torc_test_{os.getpid()}_{tmp_path.name}"
    cgroups.create(group, 200 << 20)

    def call(*commands: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", SHARING, str(group[0]), group[1], str(tmp_path), *commands],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    yield call
    eventually(lambda: cgroups.remove(group, None, kill=True), "the group is empty", patience_s=10)


def test_a_kill_in_the_shared_group_is_evidence(crowded: Callable[..., list[str]]) -> None:
    """Less sure than a count of one's own."""
    assert crowded(GREEDY) == ["oom 0.8 1 1"]
    assert crowded(f"{CHILD}; exit $?") == ["oom 0.8 1 1"]


def test_a_kill_in_the_shared_group_is_taken_once(crowded: Callable[..., list[str]], tmp_path: Path) -> None:
    """An attempt that another process kills afterwards has not run out of memory."""
    victim = f"echo $$ >{tmp_path}/pid; {GREEDY}"
    other = f"until [ -s {tmp_path}/pid ] && ! kill -0 $(cat {tmp_path}/pid); do sleep 0.01; done; kill -9 $$"
    assert crowded(victim, other) == ["oom 0.6 1 2", "signaled 1.0 None None"]


def test_a_failure_without_a_kill_is_not_blamed_on_the_shared_group(crowded: Callable[..., list[str]]) -> None:
    """Also 137, which a program may return for reasons of its own."""
    assert crowded("exit 137") == ["user_error 1.0 None None"]


# --- after a crash ---------------------------------------------------------------------------------

VICTIM = """
import json, select, sys
from pathlib import Path
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
from torc_framework.api import Attempt, AttemptKey, RunnerContext
folder = sys.argv[1]
where = RunnerContext(1, 1, folder, str(Path.cwd()), "http://127.0.0.1:1", enforces_limits=True)
launcher = LocalLauncher(LocalOptions(), where)
launcher.start([
    Attempt(AttemptKey(i, 1), "a", command, {}, f"{folder}/{i}.o", f"{folder}/{i}.e", str(Path.cwd()),
            memory_limit_bytes=100 << 20)
    for i, command in enumerate(sys.argv[2:], 1)
])
print(json.dumps(launcher.state()), flush=True)
while True:
    select.select([launcher.wait_fd()], [], [])
    launcher.poll()
"""


class RunnerProcess:
    """A runner in a process of its own, to be killed; ``supervisor`` is the pid of the parent of its jobs."""

    def __init__(self, folder: Path, *commands: str) -> None:
        arguments = [sys.executable, "-c", VICTIM, str(folder), *commands]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.state: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.reaper = child_of(self.process.pid)
        self.supervisor = child_of(self.reaper)

    def kill(self, *, with_supervisor: bool = False) -> None:
        """Kill it as a node does that runs out of memory."""
        self.process.kill()
        self.process.communicate()
        if with_supervisor:
            os.kill(self.reaper, signal.SIGKILL)
            os.kill(self.supervisor, signal.SIGKILL)

    def groups(self, place: Cgroup) -> list[Path]:
        """Return the existing groups of its attempts."""
        return [*Path(place[1]).glob(f"torc_{Path(self.state['journal']).stem}.*")]


@pytest.mark.crash
def test_a_killed_runners_attempts_are_still_held(place: Cgroup, bench: Bench) -> None:
    """The next runner gets the kernel's count, and the group is removed."""
    wait = f"echo x >{bench.folder}/begun; until [ -e {bench.folder}/go ]; do sleep 0.01; done"
    victim = RunnerProcess(bench.folder, f"{wait}; {GREEDY}")
    bench.wait_for_file("begun")
    victim.kill()
    adoption = bench.launcher.adopt(victim.state, [AttemptKey(1, 1)])
    assert adoption.adopted == (AttemptKey(1, 1),)
    (bench.folder / "go").touch()
    bench.until(lambda: bench.ended)
    (seen,) = bench.ended.values()
    assert (seen.signal, seen.oom_kills) == (signal.SIGKILL, 1)
    bench.until(lambda: not victim.groups(place))
    bench.launcher.forget(victim.state)


@pytest.mark.crash
def test_groups_of_dead_runners_are_removed_by_the_next_runner(place: Cgroup, bench: Bench) -> None:
    """Runner and supervisor were killed; the next runner kills the attempt that is not among its own."""
    stays = f"echo $$ >{bench.folder}/pid; until [ -e {bench.folder}/go ]; do sleep 0.01; done"
    victim = RunnerProcess(bench.folder, stays, f"setsid sleep 100 & echo $! >{bench.folder}/stray; sleep 100")
    bench.wait_for_file("pid")
    stray = int(bench.wait_for_file("stray"))
    victim.kill(with_supervisor=True)
    assert len(victim.groups(place)) == 2
    bench.launcher.adopt(victim.state, [AttemptKey(1, 1)])
    bench.until(lambda: is_gone(stray))
    (bench.folder / "go").touch()
    bench.until(lambda: bench.ended)
    assert bench.ended[AttemptKey(1, 1)].lost
    bench.launcher.forget(victim.state)
    bench.until(lambda: not victim.groups(place))
