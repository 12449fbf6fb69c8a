"""The cluster for the tests of this folder: started if it is not running, stopped after the tests that started it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from k8s_cluster import WITH_NODE, Namespace, PodTorc, held, is_up, new_namespace, script, why_none
from programs import running_server

_STARTED = "k8s-cluster-started"
_FAILED = "k8s-cluster-failed"


def _common(base: Path) -> Path:
    """Return the folder that all processes of one test run share."""
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the cluster unless it is up; in CI one test fails where that is impossible, and the others are skipped."""
    if reason := why_none():
        _without(reason, _common(tmp_path_factory.getbasetemp()))
    with held(alone=False):  # a test that has it alone may have stopped parts of it for a while
        if is_up():
            return
    common = _common(tmp_path_factory.getbasetemp())
    with held(alone=True):
        if (common / _FAILED).exists():
            pytest.skip("the Kubernetes cluster did not start; the failure of another test says why")
        if is_up():
            return
        (common / _STARTED).touch()
        try:
            script("up", timeout=3600)
        except AssertionError as error:
            _without(str(error), common)


def _without(reason: str, common: Path) -> None:
    """End the test where there is no cluster."""
    if os.environ.get("CI") != "true":
        pytest.skip(reason)
    try:
        (common / _FAILED).touch(exist_ok=False)
    except FileExistsError:
        pytest.skip("there is no Kubernetes cluster; the failure of another test says why")
    pytest.fail(reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the cluster after the last test, if this test run started it."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None and (factory.getbasetemp() / _STARTED).exists():
        with held(alone=True):
            script("down")


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
