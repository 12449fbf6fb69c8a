"""Fixtures of the plots' tests: a real browser."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A headless Chromium; where there is none the test is skipped, except in CI."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        missing = "no Chromium: install Debian's package 'chromium'"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture
def show(browser: "Browser") -> Iterator[Callable[[Path], "Page"]]:
    """Open a file without a network; any error of the browser fails the test at its end."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    complaints: list[str] = []

    def open_(path: Path) -> "Page":
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_
    context.close()
    assert complaints == []
