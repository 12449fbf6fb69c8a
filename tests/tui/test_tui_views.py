"""Views over the main screen, on a real server: timeline, plots, attempts, verdicts, filters, rights."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from people import Person, guarded_server, password_of
from programs import Torc
from textual.pilot import Pilot
from tui_bench import DEADLINE_S, Terminal, screen_text, tui_on, until

from torc_framework.tui.app import TuiApp
from torc_framework.tui.screens.timeline_screen import TimelineScreen

Steps = Callable[[TuiApp, "Pilot[None]"], Awaitable[None]]
Create = Callable[[dict[str, Any]], int]
BUSY = "t=$(date +%s); while [ $(( $(date +%s) - t )) -lt {0} ]; do :; done"


def at(url: str, folder: Path, steps: Steps, size: tuple[int, int] = (100, 30), *, read_only: bool = False) -> None:
    """Run steps on the app in a screen of this size."""

    async def whole() -> None:
        app = tui_on(url, folder)
        app.setup.rights.is_read_only = read_only
        async with app.run_test(size=size) as pilot:
            await steps(app, pilot)

    asyncio.run(whole())


@pytest.fixture
def measured(create: Create, torc: Torc) -> int:
    """A workflow with samples over time, of which one job failed."""
    jobs: list[dict[str, Any]] = [
        {"name": "train_{i}", "command": f"{BUSY.format(3)}; [ {{i}} != 2 ]", "parameters": {"i": "1:3"}},
        {"name": "short", "command": "true"},
        {"name": "after", "command": "true", "depends_on": ["train_2"]},
    ]
    for job in jobs:
        job["resource_requirements"] = "small"
    spec = {
        "name": "measured",
        "resource_monitor": {"granularity": "time_series", "sample_interval_seconds": 1},
        "resource_requirements": [{"name": "small", "num_cpus": 1, "memory": "64m", "runtime": "PT5M"}],
        "jobs": jobs,
    }
    workflow = create(spec)
    torc("run", workflow)
    return workflow


@pytest.fixture
def pending(create: Create, torc: Torc) -> int:
    """A workflow with three jobs that wait for a verdict; each would succeed at its second attempt."""
    command = 'echo strange >&2; [ "$(cat done_{i} 2>/dev/null)" ] || { echo x > done_{i}; exit 9; }'
    job = {"name": "odd_{i}", "command": command, "parameters": {"i": "1:3"}}
    workflow = create({"name": "odd", "use_pending_failed": True, "jobs": [job]})
    torc("run", workflow)
    return workflow


# --- use over time --------------------------------------------------------------------------------


def test_attempts_and_plots(measured: int, own_server: str, work: Path) -> None:
    """A job shows CPU and memory against its request; m plots them, also of all jobs together."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("2", "right")
        await until(pilot, "1 of 5")
        await pilot.press("enter")
        shown = await until(pilot, "CPU and memory over time")
        cpu = next(line for line in shown.splitlines() if line.startswith("  CPU  "))
        assert re.search("[▁▂▃▄▅▆▇█]", cpu), shown
        assert re.search(r"Peak memory +[\d.]+ [KM]iB, \d+%", shown), shown
        await pilot.press("m")
        shown = await until(pilot, "100% requested")
        assert "train_1 (job 1), run 1, attempt 1" in shown
        assert "64 MiB requested" in shown
        await pilot.resize_terminal(80, 24)
        await until(pilot, "64 MiB requested")
        await pilot.press("q", "q", "left", "m")
        await until(pilot, "All jobs of measured (workflow 1), run 1")
        await until(pilot, "offered")

    at(own_server, work, steps)


