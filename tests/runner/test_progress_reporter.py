"""The progress listener is called for changes alone."""

from torc_framework.runner.connection.progress import (
    COUNTED_JOBS_PER_S,
    COUNTS_S,
    LISTENER_S,
    RECORD_S,
    ProgressReporter,
)
from torc_framework.runner.process.settings import Progress


def test_changes_alone_are_reported_and_not_too_often() -> None:
    heard: list[Progress] = []
    reporter = ProgressReporter(heard.append)
    reporter.update(1, 0.0)
    assert heard == []  # nothing is known yet
    reporter.set_counts({"ready": 2}, 0.0)
    reporter.update(1, 0.0)
    reporter.update(1, 10.0)
    assert heard == [Progress({"ready": 2}, 1)]
    reporter.update(2, 10.0)
    reporter.update(3, 10.0 + LISTENER_S / 2)
    reporter.update(3, 11.0)
    assert [progress.running for progress in heard] == [1, 2, 3]


def test_counts_are_wanted_only_by_a_listener_and_after_a_while() -> None:
    assert not ProgressReporter(None).wants_counts(0.0)
    reporter = ProgressReporter(lambda _: None)
    assert reporter.wants_counts(0.0)
    reporter.set_counts({}, 1.0)
    assert not reporter.wants_counts(1.0)
    assert reporter.wants_counts(1.0 + COUNTS_S)


def test_counts_of_many_jobs_are_wanted_less_often() -> None:
    """The time between two requests grows with the number of jobs that the server has to count."""
    reporter = ProgressReporter(lambda _: None)
    jobs = 100 * COUNTED_JOBS_PER_S
    reporter.set_counts({"ready": jobs - 1, "running": 1}, 0.0, has_reports=True)
    assert not reporter.wants_counts(99.0)
    assert reporter.wants_counts(100.0)
    reporter.set_counts({"completed": 1}, 100.0)
    assert reporter.wants_counts(100.0 + COUNTS_S)


def test_a_listener_without_counts_is_told_the_rest() -> None:
    """A trouble and its end, although the runner never asks for counts."""
    heard: list[Progress] = []
    reporter = ProgressReporter(heard.append, counts_jobs=False)
    reporter.update(1, 0.0)
    reporter.update(1, 1.0, "no server")
    reporter.set_counts(None, 2.0, has_reports=True)
    assert not reporter.wants_counts(2.0)
    assert not reporter.wants_recount(2.0)
    reporter.update(1, 3.0)
    assert heard == [Progress({}, 1), Progress({}, 1, "no server"), Progress({}, 1)]


def test_the_server_learns_why_attempts_cannot_begin_seldom() -> None:
    """Beginning and end are recorded, without short pauses in between, and later if the server cannot store them."""
    stored: list[str | None] = []
    is_there = False

    def record(hindrance: str | None) -> bool:
        stored.append(hindrance)
        return is_there

    reporter = ProgressReporter(None, record)
    reporter.update(1, 0.0)
    reporter.update(1, 1.0, "no server", "full")
    assert stored == []
    reporter.update(1, 2.0, None, "full")
    is_there = True
    reporter.update(1, 3.0, None, "full")
    assert stored == ["full"]
    reporter.update(1, 2.0 + RECORD_S, None, "full")
    for turn in range(100):
        reporter.update(1, 2.0 + RECORD_S + turn, None, "full" if turn % 2 else None)
    assert stored == ["full", "full"]
    reporter.update(1, 200.0)
    reporter.update(1, 300.0)
    assert stored == ["full", "full", None]


def test_counts_that_lack_the_last_reports_are_asked_for_again() -> None:
    """After a while, since the next report may be far away; not if no listener wants them."""
    reporter = ProgressReporter(lambda _: None)
    reporter.set_counts({"ready": 1}, 0.0)
    reporter.set_counts(None, 0.1)
    assert not reporter.wants_recount(10.0)
    reporter.set_counts(None, 0.1, has_reports=True)
    assert not reporter.wants_recount(0.1)
    assert reporter.wants_recount(COUNTS_S)
    reporter.set_counts({"completed": 1}, COUNTS_S)
    assert not reporter.wants_recount(10.0)
