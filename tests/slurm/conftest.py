"""The cluster for the tests of this folder: started if it is not running, stopped after the tests that started it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import MISSING, Cluster, ServedTorc, can_be_made, held, is_up, running_cluster, script

_STARTED = "slurm-cluster-started"


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the cluster unless it is up."""
    if not can_be_made():
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    if is_up():
        return
    with held(alone=False):  # a test that has it alone may have stopped the controller for a while
        if is_up():
            return
    with held(alone=True):
        if not is_up():
            (_common(tmp_path_factory.getbasetemp()) / _STARTED).touch()
            script("up")


def _common(base: Path) -> Path:
    """Return the folder that all processes of one test run share."""
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the cluster after the last test, if this test run started it."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None and (factory.getbasetemp() / _STARTED).exists():
        with held(alone=True):
            script("down")


@pytest.fixture
def cluster(made_cluster: None) -> Iterator[Cluster]:
    """The cluster, shared with others, as a user who has nothing yet."""
    with held(alone=False), running_cluster() as cluster:
        yield cluster


@pytest.fixture
def quiet_cluster(made_cluster: None) -> Iterator[Cluster]:
    """The cluster for a test that disturbs others, or that others would disturb."""
    with held(alone=True), running_cluster() as cluster:
        yield cluster


@pytest.fixture
def served_torc(cluster: Cluster) -> Iterator[ServedTorc]:
    """The program with a server of its own on the shared cluster; its allocations are canceled in the end."""
    with cluster.server() as url:
        torc = ServedTorc(cluster, url)
        yield torc
        torc.cancel_all()


@pytest.fixture
def quiet_torc(quiet_cluster: Cluster) -> Iterator[ServedTorc]:
    """The same, with the cluster to itself."""
    with quiet_cluster.server() as url:
        torc = ServedTorc(quiet_cluster, url)
        yield torc
        torc.cancel_all()
