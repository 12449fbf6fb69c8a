"""The tutorial "From a failed run to a finished one, in the terminal", step by step in a real terminal."""

import subprocess
from pathlib import Path

from doc_pages import DOCS, blocks
from tui_bench import Terminal

PAGE = "tutorials/a-failed-run-in-the-terminal.md"


def test_the_tutorial(torc_env: dict[str, str], terminal: Terminal, work: Path) -> None:
    """Its spec, its commands and its keys do what it says; each text that it quotes is on the screen."""
    text = " ".join((DOCS / PAGE).read_text().split())
    spec, console = blocks(PAGE)
    mend = "touch calibration_2.txt"
    assert f"```console {mend} ```" in text
    (work / str(spec.file)).write_text(spec.text)
    commands = console.text.strip().split("\n")

    def see(quoted: str) -> None:
        assert f"`{quoted}`" in text
        terminal.until(quoted)

    terminal.shell((100, 30), {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}, work)
    terminal.until("$")
    assert commands[-1] == "torc tui"
    for command in commands:
        terminal.keys(command, "Enter")
    terminal.until("Failures by cause")
    see("fit (workflow 1) failed: 6 of 10 jobs done, 3 failed, 1 canceled")
    see("calibration_2.txt is missing")
    terminal.keys("Right", "Down", "Enter")
    terminal.until("1 of 3")
    for name in ("fit_2", "fit_5", "fit_8"):
        see(name)
    terminal.keys("l")
    terminal.until("[stderr]")
    terminal.until("calibration_2.txt is missing")
    terminal.keys("q")
    terminal.until("1 of 3")
    subprocess.run(mend, shell=True, cwd=work, check=True)
    terminal.keys("T")
    see("torc jobs retry")
    terminal.until("Would retry 3 jobs: fit_2, fit_5, fit_8; with what follows them 4 jobs run again.")
    assert "`Would retry 3 jobs: fit_2, fit_5, fit_8; with what follows them 4 jobs run again.`" in text
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q", "x")
    terminal.until("y do it")
    terminal.keys("y")
    see("✓ done")
    terminal.keys("q")
    see("✓ completed")
    terminal.keys("v")
    terminal.until("on 2 runners")
    terminal.keys("q", "q")
    terminal.until("$")
