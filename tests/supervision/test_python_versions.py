"""The package runs under each Python version that a machine without torc may have."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from interpreters import interpreter

from torc_framework.api import AttemptEnded, AttemptWithdrawn
from torc_framework.api.supervision import launcher_event, package_sources

PROGRAM = Path(__file__).with_name("attempts_program.py")
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def run(version: str, folder: Path) -> dict[str, Any]:
    """Send the package to a folder, as it is sent to another machine, and run the program there."""
    python = interpreter(version)
    for name, text in package_sources().items():
        path = folder / "sent" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "work").mkdir()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "sent"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-X", "utf8", "-W", "error", str(PROGRAM), str(folder / "work")],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def ends(reports: dict[str, Any]) -> dict[int, Any]:
    """Return exit code, signal or reason of each end as a launcher reports it, by job id."""
    found: dict[int, Any] = {}
    for job, report in reports.items():
        match launcher_event("x", report):
            case AttemptEnded(observation=seen):
                found[int(job)] = seen.launch_error or (seen.exit_code, seen.signal)
            case AttemptWithdrawn():
                found[int(job)] = "withdrawn"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_attempts_run_under_each_python(version: str, tmp_path: Path) -> None:
    """Starts, ends, queues, stops, a killed supervisor, and adoption from a killed launcher."""
    answer = run(version, tmp_path)
    seen = ends(answer["endings"])
    assert "cannot start shell 'no-such-shell'" in seen.pop(4)
    assert "no such folder" in seen.pop(5)
    assert seen == {
        1: (7, None),
        2: (None, signal.SIGSEGV),
        3: (0, None),
        6: (None, signal.SIGKILL),
        7: (8, None),
        8: (0, None),
        9: (9, None),
        10: (10, None),
        11: "withdrawn",
        12: (12, None),
        13: (None, signal.SIGTERM),
        14: (14, None),
    }
    assert (tmp_path / "work" / "3.o").read_bytes() == f"{tmp_path / 'work'}\n".encode() + b"\xc3\xa4\xff\n"
    adoption = answer["adoption"]
    assert adoption["found"] == {
        "adopted": [[21, 1], [22, 1], [23, 1]],
        "never_started": [[25, 1]],
        "unknown": [],
    }
    assert adoption["pids"] == 2
    assert ends(adoption["reports"]) == {21: (21, None), 22: (22, None), 23: (None, signal.SIGTERM)}
    assert adoption["files"] == ["here.2.journal", "here.journal"]
    assert not adoption["left"]
    assert answer["facts"]["cpus"] >= 1
