"""Durations of steps and processes do not depend on changes of the system clock."""

import select
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from torc_slurm.accounting.step_rows import SACCT_FIELDS, StepRow
from torc_slurm.processes import instants
from torc_slurm.processes.instants import Instant
from torc_slurm.shared.options import SlurmOptions
from torc_slurm.steps.observations import StepEnd, observe_step
from torc_slurm.steps.srun_messages import SrunMessages
from torc_slurm.steps.step_runner import StepRunner

from torc_framework.api import Attempt, AttemptEnded, AttemptKey, AttemptStarted, LauncherEvent, RunnerContext

HOUR_S = 3600.0
PATIENCE_S = 30.0
SRUN = """\
#!/bin/bash
echo 'srun: launching StepId=7.0 on host n1, 1 tasks: 0' >&2
echo 'srun: launch/slurm: _task_start: Node n1, 1 tasks started' >&2
"${@: -3}"
echo 'srun: Received task exit notification for 1 task of StepId=7.0 (status=0x0000).' >&2
"""
ROW = "7.0|name|COMPLETED|0:0||n1|2026-11-21T15:22:06|2026-11-21T16:22:07|01:00:01|00:00.101|1K|0|cpu=1"
PROGRAMS = {"srun": SRUN, "sacct": f"#!/bin/sh\necho '{ROW}'\n", "scontrol": "#!/bin/sh\nexit 1\n"}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in place of Slurm's, for allocation 7."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(params=[True, False], ids=["step", "plain process"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, programs: None) -> Iterator[StepRunner]:
    context = RunnerContext(1, 1, str(tmp_path), str(tmp_path), "http://localhost")
    bench = StepRunner("slurm", SlurmOptions(steps=request.param), context)
    yield bench
    bench.abandon()


def news_until_the_end(bench: StepRunner) -> list[LauncherEvent]:
    news: list[LauncherEvent] = []
    deadline = time.monotonic() + PATIENCE_S
    while not any(isinstance(each, AttemptEnded) for each in news):
        assert time.monotonic() < deadline
        select.select([bench.wait_fd()], [], [], 0.2)
        news += bench.poll()
    return news


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
def test_a_step_of_the_clock_changes_no_duration(
    bench: StepRunner, by_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is set while the attempt runs: the two times contradict the duration, which is correct."""
    stepped = tmp_path / "stepped"
    clocks = SimpleNamespace(time=lambda: time.time() + by_s * stepped.exists(), monotonic=time.monotonic)
    monkeypatch.setattr(instants, "time", clocks)
    out, err = str(tmp_path / "o"), str(tmp_path / "e")
    command = f"sleep 0.3; touch {stepped}; sleep 0.3"
    began = time.monotonic()
    bench.start([Attempt(AttemptKey(1, 1), "job", command, {}, out, err, str(tmp_path))])
    news = news_until_the_end(bench)
    elapsed_s = time.monotonic() - began
    (start,) = [each for each in news if isinstance(each, AttemptStarted)]
    (seen,) = [each.observation for each in news if isinstance(each, AttemptEnded)]
    assert (seen.exit_code, seen.started_at) == (0, start.at)
    assert seen.ended_at is not None
    assert abs(seen.ended_at - start.at - by_s) < elapsed_s + 1
    assert seen.duration_s is not None
    assert 0.5 < seen.duration_s < elapsed_s
    assert seen.runtime_s == seen.duration_s


@pytest.mark.parametrize(("elapsed", "expected_s"), [("00:01:02", 62.0), ("", None)])
def test_accounting_counts_if_srun_reported_no_start(elapsed: str, expected_s: float | None) -> None:
    row = StepRow(dict.fromkeys(SACCT_FIELDS, "") | {"State": "COMPLETED", "ExitCode": "0:0", "Elapsed": elapsed})
    end = StepEnd("name", SrunMessages("7.0"), 0, None, Instant.now())
    assert observe_step("slurm", end, row).duration_s == expected_s
    assert observe_step("slurm", end, None).duration_s is None
