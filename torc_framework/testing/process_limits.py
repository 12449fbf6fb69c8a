"""A pytest fixture: a control group whose processes are limited in number.

Name it in a ``conftest.py``: ``from torc_framework.testing import process_limit``. A test is skipped
where no such group can be made: that takes root, and a ``pids`` controller.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

__all__ = ["ProcessLimit", "process_limit"]

PATIENCE_S: Final = 10.0
"""How long the processes of a group may take to end after the test."""


@frozen
class ProcessLimit:
    """A control group of few processes.

    Attributes:
        folder: What it is in the file system; a process enters it by writing 0 to ``cgroup.procs``.
    """

    folder: Path

    def set(self, number: int) -> None:
        """Set the most processes and threads in the group."""
        (self.folder / "pids.max").write_text(str(number))

    def count(self) -> int:
        """Return how many processes and threads are in the group."""
        return int((self.folder / "pids.current").read_text())


@pytest.fixture
def process_limit(tmp_path: Path) -> Iterator[ProcessLimit]:
    """Provide a control group with a limited number of processes; wait at the end until all of them have ended."""
    for parent in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        folder = parent / f"torc_test_{os.getpid()}_{tmp_path.name}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "pids.max").exists():
            break
        folder.rmdir()
    else:
        pytest.skip("no control group that counts processes can be made here")
    yield ProcessLimit(folder)
    deadline = time.monotonic() + PATIENCE_S
    while (folder / "cgroup.procs").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    folder.rmdir()
