"""The cluster for the tests of this folder: started if it is not running, stopped after the tests that started it."""

from collections.abc import Iterator

import pytest
from pytest_session import common_folder, finished_base
from slurm_cluster import Cluster, ServedTorc, held, running_cluster, start_for_tests, stop_after_tests


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the cluster unless it is up."""
    start_for_tests(common_folder(tmp_path_factory.getbasetemp()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the cluster after the last test, if this test run started it."""
    if base := finished_base(session):
        stop_after_tests(base)


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
