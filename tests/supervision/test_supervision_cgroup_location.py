"""Location of control groups by the kernel's files on mounts and groups."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import eventually

from torc_framework.supervision import cgroup_location
from torc_framework.supervision.supervisor import cgroups

V1 = "33 24 0:29 / {0}/memory rw,relatime - cgroup cgroup rw,memory\n32 24 0:28 / {0}/cpu rw - cgroup cgroup rw,cpu\n"
V2 = "31 24 0:27 / {0} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
CONTAINER = "33 24 0:29 /docker/abc {0}/memory ro,relatime - cgroup cgroup rw,memory\n"
HYBRID = V1 + "34 24 0:30 / {0}/unified rw shared:9 - cgroup2 cgroup2 rw\n"


def system(folder: Path, mounts: str, own: str, *paths: str) -> Path:
    """Return a folder like /proc/self of a process in the groups ``own``; ``paths`` are the groups that there are."""
    for path in paths:
        (folder / path).mkdir(parents=True)
    (folder / "mountinfo").write_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n" + mounts.format(folder))
    (folder / "cgroup").write_text(own)
    return folder


@pytest.mark.parametrize(
    ("mounts", "own", "there", "expected"),
    [
        (V1, "4:memory:/a/b\n1:cpu:/\n0::/\n", "memory/a/b", (1, "memory/a/b")),
        (V1, "4:cpu,memory:/a:b\n", "memory/a:b", (1, "memory/a:b")),
        (V2, "0::/user.slice/x.scope\n", "user.slice/x.scope", (2, "user.slice/x.scope")),
        (CONTAINER, "4:memory:/docker/abc/in\n", "memory/in", (1, "memory/in")),
        (CONTAINER, "4:memory:/\n", "memory", (1, "memory")),
        (HYBRID, "4:memory:/a\n0::/b\n", "memory/a", (1, "memory/a")),
        (HYBRID, "4:memory:/a\n0::/b\n", "unified/b", None),
        (V2, "0::/gone\n", "elsewhere", None),
        ("", "0::/\n", "x", None),
    ],
)
def test_the_group_that_accounts_for_this_process_is_found(
    tmp_path: Path, mounts: str, own: str, there: str, expected: tuple[int, str] | None
) -> None:
    """In both versions, beside each other, and where a container shows a part only."""
    found = cgroup_location.own_cgroup(system(tmp_path, mounts, own, there))
    assert found == (expected and (expected[0], str(tmp_path / expected[1])))


def test_a_system_without_groups_has_no_home(tmp_path: Path) -> None:
    """There is no location either; the message has advice."""
    assert cgroup_location.own_cgroup(tmp_path) is None
    with pytest.raises(cgroup_location.CgroupsUnavailable, match="no control groups for memory") as caught:
        cgroup_location.find_parent(None)
    assert "mount" in caught.value.fix


def test_version_2_needs_a_group_above_that_hands_memory_on(tmp_path: Path) -> None:
    """A group with processes cannot delegate controllers."""
    scope = tmp_path / "app.slice" / "run.scope"
    scope.mkdir(parents=True)
    for folder in (tmp_path, scope.parent, scope):
        (folder / "cgroup.subtree_control").write_text("cpu pids\n")
    with pytest.raises(cgroup_location.CgroupsUnavailable, match="delegates memory to this user") as caught:
        cgroup_location.find_parent((2, str(scope)))
    assert "systemd-run" in caught.value.fix


def test_a_shell_enters_a_group_of_any_name_first(tmp_path: Path) -> None:
    """Whether it is given a command or a file with one."""
    group = 2, str(tmp_path / "it's $HOME")
    Path(group[1]).mkdir()
    script = tmp_path / "script"
    script.write_text("echo script")
    for arguments, expected in ((["-c", "echo command"], "command"), ([str(script)], "script")):
        done = subprocess.run(
            cgroups.run_inside(group, ["/bin/sh", *arguments]), capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{expected}\n"
        assert Path(group[1], "cgroup.procs").read_text() == "0\n"


def test_leftovers_are_found_where_they_can_have_been_made(tmp_path: Path) -> None:
    """Beside the own group or above it in version 2, in it in version 1; names are taken as they are."""
    scope = tmp_path / "app.slice" / "run.scope"
    for folder in (scope, scope.parent / "torc_a[1].j1_a1", scope / "torc_a[1].j2_a1", scope / "torc_a1.j3_a1"):
        folder.mkdir(parents=True)
    assert cgroup_location.find_by_prefix((1, str(scope)), "torc_a[1].") == [(1, str(scope / "torc_a[1].j2_a1"))]
    assert {Path(folder).name for _, folder in cgroup_location.find_by_prefix((2, str(scope)), "torc_a[1].")} == {
        "torc_a[1].j1_a1",
        "torc_a[1].j2_a1",
    }


@pytest.fixture
def unified() -> Iterator[cgroups.Cgroup]:
    """A group of version 2 that the kernel really has, also where version 1 has the memory."""
    rows = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line]
    folder = Path(rows[0][4] if rows else "/nowhere", f"torc_test_{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of version 2 can be made here: {error.strerror}")
    yield 2, str(folder)
    if folder.exists():
        folder.rmdir()


@pytest.mark.parametrize("kill", [False, True])
def test_processes_enter_and_leave_groups_of_version_2(unified: cgroups.Cgroup, kill: bool) -> None:
    """The shell joins the group first; remaining processes are killed, or moved to another group."""
    arguments = cgroups.run_inside(unified, ["/bin/sh", "-c", "cat /proc/self/cgroup; exec sleep 100"])
    home = 2, str(Path(unified[1]).parent)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("0::") and line.strip().endswith(Path(unified[1]).name) for line in lines)
        if not kill:
            eventually(lambda: cgroups.remove(unified, home, kill=False), "`cat` may be ending, which takes a moment")
            assert process.poll() is None
            process.kill()
        else:
            cgroups.remove(unified, home, kill=True)
            assert process.wait() == -signal.SIGKILL
            eventually(lambda: cgroups.remove(unified, home, kill=True), "the kernel lets go of it a moment later")
