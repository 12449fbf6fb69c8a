"""The screens inside the test's process, on a real server: overview, jobs of real numbers, filters, logs, away."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PostgresServer
from programs import Torc, running_server
from textual.pilot import Pilot
from tui_bench import screen_text, tui_on, until

from torc_framework.tui.app import TuiApp

JOBS = 100_000
Steps = Callable[[TuiApp, "Pilot[None]"], Awaitable[None]]
Create = Callable[[dict[str, Any]], int]


def at(url: str, folder: Path, steps: Steps, size: tuple[int, int] = (100, 30)) -> None:
    """Run steps on the app in a screen of this size."""

    async def whole() -> None:
        app = tui_on(url, folder)
        async with app.run_test(size=size) as pilot:
            await steps(app, pilot)

    asyncio.run(whole())


@pytest.fixture
def failed(create: Create, torc: Torc) -> int:
    """A workflow of which a job failed."""
    train = {"name": "train_{i}", "command": "echo first; echo boom >&2; [ {i} != 2 ]", "parameters": {"i": "1:5"}}
    after = {"name": "after", "command": "true", "depends_on_regexes": ["train_.*"]}
    workflow = create({"name": "sweep", "jobs": [train, after]})
    torc("run", workflow)
    return workflow


def test_the_first_screen(failed: int, own_server: str, work: Path) -> None:
    """Without a key: the newest workflow, its sentence, what to do, failures by cause, groups."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        shown = await until(pilot, "Failures by cause")
        assert "sweep (workflow 1) failed: 4 of 6 jobs done, 1 failed, 1 canceled" in shown
        assert "Next: torc why-failed 1" in shown
        assert "train_#" in shown
        await until(pilot, "[SSE Live]")

    at(own_server, work, steps)


def test_from_a_cause_to_the_log(failed: int, own_server: str, work: Path) -> None:
    """By keys: the cause, its jobs, the log of one, a search in it, and back."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("right", "down", "enter")
        await until(pilot, "1 of 1")
        shown = screen_text(app)
        assert "train_2" in shown
        assert "train_1" not in shown
        await pilot.press("l")
        await until(pilot, "boom")
        await pilot.press("tab")
        await until(pilot, "first")
        await pilot.press("tab")
        await until(pilot, "boom")
        await pilot.press("slash", *"BOO", "enter")
        await pilot.pause(0.2)
        assert "no match" not in screen_text(app)
        await pilot.press("q", "enter")
        await until(pilot, "Return code")
        await pilot.press("q", "escape")
        await until(pilot, "1 of 6")

    at(own_server, work, steps)


def test_a_wrong_filter_and_what_is_not_offered(failed: int, own_server: str, work: Path) -> None:
    """The server's reason is in the footer; a key that does not fit says why."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("2", "slash", *"status:faild", "enter")
        await until(pilot, "did you mean")
        await pilot.press("escape")
        await until(pilot, "1 of 6")
        await pilot.press("C")
        await until(pilot, "is failed: nothing to cancel")
        await pilot.press("right", "home", "t")
        await until(pilot, "terminate is for jobs that are")

    at(own_server, work, steps)


@pytest.mark.parametrize("tab", "123456789")
def test_every_tab_in_a_small_and_a_wide_screen(failed: int, own_server: str, work: Path, tab: str) -> None:
    """No tab fails at any size, nor when the size changes."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "sweep")
        await pilot.press(tab, "right", "end", "home", "enter")
        for size in ((200, 50), (40, 10), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
        assert app.is_running

    at(own_server, work, steps, (80, 24))


def test_each_tab_reads_postgresql(postgres: PostgresServer, torc_env: dict[str, str], torc: Torc, work: Path) -> None:
    """Each list, its order and its filter are those of the server's other database, too."""
    train = {"name": "train_{i}", "command": "[ {i} != 2 ]", "parameters": {"i": "1:300"}}
    (work / "spec.json").write_text(json.dumps({"name": "sweep", "jobs": [train]}))
    (work / "server").mkdir()
    with postgres.database() as database, running_server(work / "server", "--database", database) as url:
        torc_env["TORC_API_URL"] = url
        assert torc("run", "spec.json", "--max-parallel-jobs", 8).returncode == 1

        async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
            await until(pilot, "Failures by cause")
            for key, text in (("2", "1 of 300"), ("4", "job_completed"), ("5", "success"), ("7", "ended")):
                await pilot.press(key, "right", "end", "home")
                await until(pilot, text)
            await pilot.press("2", "end", "less_than_sign", *"-seconds", "enter")
            await until(pilot, "by -seconds")
            await pilot.press("slash", *"status:failed", "enter")
            await until(pilot, "1 of 1 ")
            await pilot.press("8")
            await until(pilot, "300 jobs, 0 dependencies")

        at(url, work, steps)


def test_a_job_of_100_000(create: Create, own_server: str, work: Path) -> None:
    """The last row, a filter and an order of the server."""
    train = {"name": "train_{i}", "command": "true", "parameters": {"i": f"1:{JOBS}"}}
    create({"name": "large", "jobs": [train]})

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "100,000 jobs")
        await pilot.press("2", "right")
        await until(pilot, "1 of 100,000")
        await pilot.press("end")
        await until(pilot, f"train_{JOBS}")
        await pilot.press("slash", *"train_99999", "enter")
        await until(pilot, "1 of 1")
        await pilot.press("escape", "less_than_sign", *"-id", "enter")
        await until(pilot, "by -id")
        await until(pilot, f"train_{JOBS}")
        await pilot.press("8")
        await until(pilot, "100,000 jobs, 0 dependencies")

    at(own_server, work, steps)


def test_hostile_names(create: Create, own_server: str, work: Path) -> None:
    """Control sequences in names and logs do not reach the terminal."""
    create({"name": "\x1b]0;x\x07evil\u202e", "jobs": [{"name": "a\x1b[2Jb\nc [red]d[/]", "command": "true"}]})

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "evil")
        await pilot.press("2")
        shown = await until(pilot, "[red]d[/]")
        assert "\x1b" not in shown
        assert "\u202e" not in shown

    at(own_server, work, steps)
