"""Fixtures of the reports' tests."""

from collections.abc import Iterator

import pytest
from reports_bench import Bench

from torc_framework.client import TorcClient


@pytest.fixture
def bench(server: str) -> Iterator[Bench]:
    """A server's client, and what tests do with it."""
    client = TorcClient(server)
    yield Bench(client)
    client.close()
