"""Sessions with helpers that are processes of this machine, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from local_connection import LocalConnection
from torc_ssh.session import HostSession

T = TypeVar("T")
PATIENCE_S = 30.0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, with a deadline."""

    async def with_deadline() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await coroutine

    return asyncio.run(with_deadline())


class Recorder:
    """The events of a helper."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def reports(self, kind: str = "") -> list[list[Any]]:
        """Return the reports of attempts, of one kind or all."""
        found = [report for event in self.events if event["event"] == "attempts" for report in event["reports"]]
        return [report for report in found if kind in ("", report[0])]

    async def until(self, condition: Callable[["Recorder"], T]) -> T:
        """Wait until a condition holds; return its value."""
        return await until(lambda: condition(self))


async def until(condition: Callable[[], T]) -> T:
    """Wait until a condition holds; return its value."""
    while not (value := condition()):
        await asyncio.sleep(0.01)
    return value


@asynccontextmanager
async def local_session(
    home: Path, *, python: str = "python3", on_event: Callable[[dict[str, Any]], None] | None = None, **how: Any
) -> AsyncIterator[HostSession]:
    """A session with a helper on this machine, whose home is a folder; ``how`` is as in `LocalConnection`."""
    home.mkdir(exist_ok=True)
    connection = LocalConnection(home, **how)
    session = await HostSession.open(connection, python=python, on_event=on_event)
    try:
        yield session
    finally:
        await session.close()
        await connection.close()


def command(home: Path, job: int, text: str, *, attempt: int = 1, lane: int | None = None, **more: Any) -> list[Any]:
    """Return the values of an `AttemptCommand` whose output goes to ``out<job>`` in the home folder."""
    out = str(home / f"out{job}")
    lane = job if lane is None else lane
    environment, limit = more.get("environment", {}), more.get("memory_limit_bytes")
    return [job, attempt, text, environment, out, out, str(home), lane, more.get("shell", "sh"), limit]
