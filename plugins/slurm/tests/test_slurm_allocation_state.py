"""Queries for the state of the runner's own allocation."""

import gc
import resource
import select
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from attrs import define, field
from torc_slurm.accounting import allocation_state
from torc_slurm.accounting.allocation_state import AllocationStateQuery
from torc_slurm.calls.call_log import CallLog
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.processes.reactor import Reactor

PATIENCE_S = 30.0


@define
class Asking:
    """A query for one allocation, whose ``sacct`` is a script; collects the states that it reports."""

    folder: Path
    reactor: Reactor
    query: AllocationStateQuery
    reported: list[str | None] = field(factory=list)

    def request(self, *, is_likely: bool = True) -> None:
        self.query.request(7, self.reported.append, is_likely=is_likely)

    def wait(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.reported) < number:
            assert time.monotonic() < deadline
            select.select([self.reactor], [], [], 0.2)
            self.reactor.run()

    @property
    def calls(self) -> int:
        asked = self.folder / "asked"
        return asked.read_text().count("\n") if asked.exists() else 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def asking(folder: Path, body: str, patience_s: float = 10.0) -> Asking:
    program = folder / "sacct"
    program.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\n{body}\n")
    program.chmod(0o755)
    reactor = Reactor()
    return Asking(
        folder, reactor, AllocationStateQuery(SlurmCommands("runner", CallLog(folder / "calls")), reactor, patience_s)
    )


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("RUNNING", None),
        ("", None),
        ("PREEMPTED", "PREEMPTED"),
        ("CANCELLED by 1001", "CANCELLED by 1001"),
        ("A_WORD_OF_TOMORROW", None),
    ],
)
def test_only_final_states_are_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, printed: str, state: str | None
) -> None:
    """A final state is not queried again; another state is queried again after a pause."""
    there = asking(folder, f"echo '{printed}'")
    there.request()
    there.request()
    there.wait(2)
    there.request()
    assert there.reported == [state] * 3
    assert there.calls == 1
    monkeypatch.setattr(allocation_state, "REPEAT_S", 0.0)
    there.request()
    there.wait(4)
    assert there.calls == (1 if state else 2)


def test_signals_alone_cause_few_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many jobs that end themselves with SIGTERM cause few queries."""
    there = asking(folder, "echo RUNNING")
    monkeypatch.setattr(allocation_state, "REPEAT_S", 0.0)
    for number in range(5):
        there.request(is_likely=False)
        there.wait(number + 1)
    assert there.calls == 1
    there.request(is_likely=True)
    there.wait(6)
    assert there.calls == 2


def test_without_accounting_the_state_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The allocation then counts as one that continues."""
    there = asking(tmp_path, "true")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    there.request()
    assert there.reported == [None]


def test_the_runner_does_not_wait_for_a_query(folder: Path) -> None:
    """A query that takes too long is killed, and the state is unknown."""
    there = asking(folder, f"echo $$ > {folder}/pid; exec sleep 1000", patience_s=1.0)
    there.request()
    assert there.reported == []
    there.wait(1)
    assert there.reported == [None]
    assert not psutil.pid_exists(int((folder / "pid").read_text()))


def test_closing_leaves_nothing_behind(folder: Path) -> None:
    with nothing_left():
        there = asking(folder, "exec sleep 1000")
        there.request()
        there.query.close()
        there.reactor.close()
        assert there.reported == [None]


def test_a_query_that_cannot_be_watched_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, and no open file."""
    there = asking(folder, "exec sleep 1000")
    with monkeypatch.context() as patch, nothing_left():
        patch.setattr(Reactor, "watch", refuse)
        there.request()
        assert there.reported == [None]


def test_a_query_without_a_descriptor_leaves_nothing_behind(folder: Path) -> None:
    """The program had been started before the descriptor failed."""
    there = asking(folder, "exec sleep 1000")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    there.request()  # so that all is loaded that is opened once only
    there.query.close()
    there.query = AllocationStateQuery(there.query.slurm, there.reactor, 10.0)
    for spare in range(2, 8):
        with nothing_left():
            used = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
            try:
                there.request()
                there.query.close()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert there.reported == [None] * 7


def refuse(*_: object) -> None:
    raise OSError(28, "No space left on device")


@contextmanager
def nothing_left() -> Iterator[None]:
    """Assert that there are as many child processes and open files afterwards as before."""
    me = psutil.Process()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # what earlier tests left behind is closed now, and not meanwhile
    before = len(me.children()), me.num_fds()
    yield
    assert (len(me.children()), me.num_fds()) == before
