"""Fixtures of the dashboard's tests."""

from collections.abc import Iterator

import pytest
from dash_bench import DashProgram, DashReader, running_dash


@pytest.fixture(scope="module")
def dash(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashProgram]:
    """A ``torc-dash`` in front of the module's server."""
    with running_dash(tmp_path_factory.mktemp("dash"), "--api-url", server) as program:
        yield program


@pytest.fixture
def owner(dash: DashProgram) -> DashReader:
    """The person who started it."""
    return dash.owner()
