"""Attempts that an executor was given and that have not begun; and ends that the server has stored."""

import threading
from pathlib import Path

import pytest
from attrs import evolve
from programs import project_plugin
from runner_bench import Bench, job
from waiting import eventually
from waiting_executor import REASON

from torc_framework.cli.commands.running.progress_line import waiting_text
from torc_framework.executors import AttemptKey, AttemptWaiting
from torc_framework.models.exchange import WaitingReport
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner import Progress
from torc_framework.runner.attempts.waiting_reasons import LONGEST_REASON, MOST_REPORTS, REPORT_S, WaitingReasons

PLUGIN = Path(__file__).parents[1] / "helpers" / "waiting_executor.py"


@pytest.fixture
def waiting(bench: Bench) -> Bench:
    """Return a bench whose project brings the executor ``waiting``."""
    project_plugin(bench.folder, "waiting", PLUGIN.read_text())
    return evolve(bench, plugins=PluginManager.load(bench.folder))


class Background:
    """A runner in a thread."""

    def __init__(self, bench: Bench, workflow_id: int) -> None:
        self.progress: list[Progress] = []
        settings = {"executor": "waiting", "working_dir": bench.folder}
        self._thread = threading.Thread(target=lambda: bench.run(workflow_id, self.progress.append, **settings))
        self._thread.start()

    def wait(self) -> None:
        """Wait for its end."""
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_what_attempts_wait_for_is_told_until_they_begin(waiting: Bench) -> None:
    """The server has it with the jobs, and listeners of progress have it too; after the end the jobs have none."""
    workflow_id = waiting.create(job("a", "true"), job("b", "true"))
    runner = Background(waiting, workflow_id)
    try:
        eventually(lambda: [each.waiting_reason for each in waiting.jobs(workflow_id).values()] == [REASON, REASON])
        eventually(lambda: any(progress.waiting == {REASON: 2} for progress in runner.progress))
        assert {each.status for each in waiting.jobs(workflow_id).values()} == {"pending"}
    finally:
        (waiting.folder / "room").touch()
        runner.wait()
    jobs = waiting.jobs(workflow_id).values()
    assert {(each.status, each.waiting_reason) for each in jobs} == {("completed", None)}


def test_launchers_learn_once_which_ends_are_stored(waiting: Bench) -> None:
    """Of each attempt that ended, also one that was canceled while it waited."""
    (waiting.folder / "room").touch()
    workflow_id = waiting.create(*(job(f"j{number}", "true") for number in range(20)))
    Background(waiting, workflow_id).wait()
    expected = sorted(f"{each.id} 1" for each in waiting.jobs(workflow_id).values())
    stored = waiting.folder / "stored"
    assert sorted(stored.read_text().splitlines()) == expected
    stored.unlink()
    (waiting.folder / "room").unlink()
    workflow_id = waiting.create(job("a", "true"), job("b", "true"))
    runner = Background(waiting, workflow_id)
    eventually(lambda: all(each.waiting_reason for each in waiting.jobs(workflow_id).values()))
    deleted, _ = waiting.jobs(workflow_id).values()
    waiting.client.delete(type(deleted), deleted.id or 0)
    eventually(stored.exists)  # its end is wanted by nothing: it is not reported
    assert stored.read_text() == f"{deleted.id} 1\n"
    waiting.client.cancel(workflow_id)
    runner.wait()
    assert len(stored.read_text().splitlines()) == 2


def key(number: int) -> AttemptKey:
    return AttemptKey(number, 1)


def test_changes_are_reported_together_and_seldom() -> None:
    """The last reason of each attempt counts; what is not news is not reported."""
    reasons = WaitingReasons()
    assert reasons.due_reports(0.0) == []
    for reason in (" pull ", "back-off", None, None, "back-off"):
        reasons.note(AttemptWaiting(key(1), reason))
    reasons.note(AttemptWaiting(key(2), None))
    assert reasons.due_reports(0.0) == [WaitingReport(1, 1, "back-off")]
    reasons.note(AttemptWaiting(key(1), "back-off"))
    assert reasons.due_reports(9.0) == []
    reasons.note(AttemptWaiting(key(1), None))
    reasons.note(AttemptWaiting(key(2), "x" * 9 * LONGEST_REASON))
    assert reasons.due_reports(REPORT_S / 2) == []
    assert reasons.due_reports(REPORT_S) == [WaitingReport(1, 1, None), WaitingReport(2, 1, "x" * LONGEST_REASON)]
    reasons.note(AttemptWaiting(key(3), "y"))
    reasons.forget(key(3))
    assert reasons.due_reports(99.0) == []
    assert [*reasons.counts().values()] == [1]


def test_many_attempts_are_reported_in_turns() -> None:
    """Each report has a limited size, and each attempt has its turn."""
    reasons = WaitingReasons()
    for number in range(1, 2 * MOST_REPORTS + 2):
        reasons.note(AttemptWaiting(key(number), "full"))
    sizes = [len(reasons.due_reports(turn * REPORT_S)) for turn in range(4)]
    assert sizes == [MOST_REPORTS, MOST_REPORTS, 1, 0]
    assert reasons.counts() == {"full": 2 * MOST_REPORTS + 1}


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        ({}, ""),
        ({"ImagePullBackOff: no \x1b[31mx": 1}, "1 waits: ImagePullBackOff: no \\u001b[31mx"),
        ({"Unschedulable: 1": 1000, "Unschedulable: 2": 1}, "1,001 wait: Unschedulable: 1"),
        ({"Unschedulable: 1": 2, "FailedMount: a": 1}, "3 wait: 2 Unschedulable, 1 FailedMount"),
        ({"a" * 1000: 1}, f"1 waits: {'a' * 117}..."),
    ],
)
def test_the_line_of_progress_says_what_attempts_wait_for(waiting: dict[str, int], text: str) -> None:
    """One reason whole, several by their first words; shortened, and without control characters."""
    assert waiting_text(waiting) == text
