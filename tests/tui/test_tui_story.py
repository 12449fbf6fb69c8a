"""Why did 37 of 5,000 jobs fail, and how are they done: by keys alone, in a real terminal."""

import json
from pathlib import Path

import pytest
from programs import Torc
from tui_bench import Terminal

LOOKS: dict[str, tuple[int, int, tuple[int, int], dict[str, str]]] = {
    "80x24": (5000, 135, (80, 24), {}),
    "80x24 without colours": (480, 13, (80, 24), {"NO_COLOR": "1"}),
    "200x50": (480, 13, (200, 50), {}),
}
"""Numbers of jobs, of which each in so many fails, sizes and variables of terminals."""


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_37_of_5000(torc: Torc, torc_env: dict[str, str], terminal: Terminal, work: Path, look: str) -> None:
    """From the overview to the cause, its log, the retry of the 37, and the end of the workflow."""
    count, each, size, variables = LOOKS[look]
    fails = f"[ ! -e fixed ] && [ $(( {{i}} % {each} )) = 7 ]"
    case = {
        "name": "case_{i}",
        "command": f'if {fails}; then echo "cannot read /data/{{i}}.csv" >&2; exit 3; fi',
        "parameters": {"i": f"1:{count}"},
    }
    report = {"name": "report", "command": "true", "depends_on_regexes": ["case_.*"]}
    (work / "study.json").write_text(json.dumps({"name": "study", "jobs": [case, report]}))
    assert torc("run", "study.json", timeout=600).returncode == 1

    terminal.start(size, {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color", **variables}, work)
    terminal.until("37 failed")
    terminal.until("cannot read /data/7.csv")
    terminal.keys("Right", "Down", "Enter")
    terminal.until("1 of 37")
    terminal.keys("l")
    terminal.until("[stderr]")
    terminal.until("cannot read /data/7.csv")
    terminal.keys("q")
    terminal.until("1 of 37")

    (work / "fixed").touch()
    terminal.keys("T")
    terminal.until("Would retry 37 jobs")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("waiting")
    terminal.keys("x")
    terminal.until("37 jobs are ready to run")
    terminal.keys("y")
    terminal.until(f"completed: {count + 1:,} jobs")
    terminal.keys("q")
    terminal.until(f"{count + 1:,}/{count + 1:,}")
    terminal.keys("q")
    terminal.until("ended with 0")
