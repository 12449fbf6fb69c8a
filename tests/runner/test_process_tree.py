"""What the monitor sees of real process trees."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import eventually

from torc_framework.runner.monitor import procfs
from torc_framework.runner.monitor.process_tree import ProcessTree, TreeUsage

MIB = 1 << 20
Start = Callable[[str], "subprocess.Popen[str]"]

FORKS = """
import os, sys
shared = bytearray(b"x") * ({shared} << 20)
reader, writer = os.pipe()
for _ in range(50):
    if os.fork() == 0:
        own = bytearray(b"x") * ({own} << 20)
        os.write(writer, b".")
        sys.stdin.read()
        os._exit(0)
done = 0
while done < 50:
    done += len(os.read(reader, 50))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python code that prints ``ready`` and then reads its input, which ends with the test."""
    started = []

    def begin(code: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in started:
        process.communicate()


def test_fifty_children_are_counted(start: Start) -> None:
    """Each process and its own memory, once."""
    moment = ProcessTree([start(FORKS.format(shared=0, own=4)).pid]).measure()
    assert moment is not None
    assert moment.processes == 51
    assert 200 * MIB < moment.memory_bytes < 400 * MIB


def test_memory_that_processes_share_counts_once(start: Start) -> None:
    """The plain sum over 51 processes would be more than 5 GiB."""
    moment = ProcessTree([start(FORKS.format(shared=100, own=0)).pid]).measure()
    assert moment is not None
    assert moment.processes == 51
    assert 100 * MIB < moment.memory_bytes < 300 * MIB


def test_children_in_sessions_of_their_own_and_of_threads_are_found(start: Start) -> None:
    code = """
import subprocess, sys, threading
children = [subprocess.Popen(["cat"], stdin=0, stdout=2, start_new_session=True)]
def begin():
    children.append(subprocess.Popen(["cat"], stdin=0, stdout=2))
    ready.set()
    never.wait()
ready, never = threading.Event(), threading.Event()
threading.Thread(target=begin, daemon=True).start()
ready.wait()
print("ready", flush=True)
sys.stdin.read()
never.set()
"""
    moment = ProcessTree([start(code).pid]).measure()
    assert moment is not None
    assert moment.processes == 3


def test_a_process_once_seen_is_followed_out_of_the_tree(start: Start) -> None:
    """Its parent ends, so that it becomes another's child; it is of this tree all the same, and so are its children."""
    code = """
import os, sys, subprocess
line = sys.stdin.readline
middle = subprocess.Popen([sys.executable, "-c", '''
import os, sys, subprocess
leaf = subprocess.Popen(["sleep", "100"], start_new_session=True, stdout=2)
print(leaf.pid, flush=True)
sys.stdin.readline()
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
leaf = int(middle.stdout.readline())
print("ready", flush=True)
line()
middle.communicate("go")
print("gone", flush=True)
line()
os.kill(leaf, 9)
"""
    process = start(code)
    assert process.stdin is not None
    assert process.stdout is not None
    tree = ProcessTree([process.pid])
    before = tree.measure()
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "gone\n"
    after = tree.measure()
    assert (before and before.processes, after and after.processes) == (3, 2)
    process.stdin.write("\n")
    process.stdin.flush()


def test_cpu_time_of_children_that_ended_is_kept(start: Start) -> None:
    code = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "sum(range(5 * 10**6))"], check=True)
print("ready", flush=True)
sys.stdin.read()
"""
    process = start(code)
    moment = ProcessTree([process.pid]).measure()
    assert moment is not None
    own = procfs.read_process(process.pid)
    assert own is not None
    assert moment.cpu_s == own.cpu_ticks / procfs.TICKS_PER_S > 0.02


def test_what_has_ended_has_no_moment() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessTree([process.pid]).measure() is None, "a zombie uses nothing"
    assert ProcessTree([process.pid]).measure() is None
    assert ProcessTree([process.pid]).cgroup_peak_bytes() is None


def test_gpu_memory_of_the_trees_processes_is_added(start: Start) -> None:
    process = start("import sys; print('ready', flush=True); sys.stdin.read()")
    moment = ProcessTree([process.pid]).measure({process.pid: 5, os.getpid(): 7})
    assert moment is not None
    assert moment.gpu_memory_bytes == 5


def test_a_control_group_of_ones_own_is_asked_for_its_peak(start: Start, tmp_path: Path) -> None:
    """Not that of the process that began it."""
    folder = next((f for f in map(Path, ("/sys/fs/cgroup/memory", "/sys/fs/cgroup")) if f.is_dir()), tmp_path)
    group = folder / f"torc-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("control groups cannot be made here")
    try:
        peaks = [group / name for name in ("memory.max_usage_in_bytes", "memory.peak") if (group / name).exists()]
        if not peaks or group.parent.joinpath("cgroup.controllers").exists():
            pytest.skip("no memory peak in a group that is made by hand")
        code = f"""
