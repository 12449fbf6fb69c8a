"""Fixtures of the crash tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Return a bench with a running server."""
    bench = Bench(tmp_path)
    bench.start_server()
    yield bench
    bench.close()