def test_without_samples(pending: int, own_server: str, work: Path) -> None:
    """The plots say how samples are kept."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "odd")
        await pilot.press("m")
        await until(pilot, "granularity: time_series")

    at(own_server, work, steps)


# --- timeline -------------------------------------------------------------------------------------


async def until_shown_s(pilot: "Pilot[None]", screen: TimelineScreen, seconds: float) -> None:
    """Wait until the timeline shows about so many seconds."""
    end = time.monotonic() + DEADLINE_S
    while (view := screen.pane.view) is None or view.to_s - view.from_s != pytest.approx(seconds, rel=0.1):
        assert time.monotonic() < end, view
        await pilot.pause(0.05)


def test_timeline(measured: int, own_server: str, work: Path) -> None:
    """Rows by runner; keys move between attempts, zoom, scroll, and open the job."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("v")
        shown = await until(pilot, "4 attempts on 1 runner")
        assert "✓━" in shown
        assert "✗━" in shown
        screen = app.screen
        assert isinstance(screen, TimelineScreen)
        await until(pilot, "(job ")
        first = screen.pane.cursor
        await pilot.press("down")
        assert screen.pane.cursor != first
        whole = screen.pane.view
        assert whole is not None
        await pilot.press("plus", "plus")
        await until_shown_s(pilot, screen, (whole.to_s - whole.from_s) / 4)
        await pilot.press("full_stop", "0")
        await until(pilot, "4 attempts on 1 runner")
        await pilot.press("b")
        await until(pilot, "on 1 host")
        await pilot.resize_terminal(40, 12)
        await pilot.pause(0.3)
        await pilot.click("#lines", offset=(30, 1))
        await pilot.press("enter")
        await until(pilot, "Run, attempt")

    at(own_server, work, steps, (100, 24))


def test_timeline_of_nothing(create: Create, own_server: str, work: Path) -> None:
    """A workflow that has not run has no attempts; no key fails."""
    create({"name": "new", "jobs": [{"name": "a", "command": "true"}]})

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "not started")
        await pilot.press("v")
        await until(pilot, "Nothing has run yet")
        await pilot.press(*"+-,.0bl", "up", "down", "left", "right", "enter", "home", "end", "pageup")
        await until(pilot, "Nothing has run yet")

    at(own_server, work, steps)


# --- verdicts and retries -------------------------------------------------------------------------


def test_verdicts(pending: int, torc: Torc, own_server: str, work: Path) -> None:
    """One job is failed, the marked ones are retried with more memory, each after a preview."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "odd")
        await pilot.press("p")
        await until(pilot, "3 jobs of odd for your verdict")
        await until(pilot, "odd_1")
        await pilot.press("x")
        await until(pilot, "torc pending fail 1 1")
        await until(pilot, "y do it")
        await pilot.press("y")
        await until(pilot, "✓ done")
        await pilot.press("q")
        await until(pilot, "2 jobs of odd for your verdict")
        await pilot.press("asterisk")
        await until(pilot, "all marked")
        await pilot.press("R", *"2g", "space", *"runtime", "enter")
        await until(pilot, "runtime is no request")
        await pilot.press("R", *"2g", "space", *"runtime=PT5M", "enter")
        await until(pilot, "torc pending retry 1 --memory=2g --runtime=PT5M")
        await until(pilot, "y do it")
        await pilot.press("y")
        await until(pilot, "✓ done")
        await pilot.press("q")
        await until(pilot, "No job waits for a verdict")

    at(own_server, work, steps)
    assert torc("run", pending).returncode == 1
    counts = torc("workflows", "status", pending).stdout
    assert "completed" in counts


def test_retry_of_a_cause(measured: int, torc: Torc, own_server: str, work: Path) -> None:
    """From the cause under the cursor: which jobs run again, then they are ready."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("right", "down", "T")
        shown = await until(pilot, "Would retry 1 job: train_2; with what follows them 2 jobs run again.")
        assert "torc jobs retry 1 --filter 'status:failed" in shown
        await pilot.press("Y")
        await until(pilot, "copied")
        assert app.clipboard.startswith("torc jobs retry 1 --filter ")
        await pilot.press("y")
        await until(pilot, "Next: torc run 1")
        await pilot.press("q")
        await until(pilot, "○")

    at(own_server, work, steps)


# --- filters --------------------------------------------------------------------------------------


def test_a_filter_as_it_is_typed(measured: int, own_server: str, work: Path) -> None:
    """Fields and values are listed, Tab completes them, an error is named before Enter."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("2", "slash", *"sta")
        await until(pilot, "started:")
        await pilot.press("t", "tab", *"fa")
        shown = await until(pilot, "status:failed")
        assert 'no status is called "fa"' in shown
        await pilot.press("tab", "enter")
        await until(pilot, "1 of 1")
        await pilot.press("Y")
        await until(pilot, "torc jobs list 1 --filter status:failed")

    at(own_server, work, steps)


def test_events_by_content(measured: int, own_server: str, work: Path) -> None:
    """A text finds events by their type and by their data."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        await pilot.press("4")
        await until(pilot, "job_failed")
        await pilot.press("f", *"TRAIN_2", "enter")
        await until(pilot, "TRAIN_2 (Esc clears)")
        shown = await until(pilot, " train_2 ")
        assert "train_1" not in shown
        await pilot.press("f", *["backspace"] * 7, *"category:job_failed", "enter")
        await until(pilot, "1 of 1 ")

    at(own_server, work, steps, (140, 30))