import os, sys
open("{group}/cgroup.procs", "w").write(str(os.getpid()))
x = bytearray(b"x") * (50 << 20)
print("ready", flush=True)
sys.stdin.read()
"""
        process = start(code)
        assert ProcessTree([os.getpid()]).cgroup_peak_bytes() is None
        peak = ProcessTree([process.pid]).cgroup_peak_bytes()
        assert peak is not None
        assert 50 * MIB < peak < 200 * MIB
        process.communicate()
    finally:
        group.rmdir()


@pytest.mark.parametrize(
    ("cgroups", "expected"),
    [
        ("0::/a/b\n", ["/sys/fs/cgroup/a/b/memory.peak"]),
        ("4:memory:/x\n0::/\n", ["/sys/fs/cgroup/memory/x/memory.max_usage_in_bytes", "/sys/fs/cgroup/memory.peak"]),
        ("3:cpu,memory:/y:z\n", ["/sys/fs/cgroup/memory/y:z/memory.max_usage_in_bytes"]),
        ("2:cpu:/\n", []),
        ("", []),
    ],
)
def test_peaks_of_both_versions_of_control_groups(cgroups: str, expected: list[str]) -> None:
    assert [str(path) for path in procfs.peak_files(cgroups)] == expected


def test_odd_names_of_programs_do_no_harm(tmp_path: Path) -> None:
    """The kernel does not escape the name."""
    program = tmp_path / "a) R 1 (b c"
    program.symlink_to("/bin/cat")
    with subprocess.Popen([program], stdin=subprocess.PIPE) as process:
        found = procfs.read_process(process.pid)
        assert found is not None
        assert found.parent == os.getpid()
        process.communicate()


def test_a_process_is_not_mistaken_for_a_later_one_of_its_pid(start: Start) -> None:
    """The descriptors that stay open are those of the process that has ended."""
    process = start("import sys; print('ready', flush=True); sys.stdin.read()")
    followed = procfs.FollowedProcess(process.pid)
    assert [followed.refresh(), followed.refresh()] == [True, False]
    before = followed.process
    assert before is not None
    process.communicate()
    assert followed.refresh()
    assert followed.process is None
    assert not followed.children


def test_children_of_a_process_that_had_several_threads_for_a_while(start: Start) -> None:
    """A child that began and ended meanwhile is not taken for one that lives."""
    code = """
import subprocess, sys, threading
print("ready", flush=True)
for line in sys.stdin:
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    child = subprocess.Popen(["sleep", "100"], stdout=2)
    sys.stdin.readline()
    child.kill()
    child.wait()
    go.set()
    thread.join()
"""
    process = start(code)
    followed = procfs.FollowedProcess(process.pid)

    def seen() -> tuple[int, int]:
        followed.refresh()
        return followed.process.threads if followed.process else 0, len(followed.children)

    assert process.stdin is not None
    for _ in range(2):
        eventually(lambda: seen() == (1, 0))
        process.stdin.write("go on\n")
        process.stdin.flush()
        eventually(lambda: seen() == (2, 1))
        process.stdin.write("end\n")
        process.stdin.flush()
    eventually(lambda: seen() == (1, 0))


def test_an_idle_tree_is_not_summed_anew(start: Start) -> None:
    """Its usage is the same object, until one of its processes has run."""
    process = start("import sys; print('ready', flush=True); kept = [sys.stdin.readline() * 3, *sys.stdin]")
    tree = ProcessTree([process.pid])
    eventually(lambda: tree.measure() is tree.measure())
    before = tree.measure()
    assert process.stdin is not None
    process.stdin.write("x" * (8 * MIB) + "\n")
    process.stdin.flush()
    eventually(lambda: used_more(before, tree.measure()))


def used_more(before: TreeUsage | None, after: TreeUsage | None) -> bool:
    """Return whether a tree has more memory than before."""
    return before is not None and after is not None and after.memory_bytes > before.memory_bytes + 16 * MIB


@pytest.mark.parametrize("part", [procfs.KEPT_DESCRIPTORS, 0.0])
def test_children_that_come_and_go_are_counted(start: Start, monkeypatch: pytest.MonkeyPatch, part: float) -> None:
    """Also where so many files are open that none stays open."""
    monkeypatch.setattr(procfs, "KEPT_DESCRIPTORS", part)
    code = """
import subprocess, sys
child = None
print("ready", flush=True)
for line in sys.stdin:
    if child is None:
        child = subprocess.Popen(["sleep", "100"], stdout=2)
    else:
        child.kill()
        child.wait()
        child = None
    print("done", flush=True)
if child:
    child.kill()
"""
    process = start(code)
    assert process.stdin is not None
    assert process.stdout is not None
    tree = ProcessTree([process.pid])
    counts = []
    for _ in range(4):
        moment = tree.measure()
        counts.append(moment and moment.processes)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
    assert counts == [1, 2, 1, 2]


def test_descriptors_are_closed_with_the_tree(start: Start) -> None:
    """A runner follows many attempts one after the other."""
    process = start(FORKS.format(shared=0, own=0))
    before = len(list(Path("/proc/self/fd").iterdir()))
    tree = ProcessTree([process.pid])
    tree.measure()
    kept = len(list(Path("/proc/self/fd").iterdir())) - before
    del tree
    assert kept == 2 * 51
    assert len(list(Path("/proc/self/fd").iterdir())) == before
