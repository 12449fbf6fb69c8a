"""The headline of a workflow is one sentence; nothing that is zero stands in it."""

from typing import Any

import pytest

from torc_framework.models import workflow_states
from torc_framework.models.statuses import JobStatus
from torc_framework.models.workflow_states import workflow_state
from torc_framework.text.headline import WORKFLOW_LOOKS, counts_text, headline


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


class Utf8:
    """A file that takes every character."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """Return that no person reads."""
        return False


@pytest.mark.parametrize(
    ("counts", "interrupted", "text"),
    [
        ({"completed": 7}, 0, "7 jobs"),
        ({"completed": 1}, 0, "1 job"),
        ({}, 0, "0 jobs"),
        ({"uninitialized": 12}, 0, "12 jobs"),
        ({"completed": 4, "failed": 2, "canceled": 1}, 0, "4 of 7 jobs done, 2 failed, 1 canceled"),
        (
            {"completed": 4960, "failed": 37, "running": 2, "pending": 1},
            0,
            "4,960 of 5,000 jobs done, 37 failed, 2 running, 1 claimed",
        ),
        ({"pending": 92, "ready": 8}, 0, "0 of 100 jobs done, 92 claimed"),
        ({"ready": 1}, 0, "0 of 1 job done"),
        ({"terminated": 3, "completed": 1}, 2, "1 of 4 jobs done, 1 terminated, 2 interrupted"),
        ({"terminated": 2, "blocked": 1}, 2, "0 of 3 jobs done, 2 interrupted"),
        ({"completed": 1, "disabled": 1}, 0, "1 of 2 jobs done, 1 disabled"),
        ({"pending_failed": 2, "blocked": 1}, 0, "0 of 3 jobs done, 2 waiting for a verdict"),
    ],
)
def test_counts(counts: dict[str, int], interrupted: int, text: str) -> None:
    """Done is completed only, and every other ending has its own word."""
    assert counts_text(counts, interrupted=interrupted) == text


def test_headlines() -> None:
    def shown(state: str, counts: dict[str, int], **more: Any) -> str:
        return headline("sweep", 1, state, counts, stream=Utf8(), **more)

    failed = {"completed": 4, "failed": 2, "canceled": 1}
    assert shown("failed", failed, duration_s=12) == (
        "✗ sweep (workflow 1) failed: 4 of 7 jobs done, 2 failed, 1 canceled, in 12 s"
    )
    assert shown("completed", {"completed": 7}, duration_s=0.4) == "✓ sweep (workflow 1) completed: 7 jobs in 0.4 s"
    assert shown("uninitialized", {"uninitialized": 12}) == "○ sweep (workflow 1) not started: 12 jobs"


def test_control_characters_of_a_name_are_escaped() -> None:
    assert "a\\u001b[31m\\nb" in headline("a\x1b[31m\nb", 1, "failed", {"failed": 1}, stream=Utf8())


def test_every_state_has_a_look() -> None:
    states = {value for name, value in vars(workflow_states).items() if name.isupper() and isinstance(value, str)}
    assert states <= set(WORKFLOW_LOOKS)


@pytest.mark.parametrize("status", list(JobStatus))
def test_the_state_of_a_workflow_with_one_job(status: JobStatus) -> None:
    """Every status has a state; live jobs are running, and what can run is waiting."""
    expected = {
        JobStatus.UNINITIALIZED: "uninitialized",
        JobStatus.DISABLED: "uninitialized",
        JobStatus.BLOCKED: "ready",
        JobStatus.READY: "ready",
        JobStatus.PENDING: "running",
        JobStatus.RUNNING: "running",
        JobStatus.COMPLETED: "completed",
        JobStatus.FAILED: "failed",
        JobStatus.CANCELED: "failed",
        JobStatus.TERMINATED: "failed",
        JobStatus.PENDING_FAILED: "pending_failed",
    }
    assert workflow_state({status.label: 1}) == expected[status]
    assert workflow_state({status.label: 1}, is_canceled=True) == "canceled"


def test_interrupted_jobs_make_a_workflow_interrupted() -> None:
    assert workflow_state({"terminated": 1, "completed": 3}, interrupted=1) == "interrupted"
    assert workflow_state({"terminated": 1, "running": 1}, interrupted=1) == "running"
