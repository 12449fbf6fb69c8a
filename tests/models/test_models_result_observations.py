"""Stored results are converted into observations, also those of other programs."""

from typing import Any

import pytest

from torc_framework.models.exits import ExitClass, ExitObservation, StopReason
from torc_framework.models.records import ResultRecord
from torc_framework.models.result_observations import exit_class_of, observation_of

NOON = 1767268800.0


def result(**fields: Any) -> ResultRecord:
    values = {"return_code": 1, "exec_time_minutes": 2.0, "completion_time": "2026-01-01T12:00:00Z", **fields}
    return ResultRecord(job_id=1, workflow_id=1, run_id=1, compute_node_id=1, status="failed", **values)


def test_our_own_comes_back() -> None:
    """With tuples and words; what a later version added does no harm, and the samples' peak fills a gap."""
    stored = {
        "executor": "local", "exit_code": 3, "started_at": 5.0, "ended_at": 8.0, "stop_reason": "shutdown",
        "missing_outputs": ["a", "b"], "of_the_future": 1,
    }  # fmt: skip
    assert observation_of(result(observation=stored, peak_memory_bytes=7)) == ExitObservation(
        "local", 3, started_at=5.0, ended_at=8.0, stop_reason=StopReason.SHUTDOWN, missing_outputs=("a", "b"),
        peak_memory_bytes=7,
    )  # fmt: skip
    later = observation_of(result(observation={**stored, "stop_reason": "of_the_future"}))
    assert later.stop_reason is None


@pytest.mark.parametrize(
    ("fields", "code", "signal"),
    [
        ({"return_code": 137}, 137, None),
        ({"return_code": -128}, None, None),
        ({"return_code": 139, "signal": 11}, None, 11),
        ({"return_code": 5, "exit_code": 6}, 6, None),
        ({"return_code": 5, "observation": {"executor": 7, "exit_code": 9}}, 5, None),
        ({"return_code": 5, "observation": "text"}, 5, None),
    ],
)
def test_of_others_the_numbers_tell(fields: dict[str, Any], code: int | None, signal: int | None) -> None:
    """A rendering that is no code of a process stays out; times follow from end and run time."""
    seen = observation_of(result(**fields))
    assert (seen.exit_code, seen.signal) == (code, signal)
    assert (seen.started_at, seen.ended_at) == (NOON - 120, NOON)
    assert observation_of(result(**fields, completion_time="noon")).runtime_s is None


def test_names_of_endings() -> None:
    """An unknown class and an absent one are `ExitClass.UNKNOWN`."""
    names = ("oom", "of_the_future", None)
    assert [exit_class_of(result(exit_class=name)) for name in names] == [ExitClass.OOM, *[ExitClass.UNKNOWN] * 2]
