"""Fixtures of the dashboard's tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from browser_pages import DashPage, open_dash, running_chromium
from dash_bench import DashProgram, DashReader, running_dash

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def dash(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashProgram]:
    """A ``torc-dash`` in front of the module's server."""
    with running_dash(tmp_path_factory.mktemp("dash"), "--api-url", server) as program:
        yield program


@pytest.fixture
def owner(dash: DashProgram) -> DashReader:
    """The person who started it."""
    return dash.owner()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A headless Chromium."""
    with running_chromium() as found:
        yield found


@pytest.fixture
def page(browser: "Browser", dash: DashProgram) -> Iterator[DashPage]:
    """The dashboard in the browser of the person who started it."""
    with open_dash(browser, dash.url) as opened:
        yield opened
