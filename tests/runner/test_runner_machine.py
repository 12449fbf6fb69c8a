"""What a machine offers, which runners are dead, and the spool file."""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_disk import MISSING, mounted

from torc_framework.models.exchange import EndedReport, RetryRequest
from torc_framework.runner.connection.report_spool import ReportSpool, read_spool
from torc_framework.runner.process import machine
from torc_framework.runner.process.identity import RunnerIdentity
from torc_framework.runner.process.settings import RunnerSettings
from torc_framework.system import private_files
from torc_framework.system.process_identity import is_gone


def settings(**changes: Any) -> RunnerSettings:
    """Return settings of no particular runner."""
    return RunnerSettings(url="http://127.0.0.1:1", workflow_id=1, **changes)


def refuse(line: bytes) -> None:
    """Fail the test for a line that cannot be read."""
    pytest.fail(repr(line))


def test_offers_what_it_may_use() -> None:
    """The CPUs of its affinity mask, the memory of the machine; what is asked for instead wins."""
    offer = machine.offered(settings(), None, [])
    assert offer.num_cpus == len(os.sched_getaffinity(0))
    assert 2**28 < offer.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    asked = machine.offered(settings(num_cpus=3, memory_gb=0.5, num_nodes=2), None, ["0"])
    assert (asked.num_cpus, asked.memory_bytes, asked.num_gpus, asked.num_nodes) == (3, 2**29, 1, 2)


@pytest.mark.parametrize(
    ("visible", "count", "names"),
    [
        (None, 3, ["0", "1", "2"]),
        (None, 0, []),
        ("4,7", None, ["4", "7"]),
        ("4,7", 1, ["4"]),
        ("4,7", 3, ["0", "1", "2"]),
        ("", None, []),
        ("GPU-8f1c,MIG-2", 2, ["GPU-8f1c", "MIG-2"]),
    ],
)
def test_gpu_names(monkeypatch: pytest.MonkeyPatch, visible: str | None, count: int | None, names: list[str]) -> None:
    """Those that this process may see, as many as asked for."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.gpu_names(count, None) == names


def test_gpus_are_listed_by_the_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With nvidia-smi on the path; a failing one means none."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\necho "GPU 0: A (UUID: x)"\necho "GPU 1: B (UUID: y)"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert machine.gpu_names(None, None) == ["0", "1"]
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert machine.gpu_names(None, None) == []


BRIEF = """
import json, sys
from pathlib import Path
from torc_framework.runner.process.identity import RunnerIdentity
print(json.dumps(RunnerIdentity(Path(sys.argv[1])).describe()), flush=True)
sys.stdin.read()
"""


def test_a_living_runner_is_not_gone(tmp_path: Path) -> None:
    """Neither this process nor another; nor one that cannot be judged."""
    import json

    own = RunnerIdentity(tmp_path)
    described = own.describe()
    assert not is_gone(described)
    with subprocess.Popen(
        [sys.executable, "-c", BRIEF, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        other = json.loads(process.stdout.readline())
        assert not is_gone(other)
        assert not is_gone({**other, "pid": 2**22 + 1}), "its lock is held, so its pid as seen from here does not count"
        process.kill()
        process.wait()
        assert is_gone(other)
        assert is_gone({**other, "boot_id": "another"}), "the machine was started again"
        assert not is_gone({**other, "machine_id": "of a machine with the same name"})
    assert not is_gone({})
    own.close()
    assert is_gone({**described, "pid_start": 1})


def test_a_runner_begins_while_another_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other removes the folder, which is empty just then."""
    other, opened = RunnerIdentity(tmp_path), private_files.open_private

    def open_after_its_end(path: Path, flags: int) -> int:
        monkeypatch.undo()
        other.close()
        return opened(path, flags)

    monkeypatch.setattr(private_files, "open_private", open_after_its_end)
    own = RunnerIdentity(tmp_path)
    assert Path(own.describe()["lock"]).exists()
    own.close()


def test_a_folder_that_goes_while_it_is_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Path.mkdir` raises FileExistsError if another process removes the folder between its two steps."""
    made = Path.mkdir

    def find_it_and_lose_it(path: Path, *_: object, **__: object) -> None:
        monkeypatch.undo()
        made(path)
        path.rmdir()
        raise FileExistsError(path)

    monkeypatch.setattr(Path, "mkdir", find_it_and_lose_it)
    os.close(private_files.create_private(tmp_path / "folder" / "file", os.O_RDWR))


def report(number: int) -> EndedReport:
    """Return a report with everything in it."""
    return EndedReport(
        number, 1, "failed", 3, 0.5, 1.5, 3, observation={"executor": "x"}, file_mtimes={4: 2.5}, retry=RetryRequest(3)
    )


def test_spool_keeps_what_is_not_acknowledged(tmp_path: Path) -> None:
    """And nothing else; a half-written line is not read."""
    path = tmp_path / "folder" / "ends"
    spool = ReportSpool(path)
    assert read_spool(path, refuse) == []
    spool.add(report(1))
    spool.add(report(2))
    assert read_spool(path, refuse) == [report(1), report(2)]
    spool.acknowledge([report(1)])
    assert read_spool(path, refuse) == [report(1), report(2)], "the file is emptied when all are there"
    spool.acknowledge([report(2)])
    assert read_spool(path, refuse) == []
    spool.add(report(3))
    with path.open("ab") as file:
        file.write(b'{"job_id": 4, "att')
    assert read_spool(path, refuse) == [report(3)]
    spool.close()
    assert path.exists()
    spool = ReportSpool(path)
    spool.add(report(5))
    spool.acknowledge([report(5)])
    spool.close()
    assert not path.exists()


@given(st.integers(0, 2), st.integers(0, 400), st.binary(max_size=8))
def test_a_garbled_spool_gives_what_can_be_read(number: int, at: int, garbage: bytes) -> None:
    """If it is cut or overwritten anywhere, the other reports are read, and each unreadable line is reported."""
    lines = [msgspec.json.encode(report(each)) for each in (1, 2, 3)]
    line = lines[number]
    at = min(at, len(line))
    lines[number] = line[:at] + garbage + line[at + len(garbage) if garbage else len(line) :]
    told: list[bytes] = []
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join(lines) + b"\n")
        file.flush()
        found = read_spool(Path(file.name), told.append)
    others = [report(each) for each in (1, 2, 3) if each != number + 1]
    assert [each for each in found if each in others] == others
    assert len(found) + len(told) == len(lines) + lines[number].count(b"\n")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    with mounted(tmp_path / "disk", "64k") as folder:
        yield folder or pytest.skip(MISSING)


def test_a_report_is_spooled_whole_or_not_at_all(small_disk: Path) -> None:
    """On a full disk the file ends with the last whole report; once there is room, the next one follows it."""
    spool = ReportSpool(small_disk / "x.ends")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(40 << 10))
    kept = itertools.count(1)
    with pytest.raises(OSError, match="No space left"):
        any(map(spool.add, map(report, kept)))
    ballast.unlink()
    spool.add(report(10_000))
    assert read_spool(spool.path, refuse) == [report(number) for number in (*range(1, next(kept) - 1), 10_000)]
    spool.close()
