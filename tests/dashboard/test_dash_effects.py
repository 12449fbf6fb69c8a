"""What commands would do, in sentences: each names the jobs that it concerns, and how it is undone."""

from typing import Any

import pytest

from torc_framework.monitoring.command_effects import sentences
from torc_framework.monitoring.command_table import COMMANDS


def impact(counts: dict[str, int], **more: int) -> dict[str, Any]:
    """Return the numbers of a workflow."""
    numbers = dict.fromkeys(
        ("results", "files", "user_data", "events", "live_jobs", "interrupted_jobs", "queued_allocations"), 0
    )
    return {**numbers, "jobs": sum(counts.values()), "job_counts": counts, **more}


ENDED = {"completed": 4964, "failed": 37, "canceled": 1}


@pytest.mark.parametrize(
    ("name", "options", "numbers", "expected"),
    [
        ("run", {"retry_failed": True}, impact(ENDED), "38 jobs run again: 37 failed, 1 canceled."),
        ("run", {"retry_failed": True}, impact({"completed": 3}), "No job has failed or was canceled."),
        ("run", {}, impact(ENDED), "38 jobs that failed or were canceled will not run again."),
        ("run", {}, impact({"completed": 3}), "No job is left to run."),
        ("run", {}, impact({"ready": 1, "blocked": 2}), "1 job is ready to run."),
        ("run", {}, impact({"ready": 1, "blocked": 2}), "2 jobs follow when other jobs have ended."),
        ("run", {}, impact({"uninitialized": 2}), "2 jobs are initialized, and run then."),
        ("cancel", {}, impact({"ready": 1, "running": 2}, live_jobs=2), "1 job that waits will not start."),
        ("cancel", {}, impact({"ready": 1, "running": 2}, live_jobs=2), "2 jobs under way are stopped."),
        ("cancel", {}, impact({"ready": 1}, queued_allocations=1), "1 allocation in the queue is released."),
        ("archive", {}, impact({"completed": 1}), "Take out of the archive undoes it."),
        ("unarchive", {}, impact({"completed": 1}), "Archive undoes it."),
        (
            "delete",
            {},
            impact({"completed": 2}, results=3),
            "Deletes 2 jobs, 3 results. The files themselves and logs stay.",
        ),
        ("delete", {}, impact({}), "Deletes the empty workflow. The files themselves and logs stay."),
        ("reset_status", {}, impact(ENDED), "5,002 jobs become uninitialized; their results are kept."),
        ("submit", {}, impact({"ready": 1}), "1 job is ready to run."),
        ("watch", {"recover": True}, impact({"ready": 1}), "1 job is ready to run."),
    ],
)
def test_effects(name: str, options: dict[str, Any], numbers: dict[str, Any], expected: str) -> None:
    """The sentence is among those of the command."""
    assert expected in list(sentences(numbers, COMMANDS[name], options))


def test_every_command_with_a_preview_says_how_it_is_undone() -> None:
    """What changes a workflow says how that is undone, or that it is not."""
    assert [name for name, command in COMMANDS.items() if command.preview and not command.undo] == []
    for command in COMMANDS.values():
        if command.preview == "impact":
            found = list(sentences(impact({"completed": 1}), command))
            assert len(found) >= 2
            assert all(each.endswith(".") and not each[0].islower() for each in found)
