"""The cluster for the tests of this folder: started if it is not running, stopped after the tests that started it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from k8s_cluster import WITH_NODE, Namespace, PodTorc, held, new_namespace, start_for_tests, stop_after_tests
from programs import running_server
from pytest_session import common_folder, finished_base


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the cluster unless it is up."""
    start_for_tests(common_folder(tmp_path_factory.getbasetemp()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the clusters after the last test, if this test run started them."""
    if base := finished_base(session):
        stop_after_tests(base)
        slurm_cluster.stop_after_tests(base)


@pytest.fixture
def api_namespace(made_cluster: None, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace for a test that needs no node."""
    with held(alone=False), new_namespace(tmp_path) as namespace:
        yield namespace


@pytest.fixture
def _node() -> None:
    if not WITH_NODE:
        pytest.skip("this cluster has no node (K8S_NODE=0)")


@pytest.fixture
def namespace(_node: None, api_namespace: Namespace) -> Namespace:
    """A namespace on the cluster, shared with others."""
    return api_namespace


@pytest.fixture
def quiet_namespace(_node: None, made_cluster: None, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace for a test that disturbs others, or that others would disturb."""
    with held(alone=True), new_namespace(tmp_path) as namespace:
        yield namespace


@pytest.fixture
def api_torc(api_namespace: Namespace, work: Path, tmp_path: Path) -> Iterator[PodTorc]:
    """The program with a server of its own, for a test that needs no node."""
    with running_server(tmp_path) as url:
        yield PodTorc(api_namespace, work, url, tmp_path / "home")


@pytest.fixture
def pod_torc(_node: None, api_torc: PodTorc) -> PodTorc:
    """The program with a server of its own on the shared cluster."""
    return api_torc


@pytest.fixture
def quiet_torc(quiet_namespace: Namespace, work: Path, tmp_path: Path) -> Iterator[PodTorc]:
    """The same, with the cluster to itself."""
    with running_server(tmp_path) as url:
        yield PodTorc(quiet_namespace, work, url, tmp_path / "home")


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_cluster.Cluster]:
    """The Slurm cluster, shared with others."""
    slurm_cluster.start_for_tests(common_folder(tmp_path_factory.getbasetemp()))
    with slurm_cluster.held(alone=False), slurm_cluster.running_cluster() as cluster:
        yield cluster
