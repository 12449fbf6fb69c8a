"""Many tabs of one browser: they share one event stream, whichever of them opens, closes, hides or crashes."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from browser_pages import DashPage, open_dash
from dash_bench import DashProgram, DashReader
from playwright.sync_api import Browser, Error, expect

BACK_MS = 60_000
TABS = 8
"""More than the six connections that a browser has to one host."""
JOBS = {"jobs": [{"name": "a", "command": "true"}]}


@pytest.fixture
def tabs(browser: Browser, dash: DashProgram) -> Iterator[list[DashPage]]:
    """Tabs of one browser."""
    with open_dash(browser, dash.url) as opened:
        context = opened.page.context
        pages = [opened, *(DashPage(context.new_page(), opened.base) for _ in range(TABS - 1))]
        yield pages
        assert [complaint for each in pages for complaint in each.complaints] == []


def show_all(tabs: list[DashPage], workflows: list[int]) -> None:
    """Show the workflows in the tabs by turns, all of them live."""
    for number, tab in enumerate(tabs):
        shown = tab.show(f"w/{workflows[number % len(workflows)]}")
        expect(shown.locator(".connection")).to_have_text("● Live", timeout=BACK_MS)


def is_told_of_the_end(tab: DashPage) -> None:
    """Wait until a tab shows that the workflow has ended, sooner than it asks by itself."""
    expect(tab.page.locator(".headline")).to_contain_text("completed: 1 job", timeout=BACK_MS)


def test_eight_tabs_are_live_and_stay_so_when_others_are_closed(tabs: list[DashPage], owner: DashReader) -> None:
    """Each tab can load its views, also while seven others are live, and after the first ones are gone."""
    workflows = [owner.create({"name": f"tab{n}", **JOBS}) for n in range(3)]
    show_all(tabs, workflows)
    owner.run_to_its_end(workflows[0])
    for tab in tabs[::3]:
        is_told_of_the_end(tab)
    for tab in tabs[:5]:
        tab.page.close()
    for workflow in workflows[1:]:
        owner.run_to_its_end(workflow)
    for tab in tabs[5:]:
        is_told_of_the_end(tab)
        tab.show(f"w/{workflows[0]}/jobs")


def test_a_tab_that_crashes_does_not_end_the_events_of_others(tabs: list[DashPage], owner: DashReader) -> None:
    """Also if the crashed one was the first, with whose process the worker ends."""
    workflow = owner.create({"name": "crash", **JOBS})
    for tab in tabs[:3]:
        expect(tab.show(f"w/{workflow}/events").locator(".connection")).to_have_text("● Live", timeout=BACK_MS)
    with suppress(Error):
        tabs[0].page.goto("chrome://crash", timeout=2000)
    owner.run_to_its_end(workflow)
    for tab in tabs[1:3]:
        expect(tab.page.locator("main tbody")).to_contain_text("workflow_completed", timeout=BACK_MS)


def test_a_hidden_tab_is_live_again_when_it_is_seen(tabs: list[DashPage], owner: DashReader) -> None:
    """Hidden for long it gets no events, while another tab does."""
    workflow = owner.create({"name": "hidden", **JOBS})
    hidden, seen = tabs[:2]
    show_all([hidden, seen], [workflow])
    hide = """isHidden => {
        Object.defineProperty(document, "hidden", {configurable: true, get: () => isHidden});
        document.dispatchEvent(new Event("visibilitychange"))}"""
    hidden.page.evaluate(hide, True)
    expect(hidden.page.locator(".connection")).to_have_count(0, timeout=BACK_MS)
    expect(seen.page.locator(".connection")).to_have_text("● Live")
    owner.run_to_its_end(workflow)
    is_told_of_the_end(seen)
    hidden.page.evaluate(hide, False)
    expect(hidden.page.locator(".connection")).to_have_text("● Live", timeout=BACK_MS)
    is_told_of_the_end(hidden)


def test_a_browser_without_shared_workers_has_a_stream_in_each_tab(
    browser: Browser, dash: DashProgram, owner: DashReader
) -> None:
    workflow = owner.create({"name": "alone", **JOBS})
    with open_dash(browser, dash.url) as opened:
        expect(opened.show(f"w/{workflow}").locator(".connection")).to_have_text("● Live")
        streams: list[str] = []
        opened.page.on("request", lambda request: streams.append(request.url) if "/events?" in request.url else None)
        opened.page.reload()
        expect(opened.show(f"w/{workflow}").locator(".connection")).to_have_text("● Live")
        assert streams == []
        opened.page.add_init_script("delete globalThis.SharedWorker")
        opened.page.reload()
        expect(opened.show(f"w/{workflow}").locator(".connection")).to_have_text("● Live")
        owner.run_to_its_end(workflow)
        is_told_of_the_end(opened)
        assert len(streams) == 1
