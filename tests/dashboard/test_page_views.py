"""Every view in a browser: what axe finds, small windows, hostile names and logs, texts like those of the server."""

import json
from collections.abc import Iterator

import pytest
from browser_pages import DashPage, open_dash
from dash_bench import DashProgram, DashReader
from playwright.sync_api import Browser, expect

from torc_framework.text.quantities import count_text, duration_text, percent_text, relative_time_text, size_text

HOSTILE = "<img src=x onerror=\"window.attacked='name'\"> & ]]> {{x}}"
LOG = (
    r"printf '\033]8;;javascript:alert(1)\033\\link\033]8;;\033\\ \033[31mred\033[0m\n"
    r"10%%\r99%%\n<b>bold</b>\n\033[2J\007'"
)
VIEWS = (
    *("", "/jobs", "/jobs?q=status:nothing", "/graph", "/graph?kind=files", "/timeline", "/failures", "/sweep"),
    *("/runners", "/data", "/data/results", "/data/requirements", "/data/actions", "/events?level=debug", "/plots"),
)
OTHERS = ("w", "create/wizard", "create/editor", "create/file", "create/path", "server", "settings", "help")


@pytest.fixture(scope="module")
def failed(dash: DashProgram) -> int:
    """A workflow with a sweep, failures, a hostile name and a hostile log."""
    owner = dash.owner()
    train = {
        "name": "train_{lr}_{depth}",
        "command": "[ {depth} != 2 ]",
        "parameters": {"lr": "[0.1,0.2]", "depth": "1:3"},
    }
    hostile = {"name": HOSTILE, "command": f"{LOG}; exit 4"}
    after = {"name": "after", "command": "true", "depends_on_regexes": ["train_.*"]}
    description = "<script>window.attacked = 'description'</script>"
    workflow = owner.create({"name": "trouble", "description": description, "jobs": [train, hostile, after]})
    owner.run_to_its_end(workflow)
    return workflow


@pytest.fixture(scope="module")
def fresh(dash: DashProgram) -> int:
    """A workflow that has not run."""
    return dash.owner().create({"name": "fresh", "jobs": [{"name": "a", "command": "true"}]})


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Browser, dash: DashProgram) -> Iterator[DashPage]:
    """The page in both themes."""
    with open_dash(browser, dash.url, color_scheme=request.param) as page:
        yield page


def test_axe_finds_nothing_serious(themed: DashPage, failed: int, fresh: int) -> None:
    """On any view, with content and without, axe finds nothing serious."""
    routes = [*(f"w/{id_}{view}" for id_ in (failed, fresh) for view in VIEWS), *OTHERS]
    findings: dict[str, list[str]] = {}
    for route in routes:
        themed.show(route)
        if found := themed.accessibility_findings():
            findings[route] = found
    assert findings == {}, json.dumps(findings, indent=1)


def test_axe_finds_nothing_serious_in_dialogs_and_on_a_job(themed: DashPage, dash: DashProgram, failed: int) -> None:
    """Neither in dialogs nor on the tabs of a job."""
    job = dash.owner().get(f"api/workflows/{failed}/views/jobs", q="exit:4", fields="id")["columns"]["id"][0]
    for tab in ("log", "evidence", "command", "dependencies", "events"):
        themed.show(f"w/{failed}/j/{job}/attempt/1.1/{tab}")
        assert themed.accessibility_findings() == []
    page = themed.show(f"w/{failed}")
    for name in ("Delete…", "Run here…", "Reinitialize…"):
        page.get_by_role("button", name=name).first.click()
        expect(page.get_by_role("dialog").locator("code")).to_contain_text("torc")
        assert themed.accessibility_findings() == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("width", [360, 640])
def test_small_windows_show_everything(browser: Browser, dash: DashProgram, failed: int, width: int) -> None:
    """At 360 pixels, and at 640 (1280 at 200 %), no view is wider than the window, and the menu opens."""
    with open_dash(browser, dash.url, viewport={"width": width, "height": 740}) as opened:
        for route in (*(f"w/{failed}{view}" for view in VIEWS), *OTHERS):
            page = opened.show(route)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (route, wide)
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("navigation", name="Views").get_by_role("link", name="Workflows").click()
        expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()


def test_names_and_logs_are_shown_as_text(page: DashPage, owner: DashReader, failed: int) -> None:
    """Markup in names and descriptions is text; control sequences are colours or gone; a link leads nowhere."""
    job = owner.get(f"api/workflows/{failed}/views/jobs", q="exit:4", fields="id")["columns"]["id"][0]
    for route in (
        f"w/{failed}",
        f"w/{failed}/jobs",
        f"w/{failed}/graph",
        f"w/{failed}/failures",
        f"w/{failed}/events",
        "w",
    ):
        page.show(route)
    shown = page.show(f"w/{failed}/j/{job}/attempt/1.1/log/stdout")
    expect(shown.get_by_role("heading", name=HOSTILE)).to_be_visible()
    lines = shown.locator(".log-line")
    expect(lines).to_have_text(["link red", "99%", "<b>bold</b>", ""])
    expect(lines.first.locator("span.ansi-red")).to_have_text("red")
    assert shown.evaluate("window.attacked") is None
    assert shown.evaluate("document.querySelectorAll('main a[href^=\"javascript\"], main b > b, main img').length") == 0


def test_times_follow_the_readers_zone(browser: Browser, dash: DashProgram, failed: int) -> None:
    """Times are those of the reader's zone, with the exact one on hover, until the reader prefers UTC."""
    with open_dash(browser, dash.url, timezone_id="Asia/Kolkata") as opened:
        page = opened.show(f"w/{failed}")
        time = page.locator("main time").first
        local, exact = time.inner_text(), time.get_attribute("title") or ""
        assert exact.endswith("Z")
        opened.show("settings").get_by_label("In UTC").check()
        assert opened.show(f"w/{failed}").locator("main time").first.inner_text() == exact[11:19] != local


AMOUNTS = [
    0,
    0.004,
    0.0994,
    0.31,
    0.25,
    0.35,
    1,
    9.94,
    9.95,
    9.96,
    12.5,
    13.5,
    59.7,
    75,
    3599.4,
    3600,
    5430,
    86399,
    1e5,
    2e6,
]
SIZES = [
    0,
    1,
    512,
    1000,
    1023,
    1024,
    1280,
    1536,
    10_000,
    102_348,
    1_048_576,
    1_500_000,
    47_600_000_000,
    1 << 40,
    1 << 62,
]


def test_texts_of_amounts_are_those_of_the_command_line(page: DashPage) -> None:
    """Sizes, durations, counts, shares and distances of time read as in `torc_framework.text.quantities`."""
    script = """async ([seconds, sizes]) => {
        const q = await import(new URL("static/core/quantities.js", document.baseURI));
        return [seconds.map(q.durationText), seconds.map((each) => q.durationText(-each)), sizes.map(q.sizeText),
                sizes.map((each) => q.countText(each, "job")), seconds.map((each) => q.percentText(each % 100)),
                seconds.map((each) => q.relativeTimeText(-each))]}"""
    shown = page.show("w").evaluate(script, [AMOUNTS, SIZES[:-1]])
    assert shown == [
        [duration_text(each) for each in AMOUNTS],
        [duration_text(-each) for each in AMOUNTS],
        [size_text(each) for each in SIZES[:-1]],
        [count_text(each, "job") for each in SIZES[:-1]],
        [percent_text(each % 100) for each in AMOUNTS],
        [relative_time_text(-each) for each in AMOUNTS],
    ]
