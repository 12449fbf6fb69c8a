"""How many bytes ``torc tui`` writes for a key, in each tab, at several sizes and with and without colours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, Torc
from pty_program import PtyProgram

Create = Callable[[dict[str, Any]], int]
MOST_BYTES = 512
"""What a step of the cursor may write."""
DOWN, UP, RIGHT, LEFT = "\x1b[B", "\x1b[A", "\x1b[C", "\x1b[D"
LOOKS = {
    "256 colours": {"TERM": "xterm-256color"},
    "16 colours": {"TERM": "xterm"},
    "NO_COLOR": {"TERM": "xterm-256color", "NO_COLOR": "1"},
}
TABS = {"1": "Failures by cause", "2": "train_5", "4": "job_completed", "5": "user_error", "8": "dependencies"}
"""Tabs with several rows by their keys, and what stands in a row."""
QUIET_S = 0.6
SETTLE_S = 1.5
"""Silence before a key is measured: on a loaded machine the last answer about a tab may come late."""


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
def test_a_step_writes_little(
    create: Create, torc: Torc, torc_env: dict[str, str], look: str, size: tuple[int, int]
) -> None:
    """A step draws two lines and the place in the footer; without a key nothing is written."""
    train = {"name": "train_{i}", "command": "[ {i} != 2 ]", "parameters": {"i": "1:12"}}
    torc("run", create({"name": "sweep", "jobs": [train]}))
    environment = {**torc_env, "LANG": "C.UTF-8", **LOOKS[look]}
    command = [str(BIN / "torc"), "tui"]
    with PtyProgram(command, environment, Path(torc_env["HOME"]), columns=size[0], lines=size[1]) as program:
        program.until("Failures by cause")
        program.until("SSE")
        program.settle(SETTLE_S)
        assert dearest(program, RIGHT, LEFT, RIGHT) <= MOST_BYTES
        for key, row in TABS.items():
            piece = program.settle(QUIET_S)
            if key != "1":
                program.type(key)
                program.until(row, piece)
            program.settle(SETTLE_S)
            written = dearest(program, DOWN, DOWN, UP)
            assert written <= MOST_BYTES, f"{written} bytes for a step in tab {key}"
        assert dearest(program, "", "", "") == 0


def dearest(program: PtyProgram, *keys: str) -> int:
    """Return the bytes of the dearest of these keys."""
    return max(program.bytes_for(key, QUIET_S) for key in keys)
