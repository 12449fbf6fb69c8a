"""Commands that ``torc tui`` starts as children."""

from pathlib import Path

from tui_bench import tui_on
from waiting import eventually


def test_the_output_of_a_command_outlives_its_file(tmp_path: Path) -> None:
    """A screen that is being closed may ask for it once more."""
    commands = tui_on("http://127.0.0.1:9", tmp_path).setup.commands
    child = commands.start(["--version"])
    eventually(lambda: child.exit_code is not None)
    said = child.tail()
    assert said.startswith("torc ")
    commands.forget(child)
    assert child.output.closed
    assert child.tail() == said
