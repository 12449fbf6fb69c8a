"""Supervised attempts in a temporary folder, and a way to wait for their ends."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local_bench import children
from waiting import eventually

from torc_framework.api import AttemptEnded
from torc_framework.api.supervision import AttemptCommand, SupervisedAttempts, launcher_event

Start = Callable[..., "Attempts"]


def keys(*jobs: int) -> list[tuple[int, int]]:
    """Return first attempts of jobs."""
    return [(job, 1) for job in jobs]


class Attempts(SupervisedAttempts):
    """Supervised attempts with the reports that they have given."""

    def __init__(self, journal: Path, **options: Any) -> None:
        super().__init__(journal, **options)
        self.folder = journal.parent.parent
        self.seen: dict[int, list[Any]] = {}

    def run(self, *jobs: tuple[int, str], **changes: Any) -> None:
        """Start attempts of these jobs."""
        self.start(self.command(job, text, **changes) for job, text in jobs)

    def command(self, job: int, text: str, **changes: Any) -> AttemptCommand:
        """Return an attempt of a command that leaves no logs."""
        values: dict[str, Any] = {
            "environment": {},
            "stdout": os.devnull,
            "stderr": os.devnull,
            "working_dir": str(self.folder),
        }
        values["environment"] = {"TORC_JOB_ID": str(job), "TORC_ATTEMPT_ID": "1"}
        return AttemptCommand(job, 1, text, **(values | changes))

    def ends(self, *jobs: int) -> list[Any]:
        """Wait for the ends of these jobs; return exit code, signal, launch error or ``lost`` of each."""

        def poll() -> bool:
            select.select([self], [], [], 0.05)
            for report in self.poll():
                known = self.seen.setdefault(report[1], [])
                assert not any(kind != "S" for kind, *_ in known), f"an end was reported twice: {report}"
                known.append(report)
            return all(self.seen.get(job, [["S"]])[-1][0] != "S" for job in jobs)

        eventually(poll, lambda: self.seen, pause_s=0)
        return [self.end_of(job) for job in jobs]

    def end_of(self, job: int) -> Any:
        """Return the reported end of a job."""
        event = launcher_event("x", self.seen[job][-1])
        assert isinstance(event, AttemptEnded)
        seen = event.observation
        return "lost" if seen.lost else seen.launch_error or seen.signal or seen.exit_code

    def journal_names(self) -> list[str]:
        """Return the names of the files in the state folder."""
        return sorted(path.name for path in self.state_folder().iterdir())

    def state_folder(self) -> Path:
        """Return the folder of the journals."""
        return Path(self.state()["journal"]).parent

    def supervisor(self) -> int:
        """Return the pid of the present supervisor."""
        return eventually(lambda: children(self._reapers[-1]), "no supervisor")[0]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begin supervised attempts on a journal; they are closed at the end, their attempts killed."""
    begun: list[Attempts] = []

    def make(folder: Path = tmp_path, name: str = "here", **options: Any) -> Attempts:
        begun.append(Attempts(folder / "state" / f"{name}.journal", **options))
        return begun[-1]

    yield make
    for each in begun:
        if not each._epoll.closed:
            each.stop(each._orders.keys() | each._orphans._followed.keys(), signal.SIGKILL)
            each.close()
