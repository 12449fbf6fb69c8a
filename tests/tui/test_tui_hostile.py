"""Names with control sequences, newlines, wide characters, markup and marks of direction, in every tab and dialog."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from tui_bench import screen_text, tui_on, until

Create = Callable[[dict[str, Any]], int]
EVIL = "\x1b[2J\x1b]0;t\x07evil\r\n[red]m[/] \u202e\u2066x\u200b 表表 e\u0301 \x9b31m"
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\n"] + ["\u202e", "\u2066"]


@pytest.fixture
def hostile(create: Create, torc: Torc, work: Path) -> int:
    """A workflow whose every name is hostile, of which a job failed with a hostile log."""
    (work / "log").write_bytes(EVIL.encode() + b"\xff\xfe\n")
    spec = {
        "name": f"w {EVIL}",
        "description": EVIL,
        "jobs": [
            {"name": f"a {EVIL}", "command": "cat log; cat log >&2; exit 3", "input_files": ["in"]},
            {"name": f"b {EVIL}", "command": f"echo '{EVIL}'", "depends_on": [f"a {EVIL}"]},
        ],
        "files": [{"name": "in", "path": "log"}],
    }
    workflow = create(spec)
    torc("run", workflow)
    return workflow


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_hostile_names_everywhere(hostile: int, own_server: str, work: Path, size: tuple[int, int]) -> None:
    """No control character reaches a screen, each screen keeps its width, and the program runs on."""

    async def whole() -> None:
        app = tui_on(own_server, work)
        async with app.run_test(size=size) as pilot:

            async def look() -> None:
                await pilot.pause(0.3)
                shown = screen_text(app)
                assert not [character for character in CONTROLS if character in shown]
                assert app.is_running

            await until(pilot, "Failures by cause")
            await look()
            for tab in "2345678":
                await pilot.press(tab, "right", "home")
                await look()
                await pilot.press("enter")
                await look()
                await pilot.press("escape")
            await pilot.press("2", "right", "home")
            await until(pilot, "表表")
            for key in ("l", "y", "d", "R", "W", "e", "P", "colon", "question_mark", "slash", "n"):
                await pilot.press(key)
                await look()
                await pilot.press("escape")
                await look()
        app.setup.close()
        for child in [*app.setup.commands.all]:
            app.setup.commands.forget(child)

    asyncio.run(whole())


def test_names_of_10000_wide_characters(create: Create, torc: Torc, own_server: str, work: Path) -> None:
    """They hide nothing that stands beside them."""
    name = 5000 * "表" + "\u202e" + 5000 * "x"
    torc("run", create({"name": name, "jobs": [{"name": name, "command": "exit 3"}]}))

    async def whole() -> None:
        app = tui_on(own_server, work)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, "failed: 0 of 1 job done, 1 failed")
            await pilot.press("2", "right")
            await until(pilot, "user_error")
            await pilot.press("slash", *(60 * "表"), "enter")
            await until(pilot, "(Esc clears)  ? keys")
            await pilot.press("escape")
            await until(pilot, "user_error")
            await pilot.press("enter")
            assert "✗ failed" in (await until(pilot, "Return code")).splitlines()[1]
            await pilot.press("q", "v")
            await until(pilot, "1 attempt on 1 runner")
            await until(pilot, "(job 1)")
            await pilot.press("q", "d")
            await until(pilot, "Deletes 1 job")
            await pilot.press("n", "p")
            await until(pilot, "for your verdict")
            await pilot.press("q")

    asyncio.run(whole())
