"""The server goes away, comes back, or says nothing: what is shown keeps its age, and every key answers."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import Torc
from textual.pilot import Pilot
from tui_bench import OwnServer, Terminal, footer_of, screen_text, tui_on, until
from waiting import eventually

from torc_framework.tui.app import TuiApp


@pytest.fixture
def server(tmp_path: Path, torc: Torc, work: Path) -> Iterator[OwnServer]:
    """A server of this test's own, with a workflow of 300 jobs."""
    own = OwnServer(tmp_path / "server")
    own.start()
    try:
        train = {"name": "train_{i}", "command": "true", "parameters": {"i": "1:300"}}
        (work / "spec.json").write_text(json.dumps({"name": "sweep", "jobs": [train]}))
        assert torc("workflows", "create", "spec.json", env={"TORC_API_URL": own.url}).returncode == 0
        yield own
    finally:
        own.close()


def test_killed_and_started_again(server: OwnServer, work: Path) -> None:
    """What is shown stays, with its age; the list goes on when the server is back."""

    async def whole() -> None:
        app = tui_on(server.url, work)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, "[SSE Live]")
            await pilot.press("2", "right")
            await until(pilot, "1 of 300")
            server.signal(signal.SIGKILL)
            await pilot.press("end", "r")
            shown = await until(pilot, "could not connect, data is ")
            assert "train_" in shown
            await press_everything(app, pilot)
            await until(pilot, "old")
            server.start()
            await until(pilot, "[SSE Live]")
            await pilot.press("2", "right")
            await until(pilot, "1 of 300")
            await pilot.press("end")
            await until(pilot, "300 of 300")
            assert "could not connect" not in screen_text(app)

    asyncio.run(whole())


def test_stopped_while_nothing_is_asked(server: OwnServer, work: Path) -> None:
    """A server that is stopped ends no event stream; without a key the header tells it all the same."""

    async def whole() -> None:
        app = tui_on(server.url, work)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, "[SSE Live]")
            server.signal(signal.SIGSTOP)
            await until(pilot, "no answer for ")
            assert "data is " in screen_text(app)
            server.signal(signal.SIGCONT)
            await until(pilot, "[SSE Live]")

    asyncio.run(whole())


def test_stopped(server: OwnServer, work: Path) -> None:
    """A server that says nothing holds up no key; the header tells for how long; then the answers are drawn."""

    async def whole() -> None:
        app = tui_on(server.url, work)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, "[SSE Live]")
            server.signal(signal.SIGSTOP)
            await pilot.press("2", "right")
            await press_everything(app, pilot)
            await pilot.press("4")
            assert "EVENT" in screen_text(app)
            await until(pilot, "no answer for ")
            assert "data is " in screen_text(app)
            await pilot.press("2", "question_mark")
            assert "Keys" in screen_text(app)
            await pilot.press("q")
            server.signal(signal.SIGCONT)
            await until(pilot, "of 300")
            assert "no answer" not in screen_text(app) or await until(pilot, "[SSE Live]")

    asyncio.run(whole())


def test_quit_while_the_server_says_nothing(
    server: OwnServer, torc_env: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """The program ends although its requests are under way."""
    environment = {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color", "TORC_API_URL": server.url}
    terminal.start((80, 24), environment, work)
    terminal.until("[SSE Live]")
    server.signal(signal.SIGSTOP)
    terminal.keys("2", "Right", "r", "4", "q")
    eventually(lambda: "ended with 0" in terminal.screen(), terminal.screen, patience_s=20)


def test_no_server_at_the_start(server: OwnServer, work: Path) -> None:
    """The screens are there without one, and fill when it starts."""
    server.signal(signal.SIGKILL)

    async def whole() -> None:
        app = tui_on(server.url, work)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, "could not connect")
            await press_everything(app, pilot)
            server.start()
            await until(pilot, "sweep")

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (["enter"], "q close"),
        (["3", "2", "enter"], "q close"),
        (["3", "2", "l"], "q close"),
        (["m"], "Resource use"),
        (["d"], "Deletes 300 jobs"),
    ],
)
def test_escape_gives_up_what_has_not_come(server: OwnServer, work: Path, keys: list[str], shown: str) -> None:
    """A screen whose content, or whose row, comes after Escape is not shown; one that is still wanted is."""

    async def whole() -> None:
        app = tui_on(server.url, work)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, "[SSE Live]")
            await pilot.press("2", "right")
            await until(pilot, "1 of 300")
            server.signal(signal.SIGSTOP)
            await pilot.press(*keys)
            await pilot.pause()  # until the app has got the message of the table
            await pilot.press("escape")
            assert app.main.details.has_focus, "Escape did that alone"
            server.signal(signal.SIGCONT)
            await until(pilot, "1 of 300")
            await pilot.pause(0.5)
            await pilot.press("r", "end")
            await until(pilot, "300 of 300")
            await pilot.press(*keys)
            await until(pilot, shown)

    asyncio.run(whole())


def test_another_screen_gives_up_what_has_not_come(server: OwnServer, work: Path) -> None:
    """The question of a deletion that comes late does not take the keys that are meant for the screen shown since."""

    async def whole() -> None:
        app = tui_on(server.url, work)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, "[SSE Live]")
            server.signal(signal.SIGSTOP)
            await pilot.press("2", "right", "l", "d", "question_mark")
            await until(pilot, "Shift-Tab")
            server.signal(signal.SIGCONT)
            await pilot.pause(0.5)
            await until(pilot, "Shift-Tab")
            await pilot.press("q", "r", "2", "right", "end")
            await until(pilot, "300 of 300")
            await pilot.press("d")
            await until(pilot, "Deletes 300 jobs")

    asyncio.run(whole())


async def press_everything(app: TuiApp, pilot: "Pilot[None]") -> None:
    """Press keys of all kinds; each is answered at once, and none needs the server."""
    for key in ("down", "up", "pagedown", "end", "home", "3", "6", "7", "8", "1", "2", "enter", "escape", "right"):
        await pilot.press(key)
        await pilot.pause()  # until the app has got what a widget says about the key
        assert footer_of(app)
