"""The thread that continues deletions starts only for rows that an earlier server left."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import eventually

from torc_framework.models.records import WorkflowRecord
from torc_framework.server.process.deletion_thread import DeletionThread
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.workflows.deletion import begin_deletion, unfinished_deletions
from torc_framework.store.workflows.plans import create_workflow
from torc_framework.system.processes import NO_THREAD_MESSAGE


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Database]:
    """A database with the rows of a workflow that has disappeared."""
    database = open_database(f"sqlite:///{tmp_path}/left.db")
    with database.write() as tx:
        created = create_workflow(tx, WorkflowRecord(name="w", user="u"))
    with database.write() as tx:
        begin_deletion(tx, created, force=False)
    yield database
    database.close()


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError(NO_THREAD_MESSAGE)


def test_rows_that_a_server_left_are_deleted(left: Database) -> None:
    assert len(unfinished_deletions(left)) == 1
    thread = DeletionThread(left)
    thread.start()
    eventually(lambda: unfinished_deletions(left) == [])
    thread.close()


def test_without_such_rows_no_thread_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    database = open_database(f"sqlite:///{tmp_path}/empty.db")
    thread = DeletionThread(database)
    thread.start()
    thread.close()
    database.close()


def test_a_server_without_room_for_the_thread_starts(
    left: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows stay, and the log says so."""
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    thread = DeletionThread(left)
    with caplog.at_level(logging.ERROR):
        thread.start()
    thread.close()
    assert NO_THREAD_MESSAGE in caplog.text
    assert len(unfinished_deletions(left)) == 1
