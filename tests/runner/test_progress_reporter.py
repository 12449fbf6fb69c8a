"""The progress listener hears news, and nothing else."""

from torc_framework.runner.connection.progress import COUNTS_S, RECORD_S, TELL_S, ProgressReporter
from torc_framework.runner.process.settings import Progress


def test_only_news_are_told_and_not_too_often() -> None:
    heard: list[Progress] = []
    teller = ProgressReporter(heard.append)
    teller.tell(1, 0.0)
    assert heard == []  # nothing is known yet
    teller.counted({"ready": 2}, 0.0)
    teller.tell(1, 0.0)
    teller.tell(1, 10.0)
    assert heard == [Progress({"ready": 2}, 1)]
    teller.tell(2, 10.0)
    teller.tell(3, 10.0 + TELL_S / 2)
    teller.tell(3, 11.0)
    assert [progress.running for progress in heard] == [1, 2, 3]


def test_counts_are_wanted_only_by_a_listener_and_after_a_while() -> None:
    assert not ProgressReporter(None).wants_counts(0.0)
    teller = ProgressReporter(lambda _: None)
    assert teller.wants_counts(0.0)
    teller.counted({}, 1.0)
    assert not teller.wants_counts(1.0)
    assert teller.wants_counts(1.0 + COUNTS_S)


def test_the_server_learns_why_attempts_cannot_begin_seldom() -> None:
    """It is told of the beginning and the end, not of short pauses between, and not while it cannot store it."""
    stored: list[str | None] = []
    is_there = False

    def record(hindrance: str | None) -> bool:
        stored.append(hindrance)
        return is_there

    teller = ProgressReporter(None, record)
    teller.tell(1, 0.0)
    teller.tell(1, 1.0, "no server", "full")
    assert stored == []
    teller.tell(1, 2.0, None, "full")
    is_there = True
    teller.tell(1, 3.0, None, "full")
    assert stored == ["full"]
    teller.tell(1, 2.0 + RECORD_S, None, "full")
    for turn in range(100):
        teller.tell(1, 2.0 + RECORD_S + turn, None, "full" if turn % 2 else None)
    assert stored == ["full", "full"]
    teller.tell(1, 200.0)
    teller.tell(1, 300.0)
    assert stored == ["full", "full", None]
