"""The hosts for the tests of this folder: one set for each process that runs tests, and fresh ones on request."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_hosts import ClientTorc, SshHosts, end_abandoned, running_hosts, why_none


@pytest.fixture(scope="session")
def _possible() -> None:
    """Skip the test where hosts cannot be made; in CI it fails."""
    if reason := why_none():
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    end_abandoned()


@pytest.fixture(scope="session")
def hosts(_possible: None) -> Iterator[SshHosts]:
    """Four hosts, shared by the tests that leave them as they are."""
    with running_hosts() as hosts:
        yield hosts


@pytest.fixture
def own_hosts(_possible: None) -> Iterator[SshHosts]:
    """Four hosts of this test's own, which it may disturb."""
    with running_hosts() as hosts:
        yield hosts


@pytest.fixture
def client_torc(hosts: SshHosts, work: Path, tmp_path: Path) -> Iterator[ClientTorc]:
    """The program on the client of the shared hosts, with a server of its own."""
    with hosts.server(tmp_path) as url:
        yield ClientTorc(hosts, work, url)


@pytest.fixture
def own_torc(own_hosts: SshHosts, work: Path, tmp_path: Path) -> Iterator[ClientTorc]:
    """The program on the client of this test's own hosts, with a server of its own."""
    with own_hosts.server(tmp_path) as url:
        yield ClientTorc(own_hosts, work, url)
