"""Jobs whose own ``srun`` gets no step until their time limit."""

import os
from pathlib import Path
from typing import Any

import pytest
import torc_slurm
from torc_slurm.steps.unstarted_steps import with_unstarted_step

from torc_framework.api import ExitClass, ExitObservation, StopReason

WAITS = "srun: Job 2 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
CREATED = "srun: Step created for job 2\n"
"""Both as Slurm 22.05.8 writes them."""
AT_LIMIT: dict[str, Any] = {"scheduler_state": "TIMEOUT", "signal": 15}


@pytest.mark.parametrize(
    ("text", "end", "is_launch_failure"),
    [
        (f"begins\n{WAITS}srun: Cancelled pending job step with signal 15\n", AT_LIMIT, True),
        (WAITS, {"stop_reason": StopReason.RUNTIME_LIMIT, "signal": 9}, True),
        ("srun: Cancelled pending job step with signal 15\n", AT_LIMIT, True),
        (WAITS + CREATED, AT_LIMIT, False),  # it only waited for another step of the job
        ("a job that prints step creation temporarily disabled\n", AT_LIMIT, False),
        (WAITS + "x" * 99_999, AT_LIMIT, False),
        (WAITS, {"exit_code": 0, "scheduler_state": "TIMEOUT"}, False),
        (WAITS, {"exit_code": 3, "scheduler_state": "FAILED"}, False),
        (WAITS, {**AT_LIMIT, "stop_reason": StopReason.SHUTDOWN}, False),  # the allocation ended, the job is resumed
        (WAITS, {**AT_LIMIT, "stop_reason": StopReason.CANCELED}, False),
        (None, AT_LIMIT, False),
    ],
)
def test_a_job_that_waits_for_a_step_until_its_limit(
    tmp_path: Path, text: str | None, end: dict[str, Any], is_launch_failure: bool
) -> None:
    """More time would not help it; the reason has Slurm's words and the advice."""
    if text is not None:
        (tmp_path / "j.e").write_text(text)
    verdict = torc_slurm.torc_classify_exit(with_unstarted_step(ExitObservation("slurm", **end), str(tmp_path / "j.e")))
    assert (verdict is not None) == is_launch_failure, verdict
    if verdict is not None:
        assert verdict.exit_class is ExitClass.LAUNCH_FAILURE
        assert "step creation temporarily disabled" in verdict.reason or "pending job step" in verdict.reason
        assert "--overlap" in verdict.reason


def test_a_log_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A job may have replaced it by a pipe, on which a reader would wait."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/null", str(tmp_path)):
        assert with_unstarted_step(ExitObservation("slurm", signal=15), path).raw == {}
