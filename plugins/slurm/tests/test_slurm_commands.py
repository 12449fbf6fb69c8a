"""Calls of Slurm's programs: results, failures, time limits; accounting that is late, unavailable or missing."""

import os
import select
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from attrs import define, field
from torc_slurm.accounting.step_accounting import StepAccounting
from torc_slurm.accounting.step_rows import SACCT_FIELDS, StepRow
from torc_slurm.calls.call_log import CallLog
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmNotInstalledError, SlurmRefusedError, SlurmUnavailableError
from torc_slurm.processes.exit_descriptor import pipe_exit_descriptor
from torc_slurm.processes.reactor import Reactor

PATIENCE_S = 30.0


@pytest.fixture
def slurm(tmp_path: Path) -> SlurmCommands:
    return SlurmCommands("test", CallLog(tmp_path / "calls"))


def test_a_result_is_taken_once_the_program_has_ended(slurm: SlurmCommands) -> None:
    """The caller does not wait, and the program can write any amount of output."""
    command = slurm.start("sh", "-c", "read word; echo $word; head -c 300000 /dev/zero", stdin="hello\n")
    assert select.select([command], [], [], PATIENCE_S)[0]
    answer = command.result()
    assert answer.startswith("hello\n")
    assert len(answer) == 300006


def test_failures_are_distinguished(slurm: SlurmCommands) -> None:
    with pytest.raises(SlurmRefusedError, match="invalid partition") as refused:
        slurm.run("sh", "-c", "echo 'sh: error: invalid partition' >&2; exit 3")
    assert refused.value.code == 3
    with pytest.raises(SlurmNotInstalledError, match="no-such-program"):
        slurm.run("no-such-program")
    with pytest.raises(SlurmUnavailableError, match="Unable to contact"):
        slurm.run("sh", "-c", "echo 'sh: error: Unable to contact slurm controller (connect failure)' >&2; exit 1")
    with pytest.raises(SlurmUnavailableError, match="asked again"):  # not before it has had a rest
        slurm.start("true")


def test_a_program_that_does_not_end_is_killed(slurm: SlurmCommands, tmp_path: Path) -> None:
    with pytest.raises(SlurmUnavailableError, match="did not answer within"):
        slurm.run("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 100", timeout_s=0.5)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_calls_are_logged(slurm: SlurmCommands, tmp_path: Path) -> None:
    slurm.run("true")
    with pytest.raises(SlurmRefusedError):
        slurm.run("false")
    with pytest.raises(SlurmUnavailableError):
        slurm.run("sh", "-c", "echo 'Unable to contact slurm controller' >&2; exit 1")
    counted = [(call.program, call.code) for call in CallLog(tmp_path / "calls").calls(60)]
    assert counted == [("true", 0), ("false", 1), ("sh", None)]


def test_an_older_kernel_reports_ends_as_well() -> None:
    """It has no pidfd_open(2)."""
    process = subprocess.Popen(["sh", "-c", "exit 3"])
    descriptor = pipe_exit_descriptor(process.pid)
    assert select.select([descriptor], [], [], PATIENCE_S)[0]
    assert process.wait() == 3
    os.close(descriptor)


# --- accounting ---------------------------------------------------------------------------------


@define
class Desk:
    """Accounting whose ``sacct`` is a script; collects the reported rows."""

    folder: Path
    reactor: Reactor
    accounting: StepAccounting
    reported: dict[str, tuple[StepRow | None, str]] = field(factory=dict)

    def want(self, *steps: str) -> None:
        for step in steps:
            self.accounting.request_row(step, partial(self._take, step))

    def _take(self, step: str, row: StepRow | None, why: str) -> None:
        self.reported[step] = (row, why)

    def wait(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.reported) < number:
            assert time.monotonic() < deadline, self.reported
            select.select([self.reactor], [], [], 0.2)
            self.reactor.run()

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


def row_of(step: str, state: str) -> str:
    return "|".join([step, "name", state, *[""] * (len(SACCT_FIELDS) - 3)])


def view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, patience_s: float = 20.0) -> Desk:
    program = tmp_path / "bin" / "sacct"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncd {tmp_path}\necho "$4" >> calls\nnumber=$(wc -l < calls)\n{body}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    reactor = Reactor()
    accounting = StepAccounting(SlurmCommands("test", CallLog(tmp_path / "call_log")), reactor, 0.05, patience_s)
    return Desk(tmp_path, reactor, accounting)


def test_many_steps_are_one_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing row is queried again, alone."""
    late = f"echo '{row_of('1.0', 'COMPLETED')}'; test $number -gt 1 && echo '{row_of('1.1', 'FAILED')}'; true"
    there = view(tmp_path, monkeypatch, late)
    there.want("1.0", "1.1")
    there.wait(2)
    assert [row and row.text("State") for row, _ in there.reported.values()] == ["COMPLETED", "FAILED"]
    assert there.calls == ["1.0,1.1", "1.1"]


def test_a_row_that_may_change_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"if [ $number = 1 ]; then echo '{row_of('1.0', 'RUNNING')}'; else echo '{row_of('1.0', 'TIMEOUT')}'; fi"
    there = view(tmp_path, monkeypatch, body)
    there.want("1.0")
    there.wait(1)
    row, _ = there.reported["1.0"]
    assert row is not None
    assert row.text("State") == "TIMEOUT"


def test_a_missing_row_is_reported_as_none_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = view(tmp_path, monkeypatch, "true", patience_s=0.5)
    there.want("1.0")
    there.wait(1)
    assert there.reported["1.0"][0] is None
    assert "no row" in there.reported["1.0"][1]


@pytest.mark.parametrize("words", ["Slurm accounting storage is disabled", "Unable to contact slurm controller"])
def test_without_accounting_the_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """Missing accounting is soon not queried any more; unavailable accounting is queried less often."""
    there = view(tmp_path, monkeypatch, f"echo 'sacct: error: {words}' >&2; exit 1", patience_s=3.0)
    there.want("1.0")
    there.wait(1)
    row, why = there.reported["1.0"]
    assert row is None
    assert words in why or "asked again" in why
    before = len(there.calls)
    assert before <= 4
    if "disabled" in words:
        there.want("1.1")
        assert len(there.reported) == 2
        assert len(there.calls) == before