# --- mouse ----------------------------------------------------------------------------------------


def test_the_mouse_chooses_tabs_and_rows(measured: int, own_server: str, work: Path) -> None:
    """A click on a tab shows it; a second click on a row opens it."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        shown = await until(pilot, "Failures by cause")
        line = next(line for line in shown.splitlines() if "2 Jobs" in line)
        await pilot.click("#tabs", offset=(line.index("2 Jobs"), 0))
        await until(pilot, "1 of 5")
        await pilot.click("#details", offset=(10, 3))
        await until(pilot, "3 of 5")
        await pilot.click("#details", offset=(10, 3))
        await until(pilot, "train_3 (job 3)")

    at(own_server, work, steps)


# --- rights ---------------------------------------------------------------------------------------


def test_read_only(measured: int, own_server: str, work: Path) -> None:
    """Nothing that changes something is offered; a key says why; looking goes on."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        shown = await until(pilot, "Failures by cause")
        assert "delete" not in shown.splitlines()[-1]
        assert "read-only" in shown.splitlines()[0]
        for key in "nixIRsCdFTSu":
            if key != "u":
                await pilot.press(key)
                await until(pilot, "--read-only")
                await pilot.press("left")
        await pilot.press("2", "right")
        await until(pilot, "1 of 5")
        for key in "cty":
            await pilot.press(key)
            await until(pilot, "--read-only")
        await pilot.press("question_mark")
        shown = await until(pilot, "Keys that change something are not offered: torc tui was started with --read-only.")
        assert "Delete" not in shown
        await pilot.press("q", "colon", *"delete")
        await until(pilot, "no action is called so")
        await pilot.press("escape", "p", "y", "x")
        await until(pilot, "Verdicts are not offered")

    at(own_server, work, steps, read_only=True)


def test_access_that_ends(torc_env: dict[str, str], terminal: Terminal, work: Path, tmp_path: Path) -> None:
    """A member of a group works with a shared workflow; when the sharing ends, nothing is offered."""
    folder = tmp_path / "guarded"
    folder.mkdir()
    with guarded_server(folder, ("alice", "bob", "root"), "--admin-user", "root") as server:
        people = {name: Person(server.url, name, password_of(name)) for name in ("alice", "bob", "root")}
        group = people["root"].ok("POST", "/access_groups", {"name": "team"})["id"]
        people["root"].ok("POST", f"/access_groups/{group}/members", {"user_name": "bob"})
        flow = people["alice"].ok("POST", "/workflows", {"name": "shared", "user": "alice"})["id"]
        people["alice"].ok("POST", f"/workflows/{flow}/access_groups", {"workflow_id": flow, "group_id": group})
        more = {"TORC_API_URL": server.url, "TORC_CLIENT__USERNAME": "bob", "TORC_PASSWORD": password_of("bob")}
        terminal.start((110, 24), {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color", **more}, work, "-a")
        terminal.until("shared")
        terminal.until("d delete")
        people["alice"].ok("DELETE", f"/workflows/{flow}/access_groups/{group}")
        terminal.keys("2")
        terminal.until("does not have access to workflow")
        terminal.keys("d")
        terminal.until("does not have access to workflow")
        terminal.keys("r")
        terminal.until("No workflows yet")
        people["alice"].ok("POST", f"/workflows/{flow}/access_groups", {"workflow_id": flow, "group_id": group})
        terminal.keys("r")
        terminal.until("d delete")
        terminal.keys("q")
        terminal.until("ended with 0")


def test_nothing_leaves_after_the_end(measured: int, own_server: str, work: Path) -> None:
    """Keys that come after q open nothing and fail nothing."""

    async def steps(app: TuiApp, pilot: "Pilot[None]") -> None:
        await until(pilot, "Failures by cause")
        app.action_leave()
        for name in ("timeline", "pending"):
            app.action_view(name)
        assert "Timeline" not in screen_text(app)

    at(own_server, work, steps)
