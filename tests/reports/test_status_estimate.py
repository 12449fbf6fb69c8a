"""The estimate of the time left follows the newest completions, and stays silent at the start."""

from datetime import UTC, datetime
from typing import Any

from torc_framework.models.progress import WorkflowOverview, WorkflowProgress
from torc_framework.models.records import ComputeNodeRecord, WorkflowRecord
from torc_framework.reports.status import estimate_remaining_s

NOW_S = 1_800_000_000.0


def text(seconds_ago: float) -> str:
    """Return a time as records have it."""
    return datetime.fromtimestamp(NOW_S - seconds_ago, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def runner(started_s_ago: float) -> ComputeNodeRecord:
    """Return a runner."""
    fields: dict[str, Any] = {"workflow_id": 1, "hostname": "h", "pid": 1, "compute_node_type": "local"}
    return ComputeNodeRecord(
        **fields, start_time=text(started_s_ago), num_cpus=1, memory_gb=1.0, num_gpus=0, num_nodes=1
    )


def remaining(counts: dict[str, int], ends: list[float], *runners: ComputeNodeRecord) -> float | None:
    """Return the estimate for results that ended so many seconds ago, newest first."""
    overview = WorkflowOverview(WorkflowRecord(name="w", user="u"), 1, False, False, counts)
    return estimate_remaining_s(WorkflowProgress(overview, recent=[text(end) for end in ends]), runners, NOW_S)


def test_at_the_start_nothing_is_known() -> None:
    assert remaining({"running": 10}, []) is None
    assert remaining({"running": 10}, [], runner(5)) is None
    assert remaining({"completed": 4, "running": 6}, [1, 2, 3, 4], runner(5)) is None


def test_the_rate_is_that_of_the_newest_ends() -> None:
    """Ten ends in 100 s, 50 jobs are left."""
    found = remaining({"completed": 10, "ready": 49, "running": 1}, [10.0 * n for n in range(1, 11)], runner(100))
    assert found is not None
    assert round(found) == 500


def test_ends_before_the_present_runners_do_not_count() -> None:
    """The night between two runners is no part of the rate."""
    ends = [10.0 * n for n in range(1, 6)] + [40_000.0] * 20
    found = remaining({"completed": 25, "ready": 10}, ends, runner(50))
    assert found is not None
    assert round(found) == 100


def test_a_stalled_workflow_takes_longer() -> None:
    """While no job ends, the estimate grows."""
    ends = [3600.0 + n for n in range(10)]
    found = remaining({"completed": 10, "running": 1}, ends, runner(3700))
    assert found is not None
    assert found > 300


def test_times_of_other_programs_are_ignored() -> None:
    overview = WorkflowOverview(WorkflowRecord(name="w", user="u"), 1, False, False, {"running": 1})
    assert estimate_remaining_s(WorkflowProgress(overview, recent=["yesterday"] * 9), (runner(10),), NOW_S) is None
