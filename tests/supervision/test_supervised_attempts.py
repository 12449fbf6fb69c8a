"""Attempts of one launcher: what it reports of them, and what becomes of them when others follow it on its journal."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from local_bench import Bench
from small_disk import MISSING, mounted
from supervised_bench import Start, keys
from waiting import eventually

from torc_framework.api import AttemptKey
from torc_framework.api.supervision import SupervisedAttempts, SupervisionError
from torc_framework.supervision import attempts, supervisor


def wait_for(*paths: Path) -> None:
    """Wait until files have a line."""
    eventually(lambda: all(path.exists() and path.read_text().endswith("\n") for path in paths), paths)


def test_objects_on_one_path_form_a_chain(start: Start, tmp_path: Path) -> None:
    """Three of them: abandoned, with a killed supervisor, the last; each end is reported by the last one, once."""
    up, gate = [tmp_path / f"up{number}" for number in range(5)], tmp_path / "gate"
    wait = f"while ! [ -e {gate} ]; do sleep 0.02; done"
    first = start()
    first.run((1, "exit 11"), (2, f"echo >{up[2]}; {wait}; exit 12"), (3, f"echo >{up[3]}; exec sleep 100"))
    wait_for(up[2], up[3])
    first.ends(1)
    first.queue([first.command(9, "exit 9", lane=9)])
    first.abandon()
    second = start()
    assert second.adopt(second.state(), keys(2, 3)) == (tuple(keys(2, 3)), (), ())
    second.run((4, f"echo >{up[4]}; {wait}; exit 14"))
    wait_for(up[4])
    os.kill(second.supervisor(), signal.SIGKILL)
    eventually(lambda: second.poll() is not None and len(second._reapers) == 2, "the supervisor is replaced")
    second.run((5, "exit 15"))
    second.ends(5)
    second.abandon()
    third = start()
    assert third.journal_names() == ["here.2.journal", "here.3.journal", "here.4.journal", "here.journal"]
    assert third.adopt(third.state(), keys(1, 2, 4, 5, 9)) == (tuple(keys(1, 2, 4, 5)), tuple(keys(9)), ())
    third.run((6, "exit 16"))
    assert third.ends(1, 5, 6) == [11, 15, 16]
    assert third.pids(keys(2, 4)).keys() == {*keys(2, 4)}
    third.forget(third.state())
    assert len(third.journal_names()) == 4, "the own chain stays until the end"
    gate.touch()
    assert third.ends(2, 4) == [12, 14]
    assert 3 not in third.seen, "an attempt that was not asked for was killed"
    third.close()
    assert not third.state_folder().exists()


def test_another_object_forgets_the_whole_chain(start: Start) -> None:
    """And nothing of a chain whose name begins alike."""
    for name in ("here", "here", "here2", "here.x"):
        each = start(name=name)
        each.run((1, "exit 1"))
        each.ends(1)
        each.abandon()
    last = start(name="last")
    state = last.state() | {"journal": str(last.state_folder() / "here.journal")}
    assert last.adopt(state, keys(1, 2)) == (tuple(keys(1)), tuple(keys(2)), ())
    assert last.ends(1) == [1]
    last.forget(state)
    assert last.journal_names() == ["here.x.journal", "here2.journal", "last.journal"]


def test_many_predecessors_cost_no_descriptors(start: Start) -> None:
    """Only journals in which something is followed stay open."""
    for number in range(1, 11):
        each = start()
        each.run((number, "exit 3"))
        each.ends(number)
        each.abandon()
    before = len([*Path("/proc/self/fd").iterdir()])
    last = start()
    assert last.adopt(last.state(), keys(*range(1, 12))).never_started == tuple(keys(11))
    assert last.ends(*range(1, 11)) == [3] * 10
    assert len([*Path("/proc/self/fd").iterdir()]) <= before + 6


@pytest.mark.parametrize("what", ["here.journal", "."])
def test_what_a_removed_journal_contained_is_not_run_again(start: Start, tmp_path: Path, what: str) -> None:
    """With a journal missing, it is not known whether an attempt was started; those of other journals are known."""
    first = start()
    first.run((1, f"echo >{tmp_path}/up; sleep 0.3"))
    wait_for(tmp_path / "up")
    first.abandon()
    second = start()
    second.run((2, "exit 2"))
    second.ends(2)
    second.abandon()
    removed = second.state_folder() / what
    for path in [removed] if removed.is_file() else [*removed.iterdir()]:
        path.unlink()
    third = start()
    found = third.adopt(third.state(), keys(1, 2, 3))
    known = keys(2) if removed.name == "here.journal" else []
    assert found == (tuple(known), (), tuple(key for key in keys(1, 2, 3) if key not in known))


def test_a_state_folder_that_is_removed_stops_nothing(start: Start) -> None:
    """Attempts go on, and others start, with a replaced supervisor too."""
    first = start()
    first.run((1, f"rm -r {first.state_folder()}; sleep 0.3; exit 1"))
    eventually(lambda: not first.state_folder().exists())
    first.run((2, "exit 2"), (3, "#" + "x" * 200_000 + "\nexit 3"))
    os.kill(first.supervisor(), signal.SIGKILL)
    first.run((4, "exit 4"))
    assert first.ends(1, 2, 3, 4) == [1, 2, 3, 4]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 KiB."""
    with mounted(tmp_path / "disk", "256k") as folder:
        yield folder or pytest.skip(MISSING)


