"""Fixtures of the plots' tests: a real browser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser_pages import running_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A headless Chromium."""
    with running_chromium() as found:
        yield found


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
