"""Ends of attempts that a launcher learns from a journal which another process writes."""

import fcntl
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from torc_framework.supervision.journal import Journal, JournalEntry
from torc_framework.supervision.orphans import TAKEOVER_PATIENCE_S, Orphans
from torc_framework.supervision.supervisor import boot_id

KEY = (1, 1)
GONE_PID = 4_194_304
"""One more than the largest pid that Linux gives on 64 bits (proc(5), pid_max)."""
BEGUN = f"H {boot_id()}\nI 1 1\nS 1 1 {GONE_PID} 12.5 1700000000.25\nO\n"
END = "E 1 1 768 1700000001.0 1700000000.25 0.750000 -9000 0.01\n"


@contextmanager
def held_journal(path: Path, after_s: float, text: str) -> Iterator[Journal]:
    """Yield a journal of an attempt whose process is gone; its writer appends the text after a while, and leaves."""
    path.write_text(BEGUN)
    writer = path.open("a")
    fcntl.flock(writer, fcntl.LOCK_EX)

    def finish() -> None:
        writer.write(text)
        writer.close()

    timer = threading.Timer(after_s, finish)
    timer.start()
    journal = Journal(path)
    journal.read()
    try:
        yield journal
    finally:
        timer.join()
        journal.close()


def follow(
    journal: Journal, until: Callable[[list[JournalEntry | None]], bool]
) -> tuple[bool, list[JournalEntry | None]]:
    """Follow the attempt; return what `follow` returns, and what was told of the attempt's end."""
    told: list[JournalEntry | None] = []

    def ended(_key: tuple[int, int], entry: JournalEntry | None) -> None:
        told.append(entry)

    with select.epoll() as epoll:
        orphans = Orphans(epoll, ended)
        is_followed = orphans.follow(journal, KEY)
        while not until(told):
            orphans.poll()
        orphans.close()
    return is_followed, told


@pytest.mark.parametrize("after_s", [0.1, TAKEOVER_PATIENCE_S + 0.2])
def test_an_end_is_awaited_while_the_journal_has_a_writer(tmp_path: Path, after_s: float) -> None:
    """On a busy machine the reaper records an end long after the process has gone; the attempt is not lost."""
    with held_journal(tmp_path / "a.journal", after_s, END) as journal:
        is_followed, (entry,) = follow(journal, bool)
    assert is_followed
    assert entry is not None
    assert entry.end is not None
    assert entry.end.status == 768


def test_an_end_that_the_last_writer_did_not_record_is_unknown(tmp_path: Path) -> None:
    with held_journal(tmp_path / "a.journal", 0.1, "") as journal:
        is_followed, told = follow(journal, lambda _: True)
    assert (is_followed, told) == (False, [])
