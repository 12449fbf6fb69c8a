"""The screens over the main one in a real terminal: timeline, plots, attempts, verdicts, palette, at three looks."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from tui_bench import Terminal

Create = Callable[[dict[str, Any]], int]
LOOKS: dict[str, tuple[tuple[int, int], dict[str, str]]] = {
    "80x24": ((80, 24), {}),
    "80x24 without colours": ((80, 24), {"NO_COLOR": "1"}),
    "200x50": ((200, 50), {}),
}
"""Sizes and variables of terminals."""
COLOUR = re.compile(r"\x1b\[[0-9;]*3[1-6]m")
BUSY = "t=$(date +%s); while [ $(( $(date +%s) - t )) -lt 3 ]; do :; done"


@pytest.fixture(params=LOOKS)
def start(
    request: pytest.FixtureRequest, torc_env: dict[str, str], own_server: str, terminal: Terminal, work: Path
) -> Callable[[], None]:
    """Start the program with one of the looks; colours are there as the look says."""

    def call() -> None:
        size, variables = LOOKS[request.param]
        environment = {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color", **variables}
        terminal.start(size, environment, work)
        terminal.until("[SSE Live]")
        assert bool(COLOUR.search(terminal.screen(colours=True))) is ("NO_COLOR" not in variables)

    return call


def test_timeline_plots_and_attempts(
    create: Create, torc: Torc, terminal: Terminal, start: Callable[[], None], work: Path
) -> None:
    """A bar for each attempt, CPU and memory against what was requested, two attempts beside each other."""
    job = {
        "name": "work",
        "command": f"{BUSY}; test -e tried || {{ touch tried; exit 7; }}",
        "failure_handler": "again",
    }
    spec = {
        "name": "measured",
        "resource_monitor": {"granularity": "time_series", "sample_interval_seconds": 1},
        "failure_handlers": [{"name": "again", "rules": [{"exit_codes": [7], "max_retries": 2}]}],
        "jobs": [job],
    }
    assert torc("run", create(spec)).returncode == 0
    start()
    terminal.until("measured (workflow 1) completed")
    terminal.keys("v")
    terminal.until("2 attempts on 1 runner")
    shown = terminal.until("✓━")
    assert "✗━" in shown
    terminal.until("failed  work (job 1)")
    terminal.keys("Right")
    terminal.until("completed  work (job 1)")
    terminal.keys("+", "b")
    terminal.until("on 1 host")
    terminal.keys("l")
    terminal.until("[stdout]")
    terminal.keys("q")
    terminal.until("attempts  + - zoom")
    terminal.keys("q", "m")
    terminal.until("All jobs of measured (workflow 1), run 1")
    assert "offered" in terminal.until("█")
    terminal.keys("q", "2")
    terminal.until("1 of 1")
    terminal.keys("Right", "Enter")
    shown = terminal.until("2 attempts; the newest at the left")
    status = next(line for line in shown.splitlines() if line.startswith("  Status"))
    assert status.index("✓ completed") < status.index("✗ failed")
    assert "CPU and memory over time" in shown
    terminal.keys("m")
    terminal.until("work (job 1), run 1, attempt 2")
    terminal.keys("q", "q")
    terminal.until("1 of 1")


def test_verdicts(create: Create, torc: Torc, terminal: Terminal, start: Callable[[], None]) -> None:
    """Marked jobs are retried, the one under the cursor is let fail, each after a preview with its command."""
    job = {"name": "odd_{i}", "command": "exit 9", "parameters": {"i": "1:3"}}
    torc("run", create({"name": "odd", "use_pending_failed": True, "jobs": [job]}))
    start()
    terminal.until("waits for your verdict")
    terminal.until("(key p)")
    terminal.keys("p")
    terminal.until("3 jobs of odd for your verdict")
    terminal.until("odd_3")
    terminal.keys("Space", "Space")
    terminal.until("2 marked")
    terminal.keys("y")
    terminal.until("torc pending retry 1 1 2")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("1 job of odd for your verdict")
    terminal.until("odd_3")
    terminal.keys("x")
    terminal.until("torc pending fail 1 3")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("No job waits for a verdict.")
    terminal.keys("q")
    terminal.until("1 failed")
    assert torc("jobs", "list", 1, "--status", "ready").stdout.count("odd_") == 2


def test_the_palette_does_what_it_lists(create: Create, terminal: Terminal, start: Callable[[], None]) -> None:
    """Actions are found by a part of their name; Ctrl-Y copies the command, Enter does the action."""
    create({"name": "sweep", "jobs": [{"name": "a", "command": "true"}]})
    start()
    terminal.until("sweep (workflow 1) not started")
    terminal.keys(":")
    terminal.until("Actions")
    terminal.keys("execution")
    terminal.until("torc workflows execution-p")
    terminal.keys("C-y")
    terminal.until("copied   torc workflows execution-plan 1")
    terminal.keys("Enter")
    terminal.until("Total Stages: 1")
    terminal.keys("q", ":")
    terminal.until("Actions")
    terminal.keys("recover")
    terminal.until("no action is called so")
    terminal.keys("Enter")
    terminal.until("sweep (workflow 1) not started")
    terminal.keys("q")
    terminal.until("ended with 0")
