"""Accounting queries that the runners of a workflow share."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from attrs import define, field
from torc_slurm.accounting import shared_accounting
from torc_slurm.accounting.shared_accounting import SharedAccounting, SharedAnswer
from torc_slurm.accounting.step_accounting import StepAccounting
from torc_slurm.accounting.step_rows import SACCT_FIELDS, StepRow
from torc_slurm.calls.call_log import CallLog
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.processes.reactor import Reactor

PATIENCE_S = 60.0
ANSWER = f"""
for step in $(echo "$4" | tr , ' '); do echo "$step|name|COMPLETED{"|" * (len(SACCT_FIELDS) - 3)}"; done
"""


@define
class AccountingClient:
    """The accounting of one of several runners; collects the reported rows."""

    reactor: Reactor
    accounting: StepAccounting
    reported: dict[str, tuple[StepRow | None, str]] = field(factory=dict)

    def want(self, *steps: str) -> None:
        for step in steps:
            self.accounting.request_row(step, partial(self._take, step))

    def _take(self, step: str, row: StepRow | None, why: str) -> None:
        self.reported[step] = (row, why)


_MADE: list[AccountingClient] = []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    sacct(tmp_path, ANSWER)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    yield tmp_path
    while _MADE:
        made = _MADE.pop()
        made.accounting.close()
        made.reactor.close()


def sacct(folder: Path, body: str) -> None:
    program = folder / "bin" / "sacct"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "$4" >> {folder}/calls\n{body}\n')
    program.chmod(0o755)


def runner(site: Path, number: int, *, interval_s: float = 0.5, patience_s: float = 30.0) -> AccountingClient:
    reactor = Reactor()
    shared = SharedAccounting(site / "shared", f"n{number}", patience_s)
    slurm = SlurmCommands("test", CallLog(site / "call_log"))
    _MADE.append(AccountingClient(reactor, StepAccounting(slurm, reactor, interval_s, patience_s, shared)))
    return _MADE[-1]


def until(runners: list[AccountingClient], condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        select.select([each.reactor for each in runners], [], [], 0.2)
        for each in runners:
            each.reactor.run()


def calls(site: Path) -> list[str]:
    path = site / "calls"
    return path.read_text().splitlines() if path.exists() else []


def all_reported(runners: list[AccountingClient], wave: int) -> bool:
    """Return whether each runner got its rows of a wave."""
    return all(f"{number}.{wave}" in each.reported for number, each in enumerate(runners))


def test_a_hundred_runners_query_as_often_as_one(site: Path) -> None:
    """The first queries its own steps. During its query and the pause after it, the others write their wanted steps."""
    runners = [runner(site, number) for number in range(100)]
    for wave in range(3):
        for number, each in enumerate(runners):
            each.want(f"{number}.{wave}")
        until(runners, partial(all_reported, runners, wave))
    assert all(row is not None for each in runners for row, _ in each.reported.values())
    assert len(calls(site)) <= 3 * 4
    for each in runners:
        each.accounting.close()
    assert sorted(path.name for path in (site / "shared").iterdir()) == ["answer.json"]


def test_one_runner_writes_no_wants(site: Path) -> None:
    """If no other runner queries, only the answer is written."""
    alone = runner(site, 0)
    alone.want("1.0", "1.1")
    until([alone], lambda: len(alone.reported) == 2)
    assert calls(site) == ["1.0,1.1"]
    assert [path.name for path in (site / "shared").iterdir()] == ["answer.json"]


CHILD = """
import select, sys
from pathlib import Path
from torc_slurm.accounting.step_accounting import StepAccounting
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.call_log import CallLog
from torc_slurm.processes.reactor import Reactor
from torc_slurm.accounting.shared_accounting import SharedAccounting
site, reactor = Path(sys.argv[1]), Reactor()
shared = SharedAccounting(site / "shared", "dying", 30.0)
accounting = StepAccounting(SlurmCommands("test", CallLog(site / "call_log")), reactor, 0.1, 30.0, shared)
accounting.request_row("9.0", print)
while True:
    select.select([reactor], [], [])
    reactor.run()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_no_row_is_lost_with_the_querying_runner(
    site: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """It is killed, or stopped, during a query for all."""
    monkeypatch.setattr(shared_accounting, "STALE_TURN_S", 3.0)
    sacct(site, f"case $4 in *9.0*) touch {site}/asking; exec sleep 1000;; esac\n{ANSWER}")
    dying = subprocess.Popen([sys.executable, "-c", CHILD, str(site)], start_new_session=True)
    try:
        until([], (site / "asking").exists)
        other = runner(site, 1)
        other.want("1.0")
        until([other], (site / "shared" / "wants_n1").exists)
        os.killpg(dying.pid, number)
        until([other], lambda: other.reported)
        assert other.reported["1.0"][0] is not None
    finally:
        os.killpg(dying.pid, signal.SIGKILL)
        dying.wait()


def test_a_long_query_keeps_its_turn(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The querying runner touches its turn file."""
    monkeypatch.setattr(shared_accounting, "STALE_TURN_S", 1.5)
    sacct(site, f"sleep 3\n{ANSWER}")
    runners = [runner(site, number) for number in range(3)]
    for number, each in enumerate(runners):
        each.want(f"{number}.0")
    until(runners, lambda: any(each.reported for each in runners))
    assert len(calls(site)) == 1
    until(runners, lambda: all(each.reported for each in runners))


def test_unavailable_accounting_pauses_all_runners(site: Path) -> None:
    """The failure of one query counts for the others."""
    sacct(site, "echo 'sacct: error: Unable to contact slurm controller' >&2; exit 1")
    runners = [runner(site, number, patience_s=4.0) for number in range(10)]
    for number, each in enumerate(runners):
        each.want(f"{number}.0")
    until(runners, lambda: all(each.reported for each in runners))
    assert len(calls(site)) <= 6
    whys = [why for each in runners for _, why in each.reported.values()]
    assert all("Slurm" in why for why in whys), whys


@pytest.mark.parametrize("hurdle", ["a file", "a turn that is a folder"])
def test_without_a_usable_folder_each_runner_queries_alone(site: Path, hurdle: str) -> None:
    if hurdle == "a file":
        (site / "shared").touch()
    else:
        (site / "shared" / "answer.json").mkdir(parents=True)
    runners = [runner(site, number, interval_s=0.05) for number in range(3)]
    for number, each in enumerate(runners):
        each.want(f"{number}.0")
    until(runners, lambda: all(each.reported for each in runners))
    assert sorted(calls(site)) == ["0.0", "1.0", "2.0"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"mark": []}', '{"asked_at": 5}', '{"pause_s": "x"}', "\udcff"]
)
def test_a_broken_answer_is_ignored(site: Path, text: str) -> None:
    shared = SharedAccounting(site / "shared", "n0", 30.0)
    assert shared.folder.parent.exists()
    shared.folder.mkdir()
    (shared.folder / "answer.json").write_bytes(text.encode(errors="surrogateescape"))
    assert shared.last_answer() in (SharedAnswer(), SharedAnswer(mark="[]"))


def test_wanted_steps_of_dead_runners_are_removed(site: Path) -> None:
    dead, living, old = (SharedAccounting(site / "shared", name, 1.0) for name in ("dead", "living", "old"))
    for each in (dead, living, old):
        each.set_wanted([f"{len(each.owner)}.0", "no step", "1.0 -u root"])
    then = time.time() - 1000
    os.utime(site / "shared" / "wants_dead", (then, then))
    assert old.take_turn()
    assert old.all_wanted(["7.7"]) == ["7.7", "6.0"]
    assert not (site / "shared" / "wants_dead").exists()
