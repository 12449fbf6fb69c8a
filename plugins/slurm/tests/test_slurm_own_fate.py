"""An allocation that is being ended."""

from pathlib import Path

import pytest
from torc_slurm import own_fate
from torc_slurm.door import Door
from torc_slurm.ledger import Ledger
from torc_slurm.own_fate import OwnFate


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("RUNNING", None),
        ("", None),
        ("PREEMPTED", "PREEMPTED"),
        ("CANCELLED by 1001", "CANCELLED by 1001"),
        ("A_WORD_OF_TOMORROW", None),
    ],
)
def test_what_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, state: str | None) -> None:
    """Only an end counts; one that is known is not asked about again, and one that goes on not at once."""
    program = tmp_path / "sacct"
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    fate = OwnFate(Door("runner", Ledger(tmp_path / "calls")), 10.0)
    assert [fate.state(7), fate.state(7)] == [state, state]
    assert (tmp_path / "asked").read_text() == "asked\n"
    monkeypatch.setattr(own_fate, "AGAIN_S", 0.0)
    fate.state(7)
    assert (tmp_path / "asked").read_text() == "asked\n" * (1 if state else 2)


def test_nobody_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it goes on, as far as anybody knows."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert OwnFate(Door("runner", Ledger(tmp_path / "calls")), 10.0).state(7) is None
