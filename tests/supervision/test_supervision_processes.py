"""The identity of processes."""

import os
import subprocess
from pathlib import Path

from waiting import eventually

from torc_framework.supervision.processes import process_start


def test_a_process_that_its_parent_has_not_waited_for_has_ended() -> None:
    """It is still listed, with its start."""
    assert process_start(os.getpid()) is not None
    with subprocess.Popen(["true"]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "the process does not end")
        assert process_start(process.pid) is None
