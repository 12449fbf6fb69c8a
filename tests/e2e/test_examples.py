"""Every example runs as it stands, in an empty folder."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in {".yaml", ".json5", ".kdl", ".json"})


@pytest.mark.parametrize("name", FILES)
def test_an_example_runs(torc: Any, server: str, name: str) -> None:
    """To the end, with the exit code that its name promises."""
    done = torc("run", EXAMPLES / name, "-f", "json", env={"TORC_API_URL": server})
    expected = 1 if name.startswith("failing_") else 0
    assert done.returncode == expected, done.stdout + done.stderr
    assert json.loads(done.stdout)["is_complete"]


def test_there_are_enough_examples() -> None:
    """A dozen different ones at least."""
    assert len({name.partition(".")[0] for name in FILES}) >= 12
