"""What a machine offers: limits of control groups on CPU time and memory."""

import os
from pathlib import Path

import pytest

from torc_framework.supervision.machine import memory_bytes, usable_cpus, visible_gpus

MIB = 1 << 20
V1 = "33 24 0:29 / {0}/memory rw - cgroup cgroup rw,memory\n32 24 0:28 / {0}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "31 24 0:27 / {0} rw,nosuid - cgroup2 cgroup2 rw\n"
OWN_V1 = "4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n"
PERIOD = {"cpu/a/cpu.cfs_period_us": "100000"}
MOST = 2**63 - 4096
"""What the kernel shows where version 1 has no limit."""
UNLIMITED = (len(os.sched_getaffinity(0)), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def proc(folder: Path, mounts: str, own: str, files: dict[str, str]) -> Path:
    """Return a folder like /proc/self of a process in the groups ``own``, with these files in the groups."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "mountinfo").write_text(mounts.format(folder))
    (folder / "cgroup").write_text(own)
    return folder


@pytest.mark.parametrize(
    ("mounts", "own", "files", "expected"),
    [
        (V2, "0::/a/b\n", {"a/b/cpu.max": "50000 100000", "a/b/memory.max": f"{64 * MIB}"}, (1, 64 * MIB)),
        (V2, "0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "9 10", "a/memory.max": "4096"}, (1, 4096)),
        (V2, "0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, UNLIMITED),
        (V2, "0::/a\n", {"a/cpu.max": "100000000 100000", "a/memory.max": str(2**60)}, UNLIMITED),
        (V2, "0::/a\n", {"a/cpu.max": "", "a/memory.max": "much"}, UNLIMITED),
        (V1, OWN_V1, {**PERIOD, "memory/a/memory.limit_in_bytes": "4096", "cpu/a/cpu.cfs_quota_us": "1"}, (1, 4096)),
        (
            V1,
            OWN_V1,
            {**PERIOD, "memory/a/memory.limit_in_bytes": str(MOST), "cpu/a/cpu.cfs_quota_us": "-1"},
            UNLIMITED,
        ),
        ("", "", {}, UNLIMITED),
    ],
)
def test_limits_of_control_groups_count(
    tmp_path: Path, mounts: str, own: str, files: dict[str, str], expected: tuple[int, int]
) -> None:
    """Of the own group and of those above it, in both versions; what cannot be read is no limit."""
    there = proc(tmp_path, mounts, own, files)
    assert (usable_cpus(there), memory_bytes(there)) == expected


def test_a_quota_is_rounded_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time of one and a half CPUs is two CPUs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))
    assert usable_cpus(proc(tmp_path, V2, "0::/\n", {"cpu.max": "150000 100000"})) == 2


def test_gpus_are_those_of_the_environment_or_of_nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that fails lists none."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, 3,")
    assert visible_gpus() == ["GPU-a", "3"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: x)'; echo 'GPU 1: B (UUID: y)'\n")
    program.chmod(0o755)
    assert visible_gpus() == ["0", "1"]
    program.write_text("#!/bin/sh\necho 'GPU 0: A'; exit 9\n")
    assert visible_gpus() == []
