"""How much memory ``torc tui`` takes, and that it imports no executor which it does not need."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from programs import BIN, Torc
from pty_program import PtyProgram

MOST_MB = 55
"""Memory of the screens of a workflow whose jobs failed; with all executors' plugins it is 60 MB and more."""


def test_executors_are_not_imported(
    create: Callable[[dict[str, Any]], int], torc: Torc, torc_env: dict[str, str]
) -> None:
    """The overview of a workflow whose next step depends on no executor is shown without the executors' plugins."""
    torc("run", create({"name": "sweep", "jobs": [{"name": "train", "command": "false"}]}))
    environment = {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    with PtyProgram([str(BIN / "torc"), "tui"], environment, Path(torc_env["HOME"]), columns=80, lines=24) as program:
        program.until("Failures by cause")
        program.until("SSE")
        program.settle()
        assert program.memory_mb() < MOST_MB
