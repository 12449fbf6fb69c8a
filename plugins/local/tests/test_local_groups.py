"""Where control groups can be made, by what the kernel writes about mounts and groups."""

from pathlib import Path

import pytest
from torc_local import groups

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
    found = groups.home(system(tmp_path, mounts, own, there))
    assert found == (expected and (expected[0], str(tmp_path / expected[1])))


def test_a_system_without_groups_has_no_home(tmp_path: Path) -> None:
    """Nor a place; the message says what to do."""
    assert groups.home(tmp_path) is None
    with pytest.raises(groups.Unavailable, match="no control groups for memory") as caught:
        groups.place(None)
    assert "mount" in caught.value.fix


def test_version_2_needs_a_group_above_that_hands_memory_on(tmp_path: Path) -> None:
    """The group of a process may hand nothing on itself."""
    scope = tmp_path / "app.slice" / "run.scope"
    scope.mkdir(parents=True)
    for folder in (tmp_path, scope.parent, scope):
        (folder / "cgroup.subtree_control").write_text("cpu pids\n")
    with pytest.raises(groups.Unavailable, match="hands memory on to this user") as caught:
        groups.place((2, str(scope)))
    assert "systemd-run" in caught.value.fix


def test_leftovers_are_found_where_they_can_have_been_made(tmp_path: Path) -> None:
    """Beside the own group or above it in version 2, in it in version 1; names are taken as they are."""
    scope = tmp_path / "app.slice" / "run.scope"
    for folder in (scope, scope.parent / "torc_a[1].j1_a1", scope / "torc_a[1].j2_a1", scope / "torc_a1.j3_a1"):
        folder.mkdir(parents=True)
    assert groups.named((1, str(scope)), "torc_a[1].") == [(1, str(scope / "torc_a[1].j2_a1"))]
    assert {Path(folder).name for _, folder in groups.named((2, str(scope)), "torc_a[1].")} == {
        "torc_a[1].j1_a1",
        "torc_a[1].j2_a1",
    }
