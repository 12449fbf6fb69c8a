"""A client of a real server, and a workflow to begin with."""

from collections.abc import Iterator

import pytest

from torc_framework.client import TorcClient
from torc_framework.models.records import WorkflowRecord


@pytest.fixture
def api(server: str) -> Iterator[TorcClient]:
    """A client of the module's server."""
    with TorcClient(server) as client:
        yield client


@pytest.fixture
def workflow(api: TorcClient) -> int:
    """Id of a new, empty workflow."""
    return api.create(WorkflowRecord(name="w", user="u")).id or 0
