"""Attempts of one launcher: what it reports of them, and what becomes of them when others follow it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from local_bench import Bench

from torc_framework.api import AttemptKey
from torc_framework.supervision import supervisor


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
