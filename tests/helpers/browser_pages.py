"""A real browser for tests: Debian's Chromium, and a page whose complaints fail the test."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from attrs import define, field

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
"""Chromium ends all requests with it when an address of the machine's network interfaces changes."""
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@contextmanager
def running_chromium(*flags: str) -> Iterator["Browser"]:
    """Run a headless Chromium; where there is none the test is skipped, except in CI."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing = "no Chromium: install Debian's package 'chromium'"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*FLAGS, *flags])
        yield browser
        browser.close()


@define
class DashPage:
    """A page of the dashboard in a browser.

    Attributes:
        page: The page.
        base: URL of the dashboard, with a slash at its end.
        complaints: Errors of scripts, and violations of the content security policy.
        lost_requests: Requests since the last load that Chromium ended because network interfaces of the machine
            changed, which tests with network namespaces do.
    """

    page: "Page"
    base: str
    complaints: list[str] = field(factory=list)
    lost_requests: int = 0

    def __attrs_post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self._hear(message))  # noqa: PLW0108 - Playwright sets attributes on methods

    def _hear(self, message: Any) -> None:
        if NETWORK_CHANGED in message.text:
            self.lost_requests += 1
        elif "Content Security Policy" in message.text or (message.type == "error" and "status of" not in message.text):
            self.complaints.append(message.text)

    def show(self, route: str) -> "Page":
        """Show a view by its address after ``#/``, and wait until nothing is loading."""
        from playwright.sync_api import Error

        self.page.goto(f"{self.base}#/{route}")
        try:
            self._wait_until_shown()
        except Error:
            if not self.lost_requests:
                raise
            self.lost_requests = 0
            self.page.reload()
            self._wait_until_shown()
        return self.page

    def _wait_until_shown(self) -> None:
        self.page.wait_for_selector("main h1")
        self.page.wait_for_function("() => !document.querySelector('main .loading')")

    def accessibility_findings(self) -> list[str]:
        """Return what axe finds serious or critical in what is shown, one line each."""
        self.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
        found = self.page.evaluate("rules => axe.run(document, {runOnly: rules})", AXE_RULES)
        return [
            f"{each['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]


@contextmanager
def open_dash(browser: "Browser", url: str, **options: Any) -> Iterator[DashPage]:
    """Open the URL that ``torc-dash`` printed in a browser of its own; its complaints fail the test at the end."""
    context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = DashPage(context.new_page(), re.sub(r"[?#].*", "", url))
    page.page.goto(url)
    yield page
    context.close()
    assert page.complaints == []
