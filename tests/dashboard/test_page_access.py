"""The page for people who do not use a mouse, or not the usual colours, sizes and movements."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_pages import DashPage, open_dash
from dash_bench import DashProgram, DashReader
from playwright.sync_api import Browser, Page, expect

RUN_MS = 60_000
MOST_STOPS = 80
"""Most presses of Tab until what is looked for has the focus."""
SETTINGS: dict[str, dict[str, Any]] = {
    "small-light": {"viewport": {"width": 360, "height": 740}},
    "small-dark": {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
    "zoomed-light": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},
    "zoomed-dark": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2, "color_scheme": "dark"},
    "forced-colours": {"forced_colors": "active"},
    "no-motion": {"reduced_motion": "reduce"},
}
VIEWS = ("", "/jobs", "/graph", "/timeline", "/failures", "/sweep", "/runners", "/data/results", "/events", "/plots")
OTHERS = ("w", "create/wizard", "server", "settings", "help")


@pytest.fixture(scope="module")
def failed(dash: DashProgram) -> int:
    """A workflow of which a job failed and another was canceled."""
    owner = dash.owner()
    train = {"name": "train_{a}_{b}", "command": "[ {a} != 2 ]", "parameters": {"a": "1:3", "b": "1:2"}}
    after = {"name": "after", "command": "true", "depends_on_regexes": ["train_.*"]}
    workflow = owner.create({"name": "trouble", "jobs": [train, after]})
    owner.run_to_its_end(workflow)
    return workflow


@pytest.fixture(params=SETTINGS)
def adapted(request: pytest.FixtureRequest, browser: Browser, dash: DashProgram) -> Iterator[DashPage]:
    """The page with each of the settings of a reader."""
    with open_dash(browser, dash.url, **SETTINGS[request.param]) as page:
        yield page


def test_axe_finds_nothing_serious_with_any_setting(adapted: DashPage, failed: int) -> None:
    """Small, at 200 %, in both themes, with forced colours and without movement: no view has a serious finding."""
    findings = {}
    for route in (*(f"w/{failed}{view}" for view in VIEWS), *OTHERS):
        adapted.show(route)
        if found := adapted.accessibility_findings():
            findings[route] = found
    assert findings == {}


def test_dialogs_fit_small_windows(adapted: DashPage, failed: int) -> None:
    """Dialogs are in the window, and axe finds nothing serious in them."""
    for view, name in (("/failures", "Recover…"), ("/failures", "Retry failed jobs…"), ("/jobs", "Columns…")):
        page = adapted.show(f"w/{failed}{view}")
        page.get_by_role("button", name=name).first.click()
        expect(page.get_by_role("dialog").get_by_role("heading", level=2)).to_be_visible()
        expect(page.get_by_role("dialog").locator(".loading")).to_have_count(0, timeout=RUN_MS)
        left, right = page.evaluate("""() => {
            const box = document.querySelector("dialog").getBoundingClientRect();
            return [box.left, innerWidth - box.right]}""")
        assert min(left, right) >= 0
        assert adapted.accessibility_findings() == []
        page.keyboard.press("Escape")


def test_nothing_moves_where_a_reader_wants_that(browser: Browser, dash: DashProgram, failed: int) -> None:
    """With `prefers-reduced-motion` no animation and no transition runs."""
    with open_dash(browser, dash.url, reduced_motion="reduce") as opened:
        page = opened.show(f"w/{failed}")
        page.get_by_role("button", name="Delete…").click()
        assert page.evaluate("document.getAnimations().length") == 0


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this text or label has the focus, which must be visible."""
    shown = "() => { const e = document.activeElement; return e.ariaLabel || e.innerText || e.value || '' }"
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if str(page.evaluate(shown)).strip() == name:
            style = "() => getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(style) != "none", f"the focus on {name} is not visible"
            return
    raise AssertionError(f"Tab does not lead to {name!r}")


def test_the_main_story_by_keyboard_alone(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """From the list to the failed workflow, its cause, and a retry that finishes it, with Tab and Enter."""
    marker = tmp_path / "fixed"
    workflow = owner.create({"name": "by-keys", "jobs": [{"name": "bad", "command": f"[ -e {marker} ]"}]})
    owner.run_to_its_end(workflow)
    shown = page.show("w")
    tab_to(shown, "by-keys")
    shown.keyboard.press("Enter")
    expect(shown.locator(".headline")).to_contain_text("1 failed")
    tab_to(shown, "See why")
    shown.keyboard.press("Enter")
    expect(shown.locator(".cause")).to_contain_text("exit code 1")
    expect(shown.locator(".loading")).to_have_count(0)
    marker.touch()
    tab_to(shown, "Retry failed jobs…")
    shown.keyboard.press("Enter")
    expect(shown.get_by_role("dialog")).to_contain_text("1 job runs again: 1 failed.")
    tab_to(shown, "Retry failed jobs")
    shown.keyboard.press("Enter")
    expect(shown.get_by_text("Nothing failed.")).to_be_visible(timeout=RUN_MS)
    expect(shown.get_by_role("dialog")).to_have_count(0, timeout=RUN_MS)
    shown.wait_for_function("document.activeElement !== document.body")


@pytest.mark.parametrize("name", ["Run here…", "Reinitialize…", "Archive…", "Delete…"])
def test_a_dialog_keeps_the_focus_and_gives_it_back(page: DashPage, failed: int, name: str) -> None:
    """Tab stays in the dialog or in the browser's own bar; Escape closes it, and the button has the focus again."""
    shown = page.show(f"w/{failed}")
    button = shown.get_by_role("button", name=name).first
    button.focus()
    shown.keyboard.press("Enter")
    expect(shown.get_by_role("dialog").locator("code").first).to_contain_text("torc")
    for _ in range(20):
        shown.keyboard.press("Tab")
        inside = "() => document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"
        assert shown.evaluate(inside)
    shown.keyboard.press("Escape")
    expect(shown.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()