def test_journals_may_lie_on_another_file_system(start: Start, disk: Path, tmp_path: Path) -> None:
    """Logs, folders and journals need not be on the same one."""
    first = start(disk)
    first.run((1, "exit 1"), stdout=str(tmp_path / "1.o"), working_dir=str(tmp_path))
    assert first.ends(1) == [1]
    first.abandon()
    second = start(disk)
    assert second.adopt(second.state(), keys(1)).adopted == tuple(keys(1))
    assert second.ends(1) == [1]


def test_a_full_disk_is_named(start: Start, disk: Path) -> None:
    """By the attempt that cannot be recorded, by one whose command is a file, and by an object that cannot begin."""
    full = "No space left on device"
    first = start(disk)
    first.run((1, "exit 1"))
    first.ends(1)
    with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    first.run((2, "#" + "x" * 200_000))
    assert full in first.ends(2)[0]
    second = start(disk)  # its journal is empty, and stays so
    second.run((3, "exit 3"))
    assert second.ends(3) == [f"the journal of running jobs cannot be written: {full}"]
    (disk / "ballast").unlink()
    second.run((4, "exit 4"))
    assert second.ends(4) == [4]


def test_an_attempt_that_is_over_is_not_promoted(start: Start, tmp_path: Path) -> None:
    """The promotion may have been on its way from another machine meanwhile."""
    attempts = start(tmp_path)
    attempts.run((1, "exit 1"))
    attempts.queue([attempts.command(2, f"echo x >> {tmp_path}/ran; exit 2")])
    assert attempts.ends(1, 2) == [1, 2]
    attempts.promote(keys(2))
    attempts.run((3, "exit 3"))
    assert attempts.ends(3) == [3]
    assert (tmp_path / "ran").read_text() == "x\n"


def test_a_log_never_replaces_what_is_no_file(start: Start, tmp_path: Path) -> None:
    """Such as a device: root could remove it."""
    os.mkfifo(tmp_path / "pipe")
    attempts = start(tmp_path)
    attempts.run((1, "exit 1"), stdout=str(tmp_path / "pipe"))
    assert "File exists" in attempts.ends(1)[0]
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """Which says that jobs cannot be run."""
    (tmp_path / "file").touch()
    with pytest.raises(SupervisionError, match=r"cannot start the process that runs jobs: .*file"):
        SupervisedAttempts(tmp_path / "file" / "state" / "x.journal")


@pytest.mark.parametrize("path", ["", "/nowhere", None])
def test_the_default_shell_is_sh_without_bash(
    start: Start, tmp_path: Path, path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule for shells is that of the machine on which the attempt runs, at the time of the start."""
    first = start()
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path) if path is None else path)
    first.run((1, f"echo $0 >{tmp_path}/name; exit 5"))
    assert first.ends(1) == [5]
    has_bash = path == "" and Path("/bin/bash").exists()
    assert (tmp_path / "name").read_text().rpartition("/")[2] == ("bash\n" if has_bash else "sh\n")


def test_a_step_of_the_clock_changes_no_duration(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Start and end are times of the wall clock; durations and ages are measured by a monotonic clock."""
    step = tmp_path / "stepped"
    clock = (
        "import os, time\nreal = time.time\n"
        f"time.time = lambda: real() + (3600 if os.path.exists({str(step)!r}) else 0)\n"
    )
    monkeypatch.setattr(supervisor, "PROGRAM", clock + supervisor.PROGRAM)
    bench = make_bench()
    (seen,) = bench.run(bench.attempt(f"sleep 0.2; touch {step}; sleep 0.2"))
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert seen.ended_at - seen.started_at > 3600
    assert seen.duration_s is not None
    assert 0.4 <= seen.duration_s < 30
    assert seen.runtime_s == seen.duration_s
    bench.launcher.start([bench.attempt("sleep 100", job_id=2)])
    bench.until(lambda: AttemptKey(2, 1) in bench.ages)
    assert bench.ages[AttemptKey(2, 1)] < 30


def test_supervisors_that_never_begin_leave_no_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have ended do not count as the user's processes while others are tried."""
    monkeypatch.setattr(supervisor, "PROGRAM", "raise SystemExit(1)")
    monkeypatch.setattr(attempts, "RESTART_PAUSE_S", 0.001)
    before, most = ended_children(), 0
    tried, is_refused = SupervisedAttempts(tmp_path / "state" / "never.journal"), False
    while not is_refused:
        try:
            tried.poll()
        except SupervisionError as error:
            is_refused = "the process that runs jobs does not start" in str(error)
        most = max(most, len(ended_children() - before))
    tried.close()
    assert most <= 2


def ended_children() -> set[int]:
    """Return the children of this process that have ended and for which nothing has waited."""
    return {child.pid for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE}
