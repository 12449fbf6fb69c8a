"""Fixtures of the tests of ``torc tui``."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from tui_bench import Terminal, tmux

Create = Callable[[Mapping[str, Any]], int]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal of tmux."""
    with tmux(tmp_path / "tmux") as found:
        yield found


@pytest.fixture
def create(torc: Torc, own_server: str, work: Path) -> Create:
    """Create a workflow from a spec; return its id."""

    def call(spec: Mapping[str, Any]) -> int:
        (work / "spec.json").write_text(json.dumps(spec))
        done = torc("-f", "json", "workflows", "create", "spec.json")
        assert done.returncode == 0, done.stderr
        return int(json.loads(done.stdout)["workflow_id"])

    return call
