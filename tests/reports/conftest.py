"""Fixtures of the reports' tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torc_framework.client import TorcClient

sys.path.insert(0, str(Path(__file__).parent))  # pytest's import mode "importlib" does not

from reports_bench import Bench


@pytest.fixture
def bench(server: str) -> Iterator[Bench]:
    """A server's client, and what tests do with it."""
    client = TorcClient(server)
    yield Bench(client)
    client.close()
