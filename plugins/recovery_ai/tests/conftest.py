"""Scripted agents: programs that stand where an assistant stands, and say that they are scripts."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, Failure, PendingContext

WRITES = "import sys\nsys.stdin.read()\nprint({text!r})\n"
Settings = Callable[..., dict[str, Any]]


@pytest.fixture
def agent(tmp_path: Path) -> Settings:
    """Write a scripted agent; return the settings by which it is asked."""

    def write(source: str, *arguments: str, **settings: Any) -> dict[str, Any]:
        path = tmp_path / "scripted_agent.py"
        path.write_text(source)
        return {"ai_agent": "custom", "command": (sys.executable, str(path), *arguments), **settings}

    return write


@pytest.fixture
def says(agent: Settings) -> Settings:
    """Like `agent`, for one that writes a text or a document."""

    def write(answer: Any, **settings: Any) -> dict[str, Any]:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return agent(WRITES.format(text=text), **settings)

    return write


@pytest.fixture
def failure(tmp_path: Path) -> Callable[..., Failure]:
    """Make a failure of job 1, or another, whose log holds a text."""

    def make(log: str = "", *, job_id: int = 1, code: int = 1, **fields: Any) -> Failure:
        path = tmp_path / f"{job_id}.e"
        path.write_text(log)
        verdict = ExitVerdict(fields.pop("exit_class", ExitClass.USER_ERROR), "it ended so")
        seen = ExitObservation("local", exit_code=code)
        return Failure(
            7, job_id, f"job{job_id}", fields.pop("attempt_id", 1), code, seen, verdict, stderr_path=str(path)
        )

    return make


@pytest.fixture
def context(tmp_path: Path) -> Callable[[dict[str, Any]], PendingContext]:
    """Make a context of workflow 7 with these settings."""
    return lambda settings: PendingContext(7, str(tmp_path), settings, {"TORC_API_URL": "http://127.0.0.1:1"})
